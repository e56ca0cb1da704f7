// Package engine acts.
package engine

import (
	"math/rand/v2" // want
	"os"           // want
	. "strings"    // want
)

var _, _, _ = rand.Int, os.Getenv, ToUpper
