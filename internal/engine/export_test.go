package engine

// Kept tells what the memory of e holds: entries of timers, pools with their lines, hanging polls.
func (e *Engine) Kept() (timers, pools, polls int) {
	for _, p := range e.pools {
		pools += 1 + len(p.lines)
	}
	return len(e.timers.entries), pools, len(e.waiting)
}

// Audited counts the instants that audits have looked at.
func (e *Engine) Audited() int { return e.audits }

// Watched counts the jobs whose ends wake the inbox.
func (e *Engine) Watched() int { return len(e.watched) + len(e.watchers) }
