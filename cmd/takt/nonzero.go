package main

import (
	"errors"

	"github.com/spf13/pflag"
)

// errZero refuses what would be taken for the default, of which nobody would be told.
var errZero = errors.New("it must be above 0; leave it out for the default")

// nonZero is a flag whose zero value means that it was not given, and which cannot be given.
type nonZero struct{ pflag.Value }

// Set implements pflag.Value.
func (v nonZero) Set(text string) error {
	if err := v.Value.Set(text); err != nil {
		return err
	}
	if s := v.String(); s == "0" || s == "0s" {
		return errZero
	}
	return nil
}

// refuseZero makes flags nonZero.
func refuseZero(f *pflag.FlagSet, names ...string) {
	for _, name := range names {
		flag := f.Lookup(name)
		flag.Value, flag.DefValue = nonZero{flag.Value}, ""
	}
}
