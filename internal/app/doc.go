// Package app assembles a node: data directory and its lock, store, partition node, control and the HTTP
// server. It is the only package that sees everything. New takes what can be refused (settings, lock,
// database, address); Run owns every goroutine and ends within five seconds after its context.
package app
