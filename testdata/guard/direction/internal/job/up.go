// Package job looks up.
package job

import (
	_ "github.com/taktsched/takt/internal/engine" // want
	_ "github.com/taktsched/takt/internal/schedule"
)
