package coordinator

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func sample() Member {
	return Member{
		ID: "00112233445566778899aabbccddeeff", Host: "gpu-node-0001.example", Role: RoleWorker, API: netip.MustParseAddrPort("[2001:db8::1]:40001"),
		Fingerprint: Fingerprint{1, 2, 3}, Ranks: 8, Version: "v1.2.3-dirty", Machine: "0123456789abcdef",
		Data: DataAddr{"ib0", netip.MustParseAddr("10.0.0.1")}, Why: "the route to the cluster starts at it", State: StateAlive,
	}
}

func TestMemberTravels(t *testing.T) {
	m := sample()
	for i := range 40 {
		m.Others = append(m.Others, DataAddr{fmt.Sprintf("eth%d", i), netip.AddrFrom4([4]byte{10, 1, 0, byte(i)})})
	}
	b, err := m.encode()
	if err != nil || len(b) > maxMeta {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	got := decodeMember(m.ID, b)
	if len(got.Others) < 3 {
		t.Errorf("only %d other addresses fit", len(got.Others))
	}
	m.Others = m.Others[:len(got.Others)]
	if !reflect.DeepEqual(got, m) {
		t.Errorf("got  %+v\nwant %+v", got, m)
	}
	m.Host, m.Version, m.Why = strings.Repeat("<", 500), strings.Repeat("&", 500), strings.Repeat("é", 500)
	if b, err = m.encode(); err == nil && len(b) > maxMeta {
		t.Errorf("%d bytes", len(b))
	}
}

// TestMemberHostile: what a member says of itself is bounded and printable,
// and what cannot be used says why.
func TestMemberHostile(t *testing.T) {
	good, err := sample().encode()
	if err != nil {
		t.Fatal(err)
	}
	edit := func(old, new string) []byte {
		out := strings.Replace(string(good), old, new, 1)
		if out == string(good) {
			t.Fatalf("no %q in %s", old, good)
		}
		return []byte(out)
	}
	for _, c := range []struct {
		name, want string
		raw        []byte
	}{
		{"empty", "cannot be read", nil},
		{"long", "too long", []byte(strings.Repeat(" ", maxMeta+1))},
		{"not text", "not text", []byte("\xff\xfe{}")},
		{"not JSON", "cannot be read", []byte("{")},
		{"type", "cannot be read", edit(`"n":8`, `"n":"8"`)},
		{"format", "format 9", edit(`"v":1`, `"v":9`)},
		{"ranks", "ranks", edit(`"n":8`, `"n":-1`)},
		{"many ranks", "ranks", edit(`"n":8`, `"n":1000000`)},
		{"role", `unknown role "x[2J"`, edit(`"r":"worker"`, `"r":"x\u001b[2J"`)},
		{"port", "no address", edit(":40001", ":0")},
		{"fingerprint", "fingerprint", edit(`"f":"AQID`, `"f":"`)},
	} {
		m := decodeMember("id\x00", c.raw)
		if !strings.Contains(m.Problem, c.want) || m.ID != "id" || strings.ContainsAny(m.Role+m.Problem, "\x1b\x00\n") {
			t.Errorf("%s: %+v; want a problem with %q", c.name, m, c.want)
		}
	}
	m := decodeMember("id", edit("gpu-node-0001.example", `a\u001b[31m\nb\u202ec`+strings.Repeat("d", 90)))
	if m.Problem != "" || m.Host != "a[31m bc"+strings.Repeat("d", 56) {
		t.Errorf("host %q, problem %q", m.Host, m.Problem)
	}
}

func FuzzDecodeMember(f *testing.F) {
	good, _ := sample().encode()
	f.Add(good)
	f.Fuzz(func(t *testing.T, raw []byte) {
		m := decodeMember("id", raw)
		if len(m.Host) > maxHost || m.Host == "" || m.Problem == "" && (m.Ranks < 0 || m.Ranks > maxRanks) || len(m.Others) > maxMeta {
			t.Errorf("%q: %+v", raw, m)
		}
	})
}

func TestOrder(t *testing.T) {
	var ms []Member
	for _, h := range []string{"gpu10", "gpu2", "a", "gpu02", "gpu1", "gpu1-10", "gpu1-9"} {
		ms = append(ms, Member{Host: h, Role: RoleWorker})
	}
	ms = append(ms, Member{Host: "0", Role: RoleRun}, Member{Host: "gpu1", Role: RoleWorker, Data: DataAddr{Addr: netip.MustParseAddr("10.0.0.1")}})
	sortMembers(ms)
	var got []string
	for _, m := range ms {
		got = append(got, m.Host)
	}
	if want := "a gpu1 gpu1 gpu1-9 gpu1-10 gpu02 gpu2 gpu10 0"; strings.Join(got, " ") != want && strings.Join(got, " ") != strings.Replace(want, "gpu02 gpu2", "gpu2 gpu02", 1) {
		t.Errorf("order %q, want %q", strings.Join(got, " "), want)
	}
	if !ms[2].Data.Addr.IsValid() {
		t.Error("equal hosts are not ordered by address")
	}
}

// TestCheckAddresses: NVIDIA/nccl#913 and PaddlePaddle/Paddle#37951: addresses
// that exist on every machine are refused between machines.
func TestCheckAddresses(t *testing.T) {
	at := func(host, machine, iface, addr string) Member {
		return Member{ID: host + "-id-0000", Host: host, Machine: machine, Data: DataAddr{iface, netip.MustParseAddr(addr)}, Why: "because"}
	}
	self := Member{Machine: "m1"}
	one := []Member{at("a", "m1", "lo", "127.0.0.1"), at("a", "m1", "lo", "127.0.0.1")}
	if err := CheckAddresses(one, self); err != nil {
		t.Errorf("a cluster on one machine: %v", err)
	}
	for _, c := range []struct {
		ms   []Member
		want []string
	}{
		{[]Member{at("a", "m1", "eth0", "10.0.0.1"), at("b", "m2", "lo", "127.0.1.1")}, []string{"node b (b-id-000)", "lo 127.0.1.1", "other machines cannot reach", "--advertise", "NCCL_SOCKET_IFNAME"}},
		{[]Member{at("a", "m2", "docker0", "172.17.0.1"), at("b", "m3", "docker0", "172.17.0.1")}, []string{"nodes a (a-id-000) and b (b-id-000)", "both advertise docker0 172.17.0.1", "--advertise"}},
		{[]Member{at("a", "m2", "lo", "::1")}, []string{"node a", "lo ::1"}},
		{[]Member{at("a", "m2", "eth0", "169.254.1.1")}, []string{"node a", "169.254.1.1"}},
	} {
		err := CheckAddresses(c.ms, self)
		if err == nil || slices.ContainsFunc(c.want, func(w string) bool { return !strings.Contains(err.Error(), w) }) {
			t.Errorf("%v: %v; want %q", c.ms, err, c.want)
		}
	}
	if err := CheckAddresses([]Member{at("a", "m2", "eth0", "10.0.0.1"), at("b", "m2", "eth0", "10.0.0.1"), at("c", "m3", "eth0", "10.0.0.3")}, self); err != nil {
		t.Errorf("two workers on one machine of several: %v", err)
	}
}
