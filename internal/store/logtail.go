package store

// logTail bounds in bytes what is kept of a log beyond its limit.
const logTail = 16 << 10

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
		lines, bytes = lines+l, bytes+b
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
