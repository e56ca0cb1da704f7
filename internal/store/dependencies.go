package store

import (
	"fmt"
	"slices"
	"strings"

	"github.com/taktsched/takt/internal/job"
)

// Who depends on whom is a table that the revision of the child is written with: (parent, child). A job with a delay depends on
// itself, for its own end makes its next instant.

// JobName names a job in its namespace.
type JobName struct {
	UID  job.UID
	Name string
}

// Names are the names alone.
func Names(all []JobName) []string {
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Name
	}
	return names
}

// UnknownParent refuses a job that runs after one that is not there.
func UnknownParent(d *job.Definition, i int) *job.Error {
	return job.Errorf(job.KindInvalid, "parent_not_found", "there is no job %q in namespace %q", d.Spec.After[i].Job, d.Namespace).
		WithField(fmt.Sprintf("spec.after[%d].job", i)).WithHint("create it first, or in the same set")
}

// HasChildren refuses the deletion of a job that others run after.
func HasChildren(name string, children []string) *job.Error {
	said, more := children, ""
	if len(said) > 10 {
		said, more = said[:10], fmt.Sprintf(" and %d more", len(children)-10)
	}
	return job.Errorf(job.KindConflict, "job_has_children", "the job %q has jobs that run after it: %s%s", name, strings.Join(said, ", "), more).
		WithHint("delete them, or their spec.after, first or in the same set")
}

// CheckCycle refuses a job that would run after itself, by whatever way. parents are those of a job, by name.
func CheckCycle(d *job.Definition, parents func(job.UID) ([]JobName, error)) error {
	seen := map[job.UID]bool{}
	var walk func(at JobName, way []string) ([]string, error)
	walk = func(at JobName, way []string) ([]string, error) {
		all, err := parents(at.UID)
		if err != nil {
			return nil, err
		}
		for _, p := range all {
			if p.UID == d.UID {
				return append(way, p.Name), nil
			}
			if seen[p.UID] {
				continue
			}
			seen[p.UID] = true
			if found, err := walk(p, append(slices.Clone(way), p.Name)); found != nil || err != nil {
				return found, err
			}
		}
		return nil, nil
	}
	way, err := walk(JobName{d.UID, d.Name}, []string{d.Name})
	if err != nil || way == nil {
		return err
	}
	field := "spec.after"
	if i := slices.IndexFunc(d.Spec.After, func(a job.After) bool { return a.Job == way[1] }); i >= 0 {
		field = fmt.Sprintf("spec.after[%d].job", i)
	}
	return job.Errorf(job.KindInvalid, "dependency_cycle", "it would run after itself: %s", strings.Join(way, " after ")).
		WithField(field).WithHint("take one of them out of the circle")
}
