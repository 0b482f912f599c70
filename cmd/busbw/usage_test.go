package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Flags that say something only with --join, or only without it, are refused
// where they say nothing, by every command that has them.
func TestFlagsApart(t *testing.T) {
	value := map[string]string{"nodes": "2", "ranks": "2", "wait": "1s", "secret-file": "key", "advertise": "127.0.0.1", "iface": "lo", "bind": "127.0.0.1:0"}
	seen := 0
	for _, c := range rootCommand().Commands() {
		if c.Flags().Lookup("join") == nil || c.Name() == "worker" { // the first worker joins nobody
			continue
		}
		args := []string{c.Name()}
		if c.Name() == "sweep" {
			args = append(args, "--env", "NCCL_ALGO=Ring,Tree")
		}
		for name, v := range value {
			if c.Flags().Lookup(name) == nil {
				continue
			}
			seen++
			refused(t, "--join", append(args, "--"+name, v)...)
		}
		if c.Flags().Lookup("local") != nil {
			refused(t, "--local", append(args, "--join", "127.0.0.1:1", "--secret-file", "key", "--local", "2x2")...)
		}
	}
	if seen < 30 {
		t.Errorf("%d flags tried", seen)
	}
}

func refused(t *testing.T, want string, args ...string) {
	t.Helper()
	root := rootCommand()
	root.SetArgs(args)
	err := root.ExecuteContext(t.Context())
	if exitCode(err) != exitUsage || !strings.Contains(err.Error(), want) {
		t.Errorf("busbw %s: %v; want wrong use that names %s", strings.Join(args, " "), err, want)
	}
}

func TestPlural(t *testing.T) {
	for want, got := range map[string]string{"0 ranks": plural(0, "rank"), "1 rank": plural(1, "rank"), "2 launches": plural(2, "launch"), "1 launch": plural(1, "launch")} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// --format and --json go together, in every command that has one of them.
func TestJSONFlags(t *testing.T) {
	for _, c := range rootCommand().Commands() {
		format, short := c.Flags().Lookup("format"), c.Flags().Lookup("json")
		if (format == nil) != (short == nil) {
			t.Errorf("busbw %s: --format %t, --json %t", c.Name(), format != nil, short != nil)
		}
		if format != nil && (c.Flags().Set("json", "true") != nil || format.Value.String() != "json") {
			t.Errorf("busbw %s --json: format %s", c.Name(), format.Value)
		}
	}
	for _, args := range []string{"version --json", "version --format json", "topo --root testdata --format xml"} {
		out, errs, status := ran(t, strings.Fields(args)...)
		if strings.HasSuffix(args, "xml") {
			if status != exitUsage || !strings.Contains(errs, "table, json") {
				t.Errorf("%s: exit %d, %s", args, status, errs)
			}
		} else if status != exitFine || !strings.Contains(out, `"version":"dev"`) {
			t.Errorf("%s: exit %d, %s%s", args, status, out, errs)
		}
	}
	if out, errs, status := ran(t, "--version"); status != exitFine || out != "busbw dev\n" {
		t.Errorf("exit %d, %q %s", status, out, errs)
	}
}

// Who reads a command's help is not sent to read it.
func TestHelpElsewhere(t *testing.T) {
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if text := c.Long + c.UsageString(); strings.Contains(text, "("+c.CommandPath()+" --help") {
			t.Errorf("%s --help sends to itself:\n%s", c.CommandPath(), text)
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(rootCommand())
}
