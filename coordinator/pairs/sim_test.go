package pairs

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"busbw/reports"
)

var clusters = flag.Int("clusters", 60, "random clusters of TestPrecision")

// fake is a simulated cluster. A transfer is as fast as the slowest part of its
// way; every part has a factor, 1 where it is healthy.
type fake struct {
	names   []string
	rails   int
	leaf    []string
	level   float64            // GB/s of a healthy pair
	noise   float64            // standard deviation of a sample, share of it
	tail    float64            // share of samples that something else slows down
	port    map[[3]int]float64 // node, rail, side (sends, receives)
	path    map[[3]int]float64 // from, to, rail
	uplink  map[[2]string]float64
	overall float64
	rng     *rand.Rand
	limit   Limits
}

func newFake(seed uint64, nodes, rails, perLeaf int) *fake {
	f := &fake{rails: rails, level: 48, noise: 0.01, port: map[[3]int]float64{}, path: map[[3]int]float64{}, uplink: map[[2]string]float64{}, overall: 1, rng: rand.New(rand.NewPCG(seed, 7))}
	for i := range nodes {
		f.names = append(f.names, fmt.Sprintf("n%d", i))
		if perLeaf > 0 {
			f.leaf = append(f.leaf, fmt.Sprintf("L%d", i/perLeaf))
		}
	}
	f.limit = Limits{GBps: 45, BothGBps: 43, Source: "test"}
	return f
}

func factor(m map[[3]int]float64, k [3]int) float64 {
	if v, ok := m[k]; ok {
		return v
	}
	return 1
}

func (f *fake) one(a, b, rail int) float64 {
	v := min(factor(f.port, [3]int{a, rail, 0}), factor(f.port, [3]int{b, rail, 1}), factor(f.path, [3]int{a, b, rail}))
	if f.leaf != nil && f.leaf[a] != f.leaf[b] {
		if u, ok := f.uplink[[2]string{min(f.leaf[a], f.leaf[b]), max(f.leaf[a], f.leaf[b])}]; ok {
			v = min(v, u)
		}
	}
	return v
}

func (f *fake) sample(a, b, rail int, w Way, alone bool) Sample {
	v := f.one(a, b, rail)
	if w == Both {
		v = 0.97 * min(v, f.one(b, a, rail))
	}
	v *= f.level * f.overall * math.Exp(-math.Abs(f.noise*f.rng.NormFloat64()))
	if !alone && f.rng.Float64() < f.tail {
		v *= 0.6 + 0.35*f.rng.Float64()
	}
	return Sample{A: a, B: b, Rail: rail, Way: w, Value: v, Alone: alone}
}

// run measures as busbw pairs does: rounds, then what the report proposes, as
// often as that says something new.
func (f *fake) run(t testing.TB, rounds int) *Report {
	table := &Table{Nodes: f.names, Rails: f.rails, Leaf: f.leaf}
	for _, round := range Rounds(len(f.names), rounds) {
		for _, p := range round {
			for r := range f.rails {
				table.Bandwidth = append(table.Bandwidth, f.sample(p[0], p[1], r, OneWay, false), f.sample(p[1], p[0], r, OneWay, false), f.sample(p[0], p[1], r, Both, false))
			}
		}
	}
	var rep *Report
	for range 8 {
		var err error
		if rep, err = Judge(table, f.limit); err != nil {
			t.Fatal(err)
		}
		if len(rep.Next) == 0 {
			break
		}
		for _, p := range rep.Next {
			table.Bandwidth = append(table.Bandwidth, f.sample(p.A, p.B, p.Rail, p.Way, true))
		}
	}
	return rep
}

// slowNode slows all of a node's ports.
func (f *fake) slowNode(n int, by float64) string {
	for r := range f.rails {
		f.port[[3]int{n, r, 0}], f.port[[3]int{n, r, 1}] = by, by
	}
	return "node " + f.names[n]
}

func (f *fake) slowNIC(n, rail int, by float64) string {
	if f.rails == 1 {
		return f.slowNode(n, by)
	}
	f.port[[3]int{n, rail, 0}], f.port[[3]int{n, rail, 1}] = by, by
	return fmt.Sprintf("NIC or cable %s rail %d", f.names[n], rail)
}

func (f *fake) slowCable(n, rail int, s side, by float64) string {
	f.port[[3]int{n, rail, int(s)}] = by
	if f.rails == 1 {
		return fmt.Sprintf("NIC or cable %s, %s", f.names[n], s)
	}
	return fmt.Sprintf("NIC or cable %s rail %d, %s", f.names[n], rail, s)
}

func (f *fake) slowLeaf(leaf string, by float64) string {
	for n, l := range f.leaf {
		if l == leaf {
			f.slowNode(n, by)
		}
	}
	return "leaf leaf " + leaf
}

// slowUplink slows what goes between two leaves; slowUplinks what goes between a
// leaf and all others, as one of its links to the spine lost does.
func (f *fake) slowUplink(a, b string, by float64) string {
	f.uplink[[2]string{min(a, b), max(a, b)}] = by
	return fmt.Sprintf("uplink uplink between %s and %s", min(a, b), max(a, b))
}

func (f *fake) slowUplinks(leaf string, by float64) string {
	for _, l := range f.leaf {
		if l != leaf {
			f.slowUplink(leaf, l, by)
		}
	}
	return "uplink uplink between " + leaf + " and all others"
}

func (f *fake) slowRail(rail int, by float64) string {
	for n := range f.names {
		f.port[[3]int{n, rail, 0}], f.port[[3]int{n, rail, 1}] = by, by
	}
	return fmt.Sprintf("leaf the leaf of rail %d", rail)
}

func (f *fake) slowPath(a, b, rail int, by float64) string {
	f.path[[3]int{a, b, rail}], f.path[[3]int{b, a, rail}] = by, by
	s := fmt.Sprintf("path %s – %s", f.names[min(a, b)], f.names[max(a, b)])
	if f.rails > 1 {
		s += fmt.Sprintf(" rail %d", rail)
	}
	return s
}

func subjects(r *Report) (out []string) {
	for i := range r.Culprits {
		c := &r.Culprits[i]
		if c.Verdict == reports.Fail || c.Verdict == reports.Warn {
			out = append(out, string(c.Kind)+" "+c.Subject())
		}
	}
	slices.Sort(out)
	return out
}

func TestFaults(t *testing.T) {
	for _, size := range []int{4, 16, 64, 512} {
		rails := map[int]int{4: 8, 16: 8, 64: 4, 512: 2}[size]
		rounds := min(size-1, 12)
		perLeaf := max(2, size/8)
		if size == 4 {
			perLeaf = 0
		}
		for name, fault := range map[string]func(f *fake) []string{
			"healthy":           func(f *fake) []string { return nil },
			"noisy but healthy": func(f *fake) []string { f.noise, f.tail = 0.02, 0.01; return nil },
			"slow node":         func(f *fake) []string { return []string{f.slowNode(2, 0.8)} },
			"slow NIC":          func(f *fake) []string { return []string{f.slowNIC(1, 1, 0.5)} },
			"bad cable, sends":  func(f *fake) []string { return []string{f.slowCable(3, 0, sends, 0.6)} },
			"bad cable, takes":  func(f *fake) []string { return []string{f.slowCable(0, 1, receives, 0.25)} },
			"slow rail":         func(f *fake) []string { return []string{f.slowRail(1, 0.7)} },
			"slow leaf": func(f *fake) []string {
				if f.leaf == nil || size == 16 {
					return nil
				}
				return []string{f.slowLeaf("L3", 0.75)}
			},
			"slow uplink": func(f *fake) []string {
				if f.leaf == nil || size == 16 {
					return nil
				}
				return []string{f.slowUplink("L1", "L5", 0.5)}
			},
			"a leaf's uplinks": func(f *fake) []string {
				if f.leaf == nil || size == 16 {
					return nil
				}
				return []string{f.slowUplinks("L2", 0.5)}
			},
			"two in one pair": func(f *fake) []string { return []string{f.slowNode(0, 0.5), f.slowNIC(1, 0, 0.5)} },
			"all alike": func(f *fake) []string {
				f.overall = 0.58
				return []string{"every pair every pair"}
			},
			"path": func(f *fake) []string {
				p := Rounds(size, rounds)[1][0]
				return []string{f.slowPath(p[0], p[1], 1, 0.6)}
			},
		} {
			t.Run(fmt.Sprint(size, " ", name), func(t *testing.T) {
				f := newFake(uint64(size), size, rails, perLeaf)
				want := fault(f)
				slices.Sort(want)
				r := f.run(t, rounds)
				got := subjects(r)
				if strings.HasPrefix(name, "all") { // said of both ways
					got = slices.Compact(got)
				}
				if !slices.Equal(got, want) {
					t.Errorf("found %q, want %q", got, want)
					for _, c := range r.Culprits {
						t.Logf("%s %s %s: %q", c.Kind, c.Subject(), c.Verdict, c.Why)
					}
				}
			})
		}
	}
}

// Machines that something else uses scatter wildly: nobody is failed for that,
// and nobody is called good without a limit to hold it against.
func TestNoise(t *testing.T) {
	for _, size := range []int{5, 8, 16, 40} {
		for _, noise := range []float64{0.1, 0.2, 0.3, 0.5} {
			wrong := 0
			for seed := range uint64(20) {
				f := newFake(seed, size, 2, 0)
				f.noise, f.limit = noise, Limits{}
				r := f.run(t, 12)
				for _, c := range r.Culprits {
					if c.Verdict == reports.Fail {
						wrong++
						t.Logf("%d nodes, noise %g: %s %s %q", size, noise, c.Kind, c.Subject(), c.Why)
					}
				}
				if noise >= 0.3 && len(r.Good) > 0 {
					t.Errorf("%d nodes, noise %g: %v are called good", size, noise, r.Good)
				}
			}
			if wrong > 1 {
				t.Errorf("%d nodes, noise %g: %d parts of 20 healthy clusters are failed", size, noise, wrong)
			}
		}
	}
}
