package engine

// stale tells that a schedule's next instant was computed under another revision of its job, or when one of its calendars
// said something else. A calendar that changes is an entry job_changed for each job that names it, in the transaction of the
// change: so what is stale has an entry on its way, which decides what the old instants still owe. That makes exactly one of
// an old and a new instant, as an edit does.
func (d *Due) stale() bool {
	return d.Cursor.Revision != d.Definition.Revision || d.Cursor.Stamp != d.Definition.Stamp()
}
