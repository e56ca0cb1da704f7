// Package control is the use cases of people: create and change a job, ask for an execution, cancel it,
// run again what did not succeed, and look at all of it. It validates, writes through store.Control
// (a person's rows and an inbox entry in one transaction), wakes the owner of the partition and waits a
// moment for it to take the entry in.
//
// It decides nothing about executions (engine), knows no HTTP (api) and starts no goroutine. What a
// read shows is the store's rows, joined with what only the owner's memory knows: workers, leases left,
// why something waits.
package control
