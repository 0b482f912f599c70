package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"busbw/reports"
)

// A log from the field becomes a table, records, and an exit status.
func TestImport(t *testing.T) {
	log := func(name string) string {
		p, err := filepath.Abs("../../reports/imports/testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	cmd, out, errs := command(t, "import", "-o", "kept.jsonl", log("two-worlds-no-mpi-build.txt"))
	if err := cmd.Run(); code(err) != exitFound || !strings.Contains(out.String(), "2 worlds (communicators) of 2 ranks each") || !strings.Contains(out.String(), "MPI=1") {
		t.Errorf("%v\n%s%s", err, out, errs)
	}
	kept := filepath.Join(cmd.Dir, "kept.jsonl")
	all, warnings, err := reports.ReadFile(kept)
	if err != nil || len(warnings) > 0 || len(all) != 8 || all[0].Source != "imported: nccl-tests" {
		t.Errorf("%d records, %q, %v", len(all), warnings, err)
	}
	cmd, out, errs = command(t, "import", log("hostname-with-blank.txt"), "--format", "csv")
	if err := cmd.Run(); code(err) != exitFine || !strings.HasPrefix(out.String(), "time,") || !strings.Contains(errs.String(), "8 ranks on NODE A") {
		t.Errorf("%v\n%s%s", err, out, errs)
	}
	cmd, out, errs = command(t, "import", "-")
	cmd.Stdin = strings.NewReader("hello\n")
	if err := cmd.Run(); code(err) != exitFail || !strings.Contains(errs.String(), "nccl-tests") {
		t.Errorf("%v\n%s%s", err, out, errs)
	}
	for _, c := range []struct {
		text string // of the file
		code int
		want string
	}{
		{"", exitFail, "it is empty"},
		{"node-b:39964:40044 [0] misc/socket.cc:49 NCCL WARN socketProgress: Connection closed by remote peer node-a<57557>\n", exitFound, "no test in 1 line, 0 results"},
		{"node-b:39964:40044 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>\n", exitFail, "nothing to import"},
		{logged(t, log("hash-stripped-truncated-mid-row.txt")), exitFound, "no whole row"},
	} {
		cmd, out, errs = command(t, "import", "-")
		cmd.Stdin = strings.NewReader(c.text)
		if err := cmd.Run(); code(err) != c.code || !strings.Contains(out.String()+errs.String(), c.want) {
			t.Errorf("%.60q: %v, want exit status %d and %q\n%s%s", c.text, err, c.code, c.want, out, errs)
		}
	}
	cmd, out, errs = command(t, "import", "-")
	cmd.Stdin = strings.NewReader(logged(t, kept))
	if err := cmd.Run(); code(err) != exitFine || !strings.Contains(out.String(), "a results file of busbw with 8 results") {
		t.Errorf("%v\n%s%s", err, out, errs)
	}
	cmd, _, errs = command(t, "report", "nowhere.jsonl")
	if err := cmd.Run(); code(err) != exitFail || strings.Contains(errs.String(), "import") {
		t.Errorf("%v %s", err, errs)
	}
	cmd, _, errs = command(t, "import")
	if err := cmd.Run(); code(err) != exitUsage {
		t.Errorf("%v %s", err, errs)
	}
}

func logged(t *testing.T, name string) string {
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// One Ctrl-C ends what waits for a pipe, but not before what the pipe's other
// end still prints was read.
func TestImportInterrupted(t *testing.T) {
	for _, ends := range []bool{false, true} {
		cmd, out, errs := command(t, "import", "-")
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		const row = "        1024           256     float     sum      -1    10.00    0.10    0.10      0    10.00    0.10    0.10      0\n"
		if _, err := in.Write([]byte("# nThread 1 nGpus 2\n#\n# Using devices\n#  Rank  0 Group  0 Pid 1 on a device  0\n#  Rank  1 Group  0 Pid 1 on a device  1\n" + row)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(300 * time.Millisecond) // until it has installed what catches signals
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		if ends {
			in.Close()
		}
		err = cmd.Wait()
		if cut := strings.Contains(errs.String(), "interrupted before the end"); cut == ends {
			t.Errorf("the pipe ends: %t; it said %q", ends, errs)
		}
		if ends && !strings.Contains(out.String(), "1 KiB") {
			t.Errorf("the row was not read:\n%s%s", out, errs)
		}
		if !ends && code(err) != exitFail {
			t.Errorf("exit %d, want %d", code(err), exitFail)
		}
	}
}
