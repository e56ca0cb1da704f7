// Package takt has dependencies.
package takt

import (
	_ "net/http"

	_ "github.com/goccy/go-yaml" // want
	_ "github.com/taktsched/takt/internal/boottime"
	_ "github.com/taktsched/takt/internal/job" // want
)
