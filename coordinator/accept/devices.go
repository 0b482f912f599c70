package accept

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"busbw/reports"
)

// deviceScope is the scope of results that are of one device of a node.
const deviceScope = "devices"

// deviceTests are the tests of a node's own devices: the operation of their
// results, the id of their findings, and what they are called.
var deviceTests = []struct{ op, id, name string }{
	{"nic_loopback", "nic-loopback", "NIC loopback"},
	{"host_to_device", "gpu-copy", "copies between host and GPU"},
	{"device_to_host", "gpu-copy", "copies between host and GPU"},
	{"gpu_to_gpu", "gpu-peer-copy", "copies between GPUs"},
}

// inGPU says whether a result's buffers are in a GPU's memory.
func inGPU(memory string) bool { return memory != "" && memory != "host" }

// memoryIs says whether a limit's memory ("device", "host"; "": any) is that of
// a result.
func memoryIs(limit, result string) bool {
	return limit == "" || (limit == "device") == inGPU(result)
}

// deviceOf is the device that a result of the scope devices is of.
func deviceOf(r *reports.Result) string {
	s := strings.ReplaceAll(r.Op, "_", " ") + ", " + r.Config["device"]
	if r.Op == "nic_loopback" && inGPU(r.Memory) {
		s += ", GPU memory"
	}
	return s
}

// GBps is what a device reached, by its median transfer; 0 where nothing is known.
func deviceGBps(r *reports.Result) float64 {
	if m := reports.Median(r.Seconds); r.Error == "" && len(r.Seconds) > 0 && m > 0 {
		return float64(r.Bytes) / m / 1e9
	}
	return 0
}

// Devices judges tests of nodes' own devices by a profile's limits (nil: none)
// and by each other. A device that is slow by itself is its node's fault:
// nothing outside takes part.
func Devices(p *Profile, results []reports.Result) (out []reports.Finding) {
	alike := map[string][]*reports.Result{} // the same test of the same kind of device
	for i := range results {
		if r := &results[i]; r.Scope == deviceScope && len(r.Hosts) == 1 {
			alike[twin(r)] = append(alike[twin(r)], r)
		}
	}
	for i := range results {
		r := &results[i]
		if r.Scope != deviceScope || len(r.Hosts) != 1 {
			continue
		}
		if f, ok := deviceFinding(p, r, alike[twin(r)]); ok {
			out = append(out, f)
		}
	}
	return out
}

// speed is a bandwidth for people, both ways in which they give it.
func speed(gbps float64) string {
	if gbps < 1 {
		return fmt.Sprintf("%.3g GB/s (%.3g Gb/s)", gbps, 8*gbps)
	}
	return fmt.Sprintf("%.2f GB/s (%.0f Gb/s)", gbps, 8*gbps)
}

// twin is the same for results that should be equal.
func twin(r *reports.Result) string {
	line := 0.0
	if r.Limit != nil {
		line = r.Limit.GBps
	}
	return fmt.Sprint(r.Op, inGPU(r.Memory), r.Bytes, r.Config["kind"], line)
}

// plausible is the share of its line rate that a port must reach against
// itself to go without a remark: half of a slot's lanes, or a slot of the
// generation before, leave less.
const plausible = 0.6

func deviceFinding(p *Profile, r *reports.Result, twins []*reports.Result) (f reports.Finding, ok bool) {
	for _, t := range deviceTests {
		if t.op == r.Op {
			f.ID, ok = t.id, true
		}
	}
	v := deviceGBps(r)
	f.Node, f.Subject, f.Verdict, f.Got = r.Hosts[0], deviceOf(r), reports.Pass, speed(v)
	f.Evidence = []reports.Evidence{{From: "transfers of " + Size(r.Bytes).String(), Value: fmt.Sprintf("median of %d", len(r.Seconds))}}
	var vs, dev []float64
	for _, t := range twins {
		if x := deviceGBps(t); x > 0 {
			vs = append(vs, x)
		}
	}
	if v == 0 {
		f.Verdict, f.Got, f.Want, f.Evidence = reports.Unknown, cmp.Or(r.Error, "no time"), "a measurement", nil
		if len(vs) > 0 {
			f.Verdict, f.Want = reports.Fail, fmt.Sprintf("a transfer, as on %d of %d such devices", len(vs), len(twins))
			f.Remedy = "it fails by itself, with nothing outside its node: look at the device, its driver and its slot (busbw check)"
		}
		return f, ok
	}
	mid := reports.Median(vs)
	for _, x := range vs {
		dev = append(dev, max(x-mid, mid-x))
	}
	reach := max(oddShare*mid, oddDev*1.4826*reports.Median(dev))
	const remedy = "no cable takes part in this: look at the slot (speed, width, what shares it), payload size, IOMMU and NUMA node of the device"
	limit := deviceLimit(p, r)
	switch {
	case limit != nil && v < limit.value():
		f.Verdict, f.Want, f.Remedy = reports.Fail, limit.want(), remedy
	case len(vs) >= fewest && reach <= 0.25*mid && v < mid-reach:
		f.Verdict, f.Remedy = reports.Fail, remedy
		f.Want = fmt.Sprintf("at least %.2f GB/s: the median of %d such devices is %.2f GB/s", mid-reach, len(vs), mid)
	case limit != nil && v < limit.value()*(1+band):
		f.Verdict, f.Want, f.Remedy = reports.Warn, limit.want(), "it is within 5 % above the limit: compare with its twins"
	case limit != nil:
		f.Want = limit.want()
	case r.Limit != nil && v < plausible*r.Limit.GBps:
		f.Verdict, f.Remedy = reports.Warn, remedy
		f.Want = fmt.Sprintf("at least %.0f %% of the port's %.0f Gb/s", 100*plausible, 8*r.Limit.GBps)
	case len(vs) >= fewest && reach > 0.25*mid:
		f.Verdict, f.Want = reports.Unknown, agreeing(vs, reach/mid)
	case len(vs) >= fewest:
		f.Want = fmt.Sprintf("at least %.2f GB/s: the median of %d such devices is %.2f GB/s", mid-reach, len(vs), mid)
	default:
		f.Want = fmt.Sprintf("no limit is known, and %d such devices are no measure of each other", len(vs))
	}
	return f, ok
}

// deviceLimit is the profile's limit for such a test; nil without one.
func deviceLimit(p *Profile, r *reports.Result) *Limit {
	if p == nil {
		return nil
	}
	i := slices.IndexFunc(p.Limits, func(l Limit) bool { return l.ofDevice(r) })
	if i < 0 {
		return nil
	}
	return &p.Limits[i]
}

// ofDevice says whether the limit is for such a test of a device.
func (l *Limit) ofDevice(r *reports.Result) bool {
	return r.Scope == deviceScope && l.Test == strings.ReplaceAll(r.Op, "_", " ") && memoryIs(l.Memory, r.Memory) && r.Bytes >= int64(l.Bytes) && l.AtLeast > 0
}

// undevised says of each node which tests of its own devices have nothing to
// test, and which of them there should have been.
func (in *Input) undevised() (out []reports.Finding) {
	for _, t := range in.Topologies {
		rdma := slices.ContainsFunc(t.NICs, func(n reports.NIC) bool { return n.RDMA })
		out = append(out, in.missing(t.Node, "nic_loopback", rdma, t.NoNICs)...)
		why := ""
		if len(t.GPUs) == 0 {
			why = t.NoGPUs
		}
		out = append(out, in.missing(t.Node, "host_to_device", len(t.GPUs) > 0, why)...)
	}
	return out
}

// WriteDevices says for people what devices reached, and which of them are odd.
func WriteDevices(out io.Writer, results []reports.Result, findings []reports.Finding) error {
	var b strings.Builder
	var order []string
	by := map[string][]float64{}
	name := map[string]string{}
	for i := range results {
		r := &results[i]
		if r.Scope != deviceScope || r.Op == "gpu_to_gpu" && deviceGBps(r) == 0 {
			continue
		}
		k := twin(r)
		if r.Op == "gpu_to_gpu" { // one line for all pairs of GPUs
			k = r.Op
		}
		if by[k] == nil {
			order, name[k] = append(order, k), strings.ReplaceAll(r.Op, "_", " ")
			if inGPU(r.Memory) && r.Op == "nic_loopback" {
				name[k] += " in GPU memory"
			}
			by[k] = []float64{}
		}
		if v := deviceGBps(r); v > 0 {
			by[k] = append(by[k], v)
		}
	}
	for _, k := range order {
		if vs := by[k]; len(vs) > 0 {
			fmt.Fprintf(&b, "\n%s: %.2f GB/s in the median of %d, %.2f to %.2f", name[k], reports.Median(vs), len(vs), slices.Min(vs), slices.Max(vs))
		}
	}
	for _, f := range ranked(findings) {
		if f.Verdict != reports.Pass {
			fmt.Fprintf(&b, "\n%s  %s %s: %s, want %s", strings.ToUpper(string(f.Verdict)), oneLine(f.Node), oneLine(f.Subject), oneLine(f.Got), oneLine(f.Want))
		}
	}
	if b.Len() > 0 {
		b.WriteByte('\n')
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// HaveDevices says whether any of the nodes has, or may have, what tests of
// devices measure.
func HaveDevices(ts []reports.Topology) bool {
	return slices.ContainsFunc(ts, func(t reports.Topology) bool {
		return t.NoNICs != "" || len(t.GPUs) > 0 || slices.ContainsFunc(t.NICs, func(n reports.NIC) bool { return n.RDMA })
	})
}

// missing is a finding where a node has no result of a test: not applicable
// where it has no such device.
func (in *Input) missing(node, op string, has bool, unknown string) []reports.Finding {
	for _, r := range in.Results {
		if r.Scope == deviceScope && r.Op == op && slices.Contains(r.Hosts, node) {
			return nil
		}
	}
	f := reports.Finding{Node: node, Verdict: reports.NA, Got: "no such device"}
	for _, t := range deviceTests {
		if t.op == op {
			f.ID, f.Subject = t.id, t.name
		}
	}
	why := cmp.Or(in.NoDevices[node][op], "not measured")
	switch {
	case has:
		f.Verdict, f.Got = reports.Unknown, why
	case unknown != "":
		f.Verdict, f.Got = reports.Unknown, unknown
	}
	return []reports.Finding{f}
}
