package agent

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/taktsched/takt"
)

// state is the agent's part of the state directory: STATE/<life>/ belongs to one life of an agent, which
// holds its lock, and STATE/<life>/<mark>/ to one attempt: its files for the command, and run.json, from
// which the next agent learns what to look for when this one is killed.
type state struct {
	root string
	dir  string // of this life
	lock *os.File
}

const (
	lockName = "lock"
	runName  = "run.json"
	sweepFor = 5 * time.Second // at most, for what does not die
)

// runFile is what is known of an attempt's processes.
type runFile struct {
	Mark      string    `json:"mark"`
	Boot      string    `json:"boot"` // life of the machine; in another one there is nothing to kill
	Job       string    `json:"job"`
	Execution string    `json:"execution"`
	Shard     int       `json:"shard"`
	Attempt   int       `json:"attempt"`
	Guard     processID `json:"guard"`   // 0 until it is started
	Command   processID `json:"command"` // 0 until it is started
}

// DefaultState is the state directory of an agent that was told none: in the user's cache directory, else
// in that for temporary files.
func DefaultState() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return filepath.Join(os.TempDir(), fmt.Sprintf("takt-agent-%d", os.Getuid()))
	}
	return filepath.Join(dir, "takt", "agent")
}

// openState makes the directories and takes this life's lock.
func openState(root string) (*state, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	if err := os.MkdirAll(root, 0o700); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	if err := checkOwner(root); err != nil {
		return nil, err
	}
	// Made under another name and moved into place locked, so that nobody takes it for one that was left.
	life := random()
	fresh := filepath.Join(root, "."+life)
	if err := os.Mkdir(fresh, 0o700); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	s := &state{root: root, dir: filepath.Join(root, life)}
	if s.lock, err = lockFile(filepath.Join(fresh, lockName), true); err == nil {
		if err = os.Rename(fresh, s.dir); err == nil {
			return s, nil
		}
		err = errors.Join(err, s.lock.Close())
	}
	return nil, errors.Join(fmt.Errorf("state directory: %w", err), os.RemoveAll(fresh))
}

// random draws a name that nobody can guess.
func random() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails, by its contract
	return hex.EncodeToString(b[:])
}

// close removes this life. Nothing of it may run any more.
func (s *state) close() error {
	return errors.Join(os.RemoveAll(s.dir), s.lock.Close())
}

// recover kills what agents left that were killed, and removes their directories. Those of living agents
// are locked, also when the agent is stopped. It returns when nothing is left or cannot be killed.
func (s *state) recover(ctx context.Context, log *slog.Logger) error {
	lives, err := os.ReadDir(s.root)
	if err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	for _, life := range lives {
		dir := filepath.Join(s.root, life.Name())
		if !life.IsDir() || dir == s.dir || strings.HasPrefix(life.Name(), ".") {
			continue
		}
		lock, err := lockFile(filepath.Join(dir, lockName), false)
		if errors.Is(err, errLocked) || errors.Is(err, os.ErrNotExist) {
			continue // a living agent, or another one that cleans up
		}
		if err != nil {
			return fmt.Errorf("state directory: %w", err)
		}
		runs, err := filepath.Glob(filepath.Join(dir, "*", runName))
		clean := err == nil
		for _, name := range runs {
			clean = killLeft(ctx, name, log) && clean
		}
		if clean {
			err = os.RemoveAll(dir)
		}
		if err := errors.Join(err, lock.Close()); err != nil {
			log.Warn("the state of a former agent could not be removed; the next one tries again", "dir", dir, "error", err)
		}
	}
	return nil
}

// killLeft kills what is left of one attempt; false when something cannot be killed.
func killLeft(ctx context.Context, name string, log *slog.Logger) bool {
	text, err := os.ReadFile(name)
	var run runFile
	if err == nil {
		err = json.Unmarshal(text, &run)
	}
	if err != nil || len(run.Mark) < 32 {
		log.Warn("a run file cannot be read; nothing is killed for it", "file", name, "error", err)
		return true
	}
	if run.Boot != bootID() {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, sweepFor)
	defer cancel()
	killed, left := sweep(ctx, run.Mark, run.Guard, run.Command)
	if killed > 0 || len(left) > 0 {
		log.Warn("killed what an agent before this one left running", "job", run.Job, "execution", run.Execution,
			"shard", run.Shard, "attempt", run.Attempt, "killed", killed, "left", len(left))
	}
	return len(left) == 0
}

// attemptDir is the directory of one attempt.
type attemptDir struct {
	path string
	run  runFile
}

// begin makes the directory of an attempt, with the run file, before anything is started.
func (s *state) begin(t *takt.Task) (*attemptDir, error) {
	a := &attemptDir{run: runFile{Mark: random(), Boot: bootID(), Job: t.Job(), Execution: t.Execution(),
		Shard: t.Shard(), Attempt: t.Attempt()}}
	a.path = filepath.Join(s.dir, a.run.Mark)
	if err := os.Mkdir(a.path, 0o700); err != nil {
		return nil, err
	}
	if err := a.record(); err != nil {
		return nil, errors.Join(err, a.remove())
	}
	return a, nil
}

// record writes the run file anew, whole or not at all.
func (a *attemptDir) record() error {
	text, err := json.Marshal(a.run)
	if err != nil {
		return err
	}
	name := filepath.Join(a.path, runName)
	if err := os.WriteFile(name+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// file writes one for the command and returns its path.
func (a *attemptDir) file(name string, content []byte) (string, error) {
	path := filepath.Join(a.path, name)
	return path, os.WriteFile(path, content, 0o600)
}

func (a *attemptDir) remove() error { return os.RemoveAll(a.path) }
