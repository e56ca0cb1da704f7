package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/control"
	"github.com/taktsched/takt/internal/jobfile"
)

// checkTogether finds what only shows when all documents are seen: a document twice, a namespace that the
// command line contradicts, jobs that wait for each other, more documents than the server takes.
func checkTogether(docs []jobfile.Doc, pinned, standard string) error {
	var faults jobfile.Errors
	seen := map[string]*jobfile.Doc{}
	for i := range docs {
		d := &docs[i]
		ns := d.Namespace()
		if ns != "" && pinned != "" && ns != pinned {
			faults = append(faults, d.At("metadata.namespace", fmt.Sprintf("it is %s, and --namespace says %s", ns, pinned),
				"leave one of them out"))
		}
		kind, ns, name := d.ID(standard)
		id := kind + "/" + ns + "/" + name
		if first := seen[id]; first != nil {
			faults = append(faults, d.At("metadata.name", fmt.Sprintf("%s %s/%s stands in %s:%d too", kind, ns, name, first.File, first.Line), "keep one of them"))
			continue
		}
		seen[id] = d
	}
	faults = append(faults, cycles(docs, standard)...)
	if len(docs) > control.MaxSet {
		faults = append(faults, docs[control.MaxSet].At("", fmt.Sprintf("the set has %d documents, at most %d are taken", len(docs), control.MaxSet), "apply them in several sets"))
	}
	if len(faults) > 0 {
		return faults
	}
	return nil
}

// cycles are jobs that run after themselves by way of others, as far as the documents tell; one after itself is a fault of
// its own document.
func cycles(docs []jobfile.Doc, standard string) (faults jobfile.Errors) {
	jobs, _ := parted(docs)
	byName := map[string]*jobfile.Doc{}
	for _, i := range jobs {
		_, ns, name := docs[i].ID(standard)
		byName[ns+"/"+name] = &docs[i]
	}
	told := map[string]bool{}
	for _, i := range jobs {
		_, ns, name := docs[i].ID(standard)
		seen := map[string]bool{}
		var back func(at string, way []string) []string // the way to name, nil when there is none
		back = func(at string, way []string) []string {
			d := byName[ns+"/"+at]
			if d == nil || seen[at] {
				return nil
			}
			seen[at] = true
			for _, p := range d.Job.Spec.After {
				if p.Job == name {
					return append(way, name)
				}
				if found := back(p.Job, append(slices.Clone(way), p.Job)); found != nil {
					return found
				}
			}
			return nil
		}
		if way := back(name, []string{name}); len(way) > 2 && !told[ns+"/"+name] {
			for _, member := range way {
				told[ns+"/"+member] = true
			}
			first := slices.IndexFunc(docs[i].Job.Spec.After, func(a takt.AfterSpec) bool { return a.Job == way[1] })
			faults = append(faults, docs[i].At(fmt.Sprintf("spec.after[%d].job", first), "it would run after itself: "+strings.Join(way, " after "),
				"take one of them out of the circle"))
		}
	}
	return faults
}
