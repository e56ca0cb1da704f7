// Package control talks to the terminal.
package control

import (
	"fmt"
	"log"
	"os"
)

func say() {
	fmt.Println("hello")             // want
	fmt.Fprintln(os.Stderr, "hello") // want
	log.Printf("hello")              // want
	println("hello")                 // want
	_ = fmt.Sprint("hello")
}
