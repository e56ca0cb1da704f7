// Package peer carries calls from one server to another: workers' calls to the owner of their partition, looks into an
// owner's memory, and the question whether a server can be reached. A call shows the key of the receiver's row:
// who knows it reads the database, and is a server.
package peer
