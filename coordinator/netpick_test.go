package coordinator

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

// TestPick plays testdata/net/*.txt: interfaces, then questions ("> …") with
// the choice and what was passed over below each.
//
//	NAME KIND [down] [default] [ports=A,B] ADDRESS …
//	> [names=NCCL_SOCKET_IFNAME] [family=…] [advertise=IP] [toward=IP]
func TestPick(t *testing.T) {
	files, err := filepath.Glob("testdata/net/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no fixtures", err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			got := picks(t, string(want))
			if *update {
				if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != string(want) {
				t.Errorf("%s: got\n%s", name, got)
			}
		})
	}
}

func picks(t *testing.T, script string) string {
	var b strings.Builder
	var ifs []Interface
	for line := range strings.Lines(script) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "  ") {
			continue // an answer, made anew
		}
		fmt.Fprintln(&b, line)
		switch {
		case line == "":
			ifs = nil
		case line[0] == '#':
		case line[0] == '>':
			c, err := Pick(ifs, wanted(t, line[1:]))
			if err != nil {
				fmt.Fprintf(&b, "  error: %v\n", err)
				continue
			}
			fmt.Fprintf(&b, "  %s (%s)\n", c.DataAddr, c.Why)
			for _, o := range c.Others {
				fmt.Fprintf(&b, "  also %s\n", o)
			}
			for _, p := range c.Passed {
				fmt.Fprintf(&b, "  not %s\n", p)
			}
		default:
			ifs = append(ifs, iface(t, line))
		}
	}
	return b.String()
}

func iface(t *testing.T, line string) Interface {
	words := strings.Fields(line)
	i := Interface{Name: words[0], Kind: words[1], Up: true}
	for _, w := range words[2:] {
		ports, isPorts := strings.CutPrefix(w, "ports=")
		switch {
		case w == "down":
			i.Up = false
		case w == "default":
			i.Default = true
		case isPorts:
			i.Ports = strings.Split(ports, ",")
		default:
			i.Addrs = append(i.Addrs, netip.MustParsePrefix(w))
		}
	}
	return i
}

func wanted(t *testing.T, line string) (w Want) {
	for _, f := range strings.Fields(line) {
		k, v, _ := strings.Cut(f, "=")
		switch k {
		case "names":
			w.Names = v
		case "family":
			w.Family = v
		case "advertise":
			w.Advertise = netip.MustParseAddr(v)
		case "toward":
			w.Toward = netip.MustParseAddr(v)
		default:
			t.Fatalf("fixture: %q", f)
		}
	}
	return w
}

// TestIfaceKind reads the files of /sys and /proc that tell interfaces apart.
func TestIfaceKind(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	root := fstest.MapFS{
		"sys/class/net/lo/type":                file("772\n"),
		"sys/class/net/eno1/type":              file("1\n"),
		"sys/class/net/eno1/device/vendor":     file("0x8086\n"),
		"sys/class/net/br0/uevent":             file("DEVTYPE=bridge\nINTERFACE=br0\n"),
		"sys/class/net/br0/type":               file("1\n"),
		"sys/class/net/br0/brif/eno1/state":    file("3\n"),
		"sys/class/net/bond0/uevent":           file("DEVTYPE=bond\n"),
		"sys/class/net/eno1.42/uevent":         file("DEVTYPE=vlan\n"),
		"sys/class/net/flannel.1/uevent":       file("DEVTYPE=vxlan\n"),
		"sys/class/net/wg0/uevent":             file("DEVTYPE=wireguard\n"),
		"sys/class/net/ip6tnl0/type":           file("769\n"),
		"sys/class/net/tun0/type":              file("65534\n"),
		"sys/class/net/tap0/tun_flags":         file("0x1002\n"),
		"sys/class/net/veth0/type":             file("1\n"),
		"sys/class/net/ib0/type":               file("32\n"),
		"sys/class/net/ib0/device/infiniband/": &fstest.MapFile{Mode: 0o755 | os.ModeDir},
		"proc/net/route":                       file("Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\nbr0\t00000000\t0101A8C0\t0003\t0\t0\t0\t00000000\t0\nib0\t0000000A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\n"),
		"proc/net/ipv6_route":                  file("00000000000000000000000000000000 00 00000000000000000000000000000000 00 fe800000000000000000000000000001 00000400 1 0 00000003 bond0\n00000000000000000000000000000000 00 00000000000000000000000000000000 00 00000000000000000000000000000000 ffffffff 1 0 00200200 lo\n"),
	}
	for name, want := range map[string]string{
		"lo": "loopback", "eno1": "physical", "br0": "bridge", "bond0": "bond", "eno1.42": "vlan", "flannel.1": "tunnel", "wg0": "tunnel",
		"ip6tnl0": "tunnel", "tun0": "tunnel", "tap0": "tunnel", "veth0": "virtual", "ib0": "physical", "gone": "virtual",
	} {
		if got, _ := ifaceKind(root, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if _, ports := ifaceKind(root, "br0"); len(ports) != 1 || ports[0] != "eno1" {
		t.Errorf("ports of br0: %q", ports)
	}
	if got := fmt.Sprint(defaultRoutes(root)); got != "map[bond0:true br0:true]" {
		t.Errorf("default routes: %s", got)
	}
}

// TestThisMachine: whatever machine the tests run on has a loopback.
func TestThisMachine(t *testing.T) {
	ifs, err := Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range ifs {
		if i.Kind == "loopback" && len(i.Addrs) > 0 && i.Addrs[0].Addr().IsLoopback() {
			return
		}
	}
	t.Errorf("no loopback in %+v", ifs)
}
