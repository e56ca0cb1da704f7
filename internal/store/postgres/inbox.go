package postgres

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

var (
	qInbox = statement(`SELECT ` + entryColumns + `, items, taken FROM inbox
		WHERE partition BETWEEN $1 AND $1 ORDER BY partition, rank, id LIMIT $2`)
	qInboxesFilled = statement(`SELECT p FROM unnest($1::integer[]) p WHERE EXISTS (SELECT 1 FROM inbox WHERE partition BETWEEN p AND p OFFSET 0)`)
	qPlaces        = statement(`SELECT j.uid, ` + plannerOf + `, j.partition, j.revision FROM unnest($1::uuid[]) u (uid)` + eachOf("j", `SELECT * FROM all_jobs WHERE uid = u.uid`))

	qQueuedOf = statement(`(SELECT id FROM executions
		WHERE namespace BETWEEN $1 AND $1 AND job BETWEEN $2 AND $2 AND job_uid = $3 AND partition = $4 AND state IN ('queued', 'scheduled')
		ORDER BY namespace, job, id LIMIT $5)
		UNION ALL (` + membersOf(`id`, `lots l`, `l.partition BETWEEN $4 AND $4 AND l.job_uid = $3 AND l.state = 'queued'`) + ` ORDER BY m.id LIMIT $5)
		ORDER BY id LIMIT $5`)
)

// errMore says that a page needs more than can be asked at once.
var errMore = errors.New("more is to be read")

var _ store.Inboxes = (*Store)(nil)

// InboxesFilled implements store.Inboxes.
func (s *Store) InboxesFilled(ctx context.Context, partitions []int) (filled []int, err error) {
	err = s.ask(ctx, "look at inboxes", question{qInboxesFilled, []any{partitions}, func(rows pgx.Rows) error {
		var p int
		err := rows.Scan(&p)
		filled = append(filled, p)
		return err
	}})
	return filled, err
}

// InboxPage implements store.Engine.
func (s *Store) InboxPage(ctx context.Context, partition, limit int) (engine.InboxPage, error) {
	const op = "read inbox"
	out, err := s.quickInbox(ctx, op, partition, limit)
	if errors.Is(err, errMore) {
		err = s.read(ctx, op, func(r *link) error {
			found := page{entries: store.Pageful[entry]{Limit: limit}}
			if _, err := r.ask(found.first(partition)...); err != nil {
				return err
			}
			j := newJoining(found.entries.Rows)
			if _, err := r.ask(j.sets()...); err != nil {
				return err
			}
			out, err = found.joined(partition, j, r)
			return err
		})
	}
	if err != nil {
		return engine.InboxPage{}, err
	}
	return out, nil
}

// quickInbox reads the page in one or two ways to the database, each a snapshot of its own. When the partition was committed to in
// between they do not belong together, and that is errMore, as is what only some entries want.
func (s *Store) quickInbox(ctx context.Context, op string, partition, limit int) (engine.InboxPage, error) {
	found := page{entries: store.Pageful[entry]{Limit: limit}}
	if err := s.ask(ctx, op, found.first(partition)...); err != nil {
		return engine.InboxPage{}, err
	}
	if len(found.entries.Rows) > 0 {
		s.singles.note(partition, found.entries.Rows)
	}
	j := newJoining(found.entries.Rows)
	if sets := j.sets(); len(sets) > 0 {
		var seq int64
		var last job.Token
		if err := s.ask(ctx, op, append([]question{seqIs(partition, &seq, &last)}, sets...)...); err != nil {
			return engine.InboxPage{}, err
		}
		if seq != found.seq {
			return engine.InboxPage{}, errMore
		}
	}
	return found.joined(partition, j, nil)
}

// page is a page of the inbox before what its entries refer to is added.
type page struct {
	seq     int64
	last    job.Token
	entries store.Pageful[entry]
}

func (p *page) first(partition int) []question {
	return []question{seqIs(partition, &p.seq, &p.last), {qInbox, []any{partition, p.entries.Limit + 1}, func(rows pgx.Rows) error {
		return eachEntry(rows, func(e entry) error { return p.entries.Add(e, store.SizeOfEntry(&e.Entry)) })
	}}}
}

// joined is the page with the revision that each entry is about, and cursors and places of its job, deleted or not. With no link
// what some entries want besides is errMore.
func (p *page) joined(partition int, j *joining, r *link) (out engine.InboxPage, err error) {
	if p.seq < 0 {
		return out, noPartition(partition)
	}
	out.Seq, out.Partial = p.seq, p.entries.More
	if err := j.calendars(r); err != nil {
		return out, err
	}
	for i := range p.entries.Rows {
		e := &p.entries.Rows[i]
		if !e.Job.IsZero() {
			if err := j.join(r, partition, e); err != nil {
				return out, err
			}
		}
		out.Entries = append(out.Entries, e.Entry)
	}
	n, err := j.pasts(r, out.Entries)
	if err != nil {
		return out, err
	}
	out.Partial = out.Partial || n < len(out.Entries)
	out.Entries = out.Entries[:n]
	return out, nil
}

// joining is what the entries of a page refer to.
type joining struct {
	known    definitions
	found    []*job.Definition
	versions []version
	uids     [][16]byte
	cursors  map[job.UID][]job.Cursor
	places   map[job.UID]engine.Entry
	newest   map[job.UID]int64 // revisions
}

func newJoining(entries []entry) *joining {
	j := &joining{known: noDefinitions(), cursors: map[job.UID][]job.Cursor{}, places: map[job.UID]engine.Entry{}, newest: map[job.UID]int64{}}
	for i := range entries {
		if uid := entries[i].Job; !uid.IsZero() {
			j.versions = append(j.versions, version{uid, entries[i].revision})
			if _, seen := j.cursors[uid]; !seen {
				j.cursors[uid] = nil
				j.uids = append(j.uids, uid)
			}
		}
	}
	return j
}

// sets are the questions whose answers the entries refer to, one for each kind of rows.
func (j *joining) sets() []question {
	if len(j.uids) == 0 {
		return nil
	}
	return []question{
		j.known.question(j.versions, &j.found),
		{qCursorsOf, []any{j.uids}, func(rows pgx.Rows) error {
			c, err := scanCursor(rows)
			j.cursors[c.Job] = append(j.cursors[c.Job], c)
			return err
		}},
		{qPlaces, []any{j.uids}, func(rows pgx.Rows) error {
			var uid job.UID
			var e engine.Entry
			var newest int64
			err := rows.Scan((*[16]byte)(&uid), &e.Planner, &e.Place, &newest)
			j.places[uid], j.newest[uid] = e, newest
			return err
		}},
	}
}

func (j *joining) calendars(r *link) error {
	missing := j.known.calendars.Missing(j.found...)
	switch {
	case len(missing) == 0:
		return nil
	case r == nil:
		return errMore
	}
	err := readCalendars(r, j.known.calendars, missing)
	j.known.calendars.Fill(j.found...)
	return err
}

// join adds to an entry what it refers to.
func (j *joining) join(r *link, partition int, e *entry) (err error) {
	e.Definition, e.Cursors = j.known.of[version{e.Job, e.revision}], slices.Clone(j.cursors[e.Job])
	e.Planner, e.Place = j.places[e.Job].Planner, j.places[e.Job].Place
	if e.Before, err = before(r, j.known, e.Definition, e.Cursors); err != nil {
		return err
	}
	if err := store.JoinRunning(&e.Entry, func(id job.ExecutionID) (bool, error) {
		if r == nil {
			return false, errMore
		}
		var one int
		return r.one(qLives, []any{[16]byte(id)}, &one)
	}); err != nil {
		return err
	}
	older := e.Kind.Triggers() && e.Definition != nil && e.Definition.Revision != j.newest[e.Job]
	switch {
	case older && r == nil:
		return errMore
	case older:
		e.Pool, err = newestPool(r, j.known, e.Job)
		return err
	case e.Kind != engine.EntryBackfill && (e.Kind != engine.EntryCancelJob || e.Definition == nil):
		return nil
	case r == nil:
		return errMore
	case e.Kind == engine.EntryBackfill:
		return joinBackfill(r, j.known, e)
	default:
		return queued(r, partition, e)
	}
}

func queued(r *link, partition int, e *entry) error {
	args := []any{e.Definition.Namespace, e.Definition.Name, [16]byte(e.Job), partition, engine.QueuedMax}
	return r.each(qQueuedOf, args, func(rows pgx.Rows) error {
		var id job.ExecutionID
		err := rows.Scan((*[16]byte)(&id))
		e.Queued = append(e.Queued, id)
		return err
	})
}

// before (without a link: errMore) is the revision under which instants are held back by a pause or owed, when d is a newer one.
func before(r *link, known definitions, d *job.Definition, cursors []job.Cursor) (old *job.Definition, err error) {
	for _, c := range cursors {
		if d != nil && (c.Held != 0 || c.Owed != 0) && c.Revision != d.Revision {
			if r == nil {
				return nil, errMore
			}
			if old, err = known.get(r, version{d.UID, c.Revision}); err != nil {
				return nil, err
			}
		}
	}
	return old, nil
}

// pasts (without a link: errMore) adds what the jobs of entries and their calendars said before. n: for how many entries there
// was room.
func (j *joining) pasts(r *link, entries []engine.Entry) (n int, err error) {
	past := store.PastOf{Calendars: func(namespace, name string) ([]job.Calendar, error) {
		return pastCalendars(r, namespace, name)
	}}
	for i := range entries {
		e := &entries[i]
		switch {
		case !e.WantsPast():
			continue
		case r == nil:
			return 0, errMore
		}
		if err := j.known.fetch(r, column(store.PastRevisions(e), func(n *int64) version { return version{e.Job, *n} })); err != nil {
			return 0, err
		}
		if err := past.Put(e, func(revision int64) (*job.Definition, error) { return j.known.get(r, version{e.Job, revision}) }); err != nil {
			return 0, err
		}
		if past.Full() {
			return i + 1, nil
		}
	}
	return len(entries), nil
}

func pastCalendars(r *link, namespace, name string) (all []job.Calendar, err error) {
	bytes := 0
	err = calendarRevisions(r, namespace, name, math.MaxInt64, engine.CalendarsMax, func(v store.CalendarRevision) error {
		if v.Deleted {
			return nil
		}
		return store.AddPast(&all, &v.Calendar, &bytes)
	})
	return all, err
}
