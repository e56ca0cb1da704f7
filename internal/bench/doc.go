// Package bench loads a server with executions whose handler does nothing, from the request over HTTP to the
// acknowledged end, and says how fast that went and what it cost. It gives figures only for a run in which every
// execution succeeded exactly once.
package bench
