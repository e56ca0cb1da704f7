package api

import (
	"bytes"
	"encoding/json"
	"net/http"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/control"
)

// The bodies of calls that come for each execution are read by hand when they have exactly the form in which the SDK writes them; anything
// else is left to strictJSON and encoding/json.

// fillReport decodes a report.
func fillReport(_ *http.Request, in []byte, checked bool, i *body[takt.ReportRequest]) bool {
	return fillBody(in, checked, i, readReport)
}

// fillBeat decodes a heartbeat.
func fillBeat(_ *http.Request, in []byte, checked bool, i *body[takt.HeartbeatRequest]) bool {
	return checked && json.Unmarshal(in, &i.Body) == nil
}

// fillPoll decodes a poll.
func fillPoll(_ *http.Request, in []byte, checked bool, i *body[takt.PollRequest]) bool {
	return fillBody(in, checked, i, readPoll)
}

func readReport(in []byte, out *takt.ReportRequest) bool {
	s := scan{b: in}
	var all takt.ReportRequest
	s.want(`{"session":`)
	all.Session = string(s.plain())
	s.want(`,"epoch":`)
	all.Epoch = s.number()
	s.want(`,"call":`)
	all.Call = s.number()
	s.want(`,"items":[`)
	all.Items = make([]takt.ReportItem, 0, bytes.Count(s.b, []byte(`{"execution":`)))
	for more := !s.is("]"); more && !s.bad; {
		all.Items = append(all.Items, s.reported())
		if more = s.is(","); !more {
			s.want("]")
		}
	}
	if s.want("}"); !s.ended() {
		return false
	}
	*out = all
	return true
}

// reported is an item of a report that tells of no progress and no failure: these are rare.
func (s *scan) reported() (it takt.ReportItem) {
	s.want(`{"execution":`)
	it.Execution = string(s.plain())
	s.want(`,"shard":`)
	it.Shard = int(s.number())
	s.want(`,"token":`)
	it.Token = s.number()
	s.want(`,"seq":`)
	it.Seq = s.number()
	s.want(`,"kind":`)
	it.Kind = s.word()
	if s.is(`,"checkpoint":`) {
		it.Checkpoint = s.value()
	}
	if s.is(`,"outcome":`) {
		it.Outcome = s.word()
	}
	if s.is(`,"result":`) {
		it.Result = s.value()
	}
	if s.is(`,"retryAfterMs":`) {
		it.RetryAfterMs = s.number()
	}
	it.LogPending = s.is(`,"logPending":true`)
	s.want("}")
	return it
}

func readPoll(in []byte, out *takt.PollRequest) bool {
	s := scan{b: in}
	var p takt.PollRequest
	s.want(`{"session":`)
	p.Session = string(s.plain())
	s.want(`,"epoch":`)
	p.Epoch = s.number()
	s.want(`,"call":`)
	p.Call = s.number()
	s.want(`,"number":`)
	p.Number = s.number()
	s.want(`,"free":`)
	p.Free = int(s.number())
	if s.is(`,"held":[`) {
		p.Held = make([]int64, 0, bytes.IndexByte(s.b, ']')/8+1)
		for more := !s.is("]"); more && !s.bad; {
			p.Held = append(p.Held, s.number())
			if more = s.is(","); !more {
				s.want("]")
			}
		}
	}
	s.want(`,"waitMs":`)
	p.WaitMs = s.number()
	if s.want("}"); !s.ended() {
		return false
	}
	*out = p
	return true
}

// fillTriggers decodes a list of triggers. What its schema says of it is in order; what may have times, or keys that are given and
// empty, is left to huma.
func fillTriggers(r *http.Request, in []byte, checked bool, i *triggerManyInput) bool {
	if i.NS = r.PathValue("ns"); !isName(i.NS) {
		return false
	}
	keyed := checked && bytes.Contains(in, []byte(`"key"`))
	switch {
	case !checked && !readTriggers(in, &i.Body),
		checked && (bytes.Contains(in, []byte(`"at"`)) || bytes.Contains(in, []byte(`"in"`)) || bytes.IndexByte(in, '\\') >= 0 || json.Unmarshal(in, &i.Body) != nil):
		return false
	}
	for k := range i.Body.Items {
		it := &i.Body.Items[k]
		if !isName(it.Job) || !isKey(it.Key) || keyed && it.Key == "" {
			return false
		}
	}
	return len(i.Body.Items) > 0 && len(i.Body.Items) <= control.MaxTriggers
}

// readTriggers reads a list of triggers that are for now, and whose keys are not empty.
func readTriggers(in []byte, out *takt.TriggerManyRequest) bool {
	s := scan{b: in}
	var all takt.TriggerManyRequest
	s.want(`{"items":[`)
	all.Items = make([]takt.TriggerItem, 0, min(bytes.Count(s.b, []byte(`{"job":`)), control.MaxTriggers))
	for more := !s.is("]"); more && !s.bad; {
		var it takt.TriggerItem
		s.want(`{"job":`)
		it.Job = s.like(all.Items)
		if s.is(`,"key":`) {
			it.Key = string(s.plain())
			s.bad = s.bad || it.Key == ""
		}
		if s.is(`,"params":`) {
			it.Params = s.value()
		}
		s.want("}")
		all.Items = append(all.Items, it)
		if more = s.is(","); !more {
			s.want("]")
		}
	}
	if s.want("}"); !s.ended() {
		return false
	}
	*out = all
	return true
}

// like is the name of a job, which is mostly that of the item before.
func (s *scan) like(before []takt.TriggerItem) string {
	name := s.plain()
	if n := len(before); n > 0 && before[n-1].Job == string(name) {
		return before[n-1].Job
	}
	return string(name)
}
