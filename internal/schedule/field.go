package schedule

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
)

// parse reads a comma list of *, a, a-b, each with an optional /step, and of H, as a set of bits.
func (f field) parse(w word, seed string) (uint64, *Error) {
	var set uint64
	for item := range items(w) {
		bits, err := f.parseItem(item, seed)
		if err != nil {
			return 0, err
		}
		set |= bits
	}
	return set, nil
}

// items are the parts of a comma list with their places.
func items(w word) func(yield func(word) bool) {
	return func(yield func(word) bool) {
		pos := w.pos
		for item := range strings.SplitSeq(w.text, ",") {
			if !yield(word{item, pos}) {
				return
			}
			pos += len(item) + 1
		}
	}
}

func (f field) parseItem(w word, seed string) (uint64, *Error) {
	span, stepText, stepped := strings.Cut(w.text, "/")
	step := 1
	if stepped {
		n, ok := number(stepText)
		if !ok || n == 0 {
			return 0, cronError(w.pos+len(span)+1, "such as */5", "%s: the step %.32q is no number from 1 on", f.name, stepText)
		}
		step = n
	}
	if span != "" && (span[0] == 'H' || span[0] == 'h') {
		return f.parseHash(word{span, w.pos}, stepped, step, seed)
	}
	low, high, err := f.parseRange(word{span, w.pos}, stepped)
	if err != nil {
		return 0, err
	}
	size := f.max - f.min + 1
	if high < low { // over the end
		high += size
	}
	var set uint64
	for v := low; v <= high; v += step {
		set |= 1 << ((v-f.min)%size + f.min)
	}
	return set, nil
}

// parseRange reads *, a or a-b. A lone value with a step reaches to the end of the field.
func (f field) parseRange(w word, stepped bool) (low, high int, err *Error) {
	if w.text == "*" {
		return f.min, f.max, nil
	}
	from, to, ranged := strings.Cut(w.text, "-")
	if low, err = f.value(word{from, w.pos}); err != nil {
		return 0, 0, err
	}
	switch {
	case !ranged && stepped:
		return low, f.max, nil
	case !ranged:
		return low, low, nil
	}
	if high, err = f.value(word{to, w.pos + len(from) + 1}); err != nil {
		return 0, 0, err
	}
	if high < low && !f.wraps {
		return 0, 0, cronError(w.pos, fmt.Sprintf("write two ranges with a comma, from %d and up to %d", low, high),
			"%s: the range %.32q runs backwards", f.name, w.text)
	}
	return low, high, nil
}

// parseHash reads H and H(a-b): one value of the range, or with a step every step-th from one of the first
// on. Which, the seed says: jobs that are written alike are spread over the range, each always at its own
// place. (As Jenkins does it.)
func (f field) parseHash(w word, stepped bool, step int, seed string) (uint64, *Error) {
	low, high := f.min, f.max
	if f.hashMax > 0 {
		high = f.hashMax
	}
	if rest := w.text[1:]; rest != "" {
		inner, closed := strings.CutSuffix(rest, ")")
		inner, opened := strings.CutPrefix(inner, "(")
		if !opened || !closed {
			return 0, cronError(w.pos, "write H, H/15, H(0-29) or H(0-29)/10", "%s: %.32q is no hash spread", f.name, w.text)
		}
		var err *Error
		plain := f
		plain.wraps = false
		if low, high, err = plain.parseRange(word{inner, w.pos + 2}, false); err != nil {
			return 0, err
		}
	}
	size := high - low + 1
	if stepped && step > size {
		return 0, cronError(w.pos, fmt.Sprintf("write a step of at most %d, or H alone for one value", size), "%s: the step %d is larger than the range of %d values", f.name, step, size)
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(f.name + "\x00" + seed))
	sum := mix(h.Sum64())
	if !stepped {
		return 1 << (low + int(sum%uint64(size))), nil
	}
	var set uint64
	for v := low + int(sum%uint64(step)); v <= high; v += step {
		set |= 1 << v
	}
	return set, nil
}

// mix spreads what FNV leaves close together (the finalizer of MurmurHash3).
func mix(x uint64) uint64 {
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

func (f field) value(w word) (int, *Error) {
	hint := fmt.Sprintf("a number from %d to %d", f.min, f.max)
	if f.names != nil {
		hint += " or a name such as " + f.names[1]
	}
	if n, ok := number(w.text); ok {
		if n < f.min || n > f.max {
			return 0, cronError(w.pos, hint, "%s: %.32s is out of range %d-%d", f.name, w.text, f.min, f.max)
		}
		return n, nil
	}
	if i := slices.Index(f.names, strings.ToUpper(w.text)); i >= 0 {
		return f.min + i, nil
	}
	if w.text == "" {
		return 0, cronError(w.pos, hint, "%s: a value is missing", f.name)
	}
	return 0, cronError(w.pos, hint, "%s: %.32q is no value", f.name, w.text)
}

// number reads 1 to 4 decimal digits.
func number(s string) (int, bool) {
	if s == "" || len(s) > 4 {
		return 0, false
	}
	n := 0
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}
