// Package demo is what `takt demo` runs: one server, worker processes that index a directory in shards,
// a sink for their effects, a kill and a freeze in the middle, and an audit at the end.
//
// The orchestration (Run) owns all goroutines and processes and ends them before it returns. Worker
// processes run Work. The sink is the only writer of the file of effects.
package demo
