// Package postgres is the store on PostgreSQL 14 or later, for several servers that share a database.
//
// Hand-written SQL, the same files in the same order as package sqlite; a query that must differ says why. What it
// has beside that: a commit leaves in one write (commit.go); history, logs, decisions and journal are cut into
// months (months.go); hints to other servers (hints.go); the database's clock and lineage (servers.go).
package postgres
