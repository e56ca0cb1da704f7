// Package takt is the Go SDK of Takt, a distributed job scheduler: the types of its HTTP API, a client
// for people's calls and a worker that runs handlers.
//
// Delivery to handlers is at least once: a shard whose worker fell silent is given to another one. Make
// effects single with [Task.Key], which is the same on every attempt, and refuse old writers with
// [Task.Token], which only rises. The package imports the standard library only.
package takt
