package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/taktsched/takt"
)

// fitServer answers dry runs from what each schedule has, in seconds behind 2026-03-01T12:00:00Z, and explains the instants of
// unplanned schedules as no planned ones.
type fitServer struct {
	has       map[string][]int
	unplanned map[int]bool
	earlier   map[int]bool // an earlier job of the name ran it
	none      bool         // the job has no schedule
	most      int
}

var fitBegin = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func (f *fitServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if strings.HasSuffix(r.URL.Path, "/explain") {
		at, _ := time.Parse(time.RFC3339Nano, r.URL.Query().Get("at"))
		x := takt.Explanation{Verdict: "ran", Revision: 3}
		switch s := int(at.Sub(fitBegin).Seconds()); {
		case f.unplanned[s]:
			x.Verdict = "not_planned"
		case f.earlier[s]:
			x.Revision = 0
		}
		_ = json.NewEncoder(w).Encode(x)
		return
	}
	var in takt.BackfillRequest
	_ = json.NewDecoder(r.Body).Decode(&in)
	from, _ := time.Parse(time.RFC3339Nano, in.From)
	to, _ := time.Parse(time.RFC3339Nano, in.To)
	out := takt.Backfill{Revision: 3, From: from, To: to}
	union := map[int]bool{}
	for _, name := range []string{"main", "other"} {
		one := takt.BackfillSchedule{Name: name}
		for _, s := range f.has[name] {
			at := fitBegin.Add(time.Duration(s) * time.Second)
			if at.Before(from) || at.After(to) {
				continue
			}
			if union[s] = true; one.Total == 0 {
				one.First = at
			}
			one.Total, one.Last = one.Total+1, at
		}
		if one.Total > 0 {
			out.Schedules = append(out.Schedules, one)
		}
	}
	out.Total = int64(len(union))
	code := map[bool]string{true: "no_schedule"}[f.none]
	if f.most > 0 && len(union) > f.most {
		code = "too_many_instants"
	}
	if code != "" || !in.DryRun {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusUnprocessableEntity)
		_ = json.NewEncoder(w).Encode(map[string]any{"status": 422, "code": code, "kind": "invalid", "detail": code})
		return
	}
	_ = json.NewEncoder(w).Encode(out)
}

func every(step, from, to int) (all []int) {
	for s := from; s <= to; s += step {
		all = append(all, s)
	}
	return all
}

// TestMissedFits: what a backfill would not run as it was missed is named with both numbers, and not started.
func TestMissedFits(t *testing.T) {
	t.Parallel()
	missed := func(schedule string, from, to, n int) missedRange {
		return missedRange{Decision: takt.Decision{Job: "late", Schedule: schedule, From: fitBegin.Add(time.Duration(from) * time.Second), To: fitBegin.Add(time.Duration(to) * time.Second), Count: int64(n)}}
	}
	for name, c := range map[string]struct {
		server fitServer
		items  []missedRange
		fit    int
		says   []string // of what does not fit
	}{
		"as it was":           {fitServer{has: map[string][]int{"main": every(10, 0, 90)}}, []missedRange{missed("main", 10, 40, 4)}, 1, nil},
		"more":                {fitServer{has: map[string][]int{"main": every(1, 0, 90)}}, []missedRange{missed("main", 10, 40, 4)}, 0, []string{"4 missed, the schedule main of revision 3 has 31 instants there"}},
		"fewer":               {fitServer{has: map[string][]int{"main": every(4, 0, 90)}}, []missedRange{missed("main", 2, 58, 29)}, 0, []string{"29 missed, the schedule main of revision 3 has 14 instants there"}},
		"none":                {fitServer{}, []missedRange{missed("main", 10, 40, 4)}, 0, []string{"4 missed, the schedule main of revision 3 has 0 instants there"}},
		"one":                 {fitServer{has: map[string][]int{"main": {20}}}, []missedRange{missed("main", 10, 40, 4)}, 0, []string{"has 1 instant there"}},
		"as many others":      {fitServer{has: map[string][]int{"main": every(10, 5, 95)}}, []missedRange{missed("main", 0, 40, 4)}, 0, []string{"has 4 others there"}},
		"too many":            {fitServer{has: map[string][]int{"main": every(1, 0, 90)}, most: 5}, []missedRange{missed("main", 10, 40, 4)}, 0, []string{"the schedule main of the newest revision has more than 100000 instants there"}},
		"two ranges":          {fitServer{has: map[string][]int{"main": append(every(1, 0, 49), every(10, 50, 90)...)}}, []missedRange{missed("main", 10, 40, 4), missed("main", 50, 90, 5)}, 1, []string{"has 31 instants there"}},
		"two schedules":       {fitServer{has: map[string][]int{"main": every(10, 0, 90), "other": every(20, 0, 90)}}, []missedRange{missed("main", 10, 50, 5), missed("other", 20, 60, 3)}, 1, nil},
		"one of two edited":   {fitServer{has: map[string][]int{"main": every(10, 0, 90), "other": every(1, 0, 90)}}, []missedRange{missed("main", 10, 50, 5), missed("other", 20, 60, 3)}, 0, []string{"3 missed, the schedule other of revision 3 has 41 instants there"}},
		"another ran":         {fitServer{has: map[string][]int{"main": every(10, 0, 90), "other": {30}}}, []missedRange{missed("main", 10, 50, 5)}, 1, nil},
		"another came later":  {fitServer{has: map[string][]int{"main": every(10, 0, 90), "other": {30, 33}}, unplanned: map[int]bool{33: true}}, []missedRange{missed("main", 10, 50, 5)}, 0, []string{"0 missed, the schedule other of revision 3 has 2 instants there"}},
		"another was earlier": {fitServer{has: map[string][]int{"main": every(10, 0, 90), "other": {30}}, earlier: map[int]bool{30: true}}, []missedRange{missed("main", 10, 50, 5)}, 0, []string{"0 missed, the schedule other of revision 3 has 1 instant there"}},
		"of no schedule":      {fitServer{has: map[string][]int{"main": {10}}}, []missedRange{missed("", 10, 10, 1)}, 1, nil},
		"of no schedule, off": {fitServer{}, []missedRange{missed("", 10, 10, 1)}, 0, []string{"1 missed, the schedule of revision 3 has 0 instants there"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(&c.server)
			t.Cleanup(s.Close)
			client, err := takt.NewClient(takt.ClientConfig{Server: s.URL})
			if err != nil {
				t.Fatal(err)
			}
			list := missedList{Items: c.items}
			fit, err := fits(t.Context(), client, &list, spansOf(&list))
			if err != nil || len(fit) != c.fit || len(list.Changed) != len(c.says) {
				t.Fatalf("%d fit, %+v, %v", len(fit), list.Changed, err)
			}
			for i := range c.says {
				if got := list.Changed[i].String(); !strings.Contains(got, c.says[i]) {
					t.Errorf("%s, want …%s…", got, c.says[i])
				}
			}
			if err := notStarted(&list); (err != nil) != (len(c.says) > 0) || err != nil && !strings.Contains(err.(*failure).todo, "`takt backfill late --from 2026-03-01T12:00:") {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestExplainedSaysTheVerdictOnce: a text that begins with its verdict is not led in by it again.
func TestExplainedSaysTheVerdictOnce(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"missed: nobody planned it": "missed: nobody planned it", "missed by all": "missed: missed by all"} {
		var out strings.Builder
		if err := explained(&takt.Explanation{Verdict: "missed", Text: text}).print(&out); err != nil || !strings.HasPrefix(strings.Join(strings.Fields(out.String()), " "), "Verdict: "+want+" ") {
			t.Errorf("%q, %v, want %q", out.String(), err, want)
		}
	}
}
