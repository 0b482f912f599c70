package main

import (
	"strings"
	"testing"
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
