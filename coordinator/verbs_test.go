package coordinator

import (
	"context"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"busbw/reports"
)

// told are answers by node that a test gives, whatever is asked.
type told struct {
	replies any // a slice, one for each node
	asked   []any
}

func (d *told) Do(_ context.Context, _ string, body func(int) any, _ time.Duration) ([]json.RawMessage, error) {
	text, err := json.Marshal(d.replies)
	if err != nil {
		return nil, err
	}
	var out []json.RawMessage
	err = json.Unmarshal(text, &out)
	for i := range out {
		d.asked = append(d.asked, body(i))
	}
	return out, err
}

func rail(name, layer string, mtu int, gbps float64) Rail {
	return Rail{Name: name, Address: "GID 3: 10.0.0.1 v2", Layer: layer, MTU: mtu, LineGBps: &gbps}
}

func verbsSweep(ranks ...int) *Sweep {
	return &Sweep{Nodes: nodes(ranks...), req: request()}
}

// Queue pairs carry data only where every node has them; else the reason is
// said, and kept where somebody has a device.
func TestAgree(t *testing.T) {
	ib, eth := rail("mlx5_0:1", "InfiniBand", 4096, 50), rail("mlx5_0:1", "Ethernet", 4096, 50)
	small := rail("mlx5_0:1", "Ethernet", 1024, 50)
	with := func(here bool, none string, rails ...Rail) OpenReply {
		return OpenReply{RDMA: RDMA{Here: here, None: none, Rails: rails}}
	}
	for _, c := range []struct {
		name  string
		nodes []OpenReply
		verbs bool
		fact  string
		note  string // "" is none
	}{
		{"all have it", []OpenReply{with(true, "", ib), with(true, "", ib)}, true, "link between nodes: verbs; node 1 (nb): mlx5_0:1 GID 3", ""},
		{"nobody has a device", []OpenReply{with(false, "it has no RDMA device"), with(false, "it has no RDMA device")}, false, "link between nodes: tcp (node 0 (na) has no RDMA: it has no RDMA device)", ""},
		{"one has no library", []OpenReply{with(true, "", ib), with(true, "no libibverbs\nat all")}, false, "node 1 (nb) has no RDMA: no libibverbs at all", "between nodes over TCP, not RDMA: node 1 (nb)"},
		{"too few rails", []OpenReply{with(true, "", ib), with(true, "")}, false, "tcp", "node 1 (nb) has no RDMA"},
		{"layers differ", []OpenReply{with(true, "", ib), with(true, "", eth)}, false, "node 1 (nb) is on Ethernet, node 0 (na) on InfiniBand", "not RDMA"},
		{"MTUs differ", []OpenReply{with(true, "", eth), with(true, "", small)}, true, "verbs", "1024 on node 1 (nb), 4096 on node 0 (na); every connection takes the smaller"},
	} {
		s := verbsSweep(1, 1)
		facts := strings.Join(s.agree(c.nodes), "\n")
		notes := strings.Join(s.notes, "\n")
		if (s.verbs != nil) != c.verbs || !strings.Contains(facts, c.fact) || !strings.Contains(notes, c.note) || c.note == "" && notes != "" {
			t.Errorf("%s: verbs %t, facts %q, notes %q", c.name, s.verbs != nil, facts, notes)
		}
	}
	s := verbsSweep(1, 1)
	s.req.Settings["NCCL_IB_TC"] = "106"
	if s.agree([]OpenReply{with(false, "no device"), with(false, "no device")}); len(s.notes) != 1 || s.notes[0] != "NCCL_IB_TC=106 has no effect: data between nodes goes over TCP" {
		t.Errorf("a setting without effect: notes %q", s.notes)
	}
	if facts := verbsSweep(2).agree([]OpenReply{with(false, "there is one node")}); facts != nil {
		t.Errorf("one node: %q", facts)
	}
}

// What queue pairs say goes to the node of the rank that it is for, and to no
// other; a node cannot speak for ranks of another.
func TestJoinRoutes(t *testing.T) {
	s := verbsSweep(2, 1)
	s.verbs = &reports.Verbs{}
	d := &told{replies: []JoinReply{{QPs: 2, MTU: 4096, Attributes: []string{"b", "a"}}, {QPs: 2, MTU: 1024, Attributes: []string{"a"}}}}
	s.session = d
	err := s.join(t.Context(), []CaseReply{{Hellos: []Hello{{0, 2, []byte("x")}, {1, 2, []byte("y")}}}, {Hellos: []Hello{{2, 0, []byte("z")}, {2, 1, []byte("w")}}}})
	if err != nil {
		t.Fatal(err)
	}
	if a, b := d.asked[0].(JoinBody).Hellos, d.asked[1].(JoinBody).Hellos; len(a) != 2 || a[0].From != 2 || len(b) != 2 || b[1].From != 1 {
		t.Errorf("node 0 is told %v, node 1 %v", a, b)
	}
	if v := s.verbs; v.QPs != 2 || v.MTU != 1024 || strings.Join(v.Attributes, "") != "ab" {
		t.Errorf("%+v", v)
	}
	for _, bad := range []Hello{{2, 0, nil}, {0, 3, nil}, {0, -1, nil}, {-1, 0, nil}, {0, 2, make([]byte, maxHello+1)}} {
		if err := s.join(t.Context(), []CaseReply{{Hellos: []Hello{bad}}, {}}); err == nil {
			t.Errorf("node 0 may send from rank %d to rank %d %d bytes", bad.From, bad.To, len(bad.Data))
		}
	}
	d.asked = nil
	if err := s.join(t.Context(), []CaseReply{{}, {}}); err != nil || d.asked != nil {
		t.Errorf("nothing was opened: %v, asked %v", err, d.asked)
	}
}

func TestPortsAddUp(t *testing.T) {
	s := verbsSweep(1, 1)
	s.session = &told{replies: []PortsReply{
		{Moved: []Moved{{"mlx5_0:1", "port_xmit_data", 10, false}, {"mlx5_1:1", "port_xmit_data", 30, false}}},
		{Moved: []Moved{{"mlx5_0:1", "port_xmit_data", 5, false}, {"mlx5_0:1", "link_downed", 0, true}},
			Sent: []Sent{{"GPU0", 90e9, 0.4, 450}, {"GPU1", 180e9, 0.4, 0}, {"GPU2", 90e9, 0, 450}, {"GPU3", 135e9, 0.4, 450}}, Unread: "the driver is gone"},
	}}
	var res reports.Result
	err := s.ports(t.Context(), &res)
	got := res.Counters
	if err != nil || len(got) != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	if len(res.Notes) != 1 || res.Notes[0] != "node 1 (nb): what its GPUs counted is not known: the driver is gone" {
		t.Errorf("notes %q", res.Notes)
	}
	if u := res.NVLink; u == nil || u.Where != "node 1 (nb) GPU1" || u.GBps != 450 || u.Share != nil {
		t.Errorf("busiest: %+v", u)
	}
	if u := s.busiest([]PortsReply{{Sent: []Sent{{"GPU3", 135e9, 0.4, 450}}}}); u == nil || u.Share == nil || *u.Share != 0.75 {
		t.Errorf("busiest: %+v", u)
	}
	if u := s.busiest([]PortsReply{{}, {}}); u != nil {
		t.Errorf("no GPU counts, and the busiest is %+v", u)
	}
	if want := (reports.Counter{Name: "link_downed", Most: "node 1 (nb) mlx5_0:1", Saturated: true}); got[0] != want {
		t.Errorf("%+v, want %+v", got[0], want)
	}
	if want := (reports.Counter{Name: "port_xmit_data", Add: 45, Devices: 3, Most: "node 0 (na) mlx5_1:1", MostAdd: 30}); got[1] != want {
		t.Errorf("%+v, want %+v", got[1], want)
	}
}

// A 400 Gb/s RoCE port at MTU 4096 carries 392 Gb/s of payload; two ranks on
// one port share it.
func TestRailRate(t *testing.T) {
	eth := rail("mlx5_0:1", "Ethernet", 4096, 50)
	if g, _ := railRate([]Rail{eth, eth}, 4096); math.Abs(g-49.0) > 0.05 {
		t.Errorf("one RoCE port: %.2f GB/s, want 49.0", g)
	}
	if g, how := railRate([]Rail{rail("a:1", "InfiniBand", 4096, 50), rail("b:1", "InfiniBand", 4096, 25)}, 2048); math.Abs(g-75*2048/2074.0) > 1e-9 || !strings.Contains(how, "2 RDMA ports × 98.7 % payload at MTU 2048") {
		t.Errorf("two InfiniBand ports: %.2f GB/s, %s", g, how)
	}
	if g, what := railRate([]Rail{{Name: "rxe0:1", Layer: "Ethernet", MTU: 4096}}, 4096); g != 0 || what != "rxe0:1" {
		t.Errorf("a port without a rate: %g, %q", g, what)
	}
}

func TestRailsLimit(t *testing.T) {
	s := verbsSweep(1, 1)
	s.verbs, s.machine.Shared = &reports.Verbs{}, 1
	replies := []OpenReply{{RDMA: RDMA{Rails: []Rail{rail("a:1", "InfiniBand", 4096, 50)}}}, {RDMA: RDMA{Rails: []Rail{rail("a:1", "InfiniBand", 4096, 25)}}}}
	facts := s.wire(replies, nil)
	if s.machine.WireName != "NIC line rate" || math.Abs(s.machine.Wire-2*25*4096/4122.0) > 1e-9 || !strings.Contains(facts[0], "slowest on nb") {
		t.Errorf("%+v, %q", s.machine, facts)
	}
	s.machine = Machine{Shared: 2}
	if facts := s.wire(replies, nil); s.machine.Wire != 0 || !strings.Contains(facts[0], "no limit") {
		t.Errorf("nodes of one machine: %+v, %q", s.machine, facts)
	}
}
