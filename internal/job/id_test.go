package job_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/taktsched/takt/internal/job"
)

func drawID(t *rapid.T, name string) job.ExecutionID {
	at := job.Instant(rapid.Int64Range(0, 1<<48-1).Draw(t, name+" at"))
	random := [10]byte(rapid.SliceOfN(rapid.Byte(), 10, 10).Draw(t, name+" random"))
	if rapid.Bool().Draw(t, name+" planned") {
		return job.PlannedID(job.UID(append(random[:], 1, 2, 3, 4, 5, 6)), at)
	}
	return job.RequestedID(at, random)
}

func TestExecutionIDRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		id := drawID(t, "id")
		text := id.String()
		if len(text) != 26 || text != strings.ToLower(text) {
			t.Fatalf("%q", text)
		}
		lookalikes := strings.NewReplacer("1", "I", "0", "o").Replace(text)
		ells := strings.NewReplacer("1", "l", "0", "O").Replace(strings.ToUpper(text))
		for _, form := range []string{text, strings.ToUpper(text), lookalikes, ells, id.UUID(), strings.ToUpper(id.UUID())} {
			got, err := job.ParseExecutionID(form)
			if err != nil || got != id {
				t.Fatalf("ParseExecutionID(%q) = %v, %v; want %v", form, got, err, id)
			}
		}
		var back job.ExecutionID
		b, err := id.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		if err := back.UnmarshalText(b); err != nil || back != id {
			t.Fatalf("UnmarshalText(%s) = %v, %v", b, back, err)
		}
	})
}

// Texts sort as bytes do, and both by planned time.
func TestExecutionIDOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawID(t, "a"), drawID(t, "b")
		if got, want := strings.Compare(a.String(), b.String()), bytes.Compare(a[:], b[:]); got != want {
			t.Fatalf("%v and %v: texts %d, bytes %d", a, b, got, want)
		}
		if a.PlannedAt() < b.PlannedAt() && a.String() >= b.String() {
			t.Fatalf("%v (%v) comes before %v (%v)", a, a.PlannedAt(), b, b.PlannedAt())
		}
	})
}

func TestPlannedID(t *testing.T) {
	t.Parallel()
	one, other := job.UID{1}, job.UID{2}
	at := job.InstantOf(time.Date(2026, 5, 5, 10, 0, 0, 123e6, time.UTC))
	id := job.PlannedID(one, at)
	if again := job.PlannedID(one, at); again != id {
		t.Errorf("planning twice: %v and %v", id, again)
	}
	if id == job.PlannedID(other, at) || id == job.PlannedID(one, at+1) {
		t.Error("another job or instant has the same id")
	}
	if id.PlannedAt() != at {
		t.Errorf("PlannedAt %v, want %v", id.PlannedAt(), at)
	}
	uuid := id.UUID()
	if uuid[14] != '8' || !strings.ContainsRune("89ab", rune(uuid[19])) {
		t.Errorf("%s is no UUID of version 8", uuid)
	}
	// ids are in databases: this value must never change
	if want := "06ezf549fe2y18k8n9z357c4a4"; id.String() != want {
		t.Errorf("the form of ids changed: %s", id)
	}
}

func TestParseExecutionIDRefuses(t *testing.T) {
	t.Parallel()
	good := job.PlannedID(job.UID{1}, 1_700_000_000_000)
	for _, s := range []string{"", "x", good.String()[1:], good.String() + "0", strings.Repeat("u", 26), strings.Repeat("\n", 26),
		good.UUID()[1:], strings.ReplaceAll(good.UUID(), "-", "0"), strings.Replace(good.UUID(), "8", "g", 1), strings.Repeat("é", 13)} {
		got, err := job.ParseExecutionID(s)
		if job.KindOf(err) != job.KindInvalid || !got.IsZero() {
			t.Errorf("ParseExecutionID(%q) = %v, %v", s, got, err)
		}
	}
}

func TestUID(t *testing.T) {
	t.Parallel()
	u := job.UID{0xab, 15: 1}
	if got, err := job.ParseUID(u.String()); err != nil || got != u || u.IsZero() || !(job.UID{}).IsZero() {
		t.Errorf("ParseUID(%s) = %v, %v", u, got, err)
	}
	for _, s := range []string{"", "ab", u.String() + "00", strings.Repeat("g", 32)} {
		if _, err := job.ParseUID(s); job.KindOf(err) != job.KindInvalid {
			t.Errorf("ParseUID(%q): %v", s, err)
		}
	}
}

func TestSessionID(t *testing.T) {
	t.Parallel()
	id := job.SessionIDOf(31, "default", "billing", "w1", "a")
	if p, ok := id.Partition(); p != 31 || !ok {
		t.Errorf("partition of %s: %d, %v", id, p, ok)
	}
	if id != job.SessionIDOf(31, "default", "billing", "w1", "a") {
		t.Error("opening twice makes two sessions")
	}
	for _, other := range []job.SessionID{job.SessionIDOf(30, "default", "billing", "w1", "a"), job.SessionIDOf(31, "defaul", "tbilling", "w1", "a"),
		job.SessionIDOf(31, "default", "billing", "w2", "a"), job.SessionIDOf(31, "default", "billing", "w1", "b")} {
		if other == id {
			t.Errorf("%s names two sessions", id)
		}
	}
	tail := string(id)[2:]
	for _, s := range []string{"", tail, "." + tail, "x" + tail, "-1" + tail, "99999" + tail, string(id) + "0", "31"} {
		if p, ok := job.SessionID(s).Partition(); ok {
			t.Errorf("partition of %q: %d", s, p)
		}
	}
}

func TestKey(t *testing.T) {
	t.Parallel()
	at := job.InstantOf(time.Date(2026, 5, 5, 10, 0, 0, 0, time.UTC))
	id := job.RequestedID(at, [10]byte{7})
	for _, c := range []struct {
		name string
		of   job.Execution
		want string
	}{
		{"planned", job.Execution{Trigger: job.TriggerSchedule}, "default/invoices@2026-05-05T10:00:00.000Z#3"},
		{"planned, key ignored", job.Execution{Trigger: job.TriggerSchedule, RequestKey: "k"}, "default/invoices@2026-05-05T10:00:00.000Z#3"},
		{"request with a key", job.Execution{Trigger: job.TriggerRequest, RequestKey: "order-7"}, "default/invoices!order-7#3"},
		{"request", job.Execution{Trigger: job.TriggerRequest}, "default/invoices!" + id.String() + "#3"},
	} {
		c.of.ID, c.of.Namespace, c.of.Job, c.of.PlannedAt = id, "default", "invoices", at
		if got := job.Key(&c.of, 3); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestInstant(t *testing.T) {
	t.Parallel()
	if job.InstantOf(time.Time{}) != 0 || !job.Instant(0).Time().IsZero() || job.Instant(0).String() != "-" {
		t.Error("the zero instant is none")
	}
	i := job.InstantOf(time.Date(2026, 5, 5, 12, 0, 0, 1_999_999, time.FixedZone("", 7200)))
	if i.String() != "2026-05-05T10:00:00.001Z" || i.Add(1500*time.Microsecond).Sub(i) != time.Millisecond {
		t.Errorf("%v", i)
	}
}

func TestError(t *testing.T) {
	t.Parallel()
	cause := errors.New("disk full")
	plain := job.Errorf(job.KindUnavailable, "store_down", "cannot write %s", "rows")
	full := plain.WithField("spec.pool").WithHint("free %d MB", 10).WithCause(cause)
	if full.Error() != "spec.pool: cannot write rows: disk full" || full.Hint != "free 10 MB" || !errors.Is(full, cause) {
		t.Errorf("%v, hint %q", full, full.Hint)
	}
	if plain.Error() != "cannot write rows" || plain.Hint != "" {
		t.Errorf("the original changed: %v", plain)
	}
	if job.KindOf(nil) != "" || job.KindOf(cause) != job.KindInternal || job.KindOf(errors.Join(cause, full)) != job.KindUnavailable {
		t.Error("KindOf")
	}
}

func TestRandomIDsDiffer(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	var ids []job.ExecutionID
	for range 1000 { // one millisecond, as many requests
		var bits [10]byte
		for i := range bits {
			bits[i] = byte(random.Uint32())
		}
		ids = append(ids, job.RequestedID(1_700_000_000_000, bits))
	}
	slices.SortFunc(ids, func(a, b job.ExecutionID) int { return bytes.Compare(a[:], b[:]) })
	if n := len(slices.Compact(ids)); n != 1000 {
		t.Errorf("%d different ids of 1000", n)
	}
}
