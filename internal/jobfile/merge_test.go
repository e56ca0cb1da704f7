package jobfile_test

import (
	"strings"
	"testing"

	"github.com/taktsched/takt/internal/jobfile"
)

// A merge key must not win over what is written out: it comes first, or the file is refused.
func TestMergeKeyComesFirst(t *testing.T) {
	head := "apiVersion: takt/v1\nkind: Job\nmetadata: {name: a}\n"
	docs, err := jobfile.Parse("f", []byte(head+"spec: {<<: {pool: q, handler: h}, pool: p}\n"))
	if err != nil || len(docs) != 1 || docs[0].Job.Spec.Pool != "p" {
		t.Fatalf("first: %v %+v", err, docs)
	}
	for name, spec := range map[string]string{
		"flow":  "spec: {pool: p, handler: h, <<: {pool: q}}\n",
		"block": "spec:\n  pool: p\n  handler: h\n  shards:\n    count: 2\n    <<: {count: 64}\n",
	} {
		if _, err := jobfile.Parse("f", []byte(head+spec)); err == nil || !strings.Contains(err.Error(), "merge key") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
