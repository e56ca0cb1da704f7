package postgres_test

import (
	"strings"
	"testing"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store/postgres"
)

// A password whose special characters are not written as %XX tears a URL: it is refused before anything of it is looked up or shown.
func TestTornAddress(t *testing.T) {
	t.Parallel()
	for _, dsn := range []string{
		"postgres://u:a@S3cret@127.0.0.1:1/d",
		"postgresql://u:a@S3cret@127.0.0.1:1/d",
		"postgres://u:@S3cret@127.0.0.1:1/d",
		"postgres://u:S3cret@@127.0.0.1:1/d",
		"postgres://u:12@S3cret/x@127.0.0.1:1/d",
		"postgres://u:12/S3cret@127.0.0.1:1/d",
		"postgres://u:12/a?S3cret@127.0.0.1:1/d",
		"postgres://u:12@S3cret?x@127.0.0.1:1/d",
		"postgres://?user=u&password=S3cret@x",
		"postgres://u:S3cret/x@127.0.0.1:1/d",
		"postgres://u:S3%cret@127.0.0.1:1/d",
	} {
		where, err := postgres.Where(dsn)
		_, inspected := postgres.Inspect(t.Context(), dsn)
		_, opened := postgres.Open(t.Context(), postgres.Config{DSN: dsn})
		for _, err := range []error{err, inspected, opened} {
			wantKind(t, dsn, err, job.KindInvalid, "bad_address")
			if text := err.Error(); strings.Contains(text, "S3cret") {
				t.Errorf("%s: %s", dsn, text)
			}
		}
		if where != "" {
			t.Errorf("%s: %s", dsn, where)
		}
	}
	for dsn, want := range map[string]string{
		"postgres://u:a%40b%2Fc@h:1/d":            "postgres h:1/d",
		"postgres://u:a!$&'()*+,;=:b@h:1/d":       "postgres h:1/d",
		"postgres://h:1/d?user=me@server":         "postgres h:1/d",
		"postgres://u@h:1,i:2/d?password=p@q&a=b": "postgres h:1,i:2/d",
		"postgres://u:a?b#c@h:1/d":                "postgres h:1/d",
		"postgres://u@h:1/d?passfile=/home/u@corp.example/.pgpass&servicefile=/home/u@corp.example/s": "postgres h:1/d",
		"postgres://u@h:1/d?krbspn=postgres/h@CORP.EXAMPLE":                                           "postgres h:1/d",
		"host=h port=1 user=u password=p@q dbname=d":                                                  "postgres h:1/d",
	} {
		if where, err := postgres.Where(dsn); err != nil || where != want {
			t.Errorf("%s: %q, %v", dsn, where, err)
		}
	}
}
