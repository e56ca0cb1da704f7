// Package partition is ownership: which server owns which partition (assignment, pure), how long it may
// trust that (lease arithmetic, pure), the keeper that acquires, renews and releases in the database,
// and the runner, the one goroutine that drives a partition's engine: gather events, Step, commit,
// perform.
//
// One server on SQLite owns every partition through the same code as many servers on PostgreSQL.
package partition
