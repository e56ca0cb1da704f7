package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/taktsched/takt"
	"github.com/taktsched/takt/internal/job"
)

func TestTablePadsByDisplayCells(t *testing.T) {
	var out bytes.Buffer
	err := printTable(&out, []string{"NAME", "X", "Y"}, [][]string{{"月度账单", "1", ""}, {"a\x1b[31m\nb", "22", "z"}})
	want := "NAME      X   Y\n月度账单  1\na\uFFFD[31m b  22  z\n"
	if err != nil || out.String() != want {
		t.Errorf("got %q, %v\nwant %q", out.String(), err, want)
	}
}

func TestAge(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 250 * time.Millisecond: "250ms", 3200 * time.Millisecond: "3.2s", 59 * time.Second: "59s",
		5*time.Minute + 12*time.Second: "5m12s", 26 * time.Hour: "1d2h", 50 * time.Hour: "2d2h", -time.Minute: "-1m", 365*24*time.Hour - time.Second: "364d23h", 365 * 24 * time.Hour: "365d", 3 * time.Hour: "3h",
	} {
		if got := age(d); got != want {
			t.Errorf("age(%v) = %s, want %s", d, got, want)
		}
	}
}

func TestParams(t *testing.T) {
	got, err := parseParams([]string{"a=x=y", "n:=5", "o:={\"k\":[1]}", "empty=", "中=文", "big:=9007199254740993"})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a": `"x=y"`, "n": "5", "o": `{"k":[1]}`, "empty": `""`, "中": `"文"`, "big": "9007199254740993"} {
		if string(got[name]) != want {
			t.Errorf("%s = %s, want %s", name, got[name], want)
		}
	}
	if len(got) != 6 {
		t.Errorf("%d parameters", len(got))
	}
	for _, bad := range []string{"", "x", "=1", ":=1", "x:=", "x:=1 2"} {
		if _, err := parseParams([]string{bad}); err == nil {
			t.Errorf("-p %q was taken", bad)
		}
	}
}

func TestEnvironmentFillsOnlyWhatIsOpen(t *testing.T) {
	env := map[string]string{"TAKT_LEASE_TTL": "2s", "TAKT_DATA": "from-env", "TAKT_LISTEN": "", "TAKT_FILE": "x"}
	lookup := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	f := pflag.NewFlagSet("t", pflag.ContinueOnError)
	ttl := f.Duration("lease-ttl", time.Second, "")
	data := f.String("data", "", "")
	listen := f.String("listen", "default", "")
	file := f.String("file", "", "")
	alsoEnv(f, "lease-ttl", "data", "listen")
	if err := f.Parse([]string{"--data", "from-flag"}); err != nil {
		t.Fatal(err)
	}
	if err := readEnv(f, lookup); err != nil {
		t.Fatal(err)
	}
	if *ttl != 2*time.Second || *data != "from-flag" || *listen != "default" || *file != "" {
		t.Errorf("ttl %v, data %q, listen %q, file %q", *ttl, *data, *listen, *file)
	}
	if u := f.Lookup("lease-ttl").Usage; !strings.Contains(u, "TAKT_LEASE_TTL") {
		t.Errorf("the help does not name the variable: %q", u)
	}
}

// A first Ctrl-C is enough while standard input is open and nothing comes.
func TestStdinIsGivenUp(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	in, typed := io.Pipe()
	defer func() { _ = typed.Close() }()
	cancel(&signalError{sig: os.Interrupt})
	_, err := readStdin(ctx, in)
	if f, ok := errors.AsType[*failure](err); !ok || f.code != exitInterrupted {
		t.Errorf("got %v, want exit code %d", err, exitInterrupted)
	}
}

func TestExitCodes(t *testing.T) {
	interrupted, cancel := context.WithCancelCause(context.Background())
	cancel(&signalError{sig: os.Interrupt})
	late, stop := context.WithTimeout(context.Background(), 0)
	defer stop()
	<-late.Done()
	api := func(status int, kind string) error {
		return fmt.Errorf("wrapped: %w", &takt.Error{Problem: takt.Problem{Status: status, Kind: kind}})
	}
	for _, c := range []struct {
		name string
		ctx  context.Context
		err  error
		want int
	}{
		{"nothing", t.Context(), nil, 0},
		{"invalid", t.Context(), api(422, "invalid"), 2},
		{"too large", t.Context(), api(413, "too_large"), 2},
		{"not found", t.Context(), api(404, "not_found"), 3},
		{"unauthorized", t.Context(), api(401, "unauthorized"), 4},
		{"forbidden", t.Context(), api(403, "forbidden"), 4},
		{"conflict", t.Context(), api(409, "conflict"), 5},
		{"unavailable", t.Context(), api(0, "unavailable"), 6},
		{"no owner", t.Context(), api(503, "no_owner"), 6},
		{"internal", t.Context(), api(500, "internal"), 6},
		{"lock", t.Context(), job.Errorf(job.KindConflict, "data_dir_locked", "in use"), 5},
		{"settings", t.Context(), job.Errorf(job.KindInvalid, "lease_settings", "no"), 2},
		{"interrupted", interrupted, api(0, "unavailable"), 130},
		{"late", late, api(0, "unavailable"), 7},
		{"a failure keeps its code", interrupted, &failure{code: exitNegative}, 1},
		{"unknown", t.Context(), errors.New("x"), 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			if got := report(&out, nil, explain(c.ctx, "what", c.err)); got != c.want {
				t.Errorf("exit code %d, want %d; %s", got, c.want, out.String())
			}
		})
	}
	if got := report(&bytes.Buffer{}, nil, errors.New("what cobra finds")); got != exitUsage {
		t.Errorf("exit code %d for an error of usage", got)
	}
}
