package main

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/jobfile"
)

// What export writes is read back as the same job, whatever the texts hold.
func TestExportIsReadBack(t *testing.T) {
	at := time.Date(2026, 12, 1, 0, 0, 0, 5e6, time.UTC)
	no := false
	var jobs []takt.Job
	for _, text := range []string{"", "yes", "no", "null", "~", "1", "1e3", "0x10", "0o7", "2026-01-01", "a: b", "- x", "# c", "#c", "a #b", "&a", "*a", "!t", "%x", "@x", "`x`",
		"'", `"`, `\`, " lead", "trail ", "two\nlines", "end\n", "ends\n\n", "\n", "\nlead", "  indented\nless", "tab\tin", "\ttab", "月度账单 🙂", "a\r\nb", "{x}", "[x]", "? x", ": x", "---", "...",
		"x:", "<<", "=", "true", "-", "a\u0085b", "a\u2028b", "\ufeffbom", "a\u0007b", "|", ">", "a, b", "12:30:45", "1_000", ".inf", ".nan", "-0", strings.Repeat("long word ", 20)} {
		params, err := json.Marshal(map[string]any{"k": text, "n": json.Number("9007199254740993"), "f": 1.5, "l": []any{text, nil, true}, "ll": []any{[]any{1, text}, []any{map[string]any{"a": text}}}, "e": map[string]any{}, "x": []any{}})
		if err != nil {
			t.Fatal(err)
		}
		jobs = append(jobs, takt.Job{APIVersion: takt.APIVersion, Kind: "Job", Metadata: takt.JobMetadata{Name: "a", Labels: map[string]string{"l": text, "n": "1"}},
			Spec: takt.JobSpec{Title: text, Description: text + text, Pool: "1", Handler: "null", Params: params, Enabled: &no,
				Schedule:  &takt.ScheduleSpec{Cron: "0 3 * * *", TimeZone: "Asia/Shanghai"},
				Schedules: []takt.NamedSchedule{{Name: "1", Every: takt.Duration(90 * time.Second)}, {Name: "on", At: &at}},
				Retry:     &takt.RetrySpec{MaxAttempts: 3, Backoff: &takt.BackoffSpec{Factor: 1.5, Max: takt.Duration(time.Hour)}}}})
	}
	for i := range jobs {
		var out strings.Builder
		if err := printDocuments(&out, []any{&jobs[i]}); err != nil {
			t.Fatal(err)
		}
		docs, err := jobfile.Parse("out.yaml", []byte(out.String()))
		if err != nil || len(docs) != 1 {
			t.Errorf("title %q: %d documents, %v\n%s", jobs[i].Spec.Title, len(docs), err, out.String())
			continue
		}
		got, want := plain(t, &docs[0].Job), plain(t, &jobs[i])
		if !reflect.DeepEqual(got, want) {
			t.Errorf("title %q:\ngot  %v\nwant %v\n%s", jobs[i].Spec.Title, got, want, out.String())
		}
	}
}

func plain(t *testing.T, j *takt.Job) (v any) {
	t.Helper()
	text, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}
