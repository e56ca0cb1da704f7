package job

// Pause keeps a job's schedules from firing. Requests still run. It belongs to the job, not to a revision:
// edits leave it alone. It ends by itself at Until, without a write.
type Pause struct {
	At     Instant `json:"at"`              // planned instants from here on are held
	Until  Instant `json:"until,omitempty"` // up to here, not included; 0: until a person resumes the job
	By     string  `json:"by,omitempty"`
	Reason string  `json:"reason,omitempty"`
}

// Covers tells whether a planned instant falls into the pause. A nil pause covers nothing.
func (p *Pause) Covers(at Instant) bool {
	return p != nil && at >= p.At && (p.Until == 0 || at < p.Until)
}

// Deletion is how a job was deleted. What it started keeps its definition.
type Deletion struct {
	At     Instant `json:"at"`
	Cancel bool    `json:"cancel,omitempty"` // its executions are cancelled; else they run to their end
	By     string  `json:"by,omitempty"`
	Reason string  `json:"reason,omitempty"`
}

// Change says who made a revision, and why.
type Change struct {
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
}
