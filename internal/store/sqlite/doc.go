// Package sqlite keeps Takt's state in one SQLite file through modernc.org/sqlite (pure Go).
//
// One connection writes (BEGIN IMMEDIATE), a few read snapshots; the file is in WAL mode with
// synchronous=FULL, so an acknowledged commit survives a power failure. Writers queue in front of the
// one connection by rank (see gate), never inside a transaction, and a BUSY database is asked again by a Go timer:
// the package starts no goroutine, opens no socket and works inside a synctest bubble.
//
// It does not lock the data directory: that is the business of internal/app, and only it makes a
// second server on one file impossible.
package sqlite
