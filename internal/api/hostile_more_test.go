package api_test

import "strings"

const (
	keep     = "/api/v1/namespaces/default/retention"
	revs     = one + "/revisions"
	logs1    = exec1 + "/logs"
	logsCall = work + "log"
)

func putTo(path, body string) request { return request{method: "PUT", path: path, body: body} }

func del(path string) request { return request{method: "DELETE", path: path} }

// hostileMore are hostile requests to what came after the spine.
var hostileMore = []hostileCase{
	// retention
	{"retention: no JSON", putTo(keep, secret), 400, "malformed_json", "body"},
	{"retention: no body", putTo(keep, ""), 400, "body_required", "body"},
	{"retention: unknown field", putTo(keep, `{"journal":"1d"}`), 422, "unknown_field", "journal"},
	{"retention: wrong case", putTo(keep, `{"Logs":"1d"}`), 422, "unknown_field", "Logs"},
	{"retention: doubled key", putTo(keep, `{"logs":"1d","logs":"2d"}`), 400, "doubled_key", "logs"},
	{"retention: a number", putTo(keep, `{"logs":7}`), 422, "wrong_type", "logs"},
	{"retention: negative", putTo(keep, `{"logs":"-7d"}`), 422, "wrong_type", "logs"},
	{"retention: too short", putTo(keep, `{"logs":"59m"}`), 422, "bad_retention", "logs"},
	{"retention: too long", putTo(keep, `{"executions":"600w"}`), 422, "wrong_type", "executions"},
	{"retention: of a bad namespace", putTo("/api/v1/namespaces/A_B/retention", `{}`), 422, "bad_format", "path.ns"},
	{"retention: a parameter", get(keep + "?x=1"), 422, "unknown_parameter", "query.x"},
	{"retention: deleted", del(keep), 405, "method_not_allowed", "method"},
	// backup
	{"backup: a parameter", get("/api/v1/backup?file=/etc/passwd"), 422, "unknown_parameter", "query.file"},
	{"backup: a body", request{method: "GET", path: "/api/v1/backup", body: "{}"}, 400, "body_unexpected", "body"},
	{"backup: posted", post("/api/v1/backup", "{}"), 405, "method_not_allowed", "method"},
	{"backup: below it", get("/api/v1/backup/takt.db"), 404, "unknown_path", "path"},
	// sets of jobs
	{"apply: no JSON", post(applyPath, "["), 400, "malformed_json", "body"},
	{"apply: no documents", post(applyPath, `{}`), 422, "required_field", "documents"},
	{"apply: documents are none", post(applyPath, `{"documents":null}`), 422, "wrong_type", "documents"},
	{"apply: a document is text", post(applyPath, `{"documents":["`+secret+`"]}`), 422, "wrong_type", "documents[0]"},
	{"apply: dry run as text", post(applyPath, `{"documents":[],"dryRun":"yes"}`), 422, "wrong_type", "dryRun"},
	{"apply: bad selector", post(applyPath, set(1, `,"prune":"a=b,,"`, nil)), 422, "bad_selector", "prune"},
	{"apply: long reason", post(applyPath, set(1, "", nil)[:1]+`"documents":[],"reason":"`+strings.Repeat("x", 1025)+`"}`), 422, "out_of_range", "reason"},
	{"apply: negative revision", post(applyPath, `{"documents":[{"job":`+document("1h", "1h")+`,"ifRevision":-1}]}`), 422, "out_of_range", "documents[0].ifRevision"},
	{"apply: bad namespace", post(applyPath, `{"documents":[],"namespace":"`+"../x"+`"}`), 422, "bad_format", "namespace"},
	// deletion, pauses, rollback
	{"delete: unknown way", del(one + "?running=explode"), 422, "bad_value", "query.running"},
	{"delete: If-Match of nothing", with(del(one), "If-Match", "3"), 422, "bad_if_match", "header.If-Match"},
	{"delete: long author", del(one + "?author=" + strings.Repeat("x", 257)), 422, "out_of_range", "query.author"},
	{"delete: a body", request{method: "DELETE", path: one, body: "{}"}, 400, "body_unexpected", "body"},
	{"pause: no instant", post(one+"/pause", `{"until":"soon"}`), 422, "wrong_type", "until"},
	{"pause: year 10000", post(one+"/pause", `{"until":"10000-01-01T00:00:00Z"}`), 422, "wrong_type", "until"},
	{"pause: leap second", post(one+"/pause", `{"until":"2027-06-30T23:59:60Z"}`), 422, "wrong_type", "until"},
	{"pause: unknown field", post(one+"/pause", `{"for":"2h"}`), 422, "unknown_field", "for"},
	{"rollback: no revision", post(one+"/rollback", `{}`), 422, "required_field", "to"},
	{"rollback: revision 0", post(one+"/rollback", `{"to":0}`), 422, "out_of_range", "to"},
	{"rollback: revision as text", post(one+"/rollback", `{"to":"1"}`), 422, "wrong_type", "to"},
	{"revisions: limit 0", get(revs + "?limit=0"), 422, "out_of_range", "query.limit"},
	{"revisions: limit -1", get(revs + "?limit=-1"), 422, "out_of_range", "query.limit"},
	// logs
	{"logs: shard as text", get(logs1 + "?shard=all"), 422, "wrong_type", "query.shard"},
	{"logs: no instant", get(logs1 + "?since=yesterday"), 422, "wrong_type", "query.since"},
	{"logs: limit as text", get(logs1 + "?limit=all"), 422, "wrong_type", "query.limit"},
	{"logs: a path", get(execs + "/..%2f..%2fetc%2fpasswd/logs"), 422, "bad_execution_id", "path.id"},
	{"log call: no JSON", post(logsCall, "{"), 400, "malformed_json", "body"},
	{"log call: no body", post(logsCall, ""), 400, "body_required", "body"},
	// values of params
	{"params beyond a float", put(`{"a":1}`, `{"a":[0,1e400]}`), 422, "number_out_of_range", "spec.params.a[1]"},
	{"params far below a float", put(`{"a":1}`, `{"a":-1e-400}`), 422, "number_out_of_range", "spec.params.a"},
	{"trigger beyond a float", post(one+"/trigger", `{"params":1e400}`), 422, "number_out_of_range", "params"},
	{"masked value", put(`{"a":1}`, `{"db":{"password":"(masked)"}}`), 422, "masked_value", "spec.params.db.password"},
	{"masked value in a list", put(`{"a":1}`, `{"l":[{"token":"(masked)"}]}`), 422, "masked_value", "spec.params.l[0].token"},
	{"masked value in an address", put(`{"a":1}`, `"https://u:(masked)@h/"`), 422, "masked_value", "spec.params"},
	{"masked value of a trigger", post(one+"/trigger", `{"params":{"apiKey":"(masked)"}}`), 422, "masked_value", "params.apiKey"},
	{"secrets otherwise", get(one + "?secrets=true"), 422, "bad_value", "query.secrets"},
	{"secrets of a list otherwise", get(jobs + "?secrets=Show"), 422, "bad_value", "query.secrets"},
	// labels
	{"no selector", get(execs + "?labels=a=b,,"), 422, "bad_selector", "query.labels"},
	{"selector of nothing", get(execs + "?labels=%3D"), 422, "bad_selector", "query.labels"},
	{"long selector", get(execs + "?labels=" + strings.Repeat("x", 1025)), 422, "out_of_range", "query.labels"},
	// injection in every name
	{"quote in a namespace", get("/api/v1/namespaces/a'--/jobs"), 422, "bad_format", "path.ns"},
	{"quote in a job", get(jobs + "/a'%20OR%201=1--"), 422, "bad_format", "path.name"},
	{"markup in a job", get(jobs + "/%3Cscript%3E"), 422, "bad_format", "path.name"},
	{"line break in a job", get(jobs + "/a%0d%0aSet-Cookie:x"), 422, "bad_format", "path.name"},
	{"per cent in a filter", get(execs + "?job=%25"), 422, "bad_format", "query.job"},
	{"quote in a pool", get(execs + "?pool=a'--"), 422, "bad_format", "query.pool"},
	{"quote in decisions", get("/api/v1/namespaces/default/decisions?job=a'--"), 422, "bad_format", "query.job"},
	{"escape in a handler", put(`"index"`, `"in\u001b[2Jdex"`), 422, "bad_format", "spec.handler"},
	{"dots as a handler", put(`"index"`, `"index;rm -rf /"`), 422, "bad_format", "spec.handler"},
	{"turned text as a pool", put(`"web"`, `"w\u202eeb"`), 422, "bad_format", "spec.pool"},
	{"full-width name", put(`"name":"nightly"`, `"name":"ｎightly"`), 422, "bad_format", "metadata.name"},
	{"Windows line ends and rubbish", putTo(one, strings.ReplaceAll(document("1h", "1h"), ",", ",\r\n")+"\r\n\x1a"), 400, "malformed_json", "body"},
}
