// Package job runs by itself.
package job

func run(c chan int) {
	go run(c) // want
	select {  // want
	case <-c:
	default:
	}
}
