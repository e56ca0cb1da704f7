package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/taktsched/takt/internal/control"
)

// version is set by the linker for releases.
var version = ""

// buildVersion is the release, else what the build recorded of the module and its commit.
func buildVersion() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	commit, dirty := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			commit = "-" + s.Value[:12]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+changed"
		}
	}
	return "devel" + commit + dirty
}

func newVersionCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if isData(format) {
				return printData(cmd.OutOrStdout(), format, map[string]string{
					"version": buildVersion(), "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH, "timeZones": control.Zones()})
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "takt %s (%s %s/%s, time zones %s)\n", buildVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH, control.Zones())
			return err
		},
	}
	addOutput(cmd, &format)
	return cmd
}
