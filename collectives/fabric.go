package collectives

import "fmt"

// Class is what a path does in the alpha-beta model: a message of b bytes has
// arrived Alpha + b/bandwidth after it was sent.
type Class struct {
	Alpha float64 // s
	GBps  float64 // 1e9 bytes a second, each way
}

// Segment is the class of messages of up to UpTo bytes that no earlier segment
// of the path covers.
type Segment struct {
	UpTo int64
	Class
}

// Path is a kind of way between two ranks. Real ones change their protocol with
// the size of a message; larger messages than the last segment's are like it.
type Path []Segment

// Uniform is a path that treats all messages alike.
func Uniform(alpha, gbps float64) Path { return Path{{Class: Class{alpha, gbps}}} }

func (p Path) of(bytes float64) Class {
	for _, s := range p[:len(p)-1] {
		if bytes <= float64(s.UpTo) {
			return s.Class
		}
	}
	return p[len(p)-1].Class
}

// Fabric is a machine for Simulate. A rank sends one message at a time by each
// of its two ports, to its node and beyond it, and independently of that
// receives one at a time. What ranks share is served in the order in which the
// messages are sent. Slices are by rank; nil: no two ranks share such a thing,
// or, of Node and Leaf, all ranks have the same.
type Fabric struct {
	Intra Path // between ranks of one node
	Cross Path // between nodes of one leaf
	Spine Path // between leaves; nil: as Cross
	// CombineGBps is how many received bytes a rank combines; 0: at no cost.
	CombineGBps float64
	// UplinkGBps is what a leaf exchanges with the others, each way; 0: no limit.
	UplinkGBps float64

	Node []int // ranks with the same number are close to each other
	NIC  []int // ranks with the same number share one port beyond the node
	Leaf []int
}

// ways are the classes of path, as indices.
const (
	intra = iota
	cross
	spine
	ways
)

// way between two ranks.
func (f *Fabric) way(a, b int) int {
	switch {
	case f.Node == nil || f.Node[a] == f.Node[b]:
		return intra
	case f.Leaf == nil || f.Leaf[a] == f.Leaf[b]:
		return cross
	}
	return spine
}

func (f *Fabric) check(ranks int) error {
	for _, x := range []struct {
		what string
		of   []int
	}{{"nodes", f.Node}, {"NICs", f.NIC}, {"leaves", f.Leaf}} {
		if x.of != nil && len(x.of) != ranks {
			return fmt.Errorf("the %s of %d ranks are given, but there are %d ranks", x.what, len(x.of), ranks)
		}
	}
	paths := []Path{f.Intra}
	if f.Node != nil {
		paths = append(paths, f.Cross)
	}
	if f.Leaf != nil && f.Spine != nil {
		paths = append(paths, f.Spine)
	}
	for _, p := range paths {
		if len(p) == 0 {
			return fmt.Errorf("nothing is known of a path")
		}
		for _, s := range p {
			if !(s.Alpha >= 0) || !(s.GBps > 0) {
				return fmt.Errorf("a path of %g s and %g GB/s", s.Alpha, s.GBps)
			}
		}
	}
	if !(f.CombineGBps >= 0) || !(f.UplinkGBps >= 0) {
		return fmt.Errorf("combining at %g GB/s, uplinks of %g GB/s", f.CombineGBps, f.UplinkGBps)
	}
	return nil
}

// period is the least multiple of p by which ranks can be moved, all at once and
// round the end, so that everything that two of them share they still share; it
// divides their number. 0: there is none below it. An uplink must then become
// another: one that ranks share with their likes would seem to carry less.
func (f *Fabric) period(p, ranks int) int {
	if p == 0 || ranks%p != 0 {
		return 0
	}
	node, nic, leaf := numbered(f.Node), numbered(f.NIC), numbered(f.Leaf)
	for k := p; k <= ranks/2; k += p {
		if ranks%k == 0 && moves(node, k, true) && moves(nic, k, true) && moves(leaf, k, f.UplinkGBps == 0) {
			return k
		}
	}
	return 0
}

// numbered is the same sharing with the numbers from 0 on, in order of
// appearance; nil where all share one.
func numbered(of []int) []int32 {
	number := map[int]int32{}
	out := make([]int32, len(of))
	for r, x := range of {
		n, ok := number[x]
		if !ok {
			n = int32(len(number))
			number[x] = n
		}
		out[r] = n
	}
	if len(number) < 2 {
		return nil
	}
	return out
}

// moves says whether what r and q share, and only that, r+k and q+k share too.
// If what r has always becomes one thing, k moves things to things; as it moves
// all ranks to all ranks, no two things then become one. stay: a thing may become
// itself.
func moves(of []int32, k int, stay bool) bool {
	if of == nil {
		return true
	}
	to := make([]int32, len(of)) // one more than what a thing becomes
	for r, x := range of {
		y := of[(r+k)%len(of)]
		if to[x] != 0 && to[x] != y+1 || x == y && !stay {
			return false
		}
		to[x] = y + 1
	}
	return true
}
