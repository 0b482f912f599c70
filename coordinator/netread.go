package coordinator

import (
	"bufio"
	"cmp"
	"fmt"
	"hash/fnv"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Interfaces reads this machine's network interfaces in the kernel's order.
func Interfaces() ([]Interface, error) {
	ifs, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("network interfaces: %w", err)
	}
	slices.SortFunc(ifs, func(a, b net.Interface) int { return cmp.Compare(a.Index, b.Index) })
	root := os.DirFS("/")
	routes := defaultRoutes(root)
	var out []Interface
	for _, i := range ifs {
		x := Interface{Name: i.Name, Up: i.Flags&net.FlagUp != 0, Default: routes[i.Name]}
		x.Kind, x.Ports = ifaceKind(root, i.Name)
		if i.Flags&net.FlagLoopback != 0 {
			x.Kind = "loopback"
		}
		addrs, err := i.Addrs()
		if err != nil {
			continue // it went away since it was listed
		}
		for _, a := range addrs {
			if n, ok := a.(*net.IPNet); ok {
				if ip, ok := netip.AddrFromSlice(n.IP); ok {
					ones, _ := n.Mask.Size()
					x.Addrs = append(x.Addrs, netip.PrefixFrom(ip.Unmap(), ones))
				}
			}
		}
		out = append(out, x)
	}
	return out, nil
}

// ifaceKind tells what an interface is from /sys/class/net (kernel
// Documentation/ABI/testing/sysfs-class-net): DEVTYPE in uevent, the hardware
// type of if_arp.h, and whether a device stands behind it.
func ifaceKind(root fs.FS, name string) (kind string, ports []string) {
	dir := path.Join("sys/class/net", name)
	uevent, _ := fs.ReadFile(root, dir+"/uevent")
	devtype := ""
	for line := range strings.Lines(string(uevent)) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "DEVTYPE="); ok {
			devtype = v
		}
	}
	arp, _ := fs.ReadFile(root, dir+"/type")
	hw, _ := strconv.Atoi(strings.TrimSpace(string(arp)))
	switch {
	case hw == 772: // ARPHRD_LOOPBACK
		return "loopback", nil
	case devtype == "bridge":
		entries, _ := fs.ReadDir(root, dir+"/brif")
		for _, e := range entries {
			ports = append(ports, e.Name())
		}
		return "bridge", ports
	case devtype == "bond" || devtype == "vlan":
		return devtype, nil
	case slices.Contains([]string{"vxlan", "geneve", "gretap", "ip6gretap", "erspan", "wireguard"}, devtype), tunnelTypes(hw), exists(root, dir+"/tun_flags"):
		return "tunnel", nil
	case exists(root, dir+"/device"):
		return "physical", nil
	}
	return "virtual", nil
}

// tunnelTypes are ARPHRD_TUNNEL, TUNNEL6, SIT, IPGRE, IP6GRE, PPP and NONE (tun, WireGuard).
func tunnelTypes(hw int) bool {
	return slices.Contains([]int{768, 769, 776, 778, 823, 512, 0xfffe}, hw)
}

func exists(root fs.FS, name string) bool {
	_, err := fs.Stat(root, name)
	return err == nil
}

// defaultRoutes names the interfaces with a default route, from
// /proc/net/route (interface destination …, hexadecimal) and
// /proc/net/ipv6_route (destination length … interface). The kernel keeps
// an IPv6 default route that rejects on lo; it is no route.
func defaultRoutes(root fs.FS) map[string]bool {
	out := map[string]bool{}
	fields(root, "proc/net/route", func(f []string) {
		if len(f) > 7 && f[1] == "00000000" && f[7] == "00000000" {
			out[f[0]] = true
		}
	})
	fields(root, "proc/net/ipv6_route", func(f []string) {
		if len(f) == 10 && strings.Trim(f[0], "0") == "" && f[1] == "00" && f[9] != "lo" {
			out[f[9]] = true
		}
	})
	return out
}

func fields(root fs.FS, name string, line func([]string)) {
	f, err := root.Open(name)
	if err != nil {
		return
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		line(strings.Fields(s.Text()))
	}
}

// towards is the local address from which packets to one of the seeds would
// leave; nothing is sent.
func towards(seeds []string) netip.Addr {
	for _, s := range seeds {
		c, err := net.Dial("udp", s)
		if err != nil {
			continue
		}
		a := c.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap()
		c.Close()
		return a.WithZone("")
	}
	return netip.Addr{}
}

// MachineID is the same for processes that share a kernel and a network
// namespace, so for those, and only those, that share loopback.
func MachineID() string {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	ns, _ := os.Readlink("/proc/self/ns/net")
	h := fnv.New64a()
	h.Write(boot)
	h.Write([]byte(ns))
	return strconv.FormatUint(h.Sum64(), 16)
}
