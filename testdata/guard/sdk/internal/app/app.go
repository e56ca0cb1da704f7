// Package app knows types of the API.
package app

import _ "github.com/taktsched/takt" // want
