package jobfile_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/taktsched/takt/internal/jobfile"
)

// Every reference of the schema leads somewhere, and what may not be written is refused.
func TestSchema(t *testing.T) {
	text, _, err := jobfile.Schema("job")
	if err != nil {
		t.Fatal(err)
	}
	var s struct {
		Ref  string `json:"$ref"`
		Defs map[string]struct {
			Properties           map[string]json.RawMessage `json:"properties"`
			AdditionalProperties any                        `json:"additionalProperties"`
		} `json:"$defs"`
	}
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	if s.Ref != "#/$defs/Job" || s.Defs["JobSpec"].Properties["schedules"] == nil || s.Defs["JobSpec"].AdditionalProperties != false {
		t.Errorf("schema %s", text)
	}
	for part := range strings.SplitSeq(string(text), `"$ref": "`) {
		name, _, _ := strings.Cut(strings.TrimPrefix(part, "#/$defs/"), `"`)
		if strings.HasPrefix(part, "#") && s.Defs[name].Properties == nil {
			t.Errorf("%q leads nowhere", name)
		}
	}
}

func TestExplain(t *testing.T) {
	for path, want := range map[string]string{
		"job":                               "mapping",
		"job.metadata.labels":               "mapping",
		"job.spec.schedules":                "list of mapping",
		"job.spec.schedules.every":          "duration",
		"job.spec.schedule.at":              "instant",
		"job.spec.params":                   "any value",
		"job.spec.retry.backoff.factor":     "number",
		"job.spec.enabled":                  "boolean",
		"job.status.paused.reason":          "string",
		"job.metadata.revision":             "integer",
		"job.spec.timeout.grace":            "duration",
		"job.spec.retry.backoff.jitter":     "string",
		"job.spec.description":              "string",
		"job.spec.shards.count":             "integer",
		"job.status.nextPlannedAt":          "instant",
		"job.spec.schedules.timeZone":       "string",
		"job.spec.retry.backoff":            "mapping",
		"job.metadata.creationTimestamp":    "!",
		"spec":                              "!",
		"job.spec.params.x":                 "!",
		"job.spec.":                         "!",
		"":                                  "!",
		"job.spec.schedules.name.x":         "!",
		"job.spec.retry.backoff.initial.ms": "!",
	} {
		f, err := jobfile.Explain(path)
		if want == "!" {
			if err == nil {
				t.Errorf("%q: %+v", path, f)
			}
			continue
		}
		if err != nil || f.Type != want || f.Path != path {
			t.Errorf("%q: %+v, %v", path, f, err)
		}
	}
	f, _ := jobfile.Explain("job.spec")
	pool := slices.IndexFunc(f.Fields, func(x jobfile.Field) bool { return x.Path == "job.spec.pool" })
	if len(f.Fields) < 12 || pool < 0 || !f.Fields[pool].Required {
		t.Errorf("fields %+v", f.Fields)
	}
}
