package jobfile_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/taktsched/takt/internal/jobfile"
)

// refusedSpecs are further parts of a spec that are refused, with what the first hint says; those of other tests come beside them.
var refusedSpecs = []struct{ spec, hint string }{
	{"schedule: {every: 500ms}", "from 1s to ten years"},
	{"schedule: {every: 1.0001s}", "milliseconds"},
	{"schedule: {every: 1h, phase: 2h}", "from 0s to one period"},
	{"schedule: {cron: \"0 9 * * *\", phase: 1h}", "leave phase out"},
	{"schedule: {delay: 1ms}", "from 1s to ten years"},
	{"schedule: {delay: 1h, jitter: 1m}", "leave jitter out"},
	{"schedule: {delay: 1h, endAt: 2099-01-01T00:00:00Z}", "use every"},
	{"schedule: {cron: \"CRON_TZ= 0 9 * * *\"}", "write CRON_TZ=Europe/Berlin in front"},
	{"schedule: {cron: \"TZ= 0 9 * * *\"}", "write TZ=Europe/Berlin in front"},
	{"schedule: {cron: \"CRON_TZ=Mars/Base 0 9 * * *\"}", "write a name such as Europe/Berlin"},
	{"schedule: {cron: \"CRON_TZ=Europe/Berlin\"}", "five fields"},
	{"schedule: {cron: \"CRON_TZ=UTC 0 9 * * *\", timeZone: Asia/Shanghai}", "say it once"},
	{"schedule: {cron: \"H/45(0-29) * * * *\"}", "such as */5"},
	{"schedule: {cron: \"H(0-29)/45 * * * *\"}", "write a step of at most 30"},
	{"schedule: {cron: \"0 9 * * *\", dialect: unix7}", "one of unix5"},
	{"schedule: {cron: \"0 9 * * *\", dst: {gap: jump}}", ""},
	{"schedule: {cron: \"0 9 * * *\", closed: next}", "name calendars"},
	{"schedule: {cron: \"0 9 * * *\", closed: later, calendars: [a]}", ""},
	{"schedule: {cron: \"0 9 * * *\", jitter: 2h}", "from 1ms to 1h"},
	{"schedule: {cron: \"0 9 * * *\", startAt: 2099-01-02T00:00:00Z, endAt: 2099-01-01T00:00:00Z}", "name an end behind startAt"},
	{"schedule: {cron: \"0 9 1 1 *\", startAt: 2099-01-02T00:00:00Z, endAt: 2099-01-03T00:00:00Z}", "name an end further ahead"},
	{"schedule: {cron: \"0 0 9 1 1 ? 2030\", startAt: 2099-01-02T00:00:00Z}", "name an earlier start"},
	{"schedule: {every: 1h, timeZone: UTC}", "leave timeZone out"},
	{"schedule: {every: 1h, dialect: unix5}", "leave dialect out"},
	{"schedule: {every: 1h, dst: {gap: skip}}", "leave dst out"},
	{"schedule: {every: 1h, cron: \"0 9 * * *\"}", "keep one of them"},
	{"schedule: {cron: \"0 9 * * *\", calendars: [a, b, c, d, e, f, g, h, i]}", ""},
	{"schedule: {cron: \"0 9 * * *\", maxRuns: 2000000000}", ""},
	{"schedules: [{every: 1h}]", "write name: and a name"},
	{"schedules: [{name: a, every: 1h, polo: 1}]", "known here: "},
	{"schedules: [{name: main, every: 1h}]", "write it as spec.schedule"},
	{"schedules: 5", "write a list"},
	{"schedule: [1]", "write a mapping of "},
	{"retry: {maxAttempts: 1000}", ""},
	{"retry: {backoff: {factor: 99}}", ""},
	{"retry: {backoff: {jitter: some}}", ""},
	{"retry: {maxAttempts: many}", "write a whole number without quotes: 1-100"},
	{"timeout: {attempt: 1.00001ms}", "milliseconds"},
	{"timeout: {attempt: 4000d}", ""},
	{"misfire: {policy: always}", "write one of skip, once, all"},
	{"misfire: {policy: all, limit: 1000000}", ""},
	{"overlap: {policy: maybe}", ""},
	{"overlap: {policy: queue, maxQueued: 1000000}", ""},
	{"after: [{job: b, timeZone: UTC}]", "leave timeZone out"},
	{"after: [{job: b, match: day, timeZone: Mars/Base}]", ""},
	{"after: [{job: b, within: 1ms}]", "at least 1s"},
	{"after: [{on: failed}]", "write job: and a name"},
	{"after: [{job: b, on: often}]", "write one of succeeded, failed, finished"},
	{"autoPause: {afterFailures: 100000}", ""},
	{"autoPause: {}", "write afterFailures"},
	{"shards: {}", "write count"},
	{"shards: 8", "write a mapping of count"},
	{"enabled: maybe", "write true or false"},
	{"title: 5", "put it in quotes"},
	{"title: " + strings.Repeat("x", 300), "256"},
	{"description: [a]", "write a text"},
	{"params: {password: (masked)}", ""},
}

// refusedFiles are whole documents.
var refusedFiles = []struct{ text, hint string }{
	{"apiVersion: takt/v1\nkind: Job\nmetadata: {}\nspec: {pool: p, handler: h}\n", "write name: and a name; names are 1 to 63"},
	{"apiVersion: takt/v1\nkind: Job\nmetadata: {name: a}\nspec: {handler: h}\n", "write pool: and a name; names are 1 to 63"},
	{"apiVersion: takt/v1\nkind: Job\nmetadata: {name: a}\nspec: {pool: p}\n", "write handler: and a text"},
	{"apiVersion: takt/v1\nkind: Job\nmetadata: {name: a}\n", "write spec: and a mapping of after, "},
	{"apiVersion: takt/v1\nkind: Job\nspec: {pool: p, handler: h}\n", "write metadata: and a mapping of labels, name, namespace"},
	{"kind: Job\nmetadata: {name: a}\nspec: {pool: p, handler: h}\n", "write apiVersion: takt/v1"},
	{"apiVersion: takt/v9\nkind: Job\nmetadata: {name: a}\nspec: {pool: p, handler: h}\n", "write one of takt/v1"},
	{"apiVersion: takt/v1\nmetadata: {name: a}\nspec: {pool: p, handler: h}\n", "write kind: Job"},
	{"apiVersion: takt/v1\nkind: Job\nmetadata: {name: a, labels: {a: 5}}\nspec: {pool: p, handler: h}\n", "put it in quotes"},
	{"apiVersion: takt/v1\nkind: Job\nmetadata: {name: a, labels: {-: x}}\nspec: {pool: p, handler: h}\n", "names are 1 to 63 letters"},
	{"apiVersion: takt/v1\nkind: Job\nmetadata: {name: a, labels: {a: " + strings.Repeat("x", 300) + "}}\nspec: {pool: p, handler: h}\n", ""},
	{"hello\n", "write a mapping of apiVersion, kind, metadata, spec"},
	{"apiVersion: takt/v1\nkind: Calendar\nmetadata: {name: a}\nspec: {weekly: [none]}\n", "list the open days"},
	{"apiVersion: takt/v1\nkind: Calendar\nmetadata: {name: a}\nspec: {weekly: []}\n", "leave weekly out"},
	{"apiVersion: takt/v1\nkind: Calendar\nmetadata: {name: a}\nspec: {closed: [{from: 2026-02-03, to: 2026-02-01}]}\n", "write the first day first"},
	{"apiVersion: takt/v1\nkind: Calendar\nmetadata: {name: a}\nspec: {closed: [{to: 2026-02-01}]}\n", "write from"},
	{"apiVersion: takt/v1\nkind: Calendar\nmetadata: {name: a}\nspec: {daily: [{from: \"9\", to: \"10:00\"}]}\n", ""},
	{"apiVersion: takt/v1\nkind: Calendar\nmetadata: {}\nspec: {weekly: [MON]}\n", "write name: and a name"},
	{"apiVersion: takt/v1\nkind: Calendar\nmetadata: {name: a}\nspec: {timeZone: Mars/Base}\n", "write a name such as"},
}

// Every refusal of a file says what to do.
func TestEveryRefusalSaysWhatToDo(t *testing.T) {
	t.Parallel()
	check := func(name, text, hint string) {
		_, err := jobfile.Parse("f.yaml", []byte(text))
		faults, ok := errors.AsType[jobfile.Errors](err)
		if !ok || len(faults) == 0 {
			t.Errorf("%.200s: taken, %v", name, err)
			return
		}
		for _, e := range faults {
			if e.Hint == "" {
				t.Errorf("%.200s: nothing says what to do about %v", name, e)
			}
		}
		if !strings.Contains(faults[0].Hint, hint) {
			t.Errorf("%.200s: %v: the hint is %q, want %q", name, faults[0], faults[0].Hint, hint)
		}
	}
	for _, c := range refusedSpecs {
		check(c.spec, hostileHead+"  "+c.spec+"\n", c.hint)
	}
	for _, c := range refusedFiles {
		check(c.text, c.text, c.hint)
	}
	for _, c := range hostileFiles {
		check(c.name, c.text, "")
	}
	many := make([]string, 40)
	for i := range many {
		many[i] = fmt.Sprintf("{name: s%d, every: 1h}", i)
	}
	check("many schedules", hostileHead+"  schedules: ["+strings.Join(many, ", ")+"]\n", "")
}
