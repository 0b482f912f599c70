package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"busbw/reports"
)

func TestCheck(t *testing.T) {
	down := "CA 'mlx5_0'\n\tPort 1:\n\t\tState: Down\n\t\tPhysical state: Polling\n\t\tRate: 10\n\t\tLink layer: InfiniBand\n"
	for _, c := range []struct {
		name string
		args []string
		in   string
		exit int
		want string // in what is printed
	}{
		{"a port is down", []string{"--from", "-"}, down, exitFound, "cable or module"},
		{"a port is up", []string{"--from", "-"}, strings.NewReplacer("Down", "Active", "Polling", "LinkUp", "10", "400").Replace(down), exitFine, "2 pass"},
		{"slower than wanted", []string{"--from", "-", "--rate", "400"}, strings.NewReplacer("Down", "Active", "Polling", "LinkUp", "10", "200").Replace(down), exitFound, "400 Gb/s"},
		{"nothing known", []string{"--from", "-"}, "hello\n", exitFail, "standard input: nothing in it"},
		{"no such file", []string{"--from", "/nonexistent"}, "", exitFail, "/nonexistent"},
		{"no such format", []string{"--format", "xml"}, "", exitUsage, "junit"},
		{"two ways", []string{"--from", "-", "--root", "/x"}, "", exitUsage, "exclude each other"},
		{"no secret", []string{"--join", "127.0.0.1"}, "", exitUsage, "--secret-file"},
		{"no such root", []string{"--root", "/nonexistent"}, "", exitFail, "files of a machine: open /nonexistent"},
		{"no machine's root", []string{"--root", "."}, "", exitFail, "neither sys nor proc"},
	} {
		cmd, out, errs := command(t, append([]string{"check"}, c.args...)...)
		cmd.Stdin = strings.NewReader(c.in)
		if err := cmd.Run(); code(err) != c.exit || !strings.Contains(out.String()+errs.String(), c.want) {
			t.Errorf("%s: exit %d, want %d with %q:\n%s%s", c.name, code(err), c.exit, c.want, out, errs)
		}
	}
}

// TestCheckRoot checks a copy of another machine's files, with links.
func TestCheckRoot(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "sys/class/infiniband/mlx5_0/ports/1")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]string{"state": "2: INIT", "phys_state": "5: LinkUp", "link_layer": "InfiniBand", "sm_lid": "0x0", "lid": "0x0", "rate": "400 Gb/sec (4X NDR)"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(v+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd, out, errs := command(t, "check", "--root", root, "--format", "json")
	if err := cmd.Run(); code(err) != exitFound {
		t.Fatalf("exit %d\n%s%s", code(err), out, errs)
	}
	var j struct {
		Verdict  reports.Verdict
		Findings []reports.Finding
	}
	if err := json.Unmarshal(out.Bytes(), &j); err != nil || j.Verdict != reports.Fail {
		t.Fatalf("%v: %s", err, out)
	}
	for _, f := range j.Findings {
		if f.Verdict == reports.Fail && (f.ID != "rdma-port-state" || !strings.Contains(f.Got, "no subnet manager")) {
			t.Errorf("%+v", f)
		}
	}
}
