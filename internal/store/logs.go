package store

import (
	"context"
	"time"

	"github.com/taktsched/takt/internal/job"
)

// LogKept is how long after the end of an attempt its log still takes lines (R6).
const LogKept = 60 * time.Second

// LogStream says where a line came from.
type LogStream string

// The streams. A dropped line stands where lines are missing and counts them.
const (
	LogStdout  LogStream = "stdout"
	LogStderr  LogStream = "stderr"
	LogTask    LogStream = "log"
	LogDropped LogStream = "dropped"
)

// LogLine is one line of an attempt's log, as it was written.
type LogLine struct {
	At           job.Instant // by the worker's clock; it informs
	Stream       LogStream
	Bytes        []byte // without the newline; any bytes
	Partial      bool   // no newline stands behind it
	DroppedLines int64  // of LogDropped
	DroppedBytes int64
}

// LogChunk is a run of lines of one attempt.
type LogChunk struct {
	Execution job.ExecutionID
	Shard     int
	Token     job.Token
	Offset    int64 // number of the first line; lines are numbered from 0 per attempt
	Lines     []LogLine
	Final     bool // nothing follows
}

// AppendLogs are chunks of any attempts.
type AppendLogs struct {
	Chunks []LogChunk
	At     job.Instant // when they arrived
	Limit  int64       // bytes of one attempt's log, each line counted with LogLineCost; what comes beyond is counted and dropped
}

// LogLineCost is what a line counts against the limit beside its bytes.
const LogLineCost = 8

// LogFate tells what became of a chunk.
type LogFate string

// The fates.
const (
	LogTaken   LogFate = "taken"   // all of it is durable, or was before
	LogGap     LogFate = "gap"     // nothing was taken: lines before it are missing
	LogClosed  LogFate = "closed"  // nothing new was taken: its end was said, or the attempt ended more than LogKept ago
	LogUnknown LogFate = "unknown" // no such token was granted for the shard
)

// LogAppended is the answer to a chunk.
type LogAppended struct {
	Fate LogFate
	Next int64 // number of the line that is wanted
}

// LogFilter selects lines of an execution.
type LogFilter struct {
	Execution job.ExecutionID
	Shard     int         // -1: all
	Attempt   int         // 0: all
	Since     job.Instant // that arrived then or later
	After     string      // Next of the page before; "": from the start
	Limit     int         // lines; 0: DefaultLimit
	Bytes     int         // of lines, after which a page ends; 0: 1 MiB
}

// LogRow is a stored line.
type LogRow struct {
	Shard   int
	Attempt int
	Token   job.Token
	Number  int64
	LogLine
}

// LogPage is a part of an execution's log.
type LogPage struct {
	Rows []LogRow
	Next string // always set: leads behind Rows, also at the end, where more may come
	More bool   // there is more already
}

// LogHead is how far the log of one attempt has come.
type LogHead struct {
	Shard        int
	Token        job.Token
	Attempt      int
	Next         int64
	Closed       bool  // its end was said
	Bytes        int64 // kept
	DroppedLines int64 // at the worker and by the limit
	DroppedBytes int64
}

// SweepLogs deletes logs that nothing was added to since Before, but of no execution that has not ended: an attempt
// may be silent for long.
type SweepLogs struct {
	Namespace string // "": all
	Before    job.Instant
	Limit     int // rows deleted in one step
}

// Logs keeps what attempts write. It is outside of the engine and changes no state.
type Logs interface {
	// AppendLogs takes chunks in, each by itself, and answers each. Lines with numbers that are there already are
	// passed over, so that the same chunk may come again. A chunk without lines makes the log known. Of what is beyond
	// the limit the newest lines (LogTail) are held back. A dropped line is written where lines begin to be missing; at
	// the end of the log one more with the rest, and then what was held back. The first chunk of a later token of the
	// shard shows it, too: the worker of the former one may never say that its log has ended.
	//
	// Lines of one attempt keep their order. Whatever a reader has seen of an execution, new lines come behind it.
	AppendLogs(ctx context.Context, a AppendLogs) ([]LogAppended, error)
	// ReadLogs reads lines of an execution in the order in which they were taken in. KindInvalid code "bad_after".
	ReadLogs(ctx context.Context, f LogFilter) (LogPage, error)
	// LogHeads lists the known logs of an execution by shard and token; shard -1 for all.
	LogHeads(ctx context.Context, execution job.ExecutionID, shard int) ([]LogHead, error)
	// SweepLogs deletes old logs, at most Limit rows; returns how many. Fewer than Limit: that was all.
	SweepLogs(ctx context.Context, s SweepLogs) (int, error)
}
