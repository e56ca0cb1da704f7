// Package drill is the proof: an in-memory network with faults by rule, a checker of the invariants
// over the history of a run (journal, traces, wire and witness records), and the failure drills that
// use them: virtual clusters in one testing/synctest bubble, and real processes that are killed.
//
// It may import everything and nothing imports it. The checker is pure; the goroutines of the network
// belong to the connections and end with them.
package drill
