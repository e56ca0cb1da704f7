package postgres

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// ofMember are the columns that members of a lot do not have in common, by the arrays that they lie in.
var ofMember = map[string]string{"id": "ids", "planned_at": "planned_at", "request_key": "request_keys", "params": "params",
	"created_at": "created_at", "started_at": "started_at", "ended_at": "ended_at", "shard": "shards"}

// memberLives is of a member m of a lot l, see membersOf.
const memberLives = `get_bit(l.gone, m.n - 1) = 0`

const (
	memberArrays = `l.ids, l.planned_at, l.request_keys, l.params, l.created_at, l.started_at, l.ended_at, l.shards`
	memberNames  = `id, planned_at, request_key, params, created_at, started_at, ended_at, shard`
)

// membersOf reads columns of executions from the members of lots l, of which source tells.
func membersOf(columns, source, condition string) string {
	return `SELECT ` + memberColumns(columns, func(name string) string { return "m." + name }) + ` FROM ` + source + `
		CROSS JOIN LATERAL unnest(` + memberArrays + `) WITH ORDINALITY m (` + memberNames + `, n)
		WHERE ` + memberLives + ` AND ` + condition
}

// firstMembers reads columns of the first members in an order, of all lots that of names. Which ones these are, their ids and planned
// instants tell: nothing else is unpacked but of the lots in which they lie.
func firstMembers(columns, of, condition, order string) string {
	first := `SELECT l.partition, l.seq, l.part FROM lots l CROSS JOIN LATERAL unnest(l.ids, l.planned_at) WITH ORDINALITY m (id, planned_at, n)
		WHERE ` + of + ` AND ` + memberLives + ` AND ` + condition + order
	return membersOf(columns, `(SELECT DISTINCT partition, seq, part FROM (`+first+`) f) k`+
		eachOf("l", `SELECT * FROM lots WHERE partition = k.partition AND seq = k.seq AND part = k.part`), condition+order)
}

// memberBy reads columns of the one member with an id.
func memberBy(columns, id string) string {
	return `SELECT ` + memberColumns(columns, func(name string) string { return "l." + ofMember[name] + "[m.n]" }) + ` FROM lots l
		CROSS JOIN LATERAL (SELECT array_position(l.ids, ` + id + `::uuid) AS n OFFSET 0) m
		WHERE l.first <= ` + id + `::uuid AND l.last >= ` + id + `::uuid AND ` + memberLives
}

func memberColumns(columns string, differing func(name string) string) string {
	names := strings.Split(columns, ",")
	for i, name := range names {
		name = strings.TrimSpace(name)
		switch {
		case ofMember[name] != "":
			names[i] = differing(name)
		case strings.Contains(rowColumns, name):
			names[i] = "l." + name
		}
	}
	return strings.Join(names, ", ")
}

const oneLot = `l.partition = $1 AND l.seq = $2 AND l.part = $3`

var (
	qLotInsert = statement(`INSERT INTO lots (ids, planned_at, request_keys, params, created_at, started_at, ended_at, shards, partition, namespace, job, job_uid,
			revision, pool, handler, trigger, shard_total, state, reason, cancel, round, shard_state, seq, part, first, last, remaining, gone)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, cardinality($1::uuid[]), $27)`)
	// What comes into a lot as a new execution is nowhere yet. (In another lot it is not: that would have gone to a row.)
	// Ids are made as time goes, so that as a rule nothing at all is between the lowest and the highest: then none is looked for.
	qLotNew = statement(`WITH done AS (SELECT x AS id FROM unnest($1::uuid[]) x WHERE
		coalesce((SELECT e.id FROM executions e WHERE e.id >= $2 ORDER BY e.id LIMIT 1) > $3, true) AND
			coalesce((SELECT h.id FROM history_executions h WHERE h.id >= $2 ORDER BY h.id LIMIT 1) > $3, true) OR
		NOT EXISTS (SELECT 1 FROM executions e WHERE e.id = x UNION ALL SELECT 1 FROM history_executions h WHERE h.id = x OFFSET 0))` + guardExecutions)
	// Nor does what no request made lie in a lot of another partition: of rows their key would say so. (Ids of requests are random.)
	qLotElsewhere = statement(`WITH done AS (SELECT x AS id FROM unnest($1::uuid[]) x WHERE x NOT IN (
		SELECT m.id FROM lots l CROSS JOIN LATERAL unnest(l.ids) WITH ORDINALITY m (id, n)
		WHERE l.partition <> $2 AND l.last >= $3 AND l.first <= $4 AND l.job_uid = ANY($5::uuid[]) AND ` + memberLives + `))` + guardExecutions)
	// The shard is as it lies there, or as it is told by place.
	qLotOut = statement(`WITH done AS (INSERT INTO executions (` + rowColumns + `)
		SELECT ` + memberColumns(executionColumns, func(name string) string { return "m." + name }) + `, coalesce(m.told_state, l.shard_state), coalesce(m.told, m.shard)
		FROM lots l CROSS JOIN LATERAL unnest(` + memberArrays + `, $6::text[], $7::text[]) WITH ORDINALITY m (` + memberNames + `, told_state, told, n)
		WHERE ` + oneLot + ` AND m.n = ANY($4::bigint[]) AND ` + memberLives + ` ON CONFLICT DO NOTHING RETURNING id)` +
		guard(guardExecution, `cardinality($4)`, `SELECT coalesce(min(x::text), $5::text) FROM lots l CROSS JOIN LATERAL unnest(l.ids) WITH ORDINALITY m (x, n)
			WHERE `+oneLot+` AND m.n = ANY($4) AND NOT EXISTS (SELECT 1 FROM done WHERE done.id = m.x)`))
	qLotGone = statement(`WITH done AS (UPDATE lots l SET gone = $4, remaining = $5 WHERE ` + oneLot + ` AND l.gone = $6 RETURNING l.seq)` +
		guard(guardExecution, `1`, `$7::text`))
	qLotDelete = statement(`WITH done AS (DELETE FROM lots l WHERE ` + oneLot + ` AND l.gone = $4 RETURNING l.seq)` + guard(guardExecution, `1`, `$5::text`))
)

// fromLots gives members rows of their own, before what is written to those.
func (c *commit) fromLots() {
	for _, ch := range c.lots {
		if len(ch.out) > 0 {
			states, shards := rowWrites(ch.told).shards()
			c.add(qLotOut, c.fence.Partition, ch.seq, ch.part, ch.out, job.ExecutionID(ch.ids[0]).UUID(), states, shards)
		}
	}
}

// changeLots notes who is gone, and makes new lots.
func (c *commit) changeLots(made []store.CommonRows) {
	for _, ch := range c.lots {
		id := job.ExecutionID(ch.ids[0]).UUID()
		if left := ch.left - len(ch.went); left > 0 {
			c.add(qLotGone, c.fence.Partition, ch.seq, ch.part, ch.gone, left, ch.lot.gone, id)
		} else {
			c.add(qLotDelete, c.fence.Partition, ch.seq, ch.part, ch.lot.gone, id)
		}
	}
	var fresh, queued rowWrites
	for part := range made {
		g := &made[part]
		for i := range g.Rows {
			w := g.Rows[i]
			p, lies := c.held.at[w.ID()]
			switch {
			case w.From == "":
				fresh = append(fresh, w)
			case !lies || !p.waits:
				queued = append(queued, w)
			}
		}
		l := &lot{seq: c.batch.Seq, part: part, waits: g.State == job.ExecutionQueued, ids: rowWrites(g.Rows).ids(), gone: make([]byte, (len(g.Rows)+7)/8), left: len(g.Rows)}
		first, last := bounds(l.ids)
		c.made = append(c.made, l)
		c.add(qLotInsert, append(commonArgs(g), l.seq, part, first, last, l.gone)...)
	}
	if len(fresh) > 0 {
		ids := fresh.ids()
		first, last := bounds(ids)
		c.add(qLotNew, ids, first, last)
	}
	if len(queued) > 0 {
		c.add(qExecutionDelete, queued.ids(), queued.was(), queued.shardWas())
	}
	c.dead += int64(len(c.lots) + len(queued))
}

// bounds are the lowest and the highest of some ids.
func bounds(ids [][16]byte) (first, last [16]byte) {
	first, last = ids[0], ids[0]
	for _, id := range ids {
		if bytes.Compare(id[:], first[:]) < 0 {
			first = id
		}
		if bytes.Compare(id[:], last[:]) > 0 {
			last = id
		}
	}
	return first, last
}

// notElsewhere refuses what is new here and lies in a lot of another partition.
func (c *commit) notElsewhere(fresh rowWrites) {
	fresh = slices.DeleteFunc(slices.Clone(fresh), func(w store.RowWrite) bool { return w.Row.Trigger == job.TriggerRequest })
	if len(fresh) == 0 {
		return
	}
	jobs := map[[16]byte]bool{}
	for i := range fresh {
		jobs[fresh[i].Row.JobUID] = true
	}
	ids := fresh.ids()
	first, last := bounds(ids)
	c.add(qLotElsewhere, ids, c.fence.Partition, first, last, slices.Collect(maps.Keys(jobs)))
}
