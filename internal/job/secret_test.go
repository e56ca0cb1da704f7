package job_test

import (
	"encoding/json"
	"testing"

	"github.com/taktsched/takt/internal/job"
)

func TestSecretName(t *testing.T) {
	for _, name := range []string{"password", "PASSWORD", "dbPassword", "db_password", "db-passwd", "pass.phrase", "clientSecret", "secret", "token", "GITHUB_TOKEN", "accessToken",
		"apiKey", "api_key", "API-KEY", "aws_access_key_id", "privateKey", "credentials", "Authorization", "bearer", "secrets", "tokenSecret", "tokenSalt", "tokensalt"} {
		if !job.SecretName(name) {
			t.Errorf("%s is no secret", name)
		}
	}
	for _, name := range []string{"", "key", "name", "tokens", "maxTokens", "tokens_used", "tokensUsed", "MAX_TOKENS", "pass", "month", "monkey", "author", "keyboard", "密码"} {
		if job.SecretName(name) {
			t.Errorf("%s is a secret", name)
		}
	}
}

// A text for people shows no secret that is worded as one; what only looks like it stays.
func TestMaskText(t *testing.T) {
	for in, want := range map[string]string{
		"dial postgres://u:hunter2@db/x: refused":     "dial postgres://u:(masked)@db/x: refused",
		"dial postgres://u:p@ss:w@db/x and mail me@x": "dial postgres://u:(masked)@db/x and mail me@x",
		"login password=hunter2 failed":               "login password=(masked) failed",
		`DB_PASSWORD="a b" and API_TOKEN=x;y=z`:       "DB_PASSWORD=(masked) and API_TOKEN=(masked);y=z",
		"Authorization: Bearer abcdefgh123 sent":      "Authorization: Bearer (masked) sent",
		"https://h/?token=abc&page=2":                 "https://h/?token=(masked)&page=2",
		"unexpected token: x":                         "unexpected token: x",
		"tokens=5 of a=b":                             "tokens=5 of a=b",
		"the bearer of this":                          "the bearer of this",
		"":                                            "",
	} {
		if got := job.MaskText(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// What people read shows no secret, keeps everything else, and cannot be written back.
func TestMask(t *testing.T) {
	for _, c := range []struct{ in, out, path string }{
		{`{"a":1e3,"b":"x"}`, `{"a":1e3,"b":"x"}`, ""},
		{`{"password":"hunter2","n":1.10}`, `{"n":1.10,"password":"(masked)"}`, "password"},
		{`{"p\u0061ssword":"hunter2"}`, `{"password":"(masked)"}`, "password"},
		{`{"password":1234}`, `{"password":"(masked)"}`, "password"},
		{`{"token":"s3","x":1}`, `{"token":"(masked)","x":1}`, "token"},
		{`{"password":""}`, `{"password":""}`, ""},
		{`{"password":null,"tokens":5,"secret":true}`, `{"password":null,"tokens":5,"secret":true}`, ""},
		{`{"credentials":{"user":"u","key":["k",7,{"x":"y"}]}}`, `{"credentials":{"key":["(masked)","(masked)",{"x":"(masked)"}],"user":"(masked)"}}`, "*"},
		{`{"list":[{"apiKey":"k"}]}`, `{"list":[{"apiKey":"(masked)"}]}`, "list[0].apiKey"},
		{`{"dsn":"postgres://u:hunter2@db:5432/x?a=<b>"}`, `{"dsn":"postgres://u:(masked)@db:5432/x?a=<b>"}`, "dsn"},
		{`"https://x:hunter2@h https://y:hunter2@h"`, `"https://x:(masked)@h https://y:(masked)@h"`, ""},
		{`{"url":"https://example.com/a:b@c"}`, `{"url":"https://example.com/a:b@c"}`, ""},
		{`{"note":"(masked)"}`, `{"note":"(masked)"}`, ""},
		{`[`, `[`, ""},
		{``, ``, ""},
	} {
		got := job.Mask(json.RawMessage(c.in))
		if string(got) != c.out {
			t.Errorf("%s: %s, want %s", c.in, got, c.out)
		}
		path, found := job.FindMasked(got)
		if changed := c.in != c.out; found != changed || c.path != "*" && path != c.path {
			t.Errorf("%s: masked value %v at %q, want %q", got, found, path, c.path)
		}
		if e := job.CheckMasked("spec.params", got); (e != nil) != found || e != nil && e.Code != "masked_value" {
			t.Errorf("%s: %v", got, e)
		}
	}
	if got := job.MaskAt("spec.params.db.password", json.RawMessage(`"hunter2"`)); string(got) != `"(masked)"` {
		t.Errorf("%s", got)
	}
}
