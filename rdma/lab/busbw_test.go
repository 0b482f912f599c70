package lab

import (
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
	script          string         // of machine 1, when its worker runs; $JOIN joins the cluster
	before          map[int]string // shell commands of a machine before its worker starts
	during          map[int]string // beside its worker
	worker          map[int]string // starts a machine's worker, which is %s
}

// start boots the machines and returns what each said, and the records that
// the script kept in /out, by the name of their file.
func (c cluster) start(t *testing.T, dir string) (said []string, kept map[string][]reports.Result) {
	t.Helper()
	out := t.TempDir()
	const join = `export JOIN="--secret-file key --join 10.77.0.1 --bind 10.77.0.1:0"; `
	var commands []string
	for i := 1; i <= c.machines; i++ {
		run := fmt.Sprintf("./busbw worker --secret-file key --ranks %d", c.ranks)
		if i > 1 {
			run += " --join 10.77.0.1"
		}
		if c.worker[i] != "" {
			run = fmt.Sprintf(c.worker[i], run)
		}
		cmd := c.before[i] + run + " & W=$!; "
		if c.during[i] != "" {
			cmd += "{ " + c.during[i] + " } & "
		}
		if i == 1 {
			cmd += join + strings.TrimSuffix(c.script, "; ") + fmt.Sprintf("; for i in $(seq 2 %d); do echo | nc -w 3 node$i 7999; done", c.machines)
		} else {
			cmd += "timeout 200 nc -l -p 7999; kill $W"
		}
		commands = append(commands, cmd)
	}
	said, _ = boot(t, c.machines, dir, []string{"OUT=" + out}, commands...)
	files, err := filepath.Glob(filepath.Join(out, "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	kept = map[string][]reports.Result{}
	for _, f := range files {
		rs, _, err := reports.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		kept[strings.TrimSuffix(filepath.Base(f), ".jsonl")] = rs
	}
	return said, kept
}

// busbw itself, with gossip and queue pairs, measures every operation on
// several machines: all data is right, and the record says over what it went.
func TestBusbw(t *testing.T) {
	need(t)
	dir := program(t)
	const sweep = "NCCL_IB_TC=41 NCCL_IB_TIMEOUT=18 NCCL_IB_QPS_PER_CONNECTION=2 ./busbw run $JOIN --nodes %d --no-rotate -n 3 -w 1 --inplace both --output /out/r.jsonl "
	const all = "--op all_reduce,broadcast,reduce,all_gather,reduce_scatter,alltoall,gather,scatter,sendrecv "
	const named = "--op all_reduce,broadcast --algo ring,tree --sizes 8,100004 -d int8 -o max --scope global "
	for _, tc := range []struct {
		machines, ranks int
		what            string
		least           int      // records
		links           []string // scope and link of some
	}{
		{2, 2, all + "--scope cross,global --sizes 400012 -d bfloat16", 26, []string{"cross verbs", "global memory+verbs"}},
		{3, 1, all + "--scope cross --sizes 40004 -d half", 13, []string{"cross verbs"}},
		{3, 2, named, 16, []string{"global memory+verbs"}},
	} {
		t.Run(fmt.Sprintf("%dx%d", tc.machines, tc.ranks), func(t *testing.T) {
			said, files := cluster{machines: tc.machines, ranks: tc.ranks, script: fmt.Sprintf(sweep, tc.machines) + tc.what + "; echo STATUS $?"}.start(t, dir)
			kept := files["r"]
			if !strings.Contains(said[0], "STATUS 0") || len(kept) < tc.least {
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
			for _, want := range tc.links {
				if links[want] == 0 {
					t.Errorf("links %v, want %s", links, want)
				}
			}
			if !strings.Contains(said[0], "link between nodes: verbs; node 0 (node1): rxe0:1 GID 1: 10.77.0.1 v2") {
				t.Errorf("the header does not name the link:\n%s", said[0])
			}
		})
	}
}

// One run after the other on two machines: what is odd about the ports, and
// link tests. Each ends in time, with a message that names the cause.
func TestBusbwOddities(t *testing.T) {
	need(t)
	const run = "timeout 90 ./busbw run $JOIN --nodes 2 --scope global --no-rotate -w 1 "
	const ring = run + "--op all_reduce --algo ring "
	const addresses = "ip addr add 10.78.0.%d/24 dev eth0; "
	said, kept := cluster{
		machines: 2, ranks: 1,
		before: map[int]string{1: fmt.Sprintf(addresses, 1), 2: fmt.Sprintf(addresses, 2) + "ip link set eth0 mtu 1500; "},
		script: run + "--op all_reduce,broadcast --algo ring,tree -n 2 --sizes 100K --output /out/mtu.jsonl; echo MTU STATUS $?; " +
			"NCCL_IB_GID_INDEX=9 " + ring + "--sizes 8; echo ROW STATUS $?; " +
			ring + "--rails mlx5_0 --sizes 8; echo RAIL STATUS $?; " +
			"NCCL_IB_DISABLE=1 NCCL_IB_TC=8 " + ring + "-n 2 --sizes 8 --output /out/tcp.jsonl; echo TCP STATUS $?; " +
			"timeout 90 ./busbw link $JOIN --nodes 2 --test write_bw,read_bw,send_bw,write_lat,read_lat,send_lat -s 4K -D 0s -q 2 --output /out/link.jsonl; echo LINK STATUS $?; " +
			"timeout 150 ./busbw link $JOIN --nodes 2 --test write_bw -b -a -n 2 -D 0s --output /out/all.jsonl; echo ALL STATUS $?; " +
			// the address whose GID the queue pairs use goes away
			"(until [ -s /out/gid.jsonl ]; do usleep 200000; done; ip addr del 10.78.0.1/24 dev eth0) & " +
			"NCCL_IB_ADDR_RANGE=10.78.0.0/16 " + ring + "-n 100 -b 64K -e 128K -f 1 -i 64 --output /out/gid.jsonl; echo GID STATUS $?",
	}.start(t, program(t))
	for _, want := range []string{
		"MTU STATUS 0", "ROW STATUS 1", "rxe0 port 1 has nothing in GID row 9 (NCCL_IB_GID_INDEX)", "RAIL STATUS 1", `rail "mlx5_0" (--rails) is no active RDMA port`,
		"TCP STATUS 0", "has no RDMA: NCCL_IB_DISABLE is 1", "LINK STATUS 0", "ALL STATUS 0", "GID STATUS 1", "reported GID_CHANGE", "GID row", "is no longer 10.78.0.1",
	} {
		if !strings.Contains(said[0], want) {
			t.Errorf("no %q", want)
		}
	}
	if r := kept["mtu"]; len(r) != 4 || r[0].Verbs == nil || r[0].Verbs.MTU != 1024 || *r[0].Wrong != 0 || !strings.Contains(strings.Join(r[0].Notes, ";"), "MTUs differ: 1024 on node 1 (node2), 4096 on node 0 (node1)") {
		t.Errorf("ports of MTU 4096 and 1024: %+v", r)
	}
	if r := kept["tcp"]; len(r) != 1 || r[0].Link != "tcp" || !strings.Contains(strings.Join(r[0].Notes, ";"), "not RDMA: node 0 (node1) has no RDMA: NCCL_IB_DISABLE is 1") {
		t.Errorf("RDMA disabled: %+v", r)
	}
	if r := kept["gid"]; len(r) == 0 || *r[0].Wrong != 0 || !strings.Contains(r[0].Verbs.Rails[0], "10.78.0.1 v2") {
		t.Errorf("before the address went: %d results", len(r))
	}
	if r := kept["link"]; len(r) != 6 || r[0].Op != "write_bw" || r[0].Verbs.QPs != 2 || len(r[0].Seconds) < 1 || r[5].Op != "send_lat" || len(r[5].Seconds) < 8 {
		t.Errorf("link tests: %+v", r)
	}
	if r := kept["all"]; len(r) != 23 || r[0].Bytes != 2 || r[22].Bytes != 8<<20 || len(r[22].Seconds) < 1 || !strings.Contains(strings.Join(r[22].Notes, ";"), "both directions at once") {
		t.Errorf("link -a -b: %d results", len(r))
	}
	if t.Failed() {
		t.Logf("the machines said:\n%s", strings.Join(said, "\n"))
	}
}

// What breaks a run half way ends it in time, with the cause, and what was
// measured before is kept.
func TestBusbwFaults(t *testing.T) {
	need(t)
	dir := program(t)
	const run = "timeout 100 ./busbw run $JOIN --nodes 2 --op all_reduce --algo ring --scope global --no-rotate -w 1 -n 30 --output /out/%s.jsonl "
	// The other worker hears of the end only when it misses the coordinator.
	again := "for i in $(seq 12); do sleep 5; rm -f /out/again.jsonl; " + fmt.Sprintf(run, "again") + "--sizes 8 && break; done; "
	long := func(name string) string {
		return fmt.Sprintf(run+"-b 64K -e 128K -f 1 -i 64; echo %s STATUS $?; ", name, name)
	}
	begun := func(name string) string {
		return fmt.Sprintf("until [ -s /out/%s.jsonl ]; do usleep 200000; done; sleep 1; ", name)
	}
	for _, tc := range []struct {
		name string
		c    cluster
		want []string // each may have alternatives
		kept []string
	}{
		{"gone", cluster{
			script: long("down") + "ip link set eth0 up; " + again + long("killed") + long("off"),
			during: map[int]string{1: begun("down") + "ip link set eth0 down;", 2: begun("killed") + "for p in /proc/[0-9]*; do grep -q runner $p/cmdline && kill -9 ${p#/proc/}; done; " + begun("off") + "poweroff -f;"},
		}, []string{"node 0 (node1)", "rxe0 port 1 reported PORT_ERR: the link went down", "down STATUS 1", "node 1 (node2): its runner was killed by signal 9", "killed STATUS 1", "node 1 (node2): no sign of life|transport retry counter exceeded|ended the connection", "off STATUS 1"}, []string{"down", "killed", "off"}},
		{"less than all", cluster{
			script: fmt.Sprintf(run, "locked") + "--sizes 8,8M; echo locked STATUS $?; touch /out/next; sleep 2; " +
				fmt.Sprintf(run, "none") + "--sizes 8; echo none STATUS $?; timeout 60 ./busbw link $JOIN --nodes 2; echo link STATUS $?",
			before: map[int]string{2: "echo root:x:0:0::/:/bin/sh > /etc/passwd; echo u:x:99:99::/tmp:/bin/sh >> /etc/passwd; chown 99 key; chmod 666 /dev/infiniband/*; "},
			worker: map[int]string{2: "(ulimit -l 9000; exec su -s /bin/sh u -c 'cd /lab; exec %s')"},
			during: map[int]string{2: "until [ -e /out/next ]; do usleep 200000; done; rdma link delete rxe0;"},
		}, []string{
			"16.0 MiB of memory that stays locked", "this process may lock 9216000 bytes", "LimitMEMLOCK=infinity", "locked STATUS 1",
			"link between nodes: tcp (node 1 (node2) has no RDMA: it has no RDMA device)", "none STATUS 0",
			"link tests need an active RDMA port on every member, and 1 of 2 have none", "link STATUS 1",
		}, []string{"locked", "none"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.c.machines, tc.c.ranks = 2, 1
			said, kept := tc.c.start(t, dir)
			for _, want := range tc.want {
				found := false
				for w := range strings.SplitSeq(want, "|") {
					found = found || strings.Contains(said[0], w)
				}
				if !found {
					t.Errorf("no %q", want)
				}
			}
			for _, name := range tc.kept {
				if r := kept[name]; len(r) == 0 || len(r[0].Seconds) == 0 || *r[0].Wrong != 0 {
					t.Errorf("%s: nothing was kept: %+v", name, r)
				}
			}
			if t.Failed() {
				t.Logf("the machines said:\n%s", strings.Join(said, "\n"))
			}
		})
	}
}
