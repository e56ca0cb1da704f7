package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Audited is the comparison of the effects with a plain walk.
type Audited struct {
	Files      int      // that the walk found
	Missing    int      // without an effect, or with one that says something else
	Duplicates int      // paths with more than one effect
	Foreign    int      // effects for paths that the walk did not find
	Findings   []string // the first faults in words, at most maxFindings
}

const maxFindings = 20

// Holds tells whether every file has exactly one right effect.
func (a *Audited) Holds() bool { return a.Missing == 0 && a.Duplicates == 0 && a.Foreign == 0 }

func (a *Audited) find(format string, args ...any) {
	if len(a.Findings) < maxFindings {
		a.Findings = append(a.Findings, fmt.Sprintf(format, args...))
	}
}

// Audit reads the file of effects and compares it with a walk of dir in this one process, which knows
// nothing of shards, workers and the sink. It stops with the cause when ctx ends.
func Audit(ctx context.Context, dir string, effects io.Reader) (*Audited, error) {
	found, err := readEffects(effects)
	if err != nil {
		return nil, err
	}
	paths, err := Walk(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("walk %s: %w", dir, err)
	}
	a := &Audited{Files: len(paths)}
	for _, p := range paths {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		name := Name(p)
		of := found[name]
		delete(found, name)
		if len(of) > 1 {
			a.Duplicates++
			a.find("%s has %d effects", name, len(of))
		}
		if len(of) == 0 {
			a.Missing++
			a.find("%s has no effect", name)
			continue
		}
		want := Describe(dir, p)
		for _, e := range of {
			if e != want {
				a.Missing++
				a.find("%s: the effect says %+v, the file is %+v", name, e, want)
				break
			}
		}
	}
	for p := range found {
		a.Foreign++
		a.find("%s has an effect, and the walk does not find it", p)
	}
	return a, nil
}

func readEffects(r io.Reader) (map[string][]Entry, error) {
	found := map[string][]Entry{}
	in := bufio.NewReader(r)
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return found, nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("read the effects: %w", err)
		}
		var e Effect
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("line %d of the effects: %w", n, err)
		}
		found[e.Path] = append(found[e.Path], e.Entry)
	}
}
