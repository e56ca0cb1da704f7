// Package api ends the process.
package api

import (
	"log"
	"os"
)

func stop() {
	os.Exit(1)     // want
	log.Fatal("x") // want
	log.Panicln()  // want
}
