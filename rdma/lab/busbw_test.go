package lab

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"busbw/reports"
)

// program makes a directory with busbw itself and a cluster's secret.
func program(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("go", "build", "-ldflags", "-s -w", "-o", filepath.Join(dir, "busbw"), "busbw/cmd/busbw")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	if err := os.WriteFile(filepath.Join(dir, "key"), []byte(strings.Repeat("5a", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A cluster is busbw workers on machines; machine 1 runs a script besides.
type cluster struct {
	machines, ranks int
	script          string            // of machine 1, when its worker runs; $JOIN joins the cluster
	before          map[int]string    // shell commands of a machine before its worker starts; 0: of all
	during          map[int]string    // beside its worker
	env             map[string]string // of run.sh
}

// start boots the machines and returns what each said, and the records that
// the script kept in /out/r.jsonl.
func (c cluster) start(t *testing.T, dir string) (said []string, kept []reports.Result) {
	t.Helper()
	out := t.TempDir()
	const join = `JOIN="--secret-file key --join 10.77.0.1 --bind 10.77.0.1:0"; `
	var commands []string
	for i := 1; i <= c.machines; i++ {
		cmd := c.before[0] + c.before[i] + fmt.Sprintf("./busbw worker --secret-file key --ranks %d", c.ranks)
		if i > 1 {
			cmd += " --join 10.77.0.1"
		}
		cmd += " & W=$!; " + c.during[i]
		if i == 1 {
			cmd += join + c.script + fmt.Sprintf("; echo STATUS $?; for i in $(seq 2 %d); do echo | nc -w 3 node$i 7999; done", c.machines)
		} else {
			cmd += "timeout 240 nc -l -p 7999; kill $W"
		}
		commands = append(commands, cmd)
	}
	env := []string{"OUT=" + out}
	for k, v := range c.env {
		env = append(env, k+"="+v)
	}
	said, _ = boot(t, c.machines, dir, env, commands...)
	f, err := os.Open(filepath.Join(out, "r.jsonl"))
	if err != nil {
		return said, nil
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var r reports.Result
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatalf("a record: %v", err)
		}
		kept = append(kept, r)
	}
	return said, kept
}

// busbw itself, with gossip and queue pairs, measures every operation on
// several machines: all data is right, and the record says over what it went.
func TestBusbw(t *testing.T) {
	need(t)
	dir := program(t)
	const sweep = "NCCL_IB_TC=41 NCCL_IB_TIMEOUT=18 NCCL_IB_QPS_PER_CONNECTION=2 ./busbw run $JOIN --nodes %d --scope cross,global --no-rotate -n 3 -w 1 --inplace both --output /out/r.jsonl "
	const all = "--op all_reduce,broadcast,reduce,all_gather,reduce_scatter,alltoall,gather,scatter,sendrecv --sizes 4044,400012 -d bfloat16"
	const reduces = "--op all_reduce,broadcast --algo ring,tree --sizes 8,1M,1000004 -d int8 -o max"
	for _, tc := range []struct {
		machines, ranks int
		what            string
	}{{2, 1, reduces}, {2, 2, all}, {3, 1, all}, {3, 2, reduces}} {
		t.Run(fmt.Sprintf("%dx%d", tc.machines, tc.ranks), func(t *testing.T) {
			said, kept := cluster{machines: tc.machines, ranks: tc.ranks, script: fmt.Sprintf(sweep, tc.machines) + tc.what}.start(t, dir)
			if !strings.Contains(said[0], "STATUS 0") || len(kept) < 12 {
				t.Fatalf("%d records; the machines said:\n%s", len(kept), strings.Join(said, "\n"))
			}
			links := map[string]int{}
			for _, r := range kept {
				links[r.Scope+" "+r.Link]++
				if r.Wrong == nil || *r.Wrong != 0 || r.Error != "" {
					t.Errorf("%s %s %s %d B: wrong %v, %s", r.Scope, r.Op, r.Algorithm, r.Bytes, r.Wrong, r.Error)
				}
				if v := r.Verbs; v == nil || len(v.Rails) != tc.machines*tc.ranks || v.QPs != 2 || v.MTU != 4096 || len(v.Attributes) != 1 ||
					!strings.Contains(v.Attributes[0], "traffic class 41") || !strings.Contains(v.Attributes[0], "timeout 18") || !strings.Contains(v.Rails[0], "10.77.0.1 v2") {
					t.Errorf("%s %s: verbs %+v", r.Op, r.Algorithm, v)
				}
				if len(r.Counters) == 0 {
					t.Errorf("%s %s: no counter moved", r.Op, r.Algorithm)
				}
			}
			want := "global verbs"
			if tc.ranks > 1 {
				want = "global memory+verbs"
			}
			if links["cross verbs"] == 0 || links[want] == 0 {
				t.Errorf("links %v, want cross verbs and %s", links, want)
			}
			if !strings.Contains(said[0], "link between nodes: verbs; node 0 (node1): rxe0:1 GID 1: 10.77.0.1 v2") {
				t.Errorf("the header does not name the link:\n%s", said[0])
			}
		})
	}
}
