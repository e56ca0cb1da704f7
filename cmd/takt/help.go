package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// helpPage is what the help of a command says beside its own texts.
type helpPage struct {
	codes   []int  // the exit codes it can end with; 2 is every command's
	output  string // why it has no -o; "" when it has one
	example string // when the command itself gives none
}

// Exit codes that go together: of a command that reads from a server, and of one that changes something.
var (
	readCodes   = []int{exitOK, exitUsage, exitNotFound, exitNotAllowed, exitUnavailable, exitInterrupted}
	changeCodes = []int{exitOK, exitUsage, exitNotFound, exitNotAllowed, exitConflict, exitUnavailable, exitInterrupted}
	localCodes  = []int{exitOK, exitUsage}
)

func also(codes []int, more ...int) []int { return append(slices.Clone(codes), more...) }

const runsOn = "nothing; it runs until it is told to end and logs to standard error"

// helpPages has a page for every command that can be called; a test walks the tree and says what is missing.
var helpPages = map[string]helpPage{
	"takt agent": {codes: []int{exitOK, exitUsage, exitNotAllowed, exitConflict, exitUnavailable, exitInterrupted}, output: runsOn},
	"takt apply": {codes: also(changeCodes)},
	"takt cancel": {codes: changeCodes, example: `  takt cancel 06cw1bq0fr8j1x4cw6h3ybkq2c --note "wrong month"
  takt cancel --job close-order --key order-17`},
	"takt completion bash": shellPage("bash", "source <(takt completion bash)"), "takt completion zsh": shellPage("zsh", "source <(takt completion zsh)"),
	"takt completion fish": shellPage("fish", "takt completion fish | source"), "takt completion powershell": shellPage("powershell", "takt completion powershell | Out-String | Invoke-Expression"),
	"takt config get-contexts": {codes: localCodes}, "takt config set-context": {codes: localCodes},
	"takt config use-context": {codes: also(localCodes, exitNotFound)},
	"takt explain":            {codes: readCodes}, "takt upcoming": {codes: readCodes}, "takt missed": {codes: also(changeCodes, exitNegative)},
	"takt backfill": {codes: also(changeCodes, exitNegative)}, "takt backfill cancel": {codes: changeCodes}, "takt describe backfill": {codes: readCodes},
	"takt describe execution": {codes: readCodes}, "takt describe job": {codes: readCodes}, "takt describe worker": {codes: readCodes},
	"takt wait":      {codes: also(readCodes, exitNegative, exitTimeout)},
	"takt cron next": {codes: localCodes},
	"takt cron prev": {codes: localCodes}, "takt cron between": {codes: localCodes}, "takt cron explain": {codes: localCodes},
	"takt cron lint":  {codes: also(localCodes, exitNegative)},
	"takt bench run":  {codes: also(changeCodes, exitNegative), example: "  takt bench run --for 20s\n  takt bench run --rate 1000 --for 20s -o json\n  takt --server http://10.0.0.5:7070 bench run --executions 100000"},
	"takt bench fire": {codes: also(changeCodes, exitNegative), example: "  takt bench fire --schedules 10000 --rate 200 --for 30s\n  takt bench fire --for 10m -o json"},
	"takt delete job": {codes: changeCodes}, "takt delete calendar": {codes: changeCodes}, "takt describe calendar": {codes: readCodes},
	"takt get calendars":   {codes: readCodes, example: "  takt get calendars -o wide\n  takt get calendars cn-workdays -o yaml"},
	"takt import calendar": {codes: changeCodes},
	"takt demo": {codes: []int{exitOK, exitNegative, exitUsage, exitUnavailable, exitInterrupted}, example: `  takt demo
  takt demo --dir /usr/share/doc --workers 4 -o json`},
	"takt dev":            {codes: []int{exitOK, exitUsage, exitConflict, exitUnavailable, exitInterrupted}},
	"takt diff":           {codes: also(readCodes, exitNegative)},
	"takt export":         {codes: readCodes},
	"takt get backfills":  {codes: readCodes, example: "  takt get backfills --job reindex\n  takt get backfills -w"},
	"takt get decisions":  {codes: readCodes, example: "  takt get decisions --job reindex"},
	"takt get executions": {codes: readCodes, example: "  takt get executions --job reindex --state failed\n  takt get executions -w"},
	"takt get jobs":       {codes: readCodes, example: "  takt get jobs -l app=billing -o wide\n  takt get jobs reindex -o yaml"},
	"takt get pools":      {codes: readCodes, example: "  takt get pools -o json"},
	"takt get servers":    {codes: readCodes, example: "  takt get servers\n  takt get servers -o json"},
	"takt get shards":     {codes: readCodes, example: "  takt get shards 06cw1bq0fr8j1x4cw6h3ybkq2c -w"},
	"takt get workers":    {codes: readCodes, example: "  takt get workers --pool billing -o wide"},
	"takt history":        {codes: readCodes},
	"takt logs":           {codes: readCodes},
	"takt pause":          {codes: changeCodes},
	"takt rerun":          {codes: changeCodes, example: `  takt rerun 06cw1bq0fr8j1x4cw6h3ybkq2c --note "disk was full"`},
	"takt reschedule":     {codes: changeCodes},
	"takt resume":         {codes: changeCodes},
	"takt backup":         {codes: changeCodes},
	"takt restore":        {codes: []int{exitOK, exitUsage, exitNotFound, exitConflict, exitUnavailable, exitInterrupted}},
	"takt migrate status": {codes: []int{exitOK, exitUsage, exitNotFound, exitConflict, exitUnavailable}},
	"takt migrate plan":   {codes: []int{exitOK, exitUsage, exitNotFound, exitConflict, exitUnavailable}},
	"takt migrate up":     {codes: []int{exitOK, exitUsage, exitConflict, exitUnavailable, exitInterrupted}},
	"takt retention":      {codes: changeCodes},
	"takt rollback":       {codes: changeCodes},
	"takt schema":         {codes: localCodes},
	"takt server":         {codes: []int{exitOK, exitUsage, exitConflict, exitUnavailable, exitInterrupted}, output: runsOn, example: "  takt server --data ./takt-data --listen 127.0.0.1:7070"},
	"takt trigger":        {codes: also(changeCodes, exitNegative, exitTimeout)},
	"takt validate":       {codes: localCodes},
	"takt version":        {codes: localCodes, example: "  takt version -o json"},
}

func shellPage(shell, load string) helpPage {
	return helpPage{codes: localCodes, output: "a script for " + shell, example: "  " + load}
}

var codeMeanings = map[int]string{
	exitOK: "ok", exitNegative: "the result is negative", exitUsage: "wrong usage or invalid input", exitNotFound: "not there",
	exitNotAllowed: "not allowed", exitConflict: "conflict", exitUnavailable: "no server can be reached", exitTimeout: "time-out",
	exitInterrupted: "interrupted",
}

// isGroup tells that a command only gathers others.
func isGroup(cmd *cobra.Command) bool {
	_, own := helpPages[cmd.CommandPath()]
	return cmd.HasSubCommands() && !own
}

// addPages puts the pages into the commands of a tree: after the flags the help names what is printed and the
// exit codes.
func addPages(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		addPages(sub)
	}
	page, ok := helpPages[cmd.CommandPath()]
	if !ok {
		return
	}
	if cmd.Example == "" {
		cmd.Example = page.example
	}
	cmd.SetUsageTemplate(cmd.UsageTemplate() + page.text())
}

func (p *helpPage) text() string {
	var b strings.Builder
	b.WriteString("\n")
	if p.output != "" {
		fmt.Fprintf(&b, "Output: %s\n", p.output)
	}
	var codes []string
	for _, c := range slices.Sorted(slices.Values(p.codes)) {
		codes = append(codes, fmt.Sprintf("%d %s", c, codeMeanings[c]))
	}
	fmt.Fprintf(&b, "Exit codes: %s\n", strings.Join(codes, " · "))
	return b.String()
}
