package jobfile_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/taktsched/takt/internal/jobfile"
)

// TestC73NumbersInFiles: what the API refuses is refused in a file as well, at its line; case C73's values by field.
func TestC73NumbersInFiles(t *testing.T) {
	for field, values := range map[string][]string{
		"shards: {count: %s}":               {"0", "-1", "2147483648", "1000000000", "~", "1.5", `"5"`, `""`, "1e400", ".nan", "9007199254740993"},
		"timeout: {attempt: %s}":            {"-1", `""`, "1.5", `"5"`, "1e400", ".nan", "9007199254740993", "-1s", "99999w"},
		"retry: {maxAttempts: %s}":          {"-1", "0", `""`, "1.5", `"5"`, "1e400", ".nan", "9007199254740993"},
		"retry: {backoff: {initial: %s}}":   {"-1", `""`, `"5"`, "1e400", ".nan", "-1s"},
		"retry: {backoff: {factor: %s}}":    {"-1", `""`, `"5"`, "1e400", ".nan"},
		"schedule: {every: %s}":             {"0", "-1", `"0"`, `""`, "-1s", "1e400", ".nan", "1ms"},
		"schedule: {at: %s}":                {"0000-01-01T00:00:00Z", "10000-01-01T00:00:00Z", "2027-06-30T23:59:60Z", "0", `""`, "2027-02-30T00:00:00Z"},
		"schedules: [{name: x, every: %s}]": {"0", "1ms", ".inf"},
	} {
		for _, value := range values {
			docs, err := jobfile.Parse("f.yaml", []byte(hostileHead+"  "+fmt.Sprintf(field, value)+"\n"))
			if es, ok := errors.AsType[jobfile.Errors](err); !ok || len(docs) > 0 || es[0].Line != 7 || es[0].Field == "" {
				t.Errorf(field+": %+v, %v", value, docs, err)
			}
		}
	}
	if _, err := jobfile.Parse("f.yaml", []byte(hostileHead+"  schedule: {at: 2038-01-19T03:14:08Z}\n  retry: {maxAttempts: 1}\n")); err != nil {
		t.Error(err)
	}
}
