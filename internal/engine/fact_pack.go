package engine

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/taktsched/takt/internal/job"
)

// packedForm begins what PackFacts writes. A list of JSON objects, which AppendFacts writes and journals of earlier
// versions have, begins otherwise.
const packedForm = "[2"

// Fields of a fact in the order of their bits: texts, the execution, numbers. The order is stored and never changes; new
// ones are added behind their kind's last only with a new form.
const (
	factTexts   = 8
	factNumbers = 8
	idBit       = 1 << factTexts
	firstNumber = factTexts + 1
)

func (f *Fact) texts() [factTexts]string {
	return [...]string{string(f.Kind), f.Job, string(f.Session), f.Worker, f.From, f.To, string(f.Reason), f.Note}
}

func (f *Fact) setTexts(v *[factTexts]string) {
	f.Kind, f.Job, f.Session, f.Worker, f.From, f.To, f.Reason, f.Note =
		FactKind(v[0]), v[1], job.SessionID(v[2]), v[3], v[4], v[5], job.Reason(v[6]), v[7]
}

func (f *Fact) numbers() [factNumbers]int64 {
	return [...]int64{int64(f.Shard), int64(f.Token), int64(f.Attempt), int64(f.PlannedAt), int64(f.Until), f.Count, f.Checkpoint, f.Call}
}

func (f *Fact) setNumbers(v *[factNumbers]int64) {
	f.Shard, f.Token, f.Attempt, f.PlannedAt, f.Until, f.Count, f.Checkpoint, f.Call =
		int(v[0]), job.Token(v[1]), int(v[2]), job.Instant(v[3]), job.Instant(v[4]), v[5], v[6], v[7]
}

// PackFacts writes facts as one JSON array of numbers and texts, a fifth of what AppendFacts writes of a busy commit. Behind the
// number of the form stands for each fact a number whose bits are the fields that are not zero, and their values. A text (an
// execution's id, too) stands where it comes first; later its place among the different ones, from 0. A number is the
// difference from the field's last one. Texts that are not UTF-8 are made clean as encoding/json does it.
func PackFacts(b []byte, facts []Fact) []byte {
	p := packer{b: append(slices.Grow(b, 64*len(facts)), packedForm...), known: map[string]int{}, ids: make(map[job.ExecutionID]int, len(facts)/2)}
	for i := range facts {
		p.fact(&facts[i])
	}
	return append(p.b, ']')
}

type packer struct {
	b      []byte
	places int
	known  map[string]int // places of texts
	ids    map[job.ExecutionID]int
	last   struct {
		texts   [factTexts]string // and their places
		places  [factTexts]int
		numbers [factNumbers]int64
	}
}

func (p *packer) fact(f *Fact) {
	texts, numbers := f.texts(), f.numbers()
	fields := 0
	for i := range texts {
		if texts[i] != "" {
			fields |= 1 << i
		}
	}
	if !f.Execution.IsZero() {
		fields |= idBit
	}
	for i := range numbers {
		if numbers[i] != 0 {
			fields |= 1 << (firstNumber + i)
		}
	}
	p.number(int64(fields))
	for i := range texts {
		if texts[i] != "" {
			p.text(i, texts[i])
		}
	}
	if fields&idBit != 0 {
		p.id(f.Execution)
	}
	for i := range numbers {
		if numbers[i] != 0 {
			p.number(numbers[i] - p.last.numbers[i])
			p.last.numbers[i] = numbers[i]
		}
	}
}

func (p *packer) number(n int64) {
	if n >= 0 && n < 10 { // most often
		p.b = append(p.b, ',', '0'+byte(n))
		return
	}
	p.b = strconv.AppendInt(append(p.b, ','), n, 10)
}

func (p *packer) text(field int, v string) {
	if v == p.last.texts[field] { // most often
		p.number(int64(p.last.places[field]))
		return
	}
	place, ok := p.known[v]
	if ok {
		p.number(int64(place))
	} else {
		place = p.places
		p.known[v] = place
		p.places++
		p.b = job.AppendText(append(p.b, ','), v)
	}
	p.last.texts[field], p.last.places[field] = v, place
}

func (p *packer) id(id job.ExecutionID) {
	if place, ok := p.ids[id]; ok {
		p.number(int64(place))
		return
	}
	p.ids[id] = p.places
	p.places++
	p.b = append(id.AppendTo(append(p.b, ',', '"')), '"')
}

// UnpackFacts reads what PackFacts or AppendFacts wrote. Anything else is KindRejected, code "bad_facts".
func UnpackFacts(stored []byte) (facts []Fact, err error) {
	if !bytes.HasPrefix(stored, []byte(packedForm)) {
		if err := json.Unmarshal(stored, &facts); err != nil {
			return nil, badFacts(err)
		}
		return facts, nil
	}
	var u unpacker
	if err := json.Unmarshal(stored, &u.left); err != nil {
		return nil, badFacts(err)
	}
	if form := string(u.left[0]); form != packedForm[1:] {
		return nil, badFacts(job.Errorf(job.KindRejected, "bad_facts", "form %s is not known", form))
	}
	u.left = u.left[1:]
	for len(u.left) > 0 && u.err == nil {
		facts = append(facts, u.fact())
	}
	if u.err != nil {
		return nil, badFacts(u.err)
	}
	return facts, nil
}

func badFacts(err error) error {
	return job.Errorf(job.KindRejected, "bad_facts", "facts that cannot be read").WithCause(err)
}

type unpacker struct {
	left    []json.RawMessage
	known   []string
	numbers [factNumbers]int64
	err     error // the first
}

func (u *unpacker) fact() (f Fact) {
	fields := u.number()
	var texts [factTexts]string
	for i := range texts {
		if fields&(1<<i) != 0 {
			texts[i] = u.text()
		}
	}
	f.setTexts(&texts)
	if fields&idBit != 0 {
		id, err := job.ParseExecutionID(u.text())
		if u.err == nil {
			u.err = err
		}
		f.Execution = id
	}
	var numbers [factNumbers]int64
	for i := range numbers {
		if fields&(1<<(firstNumber+i)) != 0 {
			u.numbers[i] += u.number()
			numbers[i] = u.numbers[i]
		}
	}
	f.setNumbers(&numbers)
	return f
}

// next reads the next value into v.
func (u *unpacker) next(v any) {
	if u.err != nil {
		return
	}
	if len(u.left) == 0 {
		u.err = job.Errorf(job.KindRejected, "bad_facts", "a fact that is cut off")
		return
	}
	u.err = json.Unmarshal(u.left[0], v)
	u.left = u.left[1:]
}

func (u *unpacker) number() (n int64) {
	u.next(&n)
	return n
}

func (u *unpacker) text() (v string) {
	if len(u.left) > 0 && u.left[0][0] == '"' {
		u.next(&v)
		u.known = append(u.known, v)
		return v
	}
	place := u.number()
	if place < 0 || place >= int64(len(u.known)) {
		if u.err == nil {
			u.err = job.Errorf(job.KindRejected, "bad_facts", "a text that did not come before")
		}
		return ""
	}
	return u.known[place]
}
