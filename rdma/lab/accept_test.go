package lab

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"busbw/coordinator/accept"
	"busbw/reports"
)

// busbw accept learns what good nodes reach, passes them by that, and fails the
// right one with its link slowed, and with its port down. Gossip and RDMA have
// interfaces of their own, as in a cluster, so that a node can lose one of them.
func TestAccept(t *testing.T) {
	need(t)
	const (
		port = "rdma link delete rxe0; ip link add mv0 link eth0 type macvlan mode bridge; ip addr add 10.78.0.$LAB_id/24 dev mv0; ip link set mv0 mtu 4200 up; " +
			"rdma link add rxe1 type rxe netdev mv0; until ping -c1 -W1 10.78.0.1 >/dev/null 2>&1; do :; done; "
		worker = port + "./busbw worker --secret-file key --ranks 1 "
		step   = "accept() { ./busbw accept --secret-file key --join 10.77.0.1 --bind 10.77.0.1:0 --nodes 3 --bytes 64K --time 300ms --watch 0s --format md --out /out/$1 ${2:-} ${3:-}; echo $1 STATUS $?; }; " +
			"reach() { touch /out/to-$1; until [ -e /out/is-$1 ]; do usleep 200000; done; sleep 2; }; "
		script = step + "accept learn; ./busbw profile learn --margin 0.7 --name lab /out/learn/results.jsonl.zst > lab.yaml; cp lab.yaml /out; " +
			"accept good --profile ./lab.yaml; reach slow; accept slow --profile ./lab.yaml; reach down; accept down --profile ./lab.yaml; touch /out/to-over; kill $W; "
		faults = "on() { until [ -e /out/to-$1 ]; do usleep 200000; done; }; on slow; /bin/tc qdisc add dev mv0 root netem rate 2mbit limit 1000; touch /out/is-slow; " +
			"on down; /bin/tc qdisc del dev mv0 root; ip link set mv0 down; touch /out/is-down; on over; kill $W; "
	)
	out := t.TempDir()
	said, _ := boot(t, 3, program(t), []string{"OUT=" + out, "TIMEOUT=900", "MEM=384"},
		worker+"& W=$!; "+script,
		worker+"--join 10.77.0.1 & W=$!; until [ -e /out/to-over ]; do usleep 500000; done; kill $W",
		worker+"--join 10.77.0.1 & W=$!; "+faults)
	read := func(name string) (rep accept.Report) {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(out, name, "report.json"))
		if err == nil {
			err = json.Unmarshal(b, &rep)
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		return rep
	}
	for _, c := range []struct {
		name    string
		status  string
		verdict reports.Verdict
		fails   string
	}{{"good", "0", reports.Pass, ""}, {"slow", "3", reports.Fail, "node3"}, {"down", "3", reports.Fail, "node3"}} {
		rep := read(c.name)
		if !strings.Contains(said[0], c.name+" STATUS "+c.status) || rep.Verdict != c.verdict && rep.Verdict != reports.Warn || strings.Join(rep.Failing(), " ") != c.fails {
			t.Errorf("%s: %s, failing %q; want status %s, %s, failing %q", c.name, rep.Verdict, rep.Failing(), c.status, c.verdict, c.fails)
		}
	}
	has := func(rep accept.Report, id, text string) bool {
		for _, f := range rep.Findings() {
			if f.ID == id && f.Node == "node3" && f.Verdict == reports.Fail && strings.Contains(f.Subject+f.Got, text) {
				return true
			}
		}
		return false
	}
	if rep := read("slow"); !has(rep, "pairs", "node3") {
		t.Errorf("slow: pairs do not name the port of node3: %+v", rep.Findings())
	}
	if rep := read("down"); !has(rep, "rdma-port-state", "rxe1") {
		t.Errorf("down: the checks do not name the port of node3: %+v", rep.Findings())
	}
	text, _ := os.ReadFile(filepath.Join(out, "lab.yaml"))
	for _, w := range []string{"nic loopback", "test: pair", "link: verbs"} {
		if !strings.Contains(string(text), w) {
			t.Errorf("the learned profile has no %q:\n%s", w, text)
		}
	}
	if t.Failed() {
		t.Logf("the machines said:\n%s", strings.Join(said, "\n"))
	}
}
