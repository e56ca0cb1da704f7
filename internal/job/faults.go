package job

import (
	"errors"
	"slices"
	"strings"
)

// Faults are all that is wrong with one document, in the order in which it was looked at.
type Faults []*Error

// Error is one line for each fault.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i := range f {
		lines[i] = f[i].Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives the faults, so that KindOf sees the first one's.
func (f Faults) Unwrap() []error {
	all := make([]error, len(f))
	for i := range f {
		all[i] = f[i]
	}
	return all
}

// Err is nil without a fault, a single one as it is, else all of them.
func (f Faults) Err() error {
	switch len(f) {
	case 0:
		return nil
	case 1:
		return f[0]
	}
	return f
}

// FaultsOf are the faults that Err made an error of; nil when the error is none of ours.
func FaultsOf(err error) Faults {
	if all, ok := errors.AsType[Faults](err); ok {
		return all
	}
	if one, ok := errors.AsType[*Error](err); ok {
		return Faults{one}
	}
	return nil
}

// Join adds the faults of more that are about other fields than those of f: of one field the first fault tells enough, and
// what is inside or around a field that could not be read is judged by something that nobody wrote.
func (f Faults) Join(more Faults) Faults {
	known := len(f)
	for _, e := range more {
		if !slices.ContainsFunc(f[:known], func(k *Error) bool { return Inside(e.Field, k.Field) || Inside(k.Field, e.Field) }) {
			f = append(f, e)
		}
	}
	return f
}

// Inside tells whether a field is part of another one, or is it; fields are paths such as "spec.after[0].job".
func Inside(field, around string) bool {
	rest, ok := strings.CutPrefix(field, around)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// Check judges all of a definition that can be judged without looking elsewhere: who writes one and who only reads its file
// ask here, so that they say the same. The error is of Faults, see Faults.Err; fields are paths in a document.
func (d *Definition) Check() error {
	all := checkMetadata(d.Namespace, d.Name, d.Labels)
	all = append(all, FaultsOf(d.Spec.Validate(Seed(d.Namespace, d.Name)))...)
	for i := range d.Spec.After {
		if d.Spec.After[i].Job == d.Name {
			all = append(all, OwnParent(i))
		}
	}
	return all.Err()
}

// Check is that of a calendar.
func (c *Calendar) Check() error {
	all := checkMetadata(c.Namespace, c.Name, c.Labels)
	return append(all, FaultsOf(c.Spec.Validate())...).Err()
}

func checkMetadata(namespace, name string, labels map[string]string) (all Faults) {
	if !ValidName(namespace) {
		all = append(all, badName("metadata.namespace", namespace))
	}
	if !ValidName(name) {
		all = append(all, badName("metadata.name", name))
	}
	return append(all, CheckLabels(labels)...)
}

// OwnParent refuses a job that runs after itself: its parent number i.
func OwnParent(i int) *Error {
	return invalid("dependency_cycle", parentField(i)+".job", "a job cannot run after itself").
		WithHint("for the next run after the end of the last one give it schedule.delay")
}

func badName(field, name string) *Error {
	return invalid("bad_name", field, "%.64q is no name", name).
		WithHint("names are 1 to 63 lower-case letters, digits, '.' and '-', with a letter or digit at both ends")
}
