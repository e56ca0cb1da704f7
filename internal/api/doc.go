// Package api is the HTTP face of a server: people's calls (to control), workers' calls (to the owner
// of the partition), health and the OpenAPI document. The types of the public package are the single
// definition; huma derives document and checks from them.
//
// A request passes, in this order: guard (host, origin, token), target (path, query, headers), body
// (length, media type, strict JSON), huma (ranges and patterns, people's calls only) or hand checks
// (workers' calls), the use case. Every refusal is an RFC 9457 problem from the one table in problem.go
// and echoes no value of the request.
//
// The package starts no goroutine; a handler ends with its request's context.
package api
