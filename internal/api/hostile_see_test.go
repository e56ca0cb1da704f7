package api_test

import "strings"

const (
	why   = one + "/explain"
	fill  = one + "/backfills"
	ahead = "/api/v1/namespaces/default/upcoming"
	fills = "/api/v1/namespaces/default/backfills"
)

// hostileInstants are hostile requests about planned instants and ranges of the past.
var hostileInstants = []hostileCase{
	{"explain: when", get(why), 422, "required_parameter", "query.at"},
	{"explain: no instant", get(why + "?at=" + secret), 422, "bad_instant", "query.at"},
	{"explain: too late", get(why + "?at=10000-01-01T00:00:00Z"), 422, "bad_instant", "query.at"},
	{"explain: too early", get(why + "?at=1969-12-31T23:59:59Z"), 422, "bad_instant", "query.at"},
	{"explain: no such day", get(why + "?at=2026-02-30T00:00:00Z"), 422, "bad_instant", "query.at"},
	{"explain: too long", get(why + "?at=" + strings.Repeat("2", 65)), 422, "out_of_range", "query.at"},
	{"explain: no such zone", get(why + "?at=2026-01-01T00:00[Mars/Base]"), 422, "bad_time_zone", "query.at"},
	{"explain: the zone of the machine", get(why + "?at=2026-01-01T00:00[Local]"), 422, "bad_time_zone", "query.at"},
	{"explain: a zone and an offset", get(why + "?at=2026-01-01T00:00:00Z[UTC]"), 422, "bad_instant", "query.at"},
	{"explain: no zone", get(why + "?at=2026-01-01T00:00[]"), 422, "bad_instant", "query.at"},
	{"explain: unknown parameter", get(why + "?at=2026-01-01T00:00:00Z&tz=UTC"), 422, "unknown_parameter", "query.tz"},
	{"upcoming: no time", get(ahead + "?for=" + secret), 422, "bad_duration", "query.for"},
	{"upcoming: backwards", get(ahead + "?for=-1h"), 422, "bad_duration", "query.for"},
	{"upcoming: too far", get(ahead + "?for=367d"), 422, "out_of_range", "query.for"},
	{"upcoming: foreign place", get(ahead + "?after=" + secret), 422, "bad_after", "after"},
	{"upcoming: bad job", get(ahead + "?job=A"), 422, "bad_format", "query.job"},
	{"backfill: no body", post(fill, ""), 400, "body_required", "body"},
	{"backfill: no range", post(fill, `{}`), 422, "required_field", "from"},
	{"backfill: no instant", post(fill, `{"from":"`+secret+`","to":"2026-01-01T00:00:00Z"}`), 422, "bad_instant", "from"},
	{"backfill: no end", post(fill, `{"from":"2026-01-01T00:00:00Z","to":"soon"}`), 422, "bad_instant", "to"},
	{"backfill: too many at a time", post(fill, `{"from":"2026-01-01","to":"2026-01-02","maxParallel":101}`), 422, "out_of_range", "maxParallel"},
	{"backfill: fewer than none", post(fill, `{"from":"2026-01-01","to":"2026-01-02","maxParallel":-1}`), 422, "out_of_range", "maxParallel"},
	{"backfill: unknown field", post(fill, `{"from":"2026-01-01","to":"2026-01-02","parallel":2}`), 422, "unknown_field", "parallel"},
	{"backfill: NUL in a reason", post(fill, `{"from":"2026-01-01","to":"2026-01-02","reason":"\u0000"}`), 400, "nul_character", "reason"},
	{"backfill: long reason", post(fill, `{"from":"2026-01-01","to":"2026-01-02","reason":"`+strings.Repeat("x", 1025)+`"}`), 422, "out_of_range", "reason"},
	{"backfill: no id", get(fills + "/" + secret[:10]), 422, "bad_backfill_id", "path.id"},
	{"backfill: cancel no id", post(fills+"/zz/cancel", ""), 422, "bad_backfill_id", "path.id"},
}
