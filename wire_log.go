package takt

// LogRequest ships the logs of attempts: POST /api/v1/worker/log. It needs no session: what it names is
// (execution, shard, token), and the token must be one that was granted for that shard. It changes no
// state. Send it again until it is answered: lines are known by their numbers, and a repeated or
// overlapping chunk writes nothing twice.
type LogRequest struct {
	Chunks []LogChunk `json:"chunks"`
}

// LogChunk is a run of lines of one attempt. Lines are numbered from 0 per attempt, without gaps.
type LogChunk struct {
	Execution string    `json:"execution"`
	Shard     int       `json:"shard"`
	Token     int64     `json:"token"`
	Offset    int64     `json:"offset" doc:"Number of the first line."`
	Lines     []LogLine `json:"lines,omitempty"`
	Final     bool      `json:"final,omitempty" doc:"Nothing follows behind these lines; readers are told that this is the end."`
}

// LogLine is one line as it was written. Its bytes are kept as they are: they travel as text when they
// are valid UTF-8 without NUL, else as base64.
type LogLine struct {
	AtMs    int64    `json:"at" doc:"When it was written, by the worker's clock: Unix time in ms."`
	Stream  string   `json:"stream" enum:"stdout,stderr,log,dropped"`
	Text    string   `json:"text,omitempty" doc:"The line without its newline; valid UTF-8 without NUL."`
	Bytes   []byte   `json:"bytes,omitempty" doc:"In place of text, when that cannot hold it: base64."`
	Partial bool     `json:"partial,omitempty" doc:"No newline stands behind it: a piece of a long line, or the last one."`
	Dropped *Dropped `json:"dropped,omitempty" doc:"Of stream dropped: what the worker had no room for at this place."`
}

// Dropped counts what is not there.
type Dropped struct {
	Lines int64 `json:"lines"`
	Bytes int64 `json:"bytes"`
}

// LogResponse gives each chunk's fate, in order.
type LogResponse struct {
	Chunks []LogFate `json:"chunks"`
}

// LogFate is what became of a chunk.
type LogFate struct {
	Fate string `json:"fate" enum:"taken,gap,closed,unknown" doc:"taken: all of it is durable, or was before. gap: nothing was taken, lines from next on are wanted. closed: the log takes nothing more. unknown: no such token was granted for the shard."`
	Next int64  `json:"next" doc:"Number of the line that is wanted next."`
}
