// Package pg holds the drills on real processes and a real PostgreSQL: servers that are killed, paused and restarted, a
// database that goes away, and workers whose handlers write down what they did. All of it is tests.
//
//	make drill                                         # each drill in its short form
//	TAKT_DRILL=2m go test -v ./internal/drill/pg -run Kill -timeout 20m
//
// Drills skip without PostgreSQL, and without TAKT_DRILL. What they measure on the clock is compared with a limit plus the longest time
// for which the machine itself kept a process of the drill from running, which every process measures (see stalls).
package pg
