package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagFault words what is wrong with a flag; the causes that the flags' types give speak of Go.
func flagFault(err error) error {
	bad, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return usage(err.Error())
	}
	must := map[string]string{"int": "a whole number", "int64": "a whole number", "uint64": "a whole number of at least 0", "float64": "a number",
		"duration": "a length of time such as 90s, 10m or 2h30m", "bool": "true or false"}[bad.GetFlag().Value.Type()]
	_, ours := bad.GetFlag().Value.(keepFlag) // words of our own
	switch {
	case must == "" || ours || errors.Is(bad.Unwrap(), errZero):
		return usage(fmt.Sprintf("--%s %q: %v", bad.GetFlag().Name, bad.GetValue(), bad.Unwrap()))
	case errors.Is(err, strconv.ErrRange):
		must += ", and this one is too large or too small"
	}
	return usage(fmt.Sprintf("--%s %q: it must be %s", bad.GetFlag().Name, bad.GetValue(), must))
}

// wordArgs has every command of a tree name the word that is missing or one too many.
func wordArgs(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		wordArgs(sub)
	}
	judge := cmd.Args
	if isGroup(cmd) || judge == nil && !cmd.Runnable() {
		return
	}
	if judge == nil {
		judge = cobra.ArbitraryArgs
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		err := judge(cmd, args)
		if err == nil {
			return noneEmpty(cmd, args)
		}
		if _, worded := errors.AsType[*failure](err); worded {
			return err
		}
		words := wordsOf(cmd.Use)
		switch {
		case len(args) < len(words):
			return usage(fmt.Sprintf("%s is missing after `%s`", words[len(args)], cmd.CommandPath()))
		case len(words) == 0:
			return usage(fmt.Sprintf("%q is too much: `%s` takes flags only", args[0], cmd.CommandPath()))
		}
		return usage(fmt.Sprintf("%q is too much: `%s` takes %s", args[min(len(words), len(args)-1)], cmd.CommandPath(), strings.Join(words, " ")))
	}
}

// emptyMeans is the annotation of commands to which an empty word says something.
const emptyMeans = "empty-means"

// noneEmpty refuses an empty word, such as a variable leaves that is not set: where a name may be left out it would mean all.
// Expressions are judged by who reads them.
func noneEmpty(cmd *cobra.Command, args []string) error {
	words := wordsOf(cmd.Use)
	if len(words) == 0 || cmd.Annotations[emptyMeans] != "" {
		return nil
	}
	for i, arg := range args {
		if arg != "" {
			continue
		}
		if word := words[min(i, len(words)-1)]; !strings.Contains(word, `"`) {
			return usage(fmt.Sprintf("%s of `%s` is empty", strings.Trim(word, "[]…"), cmd.CommandPath()))
		}
	}
	return nil
}

// wordsOf are the words that the line of a command names behind it, without its flags and their values.
func wordsOf(use string) (words []string) {
	fields := strings.Fields(use)
	for i := 1; i < len(fields); i++ {
		if strings.HasPrefix(fields[i], "-") {
			i++
			continue
		}
		words = append(words, fields[i])
	}
	return words
}
