package store

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/taktsched/takt/internal/engine"
	"github.com/taktsched/takt/internal/job"
)

// PostgreSQL refuses NUL and bytes that are not UTF-8 in text, SQLite keeps them and later cuts or
// garbles. The adapters ask the functions below first, so that both refuse the same values alike.

// Clean tells whether s can be kept as text: valid UTF-8 without NUL.
func Clean(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 }

// MakeClean is s with everything that cannot be kept replaced by U+FFFD: for texts that must be kept
// whatever they hold, such as those of a poison row.
func MakeClean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// CheckBatch refuses (KindRejected, code "bad_text") a batch with a text that cannot be kept. Poison
// rows and facts are left out: they are kept made clean (facts by encoding/json).
func CheckBatch(b *engine.Batch) error {
	for i := range b.Executions {
		e := &b.Executions[i].Row
		text, bad := unclean(e.Namespace, e.Job, e.Pool, e.Handler, string(e.Trigger), e.RequestKey, string(e.State), string(e.Reason), string(e.Cancel))
		if !bad && !cleanRaw(e.Params) {
			text, bad = string(e.Params), true
		}
		if bad {
			return badText("execution "+e.ID.String(), text)
		}
	}
	for i := range b.Shards {
		if err := checkShard(&b.Shards[i].Row); err != nil {
			return err
		}
	}
	for i := range b.Sessions {
		s := &b.Sessions[i]
		if err := texts("session "+string(s.ID), string(s.ID), s.Namespace, s.Pool, s.Worker, s.Incarnation, s.Build,
			strings.Join(s.Handlers, ""), flat(s.Labels)); err != nil {
			return err
		}
	}
	for i := range b.Decisions {
		d := &b.Decisions[i]
		if err := texts("decision", d.Namespace, d.Name, d.Schedule, string(d.Kind), string(d.Reason)); err != nil {
			return err
		}
	}
	for _, c := range slices.Concat(b.Cursors, b.DropCursors) {
		if err := texts("cursor", c.Schedule); err != nil {
			return err
		}
	}
	return nil
}

func checkShard(s *job.Shard) error {
	if text, bad := uncleanShard(s); bad {
		return badText("shard of execution "+s.Execution.String(), text)
	}
	return nil
}

func uncleanShard(s *job.Shard) (text string, bad bool) {
	if text, bad = unclean(string(s.State), string(s.Reason), string(s.Session), s.Worker, s.Progress.Note); bad {
		return text, true
	}
	switch {
	case !cleanRaw(s.Checkpoint):
		return string(s.Checkpoint), true
	case !cleanRaw(s.Result):
		return string(s.Result), true
	}
	if text, bad = uncleanFailure(s.Error); bad {
		return text, true
	}
	for i := range s.Attempts {
		a := &s.Attempts[i]
		if text, bad = unclean(a.Worker, string(a.State), string(a.Reason)); bad {
			return text, true
		}
		if text, bad = uncleanFailure(a.Error); bad {
			return text, true
		}
	}
	return "", false
}

func uncleanFailure(f *job.Failure) (text string, bad bool) {
	if f == nil {
		return "", false
	}
	return unclean(f.Class, f.Message)
}

// CheckPutJob refuses a definition with a text that cannot be kept.
func CheckPutJob(p *PutJob) error {
	d := &p.Definition
	all := []string{d.Namespace, d.Name, flat(d.Labels), d.Spec.Pool, d.Spec.Handler, string(d.Spec.Params), d.Spec.Retry.Jitter,
		d.Spec.Title, d.Spec.Owner, d.Spec.Description, p.Change.By, p.Change.Reason}
	for _, s := range d.Spec.Schedules {
		all = append(append(all, s.ID, s.Cron, s.TimeZone), s.Calendars...)
	}
	if len(d.Spec.Params) > 0 && !job.ValidJSON(d.Spec.Params) {
		return job.Errorf(job.KindRejected, "bad_json", "the parameters are no JSON")
	}
	return texts("job "+d.Name, all...)
}

// CheckTrigger refuses a request with a text that cannot be kept.
func CheckTrigger(t *Trigger) error {
	if len(t.Request.Params) > 0 && !job.ValidJSON(t.Request.Params) {
		return job.Errorf(job.KindRejected, "bad_json", "the parameters are no JSON")
	}
	if !cleanRaw(t.Request.Params) {
		return badText("request", string(t.Request.Params))
	}
	return texts("request", t.Namespace, t.Job, t.Request.Key,
		t.Key.Namespace, t.Key.Operation, t.Key.Key, t.Key.Hash)
}

// CheckAsk refuses a request with a text that cannot be kept.
func CheckAsk(a *Ask) error { return texts("request", a.Namespace, string(a.Kind), a.Note) }

func texts(what string, all ...string) error {
	if text, bad := unclean(all...); bad {
		return badText(what, text)
	}
	return nil
}

// unclean finds the first text that cannot be kept.
func unclean(all ...string) (text string, bad bool) {
	for _, s := range all {
		if s != "" && !Clean(s) {
			return s, true
		}
	}
	return "", false
}

func cleanRaw(b []byte) bool { return utf8.Valid(b) && bytes.IndexByte(b, 0) < 0 }

func badText(what, text string) error {
	e := job.Errorf(job.KindRejected, "bad_text", "%s holds a text with NUL or with bytes that are not UTF-8: %.80q", MakeClean(what), text)
	if _, id, _ := strings.Cut(MakeClean(what), "execution "); id != "" { // the row that is to be left out
		e = e.WithField(id)
	}
	return e
}

func flat(m map[string]string) string {
	var b strings.Builder
	for k, v := range m {
		b.WriteString(k)
		b.WriteString(v)
	}
	return b.String()
}

// JournalFacts is what a Reader shows of stored facts, whose form is the engine's business (engine.PackFacts): a JSON list of objects.
func JournalFacts(stored string) (json.RawMessage, error) {
	facts, err := engine.UnpackFacts([]byte(stored))
	if err != nil {
		return nil, err
	}
	return engine.AppendFacts(nil, facts), nil
}
