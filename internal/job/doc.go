// Package job holds the nouns of Takt and the rules that belong to a noun alone: identities and keys,
// the state table of executions, shards and attempts, retry arithmetic, reasons and error kinds.
//
// It is pure: standard library and internal/schedule only, no clock, no goroutine, no I/O. It does not
// decide when something happens (engine), how it is stored (store) or how it looks on the wire (the
// public package and api).
package job
