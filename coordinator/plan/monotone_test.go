package plan

import (
	"strings"
	"testing"

	"busbw/collectives"
)

// layouts are descriptions whose numbers are known exactly, so that a prediction
// is one simulation.
var layouts = map[string]string{
	"rails":  "nodes: 4\ngpus_per_node: 4\nnvlink: {gb_per_s: 450, efficiency: 0.8, latency_us: 2}\nnic: {gb_per_s: 50, efficiency: 0.9, latency_us: 6, rail_optimized: true}\n",
	"flat":   "nodes: 4\ngpus_per_node: 4\nnvlink: {gb_per_s: 450, efficiency: 0.8, latency_us: 0.5}\nnic: {gb_per_s: 50, efficiency: 0.9, latency_us: 1}\n",
	"shared": "nodes: 4\ngpus_per_node: 4\nnics_per_node: 1\nnvlink: {gb_per_s: 100, efficiency: 1, latency_us: 2}\nnic: {gb_per_s: 1.2, efficiency: 1, latency_us: 30}\n",
}

// likely is how long a case takes with all numbers in the middle, s, and in how
// many pieces; 0 where that takes too many steps for a test.
func likely(t *testing.T, text string, op collectives.Op, algorithm string, bytes int64, nodes int) (seconds float64, pieces int) {
	t.Helper()
	m := mustRead(t, text).Described()
	s, err := m.study(op, algorithm, bytes, nodes)
	if err != nil {
		t.Fatal(err)
	}
	f, err := m.fabric(op, algorithm, nodes, middle)
	if err != nil {
		t.Fatal(err)
	}
	if steps, err := s.steps(max(s.few, s.pieces), f); err != nil || steps > 100_000 {
		return 0, 0
	}
	seconds, err = s.time(middle, nil)
	if err != nil {
		t.Fatal(err)
	}
	return seconds, s.pieces
}

// every calls f with every operation and algorithm.
func every(f func(op collectives.Op, algorithm string)) {
	for _, op := range collectives.Ops() {
		for _, algorithm := range collectives.Algorithms(op) {
			f(op, algorithm)
		}
	}
}

// steady are numbers of nodes among which an algorithm does the same: halving,
// doubling and trees take another course where they are no power of two, and
// rails another way round where they are odd.
func steady(algorithm string) [][]int {
	switch algorithm {
	case "halving", "doubling", "tree", "binomial":
		return [][]int{{1, 2, 4, 8, 16}}
	case "rails":
		return [][]int{{1, 2, 4, 6, 8, 12, 16}, {1, 3, 5, 7, 9, 15}}
	}
	return [][]int{{1, 2, 3, 4, 5, 6, 7, 8, 12, 16}}
}

// slack is by how much a prediction may go the wrong way.
const slack = 0.01

// More nodes are never faster.
func TestMoreNodesAreNotFaster(t *testing.T) {
	if testing.Short() {
		t.Skip("thousands of predictions: not in -short")
	}
	const size = 27720 * 64
	cases := 0
	for name, text := range layouts {
		every(func(op collectives.Op, algorithm string) {
			for _, size := range []int64{size / 64, size, 16 * size, 1024 * size} {
				for _, all := range steady(algorithm) {
					last, at := 0.0, 0
					for _, nodes := range all {
						now, pieces := likely(t, text, op, algorithm, Size(op, size, 4*nodes), nodes)
						if pieces == 0 {
							continue
						}
						cases++
						// Blocks end at cache lines: fewer nodes may move up to a line a block more.
						if now < last*(1-slack)/(1+64*4*float64(nodes)/float64(size)) {
							t.Errorf("%s: %s %s of %d B takes %.6g s on %d nodes and %.6g s on %d", name, op, algorithm, size, last, at, now, nodes)
						}
						last, at = now, nodes
					}
				}
			}
		})
	}
	t.Logf("%d predictions", cases)
}

// More bytes are never faster in as many pieces. (In more, they may use more NICs,
// or flow where fewer bytes wait.)
func TestMoreBytesAreNotFaster(t *testing.T) {
	if testing.Short() {
		t.Skip("thousands of predictions: not in -short")
	}
	cases := 0
	for name, text := range layouts {
		every(func(op collectives.Op, algorithm string) {
			for _, nodes := range []int{1, 2, 3, 8} {
				last, at, cut := 0.0, int64(0), 0
				for size := int64(1 << 10); size <= 1<<31; size = size * 9 / 4 {
					now, pieces := likely(t, text, op, algorithm, Size(op, size, 4*nodes), nodes)
					if pieces == 0 {
						continue
					}
					cases++
					if now < last*(1-slack) && pieces == cut {
						t.Errorf("%s: %s %s on %d nodes takes %.6g s for %d B and %.6g s for %d B", name, op, algorithm, nodes, last, at, now, size)
					}
					last, at, cut = now, size, pieces
				}
			}
		})
	}
	t.Logf("%d predictions", cases)
}

// More NICs are never slower, nor are wider uplinks.
func TestMoreNetworkIsNotSlower(t *testing.T) {
	if testing.Short() {
		t.Skip("thousands of predictions: not in -short")
	}
	const nodes = 8
	compare := func(name string, change []string) {
		every(func(op collectives.Op, algorithm string) {
			for _, size := range []int64{64 << 10, 4 << 20, 256 << 20} {
				last := 0.0
				for _, field := range change { // from the slow end on
					text := layouts[name]
					if strings.HasPrefix(field, "nics_per_node") {
						text = strings.Replace(text, "nics_per_node: 1\n", "", 1)
					}
					now, _ := likely(t, text+field, op, algorithm, Size(op, size, 4*nodes), nodes)
					// Which of two messages that share a NIC goes first may be another: that can cost some.
					if last > 0 && now > last*1.05 {
						t.Errorf("%s: %s %s of %d B takes %.6g s with %q, and %.6g s with less", name, op, algorithm, size, now, field, last)
					}
					last = now
				}
			}
		})
	}
	for name := range layouts {
		compare(name, []string{"nics_per_node: 1\n", "nics_per_node: 2\n", "nics_per_node: 4\n", "nics_per_node: 8\n"})
		compare(name, []string{"leaf: {nodes: 2, oversubscription: 8}\n", "leaf: {nodes: 2, oversubscription: 4}\n", "leaf: {nodes: 2, oversubscription: 2}\n", "leaf: {nodes: 2}\n"})
	}
}

// An interval holds its point, and what is known better lies within what was known.
func TestIntervalsHoldTheirPoints(t *testing.T) {
	vague := mustRead(t, "nodes: 4\ngpus_per_node: 4\nnvlink: {gb_per_s: 450}\nnic: {gb_per_s: [25, 50]}\nleaf: {nodes: 2, oversubscription: 2, latency_us: [0.5, 2]}\ncombine_gb_per_s: [500, 2000]\n").Described()
	every(func(op collectives.Op, algorithm string) {
		for _, size := range []int64{1 << 10, 1 << 20} {
			p, err := vague.Predict(op, algorithm, Size(op, size, 16), 4)
			if err != nil {
				t.Fatal(err)
			}
			if !(p.Low > 0 && p.Low <= p.Seconds && p.Seconds <= p.High) {
				t.Errorf("%s %s of %d B: %g s, interval %g to %g s", op, algorithm, size, p.Seconds, p.Low, p.High)
			}
		}
	})
}
