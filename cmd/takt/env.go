package main

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

const envKey = "takt_env"

// alsoEnv lets flags be given by the environment: TAKT_ and the flag's name in upper case, with
// underscores. A flag on the command line wins.
func alsoEnv(flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		f := flags.Lookup(name)
		env := "TAKT_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		f.Usage += " [" + env + "]"
		if f.Annotations == nil {
			f.Annotations = map[string][]string{}
		}
		f.Annotations[envKey] = []string{env}
	}
}

// readEnv sets what the command line left open. An empty variable counts as absent.
func readEnv(flags *pflag.FlagSet, lookup func(string) (string, bool)) error {
	var err error
	flags.VisitAll(func(f *pflag.Flag) {
		env := f.Annotations[envKey]
		if len(env) == 0 || f.Changed || err != nil {
			return
		}
		if v, ok := lookup(env[0]); ok && v != "" {
			if e := f.Value.Set(v); e != nil {
				err = usage(fmt.Sprintf("%s=%q: %v", env[0], v, e))
			}
		}
	})
	return err
}
