package api_test

import (
	"slices"
	"strings"
	"testing"
)

const (
	jobs  = "/api/v1/namespaces/default/jobs"
	one   = jobs + "/nightly"
	execs = "/api/v1/namespaces/default/executions"
	exec1 = execs + "/06cw1bq0fr8j1x4cw6h3ybkq2c"
	work  = "/api/v1/worker/"
	sess  = `"session":"1.0123456789abcdef01234567","epoch":1,"call":2`
)

// document is a good job with one part replaced.
func document(old, new string) string {
	const good = `{"apiVersion":"takt/v1","kind":"Job","metadata":{"name":"nightly"},"spec":{"pool":"web","handler":"index","shards":{"count":8},` +
		`"schedule":{"cron":"0 3 * * *"},"retry":{"maxAttempts":3,"backoff":{"initial":"5s"}},"timeout":{"attempt":"1h"},"params":{"a":1}}}`
	if !strings.Contains(good, old) {
		panic("not in the document: " + old)
	}
	return strings.Replace(good, old, new, 1)
}

func put(old, new string) request { return request{method: "PUT", path: one, body: document(old, new)} }

func post(path, body string) request { return request{method: "POST", path: path, body: body} }

func get(path string) request { return request{method: "GET", path: path} }

func with(q request, name, value string) request {
	h := map[string]string{}
	for k, v := range q.header {
		h[k] = v
	}
	h[name] = value
	q.header = h
	return q
}

func item(s string) request {
	return post(work+"report", `{`+sess+`,"items":[{"execution":"06cw1bq0fr8j1x4cw6h3ybkq2c","shard":0,"token":5,"seq":1,"kind":"started"},`+s+`]}`)
}

const opened = `{"namespace":"default","pool":"web","worker":"w1","incarnation":"abc","handlers":["index"],"slots":4,"call":1}`

func open(old, new string) request {
	if !strings.Contains(opened, old) {
		panic("not in the request: " + old)
	}
	return post(work+"open", strings.Replace(opened, old, new, 1))
}

// secret stands for values that no problem may echo.
const secret = "hunter2-S3CRET"

type hostileCase struct {
	name   string
	q      request
	status int
	code   string
	field  string
}

var hostile = []hostileCase{
	// what can not be read
	{"no JSON", request{method: "PUT", path: one, body: secret}, 400, "malformed_json", "body"},
	{"cut off", request{method: "PUT", path: one, body: `{"apiVersion":"takt/v1",`}, 400, "malformed_json", "body"},
	{"something behind", request{method: "PUT", path: one, body: document("1h", "1h") + `{}`}, 400, "malformed_json", "body"},
	{"garbage behind", post(exec1+"/cancel", `{"note":"x"} `+secret), 400, "malformed_json", "body"},
	{"single quotes", post(one+"/trigger", `{'params':1}`), 400, "malformed_json", "body"},
	{"NaN", put(`"count":8`, `"count":NaN`), 400, "malformed_json", "body"},
	{"byte order mark", request{method: "PUT", path: one, body: "\ufeff" + document("1h", "1h")}, 400, "malformed_json", "body"},
	{"no body", request{method: "PUT", path: one}, 400, "body_required", "body"},
	{"null body", request{method: "PUT", path: one, body: "null"}, 400, "body_required", "body"},
	{"body of a GET", request{method: "GET", path: one, body: "{}"}, 400, "body_unexpected", "body"},
	{"bad UTF-8", put("index", "in\xffdex"), 400, "invalid_utf8", "body"},
	{"bad UTF-8 in params", put(`{"a":1}`, "\"\xc3\x28\""), 400, "invalid_utf8", "body"},
	{"half a surrogate", put(`{"a":1}`, `{"a":"\ud800"}`), 400, "invalid_utf8", "spec.params.a"},
	{"low surrogate first", put(`{"a":1}`, `{"a":"\udc00\ud800"}`), 400, "invalid_utf8", "spec.params.a"},
	{"escaped NUL", put("index", `in\u0000dex`), 400, "nul_character", "spec.handler"},
	{"escaped NUL in params", put(`{"a":1}`, `{"a":["x","\u0000"]}`), 400, "nul_character", "spec.params.a[1]"},
	{"escaped NUL in a key", put(`{"a":1}`, `{"a\u0000":1}`), 400, "nul_character", "spec.params"},
	{"raw NUL", put("index", "in\x00dex"), 400, "nul_character", "body"},
	{"doubled key", put(`"pool":"web"`, `"pool":"web","pool":"db"`), 400, "doubled_key", "spec.pool"},
	{"doubled key, escaped", put(`"pool":"web"`, `"pool":"web","p\u006fol":"db"`), 400, "doubled_key", "spec.pool"},
	{"doubled key in params", put(`{"a":1}`, `{"a":1,"b":{"c":1,"c":2}}`), 400, "doubled_key", "spec.params.b.c"},
	{"too deep", put(`{"a":1}`, strings.Repeat(`[`, 70)+strings.Repeat(`]`, 70)), 400, "too_deep", "body"},
	{"far too deep", put(`{"a":1}`, strings.Repeat(`[`, 200_000)+strings.Repeat(`]`, 200_000)), 400, "malformed_json", "body"},
	{"doubled parameter", get(jobs + "?limit=1&limit=2"), 400, "doubled_parameter", "query.limit"},
	{"malformed query", get(jobs + "?after=%zz"), 400, "malformed_query", "query"},
	{"semicolon in query", get(jobs + "?limit=1;after=2"), 400, "malformed_query", "query"},
	{"NUL in query", get(jobs + "?after=a%00b"), 400, "invalid_utf8", "query.after"},
	{"bad UTF-8 in query", get(jobs + "?after=%ff"), 400, "invalid_utf8", "query.after"},
	{"NUL in path", get(jobs + "/a%00b"), 400, "malformed_path", "path"},
	{"bad UTF-8 in path", get(jobs + "/a%ffb"), 400, "malformed_path", "path"},

	// what is judged wrong
	{"unknown field", put(`"pool":"web"`, `"pool":"web","pol":1`), 422, "unknown_field", "spec.pol"},
	{"unknown field on top", put(`"kind":"Job"`, `"kind":"Job","sepc":{}`), 422, "unknown_field", "sepc"},
	{"unknown deep field", put(`"initial":"5s"`, `"inital":"5s"`), 422, "unknown_field", "spec.retry.backoff.inital"},
	{"wrong case", put(`"pool":"web"`, `"Pool":"web"`), 422, "unknown_field", "spec.Pool"},
	{"wrong case beside right", put(`"pool":"web"`, `"pool":"web","POOL":"db"`), 422, "unknown_field", "spec.POOL"},
	{"unknown field of a trigger", post(one+"/trigger", `{"parms":{}}`), 422, "unknown_field", "parms"},
	{"unknown field of a cancel", post(exec1+"/cancel", `{"reason":"x"}`), 422, "unknown_field", "reason"},
	{"array for the document", request{method: "PUT", path: one, body: `[]`}, 422, "wrong_type", "body"},
	{"text for the document", request{method: "PUT", path: one, body: `"` + secret + `"`}, 422, "wrong_type", "body"},
	{"number for text", put(`"web"`, `5`), 422, "wrong_type", "spec.pool"},
	{"text for number", put(`"count":8`, `"count":"`+secret+`"`), 422, "wrong_type", "spec.shards.count"},
	{"fraction for whole", put(`"count":8`, `"count":1.5`), 422, "wrong_type", "spec.shards.count"},
	{"exponent for whole", put(`"count":8`, `"count":1e3`), 422, "wrong_type", "spec.shards.count"},
	{"beyond 64 bits", put(`"count":8`, `"count":99999999999999999999`), 422, "wrong_type", "spec.shards.count"},
	{"beyond float", put(`"initial":"5s"`, `"factor":1e999`), 422, "wrong_type", "spec.retry.backoff.factor"},
	{"at and in", post(one+"/trigger", `{"at":"2026-12-01T00:00:00Z","in":"5m"}`), 422, "at_and_in", "in"},
	{"in more than ten years", post(one+"/trigger", `{"in":"1040w"}`), 422, "wrong_type", "in"},
	{"at the end of time", post(one+"/trigger", `{"at":"2999-01-01T00:00:00Z"}`), 422, "instant_too_far", "at"},
	{"no instant", post(one+"/trigger", `{"at":"`+secret+`"}`), 422, "wrong_type", "at"},
	{"an item at the end of time", post(execs, `{"items":[{"job":"nightly"},{"job":"nightly","at":"2999-01-01T00:00:00Z"}]}`), 422, "instant_too_far", "items[1].at"},
	{"reschedule to when", post(exec1+"/reschedule", `{"when":"now"}`), 422, "unknown_field", "when"},
	{"reschedule to the end of time", post(exec1+"/reschedule", `{"at":"2999-01-01T00:00:00Z"}`), 422, "instant_too_far", "at"},
	{"reschedule what", post(execs+"/x/reschedule", `{}`), 422, "bad_execution_id", "path.id"},
	{"strange overlap", put(`"pool":"web"`, `"pool":"web","overlap":{"policy":"forbid"}`), 422, "bad_value", "spec.overlap.policy"},
	{"overlap as text", put(`"pool":"web"`, `"pool":"web","overlap":"skip"`), 422, "wrong_type", "spec.overlap"},
	{"unknown field of an overlap", put(`"pool":"web"`, `"pool":"web","overlap":{"max":1}`), 422, "unknown_field", "spec.overlap.max"},
	{"too many waiting", put(`"pool":"web"`, `"pool":"web","overlap":{"maxQueued":1001}`), 422, "out_of_range", "spec.overlap.maxQueued"},
	{"fewer than none waiting", put(`"pool":"web"`, `"pool":"web","overlap":{"maxQueued":-1}`), 422, "out_of_range", "spec.overlap.maxQueued"},
	{"a bound of nothing", put(`"pool":"web"`, `"pool":"web","overlap":{"policy":"skip","maxQueued":1}`), 422, "bad_overlap", "spec.overlap.maxQueued"},
	{"no duration", put(`"1h"`, `"`+secret+`"`), 422, "wrong_type", "spec.timeout.attempt"},
	{"endless duration", put(`"1h"`, `"999999999w"`), 422, "wrong_type", "spec.timeout.attempt"},
	{"duration as number", put(`"1h"`, `3600`), 422, "wrong_type", "spec.timeout.attempt"},
	{"no instant", put(`"cron":"0 3 * * *"`, `"at":"tomorrow"`), 422, "wrong_type", "spec.schedule.at"},
	{"instant before time", put(`"cron":"0 3 * * *"`, `"at":"0001-01-01T00:00:00Z"`), 422, "wrong_type", "spec.schedule.at"},
	{"labels as array", put(`"name":"nightly"`, `"name":"nightly","labels":[]`), 422, "wrong_type", "metadata.labels"},
	{"label as number", put(`"name":"nightly"`, `"name":"nightly","labels":{"a":1}`), 422, "wrong_type", "metadata.labels.a"},
	{"no name", put(`{"name":"nightly"}`, `{}`), 422, "required_field", "metadata.name"},
	{"no spec", request{method: "PUT", path: one, body: `{"apiVersion":"takt/v1","kind":"Job","metadata":{"name":"nightly"}}`}, 422, "required_field", "spec"},
	{"other version", put(`takt/v1`, `takt/v9`), 422, "bad_value", "apiVersion"},
	{"other kind", put(`"Job"`, `"Pod"`), 422, "bad_value", "kind"},
	{"name with a slash", put(`"name":"nightly"`, `"name":"a/b"`), 422, "bad_format", "metadata.name"},
	{"name of another", put(`"name":"nightly"`, `"name":"daily"`), 422, "path_mismatch", "metadata.name"},
	{"namespace of another", put(`"name":"nightly"`, `"name":"nightly","namespace":"other"`), 422, "path_mismatch", "metadata.namespace"},
	{"pool in capitals", put(`"web"`, `"WEB"`), 422, "bad_format", "spec.pool"},
	{"handler with blanks", put(`"index"`, `"in dex"`), 422, "bad_format", "spec.handler"},
	{"no shards", put(`"count":8`, `"count":0`), 422, "out_of_range", "spec.shards.count"},
	{"too many shards", put(`"count":8`, `"count":10001`), 422, "out_of_range", "spec.shards.count"},
	{"negative attempts", put(`"maxAttempts":3`, `"maxAttempts":-1`), 422, "out_of_range", "spec.retry.maxAttempts"},
	{"negative duration", put(`"1h"`, `"-1h"`), 422, "wrong_type", "spec.timeout.attempt"},
	{"unknown jitter", put(`"initial":"5s"`, `"jitter":"some"`), 422, "bad_value", "spec.retry.backoff.jitter"},
	{"two schedules", put(`"cron":"0 3 * * *"`, `"cron":"0 3 * * *","every":"1h"`), 422, "schedule_not_single", "spec.schedule"},
	{"empty schedule", put(`{"cron":"0 3 * * *"}`, `{}`), 422, "schedule_not_single", "spec.schedule"},
	{"bad cron", put(`0 3 * * *`, `61 3 * * *`), 422, "bad_schedule", "spec.schedule.cron"},
	{"unknown zone", put(`"cron":"0 3 * * *"`, `"cron":"0 3 * * *","timeZone":"Mars/Olympus"`), 422, "bad_schedule", "spec.schedule.timeZone"},
	{"every too short", put(`"cron":"0 3 * * *"`, `"every":"10ms"`), 422, "bad_schedule", "spec.schedule.every"},
	{"fraction of a millisecond", put(`"1h"`, `"0.5ms"`), 422, "out_of_range", "spec.timeout.attempt"},
	{"params too large", put(`{"a":1}`, `"`+strings.Repeat("x", 256<<10)+`"`), 413, "params_too_large", "spec.params"},
	{"body too large", put(`{"a":1}`, `"`+strings.Repeat("x", 1<<20)+`"`), 413, "body_too_large", "body"},
	{"bad label name", put(`"name":"nightly"`, `"name":"nightly","labels":{" ":"x"}`), 422, "bad_label", "metadata.labels"},
	{"note too long", post(exec1+"/cancel", `{"note":"`+strings.Repeat("x", 1025)+`"}`), 422, "out_of_range", "note"},
	{"namespace in capitals", get("/api/v1/namespaces/ABC/jobs"), 422, "bad_format", "path.ns"},
	{"name too long", get(jobs + "/" + strings.Repeat("x", 64)), 422, "bad_format", "path.name"},
	{"slash in a name", get(jobs + "/a%2Fb"), 422, "bad_format", "path.name"},
	{"no execution id", get(execs + "/" + secret), 422, "bad_execution_id", "path.id"},
	{"too long an id", get(execs + "/" + strings.Repeat("0", 37)), 422, "out_of_range", "path.id"},
	{"unknown parameter", get(jobs + "?lmit=5"), 422, "unknown_parameter", "query.lmit"},
	{"parameter in capitals", get(jobs + "?Limit=5"), 422, "unknown_parameter", "query.Limit"},
	{"limit 0", get(jobs + "?limit=0"), 422, "out_of_range", "query.limit"},
	{"limit 501", get(jobs + "?limit=501"), 422, "out_of_range", "query.limit"},
	{"limit as text", get(jobs + "?limit=" + secret), 422, "wrong_type", "query.limit"},
	{"unknown state", get(execs + "?state=" + secret), 422, "bad_value", "query.state"},
	{"key with blanks", with(post(one+"/trigger", ""), "Idempotency-Key", "a b"), 422, "bad_format", "header.Idempotency-Key"},
	{"key too long", with(post(one+"/trigger", ""), "Idempotency-Key", strings.Repeat("k", 129)), 422, "bad_format", "header.Idempotency-Key"},
	{"key not ASCII", with(post(one+"/trigger", ""), "Idempotency-Key", "schlüssel"), 422, "bad_format", "header.Idempotency-Key"},
	{"blank key", with(post(one+"/trigger", ""), "Idempotency-Key", " "), 400, "bad_header", "header.Idempotency-Key"},
	{"If-Match without quotes", with(put("1h", "1h"), "If-Match", "3"), 422, "bad_if_match", "header.If-Match"},
	{"weak If-Match", with(put("1h", "1h"), "If-Match", `W/"3"`), 422, "bad_if_match", "header.If-Match"},
	{"If-Match of anything", with(put("1h", "1h"), "If-Match", "*"), 422, "bad_if_match", "header.If-Match"},
	{"both conditions", with(with(put("1h", "1h"), "If-Match", `"3"`), "If-None-Match", "*"), 422, "bad_if_match", "header.If-Match"},
	{"If-None-Match of one", with(put("1h", "1h"), "If-None-Match", `"3"`), 422, "bad_value", "header.If-None-Match"},

	// what is not there, or not so
	{"unknown path", get("/api/v1/" + secret), 404, "unknown_path", "path"},
	{"root", get("/"), 404, "unknown_path", "path"},
	{"slash at the end", get(jobs + "/"), 404, "unknown_path", "path"},
	{"doubled slash", get("/api//v1/stats"), 404, "unknown_path", "path"},
	{"dots", get("/api/v1/namespaces/../stats"), 404, "unknown_path", "path"},
	{"escaped dots", get("/api/v1/namespaces/%2E%2E/jobs"), 422, "bad_format", "path.ns"},
	{"escaped dots to another place", get("/api/v1/worker/%2E%2E/namespaces/default/jobs"), 404, "unknown_path", "path"},
	{"an escaped slash", get("/api/v1%2Fnamespaces/default/jobs"), 404, "unknown_path", "path"},
	{"huma's document in YAML", get("/api/v1/openapi.yaml"), 404, "unknown_path", "path"},
	{"huma's pages", get("/docs"), 404, "unknown_path", "path"},
	{"patch a job", request{method: "PATCH", path: one}, 405, "method_not_allowed", "method"},
	{"options", request{method: "OPTIONS", path: one}, 405, "method_not_allowed", "method"},
	{"get a trigger", get(one + "/trigger"), 405, "method_not_allowed", "method"},
	{"get a worker call", get(work + "poll"), 405, "method_not_allowed", "method"},
	{"form", with(put("1h", "1h"), "Content-Type", "application/x-www-form-urlencoded"), 415, "unsupported_media_type", "header.Content-Type"},
	{"text", with(post(one+"/trigger", "{}"), "Content-Type", "text/plain"), 415, "unsupported_media_type", "header.Content-Type"},
	{"no type", with(put("1h", "1h"), "Content-Type", ""), 415, "unsupported_media_type", "header.Content-Type"},
	{"other charset", with(put("1h", "1h"), "Content-Type", "application/json; charset=latin1"), 415, "unsupported_media_type", "header.Content-Type"},
	{"compressed", with(put("1h", "1h"), "Content-Encoding", "gzip"), 415, "unsupported_encoding", "header.Content-Encoding"},

	// workers' calls
	{"open: no JSON", post(work+"open", "{"), 400, "malformed_json", "body"},
	{"open: no body", post(work+"open", ""), 400, "body_required", "body"},
	{"open: doubled key", open(`"slots":4`, `"slots":4,"slots":5`), 400, "doubled_key", "slots"},
	{"open: NUL", open(`"w1"`, `"w\u0000"`), 400, "nul_character", "worker"},
	{"open: NUL in an unknown field", open(`"slots":4`, `"slots":4,"new":{"a":"\u0000"}`), 400, "nul_character", "new.a"},
	{"open: wrong case", open(`"slots":4`, `"slots":4,"Slots":5`), 422, "unknown_field", "Slots"},
	{"open: wrong type", open(`"slots":4`, `"slots":"4"`), 422, "wrong_type", "slots"},
	{"open: bad namespace", open(`"default"`, `"DEFAULT"`), 422, "invalid_field", "namespace"},
	{"open: bad pool", open(`"web"`, `"`+secret+`"`), 422, "invalid_field", "pool"},
	{"open: no worker", open(`"w1"`, `""`), 422, "invalid_field", "worker"},
	{"open: worker with a line break", open(`"w1"`, `"w\n1"`), 422, "invalid_field", "worker"},
	{"open: no incarnation", open(`"abc"`, `""`), 422, "invalid_field", "incarnation"},
	{"open: no handlers", open(`["index"]`, `[]`), 422, "invalid_field", "handlers"},
	{"open: bad handler", open(`["index"]`, `["index","a b"]`), 422, "invalid_field", "handlers[1]"},
	{"open: no slots", open(`"slots":4`, `"slots":0`), 422, "invalid_field", "slots"},
	{"open: negative call", open(`"call":1`, `"call":-1`), 422, "invalid_field", "call"},
	{"open: invented epoch", open(`"call":1`, `"call":1,"epoch":9007199254740991`), 422, "implausible_epoch", "epoch"},
	{"open: epoch beyond 2^53", open(`"call":1`, `"call":1,"epoch":9007199254740992`), 422, "invalid_field", "epoch"},
	{"poll: foreign session", post(work+"poll", `{"session":"`+secret+`","epoch":1,"call":2}`), 404, "session_unknown", "session"},
	{"poll: partition that is not there", post(work+"poll", `{"session":"99.0123456789abcdef01234567","epoch":1,"call":2}`), 404, "session_unknown", "session"},
	{"poll: negative wait", post(work+"poll", `{`+sess+`,"waitMs":-1}`), 422, "invalid_field", "waitMs"},
	{"poll: negative free", post(work+"poll", `{`+sess+`,"free":-1}`), 422, "invalid_field", "free"},
	{"poll: token 0", post(work+"poll", `{`+sess+`,"held":[5,0]}`), 422, "invalid_field", "held[1]"},
	{"heartbeat: token -1", post(work+"heartbeat", `{`+sess+`,"held":[{"token":-1}]}`), 422, "invalid_field", "held[0].token"},
	{"heartbeat: negative progress", post(work+"heartbeat", `{`+sess+`,"held":[{"token":1,"progress":{"done":-1}}]}`), 422, "invalid_field", "held[0].progress"},
	{"report: bad execution", item(`{"execution":"x","shard":0,"token":5,"seq":1,"kind":"started"}`), 422, "invalid_field", "items[1].execution"},
	{"report: negative shard", item(`{"execution":"06cw1bq0fr8j1x4cw6h3ybkq2c","shard":-1,"token":5,"seq":1,"kind":"started"}`), 422, "invalid_field", "items[1].shard"},
	{"report: token 0", item(`{"execution":"06cw1bq0fr8j1x4cw6h3ybkq2c","shard":0,"seq":1,"kind":"started"}`), 422, "invalid_field", "items[1].token"},
	{"report: seq 0", item(`{"execution":"06cw1bq0fr8j1x4cw6h3ybkq2c","shard":0,"token":5,"kind":"started"}`), 422, "invalid_field", "items[1].seq"},
	{"report: unknown kind", item(`{"execution":"06cw1bq0fr8j1x4cw6h3ybkq2c","shard":0,"token":5,"seq":1,"kind":"` + secret + `"}`), 422, "invalid_field", "items[1].kind"},
	{"report: no outcome", item(`{"execution":"06cw1bq0fr8j1x4cw6h3ybkq2c","shard":0,"token":5,"seq":1,"kind":"done"}`), 422, "invalid_field", "items[1].outcome"},
	{"report: no progress", item(`{"execution":"06cw1bq0fr8j1x4cw6h3ybkq2c","shard":0,"token":5,"seq":1,"kind":"progress"}`), 422, "invalid_field", "items[1].progress"},
	{"report: no checkpoint", item(`{"execution":"06cw1bq0fr8j1x4cw6h3ybkq2c","shard":0,"token":5,"seq":1,"kind":"checkpoint"}`), 422, "invalid_field", "items[1].checkpoint"},
	{"report: NUL in a result", item(`{"execution":"06cw1bq0fr8j1x4cw6h3ybkq2c","shard":0,"token":5,"seq":1,"kind":"done","outcome":"success","result":"\u0000"}`), 400, "nul_character", "items[1].result"},
	{"report: doubled key in a checkpoint", item(`{"execution":"06cw1bq0fr8j1x4cw6h3ybkq2c","shard":0,"token":5,"seq":1,"kind":"checkpoint","checkpoint":{"a":1,"a":2}}`), 400, "doubled_key", "items[1].checkpoint.a"},
	{"report: checkpoint too large", item(`{"execution":"06cw1bq0fr8j1x4cw6h3ybkq2c","shard":0,"token":5,"seq":1,"kind":"checkpoint","checkpoint":"` + strings.Repeat("x", 64<<10) + `"}`), 413, "checkpoint_too_large", "items[1].checkpoint"},
	{"report: result too large", item(`{"execution":"06cw1bq0fr8j1x4cw6h3ybkq2c","shard":0,"token":5,"seq":1,"kind":"done","outcome":"success","result":"` + strings.Repeat("x", 256<<10) + `"}`), 413, "result_too_large", "items[1].result"},
	{"report: endless retry", item(`{"execution":"06cw1bq0fr8j1x4cw6h3ybkq2c","shard":0,"token":5,"seq":1,"kind":"done","outcome":"snooze","retryAfterMs":9007199254740991}`), 422, "invalid_field", "items[1].retryAfterMs"},
	{"report: too many items", post(work+"report", `{`+sess+`,"items":[`+strings.Repeat(`{},`, 1000)+`{}]}`), 413, "too_many_items", "items"},
	{"close: foreign session", post(work+"close", `{"session":"","epoch":1,"call":2}`), 404, "session_unknown", "session"},
}

// Each hostile request is answered by a problem with code, field and hint, echoes no value, and neither
// writes anything nor reaches an owner.
func TestHostileRequests(t *testing.T) {
	all := slices.Concat(hostile, hostileMore, hostileCalendars, hostileInstants)
	t.Logf("%d hostile requests", len(all))
	if len(all) < 150 {
		t.Errorf("only %d hostile requests", len(all))
	}
	r := newRig(t, nil)
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			w := r.do(c.q)
			raw := w.Body.String()
			p := isProblem(t, w, c.status, c.code)
			if len(p.Errors) == 0 || p.Errors[0].Field != c.field {
				t.Errorf("errors %+v, want field %q", p.Errors, c.field)
			}
			if strings.Contains(raw, secret) {
				t.Errorf("the problem echoes a value: %s", raw)
			}
			if r.store.writes != 0 || len(r.owners.calls) != 0 {
				t.Errorf("%d writes, %d calls to owners", r.store.writes, len(r.owners.calls))
			}
			if w.Header().Get("X-Request-Id") == "" {
				t.Error("no request id")
			}
		})
	}
}
