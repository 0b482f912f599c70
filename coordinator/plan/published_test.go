package plan

import (
	"fmt"
	"testing"

	"busbw/collectives"
)

// published are all-reduce times, computed from the busbw that others published
// for clusters whose description they gave. NVLink is GB/s a GPU each way (for
// GB200 what one rack was measured to reach), the NIC's 50 GB/s a GPU.
var published = []struct {
	name      string
	domains   int
	perDomain int
	nvlink    float64
	bytes     int64
	seconds   float64
	bounds    bool // within max(T_in, T_out) to T_in + T_out at full rates
	// Within what the description predicts with default efficiencies for rings over
	// all NICs, which is what NCCL does on nodes of 8, and for the hierarchy.
	rails, hierarchical bool
}{
	{"B200 4×8, 16 GiB", 4, 8, 900, 16 << 30, 87.2e-3, true, true, true},
	{"B200 4×8, 4 GiB", 4, 8, 900, 4 << 30, 22.05e-3, true, true, true},
	{"B200 4×8, 1 GiB", 4, 8, 900, 1 << 30, 5.75e-3, true, true, false},
	{"B200 4×8, 256 MiB", 4, 8, 900, 256 << 20, 2.27e-3, false, false, false},
	{"H200 4×8, 4 GiB", 4, 8, 450, 4 << 30, 22.8e-3, true, true, false},
	{"H100 2×8, 16 GiB", 2, 8, 450, 16 << 30, 68.4e-3, true, false, false},
	{"H100 8×8 with SHARP, 8 GiB", 8, 8, 450, 8 << 30, 43.7e-3, true, true, true},
	{"GB200 2×72, 16 GiB", 2, 72, 839, 16 << 30, 42.1e-3, true, false, false},
	{"GB200 20×72, 16 GiB", 20, 72, 839, 16 << 30, 84.6e-3, false, false, false},
}

// Which published times lie within the bounds of the hierarchy, and which within
// the model's interval: docs/plan.md says the same, and why the rest do not.
func TestPublishedTables(t *testing.T) {
	for _, c := range published {
		g, k, s := float64(c.perDomain), float64(c.domains), float64(c.bytes)
		in, out := 2*(g-1)/g*s/c.nvlink/1e9, 2*(k-1)/k*s/g/50e9
		if inside := c.seconds >= max(in, out) && c.seconds <= in+out; inside != c.bounds {
			t.Errorf("%s: %.3g s, bounds %.3g to %.3g s: inside is %t", c.name, c.seconds, max(in, out), in+out, inside)
		}
		if c.bytes > 4<<30 && testing.Short() {
			continue
		}
		text := fmt.Sprintf("nodes: %d\ngpus_per_node: %d\nnvlink: {gb_per_s: %g}\nnic: {gb_per_s: 50}\n", c.domains, c.perDomain, c.nvlink)
		if c.perDomain == 72 { // 839 is no link rate but what rings reach
			text = fmt.Sprintf("nodes: %d\ngpus_per_node: %d\nnvlink: {gb_per_s: %g, efficiency: 1}\nnic: {gb_per_s: 50}\nchunk_bytes: 4194304\n", c.domains, c.perDomain, c.nvlink)
		}
		m := mustRead(t, text).Described()
		for name, want := range map[string]bool{"rails": c.rails, "hierarchical": c.hierarchical} {
			if name == "rails" && c.perDomain == 72 {
				continue // a ring through 1440 ranks, of no use to anybody
			}
			study, err := m.study(collectives.AllReduce, name, c.bytes, c.domains)
			if err != nil {
				t.Fatal(err)
			}
			got, err := study.times([]simulation{{e: best}, {e: middle}, {e: worst}})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s: measured %.4g ms, bounds %.4g to %.4g ms, %s %.4g (%.4g to %.4g) ms", c.name, c.seconds*1e3, max(in, out)*1e3, (in+out)*1e3, name, got[1]*1e3, got[0]*1e3, got[2]*1e3)
			if inside := c.seconds >= got[0] && c.seconds <= got[2]; inside != want {
				t.Errorf("%s: %.4g s, %s %.4g to %.4g s: inside is %t", c.name, c.seconds, name, got[0], got[2], inside)
			}
		}
	}
}
