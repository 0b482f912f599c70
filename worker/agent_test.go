package worker

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"busbw/coordinator"
)

// as is a request from the member whose certificate reads cert; a handler sees
// no more of a TLS connection than that.
func as(cert, method, path, body string) *http.Request {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.TLS = nil
	if cert != "" {
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{Raw: []byte(cert)}}}
	}
	return r
}

// TestRequests: who may ask a worker for what, and what it says to the rest.
func TestRequests(t *testing.T) {
	members := map[string]bool{"alice": true, "bob": true}
	a := &agent{
		opts: Options{Runner: []string{os.Args[0], RunnerVerb}, Version: "test"},
		self: coordinator.Self{Choice: coordinator.Choice{DataAddr: coordinator.DataAddr{Iface: "lo", Addr: netip.MustParseAddr("127.0.0.1")}, Why: "test"}},
		find: func(f coordinator.Fingerprint) (coordinator.Member, bool) {
			for name, here := range members {
				if here && sha256.Sum256([]byte(name)) == f {
					return coordinator.Member{Host: name, ID: "0123456789"}, true
				}
			}
			return coordinator.Member{}, false
		},
	}
	defer a.stopAll("test")
	h := a.handler()
	plan, _ := json.Marshal(coordinator.Plan{Run: "r", Nodes: []coordinator.PlanNode{{Host: "x", Ranks: 1}}, Settings: map[string]string{"NCCL_SOCKET_IFNAME": "lo"}})
	text := string(plan)
	for i, c := range []struct {
		who, method, path, body string
		status                  int
		want                    string
	}{
		{"", "GET", "/v1/node", "", 403, "not that of a member"},
		{"eve", "GET", "/v1/node", "", 403, "not that of a member"},
		{"alice", "GET", "/v1/node", "", 200, `"version":"test"`},
		{"alice", "GET", "/", "", 404, ""},
		{"alice", "PUT", "/v1/job", "", 405, ""},
		{"alice", "POST", "/v1/job", "{", 400, "body: "},
		{"alice", "POST", "/v1/job", strings.Repeat(" ", coordinator.MaxBody+1), 400, "too large"},
		{"alice", "POST", "/v1/job", strings.Replace(text, `"r"`, `"../r"`, 1), 400, "not valid"},
		{"alice", "POST", "/v1/job", strings.Replace(text, `"node":0`, `"node":1`, 1), 400, "node 1 of 1"},
		{"alice", "POST", "/v1/job", strings.Replace(text, `"lo"`, `"nosuch"`, 1), 422, "NCCL_SOCKET_IFNAME=nosuch leaves out"},
		{"alice", "DELETE", "/v1/job/r-0", "", 404, "no such job"},
		{"alice", "POST", "/v1/job", text, 200, `"data":{"i":"lo","a":"127.0.0.1"}`},
		{"bob", "POST", "/v1/job", text, 409, "busy with job r-0 of alice (01234567) since "},
		{"alice", "GET", "/v1/node", "", 200, `"job":"r-0"`},
		{"bob", "POST", "/v1/job/r-0/command", `{"seq":1,"kind":"x","body":{}}`, 403, "belongs to alice"},
		{"bob", "DELETE", "/v1/job/r-0", "", 403, "belongs to alice"},
		{"bob", "GET", "/v1/job/r-0/events", "", 403, "belongs to alice"},
		{"alice", "DELETE", "/v1/job/r-1", "", 404, "no such job"},
		{"alice", "POST", "/v1/job/r-0/command", `{"kind":"ping"}`, 204, ""},
		{"alice", "POST", "/v1/job/r-0/command", "", 400, "body: "},
		{"-alice", "GET", "/v1/node", "", 200, ""}, // lost from sight, but has a job here
		{"alice", "DELETE", "/v1/job/r-0", "", 204, ""},
		{"alice", "GET", "/v1/node", "", 403, "not that of a member"}, // left, and has none
		{"bob", "POST", "/v1/job", text, 200, `"job":"r-0"`},
	} {
		who, gone := strings.CutPrefix(c.who, "-")
		if gone {
			members[who] = false
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, as(who, c.method, c.path, c.body))
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%d: %s %s by %s: %d %s; want %d with %q", i, c.method, c.path, c.who, w.Code, w.Body, c.status, c.want)
		}
	}
}

// TestOneReader: the event stream is the owner's life line, so there is one.
func TestOneReader(t *testing.T) {
	p := coordinator.Plan{Run: "r", Nodes: []coordinator.PlanNode{{Ranks: 1}}}
	j, err := startJob("r-0", []string{os.Args[0], RunnerVerb}, p)
	if err != nil {
		t.Fatal(err)
	}
	defer j.stop("test")
	a := &agent{}
	if !j.take() {
		t.Fatal("cannot take a fresh job's events")
	}
	w := httptest.NewRecorder()
	if a.events(w, as("alice", "GET", "/", ""), j); w.Code != http.StatusConflict {
		t.Errorf("a second reader: %d %s", w.Code, w.Body)
	}
}

// TestUnreadEvents: a runner whose events nobody reads is stopped all the same.
func TestUnreadEvents(t *testing.T) {
	p := coordinator.Plan{Run: "r", Nodes: []coordinator.PlanNode{{Ranks: 1}}}
	j, err := startJob("r-0", []string{os.Args[0], RunnerVerb}, p)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 * cap(j.events) {
		if err := j.send(coordinator.Command{Seq: uint64(i + 1), Kind: "x", Body: []byte("{}")}); err != nil {
			t.Fatal(err)
		}
	}
	for deadline := time.Now().Add(5 * time.Second); len(j.events) < cap(j.events); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d events", len(j.events))
		}
	}
	began := time.Now()
	j.stop("test")
	if d := time.Since(began); d > stopPatience+time.Second || !j.finished() {
		t.Errorf("stopping took %s", d)
	}
}

func TestNoRunner(t *testing.T) {
	p := coordinator.Plan{Run: "r", Nodes: []coordinator.PlanNode{{Ranks: 1}}}
	if _, err := startJob("r-0", []string{"/nonexistent/runner"}, p); err == nil || !strings.Contains(err.Error(), "/nonexistent/runner") {
		t.Errorf("%v", err)
	}
}

// TestLargePlan: a plan may be larger than a pipe, and commands come after it.
func TestLargePlan(t *testing.T) {
	p := coordinator.Plan{Run: "r"}
	for i := range 5000 {
		p.Nodes = append(p.Nodes, coordinator.PlanNode{Host: fmt.Sprintf("node-%d.example", i), Addr: "10.0.0.1", Ranks: 8})
	}
	j, err := startJob("r-0", []string{os.Args[0], RunnerVerb}, p)
	if err != nil {
		t.Fatal(err)
	}
	defer j.stop("test")
	if err := j.send(coordinator.Command{Seq: 7, Kind: "x", Body: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	select {
	case e := <-j.events:
		if e.Seq != 7 || e.Kind != coordinator.EventOK || !bytes.Equal(e.Body, []byte("0")) {
			t.Errorf("answer %+v", e)
		}
	case <-time.After(10 * time.Second):
		t.Error("no answer")
	}
}

// An owner that the network no longer reaches frees the node in seconds: its
// connections end when nothing is acknowledged for so long.
func TestListen(t *testing.T) {
	l, err := listen(coordinator.DataAddr{Iface: "lo", Addr: netip.MustParseAddr("127.0.0.1")})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	out, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	in, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	raw, err := in.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	got := 0
	if cerr := raw.Control(func(fd uintptr) { got, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT) }); cerr != nil || err != nil {
		t.Fatal(cerr, err)
	}
	if got != 5000 {
		t.Errorf("what is sent may stay unacknowledged for %d ms, want 5000", got)
	}
}
