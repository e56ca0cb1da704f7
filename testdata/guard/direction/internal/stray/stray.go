// Package stray has no place in the order.
package stray // want
