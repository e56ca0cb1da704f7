package jobfile_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/taktsched/takt/internal/jobfile"
)

func jsonJob(name string) string {
	return fmt.Sprintf(`{"apiVersion": "takt/v1", "kind": "Job",
	"metadata": {"name": %q},
	"spec": {"pool": "p", "handler": "h", "params": {"x": 1e3, "u": "月\u00e4\/"}}}`, name)
}

// What commands and the API print is read again: lists, arrays, documents one after the other.
func TestListsAreTheirDocuments(t *testing.T) {
	a, b := jsonJob("a"), jsonJob("b")
	yaml := strings.ReplaceAll("apiVersion: takt/v1\nkind: Job\nmetadata: {name: a}\nspec: {pool: p, handler: h}\n", "\n", "\n  ")
	for name, text := range map[string]string{
		"array":           "[" + a + ",\n" + b + "]\n",
		"stream":          a + "\n" + b,
		"stream in line":  a + b + "\n\n",
		"list":            `{"items": [` + a + "," + b + `]}`,
		"list, last page": `{"next": "", "items": [` + a + "," + b + `]}`,
		"List":            `{"apiVersion": "v1", "kind": "List", "metadata": {}, "items": [` + a + "," + b + `]}`,
		"both":            "[" + a + "]\n" + `{"items": [` + b + `]}`,
		"YAML sequence":   "- " + yaml + "\n- " + strings.Replace(yaml, "name: a", "name: b", 1),
		"YAML list":       "items:\n- " + yaml + "\n- " + strings.Replace(yaml, "name: a", "name: b", 1),
		"YAML documents":  a + "\n---\n" + b,
		"tabs":            strings.ReplaceAll("[\n"+a+",\n"+b+"]", "\n", "\n\t"),
	} {
		docs, err := jobfile.Parse("f", []byte(text))
		if err != nil || len(docs) != 2 || docs[0].Job.Metadata.Name != "a" || docs[1].Job.Metadata.Name != "b" {
			t.Errorf("%s: %d documents, %v", name, len(docs), err)
		}
	}
	for name, text := range map[string]string{"empty array": "[]", "empty list": `{"items":[]}`, "no documents": "  \n"} {
		if docs, err := jobfile.Parse("f", []byte(text)); err != nil || len(docs) != 0 {
			t.Errorf("%s: %d documents, %v", name, len(docs), err)
		}
	}
}

// A fault in a list stands at its line of the file.
func TestFaultsInLists(t *testing.T) {
	a, bad := jsonJob("a"), strings.Replace(jsonJob("b"), `"pool": "p"`, `"pool": 7`, 1)
	inline := "[" + strings.Join(strings.Fields(a), "") + "," + strings.Join(strings.Fields(bad), "") + "]\n"
	before, _, _ := strings.Cut(inline, ":7")
	for _, c := range []struct{ name, text, want string }{
		{"array", "[" + a + ",\n" + bad + "]\n", "f:6:19: spec.pool: wrong type"},
		{"on one line", inline, fmt.Sprintf("f:1:%d: spec.pool: wrong type", len([]rune(before))+2)},
		{"list", `{"items": [` + a + ",\n" + bad + `]}`, "f:6:19: spec.pool: wrong type"},
		{"stream", a + "\n\n" + bad, "f:7:19: spec.pool: wrong type"},
		{"a page", `{"items": [` + a + `], "next": "abc"}`, "f:3:"},
		{"a page in YAML", "items: []\nnext: abc\n", "f:2:7: next: this is one page"},
		{"words", "[1, a]", "f:1:2: wrong type"},
		{"broken", "[" + a + ",\n{]", "f:4:"},
		{"doubled key", `[{"kind": "Job", "kind": "Job"}]`, "f:1:18"},
	} {
		_, err := jobfile.Parse("f", []byte(c.text))
		es, _ := errors.AsType[jobfile.Errors](err)
		if len(es) == 0 || !strings.HasPrefix(es[0].Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
}

// Many jobs as one list are read: each is bounded by itself.
func TestLongLists(t *testing.T) {
	var many []string
	for i := range 1000 {
		many = append(many, jsonJob(fmt.Sprintf("a%d", i)))
	}
	if docs, err := jobfile.Parse("f", []byte(`{"items": [`+strings.Join(many, ",\n")+`]}`)); err != nil || len(docs) != 1000 {
		t.Errorf("%d documents, %.300v", len(docs), err)
	}
}
