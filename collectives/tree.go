package collectives

import "math/bits"

// topology is the tree that a piece travels on, as seen from one rank: pure
// functions of the rank's distance v from the root (v = 0). which picks one of
// two trees. parent is -1 at the tree's root.
type topology interface {
	parent(v, n, which int) int
	children(v, n, which int) int
	child(v, n, which, i int) int
	depth(v, n, which int) int
}

// tree pipelines pieces up a tree (reduce), down it (broadcast) or both
// (all-reduce). Time runs in slots: a rank at depth d handles piece q on its way
// up in slot q-d and on its way down in slot q+d. So each message is handled one
// slot after it was sent, steps in slot order cannot wait for each other in a
// circle, and a deep pipeline keeps both directions of every link busy.
type tree struct {
	shape    Shape
	topo     topology
	root     int
	up, down bool
	twin     bool // odd pieces take the second tree
}

type treeKind uint8

const (
	chain treeKind = iota
	binomial
	double
	star
)

func treeOf(op Op, k treeKind) func(Params, Shape) (Schedule, error) {
	return func(p Params, s Shape) (Schedule, error) {
		s.Blocks = 1
		t := tree{shape: s, root: p.Root, up: op != Broadcast, down: op != Reduce, twin: s.Pieces > 1}
		switch k {
		case chain:
			t.topo, t.twin = chainTree{}, s.Channels > 1
		case binomial:
			t.topo, t.twin = binomialTree{}, false
		case star:
			t.topo, t.twin = starTree{}, false
		default:
			t.topo = doubleTree{rooted: op != AllReduce}
		}
		return t, nil
	}
}

func (t tree) Shape() Shape { return t.shape }

// flow is one tree's traffic in one direction at one rank: per piece, steps
// steps, in slots from to until.
type flow struct {
	from, until, steps int
	which              int
	up                 bool
}

func (t tree) flows(v int) (f [4]flow, count int) {
	n, trees := t.shape.Ranks, 1
	if t.twin {
		trees = 2
	}
	for _, up := range [...]bool{true, false} {
		if up && !t.up || !up && !t.down {
			continue
		}
		for w := range trees {
			pieces := (t.shape.Pieces + trees - 1 - w) / trees
			d := t.topo.depth(v, n, w)
			steps := t.topo.children(v, n, w)
			if t.topo.parent(v, n, w) >= 0 {
				steps++
			}
			if up {
				d = -d
			}
			f[count] = flow{from: d, until: d + pieces, steps: steps, which: w, up: up}
			count++
		}
	}
	return f, count
}

func (t tree) Len(rank int) int {
	f, count := t.flows(mod(rank-t.root, t.shape.Ranks))
	total := 0
	for _, x := range f[:count] {
		total += (x.until - x.from) * x.steps
	}
	return total
}

// Step finds the slot of step i: between two slots in which a flow starts or
// ends every slot has the same steps.
func (t tree) Step(rank, i int) Step {
	v := mod(rank-t.root, t.shape.Ranks)
	f, count := t.flows(v)
	if count == 1 {
		return t.step(v, f[0], i/f[0].steps, i%f[0].steps)
	}
	slot := f[0].from
	for _, x := range f[1:count] {
		slot = min(slot, x.from)
	}
	for {
		next, rate := int(^uint(0)>>1), 0
		for _, x := range f[:count] {
			switch {
			case slot < x.from:
				next = min(next, x.from)
			case slot < x.until:
				next = min(next, x.until)
				rate += x.steps
			}
		}
		if whole := (next - slot) * rate; i >= whole {
			i, slot = i-whole, next
			continue
		}
		slot, i = slot+i/rate, i%rate
		break
	}
	for _, x := range f[:count] {
		if slot < x.from || slot >= x.until {
			continue
		}
		if i < x.steps {
			return t.step(v, x, slot-x.from, i)
		}
		i -= x.steps
	}
	panic("collectives: step number beyond the rank's program")
}

// step is the i-th step for the flow's piece-th piece: up, combine from the
// children and send to the parent; down, receive and send to the children.
func (t tree) step(v int, x flow, piece, i int) Step {
	n := t.shape.Ranks
	if t.twin {
		piece = 2*piece + x.which
	}
	parent, children := t.topo.parent(v, n, x.which), t.topo.children(v, n, x.which)
	kind, peer := Send, parent
	switch {
	case x.up && i < children:
		// The last child of a piece on its way down is the first that can be back.
		kind, peer = Combine, t.topo.child(v, n, x.which, children-1-i)
	case !x.up && parent >= 0 && i == 0:
		kind = Recv
	case !x.up:
		if parent >= 0 {
			i--
		}
		peer = t.topo.child(v, n, x.which, i)
	}
	return Step{Kind: kind, Peer: int32(mod(peer+t.root, n)), Chunk: int32(piece)}
}

func treeDepth(p Params) int { return bits.Len(uint(p.Ranks)) }

func chainDepth(p Params) int { return max(1, p.Ranks-1) }
