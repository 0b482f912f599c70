package rdma

import (
	"io/fs"
	"path"
	"strconv"
)

// Counters are a port's counters by name, those of counters/ and those of
// hw_counters/ ("hw_counters/out_of_sequence"). What a machine does not count
// ("N/A (no PMA)") is absent.
type Counters map[string]uint64

// ReadCounters reads the counters of a device's port.
func ReadCounters(root fs.FS, device string, port int) (Counters, error) {
	out := Counters{}
	base := path.Join(infiniband, device, "ports", strconv.Itoa(port))
	for _, group := range []struct{ dir, prefix string }{
		{path.Join(base, "counters"), ""},
		{path.Join(base, "hw_counters"), "hw_counters/"},
		{path.Join(infiniband, device, "hw_counters"), "hw_counters/"}, // older kernels: of the device
	} {
		names, err := list(root, group.dir)
		if err != nil {
			return nil, err
		}
		for _, n := range names {
			if n == "lifespan" { // how long values are cached, ms: no counter
				continue
			}
			if v, err := strconv.ParseUint(word(root, group.dir, n), 10, 64); err == nil {
				out[group.prefix+n] = v
			}
		}
	}
	return out, nil
}

// Delta is what a counter did during a run. A saturated counter (stuck at the
// most that its width holds) says nothing.
type Delta struct {
	Name      string
	Add       uint64
	Saturated bool
}

// narrow are the PortCounters that stop at their greatest value instead of
// wrapping (InfiniBand specification 16.1.3.5, PortCounters attribute).
var narrow = []struct {
	name string
	bits uint
}{
	{"symbol_error", 16}, {"link_error_recovery", 8}, {"link_downed", 8}, {"port_rcv_errors", 16}, {"port_rcv_remote_physical_errors", 16},
	{"port_rcv_switch_relay_errors", 16}, {"port_xmit_discards", 16}, {"port_xmit_constraint_errors", 8}, {"port_rcv_constraint_errors", 8},
	{"local_link_integrity_errors", 4}, {"excessive_buffer_overrun_errors", 4}, {"VL15_dropped", 16}, {"port_xmit_wait", 32},
}

// Changed lists the counters that moved between two readings, and those that
// are saturated, in the order of their names. A counter that went backwards
// was cleared: all that it shows is new.
func (before Counters) Changed(after Counters) []Delta {
	var out []Delta
	for _, name := range sortedKeys(after) {
		b, ok := before[name]
		a := after[name]
		d := Delta{Name: name, Add: a - b}
		if a < b {
			d.Add = a
		}
		d.Saturated = b == a && Saturated(name, a)
		if ok && (d.Add > 0 || d.Saturated) {
			out = append(out, d)
		}
	}
	return out
}

// Saturated says whether a counter stands at the most that its width holds.
func Saturated(name string, v uint64) bool {
	for _, n := range narrow {
		if n.name == name {
			return v == 1<<n.bits-1
		}
	}
	return false
}
