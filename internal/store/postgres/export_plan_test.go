package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// HotTexts are the statements of commits and of what engines read, by name.
func HotTexts() map[string]string {
	all := map[string]string{}
	for name, q := range map[string]query{
		"fence": qFence, "consume": qConsume, "forward": qForward, "keys forget": qKeysForget, "journal": qJournal, "cursor put": qCursorPut,
		"cursor drop": qCursorDrop, "handover": qHandover, "decision insert": qDecisionInsert, "session put": qSessionPut, "session end": qSessionEnd,
		"execution insert": qExecutionInsert, "execution update": qExecutionUpdate, "execution delete": qExecutionDelete,
		"common insert": qCommonInsert, "common update": qCommonUpdate, "common archive": qCommonArchive,
		"execution absent": qExecutionAbsent, "execution archive": qExecutionArchive, "execution revive": qExecutionRevive,
		"row archive": qRowArchive, "shard in row": qShardInRow, "bulk rows": qBulkRows, "bulk delete": qBulkDelete, "bulk take": qBulkTake,
		"blocks live": qBlocksLive, "blocks ended": qBlocksEnded, "block insert": qBlockInsert, "block update": qBlockUpdate, "block delete": qBlockDelete,
		"block archive": qBlockArchive, "shard insert": qShardInsert, "shard update": qShardUpdate, "shard delete": qShardDelete, "shard archive": qShardArchive,
		"shards archive": qShardsArchive, "shards delete": qShardsDelete, "shards revive": qShardsRevive, "shards forget": qShardsForget,
		"lots": qLots, "lot elsewhere": qLotElsewhere, "lot insert": qLotInsert, "lot new": qLotNew, "lot out": qLotOut, "lot gone": qLotGone, "lot delete": qLotDelete, "moved on": qMovedOn,
		"seq": qSeq, "sessions": qSessions, "active": qActive, "active shards": qActiveShards, "active ended": qActiveEnded, "turns": qTurns, "cursors of": qCursorsOf, "versions": qVersions, "calendars named": qNamedCalendars, "due": qDue, "owed": qOwed, "backlog": qBacklog, "scheduled": qScheduled, "shards live": qShardsLive,
		"shards ended": qShardsHistory, "executions live": qExecLive, "executions ended": qExecHistory, "settled live": qSettledLive,
		"tell children": qTellChildren, "inboxes filled": qInboxesFilled, "awaiting": qAwaiting, "lives": qLives, "matched put": qMatchedPut, "newest ended": qNewestHistory, "newest live": qNewestLive,
		"settled ended": qSettledEnded, "inbox": qInbox, "places": qPlaces, "jobs at": qJobsAt, "queued of": qQueuedOf, "entries of known": qEntriesOfKnown, "few insert": qFewInsert, "few update": qFewUpdate, "few archive": qFewArchive, "progress put": qProgressPut, "backfills live": qBackfillsLive,
	} {
		all[name] = texts[q]
	}
	return all
}

// HotPlan is PostgreSQL's plan of a statement on a connection of commits.
func HotPlan(ctx context.Context, s *Store, text string) (string, error) {
	conn, err := s.commits.Acquire(ctx)
	if err != nil {
		return "", err
	}
	defer conn.Release()
	known, err := conn.Conn().Prepare(ctx, "planned", text)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Conn().Deallocate(ctx, "planned") }()
	call := ""
	if n := len(known.ParamOIDs); n > 0 {
		call = "(" + strings.TrimSuffix(strings.Repeat("NULL, ", n), ", ") + ")"
	}
	rows, err := conn.Query(ctx, fmt.Sprintf(`EXPLAIN (COSTS OFF) EXECUTE planned%s`, call), pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		return "", err
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return strings.Join(lines, "\n"), err
}

// Major is the database's major version.
func Major(ctx context.Context, s *Store) (int, error) {
	conn, err := s.commits.Acquire(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Release()
	return major(conn.Conn()), nil
}
