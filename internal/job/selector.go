package job

import "strings"

// Selector chooses jobs by their labels. The zero value chooses all.
type Selector struct{ terms []term }

type term struct {
	key, value string
	not, any   bool // not equal; there, whatever its value
}

// ParseSelector reads terms joined by commas: key=value, key!=value, key. All must hold. key!=value also
// holds when the label is absent. The error's Field is "selector".
func ParseSelector(text string) (Selector, error) {
	var s Selector
	if strings.TrimSpace(text) == "" {
		return s, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		key, value, found := strings.Cut(part, "=")
		t := term{value: strings.TrimSpace(strings.TrimPrefix(value, "=")), any: !found} // == is = too
		key, t.not = strings.CutSuffix(key, "!")
		if t.key = strings.TrimSpace(key); t.key == "" || t.not && t.any || strings.ContainsAny(t.key, "!()<> ") {
			return Selector{}, invalid("bad_selector", "selector", "%.64q is no term of a selector", part).
				WithHint("write key=value, key!=value or key, joined by commas")
		}
		s.terms = append(s.terms, t)
	}
	return s, nil
}

// Empty tells that the selector chooses everything.
func (s Selector) Empty() bool { return len(s.terms) == 0 }

// Matches tells whether a job with these labels is chosen.
func (s Selector) Matches(labels map[string]string) bool {
	for _, t := range s.terms {
		value, there := labels[t.key]
		switch {
		case t.any && !there, !t.any && !t.not && (!there || value != t.value), t.not && there && value == t.value:
			return false
		}
	}
	return true
}
