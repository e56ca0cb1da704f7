// Package engine knows a library.
package engine

import _ "github.com/google/uuid" // want
