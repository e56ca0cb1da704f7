// Package takt is the Go SDK of Takt, a distributed job scheduler: the types of its HTTP API, a client
// for people's calls and a worker that runs handlers.
//
// Delivery to handlers is at least once: a shard whose worker fell silent is given to another one. Make
// effects single with [Task.Key], which is the same on every attempt, and refuse old writers with
// [Task.Token], which only rises. The package imports the standard library only.
//
// A worker ([NewWorker], [Worker.Handle], [Worker.Run]) dials out, takes shards of its pool and runs a
// [Handler] for each. It holds a lease on every shard that it runs and stops a handler before the
// server may call that lease over, whatever the network does; context.Cause then says [ErrLeaseLost].
// A client ([NewClient]) makes people's calls: jobs, triggers, executions.
//
// The package keeps no global state and panics nowhere; a panic of a handler is a failed attempt. All
// its goroutines belong to a [Worker.Run] and have ended when that returns.
package takt
