package store

// logTail bounds in bytes what is kept of a log beyond its limit.
const logTail = 16 << 10

// mostCounted is where counts of what is missing stop: the largest number that is exact in JSON. Workers report counts, and
// what they report may be anything.
const mostCounted = 1<<53 - 1

// AddCount adds counts of at least 0; a sum that is too large stays at 2^53-1.
func AddCount(sum, more int64) int64 {
	if sum >= mostCounted-more {
		return mostCounted
	}
	return sum + more
}

// LogTail keeps the newest lines of those over a log's limit, at most 16 KiB and a sixteenth of the limit: how
// something ended is what is read first. What is missing then are so many lines and bytes.
func LogTail(over []LogLine, limit int64) (tail []LogLine, lines, bytes int64) {
	room, from := min(logTail, limit/16), len(over)
	for ; from > 0; from-- {
		if room -= int64(len(over[from-1].Bytes)) + LogLineCost; room < 0 {
			break
		}
	}
	for i := range over[:from] {
		l, b := over[i].Missing()
		lines, bytes = AddCount(lines, l), AddCount(bytes, b)
	}
	return over[from:], lines, bytes
}

// Missing is what a log lacks that lacks the line: the line itself, or what it counts.
func (l *LogLine) Missing() (lines, bytes int64) {
	if l.Stream == LogDropped {
		return l.DroppedLines, l.DroppedBytes
	}
	return 1, int64(len(l.Bytes))
}
