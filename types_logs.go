package takt

import "time"

// LogEntry is one line of an execution's log.
type LogEntry struct {
	Shard    int       `json:"shard"`
	Attempt  int       `json:"attempt"`
	Line     int64     `json:"line" doc:"Number of the line in the attempt's log, from 0. Numbers that are missing were dropped."`
	Time     time.Time `json:"time" doc:"When it was written, by the worker's clock."`
	Stream   string    `json:"stream" enum:"stdout,stderr,log,dropped" doc:"log: written through the SDK. dropped: lines are missing here."`
	Text     string    `json:"text" doc:"The line without its newline. Control characters are in it as they were written: make them harmless before you show them."`
	Replaced bool      `json:"replaced,omitempty" doc:"Bytes that are not UTF-8 stand as U+FFFD in text; raw has them."`
	Raw      []byte    `json:"raw,omitempty" doc:"The line's bytes, when text does not hold them: base64."`
	Partial  bool      `json:"partial,omitempty" doc:"No newline stands behind it: a piece of a long line, or the last one."`
	Dropped  *Dropped  `json:"dropped,omitempty" doc:"Of stream dropped: what is missing."`
}

// LogList is a part of an execution's log, in the order in which the server took it in.
type LogList struct {
	Items   []LogEntry `json:"items" nullable:"false"`
	Next    string     `json:"next" doc:"Pass as after to go on from here; also at the end of what is there, for more may come."`
	More    bool       `json:"more,omitempty" doc:"There is more already."`
	End     bool       `json:"end,omitempty" doc:"All attempts that were asked for have ended and nothing more can come, unless the execution is rerun."`
	Dropped *Dropped   `json:"dropped,omitempty" doc:"With the last page there is: all that is missing, at the workers and by the limit of the server."`
}
