package pairs

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// random is a cluster with up to three faults of all kinds, and what a report
// must name.
func random(seed uint64) (f *fake, rounds int, kinds, want []string) {
	rng := rand.New(rand.NewPCG(seed, 11))
	size := []int{4, 16, 64, 512}[seed%4]
	rails := []int{1, 2, 4, 8}[rng.IntN(4)]
	if size == 512 {
		rails = min(rails, 2)
	}
	perLeaf := 0
	if size >= 16 && rng.IntN(2) == 0 {
		perLeaf = size / 4
	}
	f = newFake(seed, size, rails, perLeaf)
	f.noise, f.tail = 0.003+0.017*rng.Float64(), 0.01*rng.Float64()
	if rounds = size - 1; size > 16 {
		rounds = 12
	}
	by := func() float64 { return 0.25 + 0.63*rng.Float64() }
	used := map[int]bool{}
	node := func() int {
		for {
			if n := rng.IntN(size); !used[n] {
				used[n] = true
				return n
			}
		}
	}
	add := func(kind, what string) { kinds, want = append(kinds, kind), append(want, what) }
	switch rng.IntN(10) {
	case 0:
		add("healthy", "")
		f.noise, f.tail = 0.02, 0.01
		return f, rounds, kinds, nil
	case 1:
		f.overall = 0.3 + 0.5*rng.Float64()
		add("all alike", "every pair every pair")
		return f, rounds, kinds, want
	case 2:
		if f.leaf != nil {
			l := rng.IntN(4)
			switch rng.IntN(3) {
			case 0:
				add("slow leaf", f.slowLeaf(fmt.Sprintf("L%d", l), by()))
			case 1:
				add("slow uplink", f.slowUplink(fmt.Sprintf("L%d", l), fmt.Sprintf("L%d", (l+1)%4), by()))
			case 2:
				add("leaf's uplinks", f.slowUplinks(fmt.Sprintf("L%d", l), by()))
			}
			return f, rounds, kinds, want
		}
		if rails > 1 {
			add("slow rail", f.slowRail(rng.IntN(rails), by()))
			return f, rounds, kinds, want
		}
	case 3: // both of one pair
		p := Rounds(size, rounds)[rng.IntN(rounds)][0]
		used[p[0]], used[p[1]] = true, true
		add("two in a pair", f.slowNode(p[0], by()))
		add("two in a pair", f.slowNIC(p[1], rng.IntN(rails), by()))
		return f, rounds, kinds, want
	}
	most := 3
	if size == 4 {
		most = 1
	}
	for range 1 + rng.IntN(most) {
		switch rng.IntN(4) {
		case 0:
			add("slow node", f.slowNode(node(), by()))
		case 1:
			add("slow NIC", f.slowNIC(node(), rng.IntN(rails), by()))
		case 2:
			add("cable one way", f.slowCable(node(), rng.IntN(rails), side(rng.IntN(2)), by()))
		case 3:
			p := Rounds(size, rounds)[rng.IntN(rounds)]
			q := p[rng.IntN(len(p))]
			if used[q[0]] || used[q[1]] {
				continue
			}
			used[q[0]], used[q[1]] = true, true
			add("path", f.slowPath(q[0], q[1], rng.IntN(rails), by()))
		}
	}
	return f, rounds, kinds, want
}

// TestPrecision publishes what docs/acceptance.md says:
//
//	go test ./coordinator/pairs -run TestPrecision -v -clusters 1000
func TestPrecision(t *testing.T) {
	type score struct{ hit, miss, clusters, false, names int }
	bySize, byKind := map[int]*score{}, map[string]*score{}
	var all score
	n := uint64(*clusters)
	if testing.Short() {
		n = min(n, 16)
	}
	for seed := range n {
		f, rounds, kinds, want := random(seed)
		got := slices.Compact(subjects(f.run(t, rounds)))
		size := len(f.names)
		if bySize[size] == nil {
			bySize[size] = &score{}
		}
		s := bySize[size]
		s.clusters++
		all.clusters++
		for i, k := range kinds {
			if byKind[k] == nil {
				byKind[k] = &score{}
			}
			byKind[k].names++
			if i < len(want) && slices.Contains(got, want[i]) {
				byKind[k].hit++
			}
		}
		var missed, false_ []string
		for _, w := range want {
			if slices.Contains(got, w) {
				s.hit++
			} else {
				missed = append(missed, w)
			}
		}
		for _, g := range got {
			if !slices.Contains(want, g) {
				false_ = append(false_, g)
			}
		}
		s.miss += len(missed)
		s.false += len(false_)
		if kinds[0] == "healthy" && len(got) == 0 {
			byKind["healthy"].hit++
		}
		if len(missed)+len(false_) > 0 {
			t.Logf("seed %d (%d nodes, %d rails): missed %q, false %q", seed, size, f.rails, missed, false_)
		}
	}
	for _, size := range []int{4, 16, 64, 512} {
		s := bySize[size]
		all.hit, all.miss, all.false = all.hit+s.hit, all.miss+s.miss, all.false+s.false
		t.Logf("%3d nodes: %3d clusters, %3d faults: precision %.3f, recall %.3f", size, s.clusters, s.hit+s.miss, part(s.hit, s.false), part(s.hit, s.miss))
	}
	for _, k := range []string{"healthy", "slow node", "slow NIC", "cable one way", "path", "two in a pair", "slow leaf", "slow uplink", "leaf's uplinks", "slow rail", "all alike"} {
		if byKind[k] == nil {
			continue
		}
		t.Logf("%-14s %3d of %3d named exactly", k, byKind[k].hit, byKind[k].names)
	}
	precision, recall := part(all.hit, all.false), part(all.hit, all.miss)
	t.Logf("all: %d clusters, %d faults: precision %.3f, recall %.3f", all.clusters, all.hit+all.miss, precision, recall)
	if precision < 0.97 || recall < 0.97 {
		t.Errorf("precision %.3f, recall %.3f; want 0.97 of each", precision, recall)
	}
}

func part(a, rest int) float64 {
	if a+rest == 0 {
		return 1
	}
	return float64(a) / float64(a+rest)
}
