package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagError says what a flag wants, in words of its own; what people bring
// from nccl-tests and busbw does otherwise gets a hint.
func flagError(c *cobra.Command, err error) error {
	var value *pflag.InvalidValueError
	var absent *pflag.NotExistError
	switch {
	case errors.As(err, &value):
		want := map[string]string{
			"int":      "want a whole number",
			"intSlice": "want whole numbers, with commas between them",
			"float64":  "want a number",
			"duration": "want a time with its unit, for example 500ms, 3s or 2m",
			"bool":     "want true or false",
		}[value.GetFlag().Value.Type()]
		if want == "" {
			want = value.Unwrap().Error()
		}
		name := "--" + value.GetFlag().Name
		if value.GetFlag().Shorthand != "" {
			name = "-" + value.GetFlag().Shorthand + ", " + name
		}
		err = fmt.Errorf("%s %q: %s", name, value.GetValue(), want)
	case errors.As(err, &absent):
		if hint := elsewhere[absent.GetSpecifiedName()]; hint != "" {
			err = fmt.Errorf("%w: %s", err, hint)
		}
	}
	return usageError{fmt.Errorf("%w; see %s --help", err, c.CommandPath())}
}

// formatFlag adds --format, and --json, which is short for one of its values.
func formatFlag(fl *pflag.FlagSet, format *string, usage string) {
	fl.StringVar(format, "format", "table", usage)
	fl.BoolFunc("json", "the same as --format json", func(string) error {
		*format = "json"
		return nil
	})
}

// tableOrJSON checks --format where there is nothing else.
func tableOrJSON(format string) error {
	if format != "table" && format != "json" {
		return usageError{fmt.Errorf("unknown format %q; the formats are table, json", format)}
	}
	return nil
}

// plural is a number with what it counts: "1 rank", "2 ranks".
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if strings.HasSuffix(what, "ch") {
		what += "e"
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// elsewhere maps flags of nccl-tests to what stands for them here.
var elsewhere = map[string]string{
	"g":             "ranks on each node are --ranks, or --local NODESxRANKS on this machine",
	"t":             "ranks on each node are --ranks, or --local NODESxRANKS on this machine",
	"ngpus":         "ranks on each node are --ranks, or --local NODESxRANKS on this machine",
	"nthreads":      "ranks on each node are --ranks, or --local NODESxRANKS on this machine",
	"J":             "results are kept by themselves; --output names the file",
	"output_file":   "results are kept by themselves; --output names the file",
	"N":             "repeat everything with --launches",
	"run_cycles":    "repeat everything with --launches",
	"T":             "use --timeout, with its unit",
	"a":             "every rank's median is kept; the slowest rank counts",
	"average":       "every rank's median is kept; the slowest rank counts",
	"parallel_init": "ranks always start in parallel",
	"p":             "ranks always start in parallel",
}
