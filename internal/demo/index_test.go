package demo

import "testing"

// The checkpoint is a name: files that come or go meanwhile move nobody else's place.
func TestRestGoesOnBehindAName(t *testing.T) {
	for _, c := range []struct {
		after string
		paths []string
		want  int
	}{
		{"", []string{"a", "b"}, 2},
		{"b", []string{"a", "b", "c"}, 1},
		{"b", []string{"a", "c", "d"}, 2},           // b is gone
		{"b", []string{"0", "1", "a", "b", "c"}, 1}, // others came before it
		{"c", []string{"a", "b", "c"}, 0},
	} {
		if got := (progress{After: c.after}).rest(c.paths); len(got) != c.want {
			t.Errorf("behind %q of %q: %q", c.after, c.paths, got)
		}
	}
}
