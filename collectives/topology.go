package collectives

import "math/bits"

// chainTree is a tree of one branch; the second one goes the other way round.
type chainTree struct{}

func (chainTree) parent(v, n, which int) int {
	switch {
	case v == 0:
		return -1
	case which == 0:
		return v - 1
	}
	return (v + 1) % n
}

func (chainTree) children(v, n, which int) int {
	if n == 1 || which == 0 && v == n-1 || which == 1 && v == 1 {
		return 0
	}
	return 1
}

func (chainTree) child(v, n, which, _ int) int {
	if which == 0 {
		return v + 1
	}
	return (v + n - 1) % n
}

func (chainTree) depth(v, n, which int) int {
	if which == 0 || v == 0 {
		return v
	}
	return n - v
}

// starTree has every rank directly below the root.
type starTree struct{}

func (starTree) parent(v, _, _ int) int { return min(v, 1) - 1 }

func (starTree) children(v, n, _ int) int {
	if v == 0 {
		return n - 1
	}
	return 0
}

func (starTree) child(_, _, _, i int) int { return i + 1 }

func (starTree) depth(v, _, _ int) int { return min(v, 1) }

// binomialTree: v's parent is v without its lowest bit; the largest subtree is
// the first child, since it has the longest way to go.
type binomialTree struct{}

func (binomialTree) parent(v, _, _ int) int {
	if v == 0 {
		return -1
	}
	return v & (v - 1)
}

// children: v + 2^i for every 2^i below v's lowest bit, as far as they exist.
func (binomialTree) children(v, n, _ int) int {
	below := bits.Len(uint(n - 1 - v)) // 2^i ≤ n-1-v
	if v == 0 {
		return below
	}
	return min(below, bits.TrailingZeros(uint(v)))
}

func (b binomialTree) child(v, n, which, i int) int {
	return v + 1<<(b.children(v, n, which)-1-i)
}

func (binomialTree) depth(v, _, _ int) int { return bits.OnesCount(uint(v)) }

// doubleTree is the pair of complementary binary trees of Sanders, Speck and
// Träff ("Two-tree algorithms for full bandwidth broadcast, reduction and
// scan", 2009), which NCCL has used for all-reduce since 2.4. Both are the
// in-order tree on positions 1 to m, where a position's height is its number of
// trailing zero bits, so that the odd positions are the leaves; the second tree
// shifts the ranks by one position. So a rank is an inner node of at most one of
// the trees, and as each carries half of the pieces no rank sends or receives
// more than a flat chain would make it.
// Rooted, the root stands above both trees of the other ranks and is no inner
// node of either; otherwise every rank has a position and the trees have
// different roots.
type doubleTree struct{ rooted bool }

// positions is how many ranks stand in the tree and the first one's distance.
func (t doubleTree) positions(n int) (m, first int) {
	if t.rooted {
		return n - 1, 1
	}
	return n, 0
}

// position is the rank's place in the tree, rank the way back.
func (t doubleTree) position(v, n, which int) int {
	m, first := t.positions(n)
	x := v - first + 1
	if which == 1 {
		x = x%m + 1
	}
	return x
}

func (t doubleTree) rank(x, n, which int) int {
	m, first := t.positions(n)
	if which == 1 {
		if x--; x == 0 {
			x = m
		}
	}
	return x - 1 + first
}

// above is the position over x, or 0 over the topmost, which is the largest
// power of two. A position that does not exist is passed over to the left.
func above(x, m int) int {
	low := x & -x
	if up := x&^low | low<<1; up <= m {
		return up
	}
	return x &^ low
}

// right is the distance to the right child, 0 if there is none.
func right(x, m int) int {
	half := x & -x / 2
	if half == 0 || x == m {
		return 0
	}
	return min(half, topmost(m-x))
}

// topmost is the largest power of two that is not above m ≥ 1.
func topmost(m int) int { return 1 << (bits.Len(uint(m)) - 1) }

func (t doubleTree) parent(v, n, which int) int {
	m, first := t.positions(n)
	if v < first {
		return -1
	}
	if up := above(t.position(v, n, which), m); up > 0 {
		return t.rank(up, n, which)
	}
	return first - 1
}

func (t doubleTree) children(v, n, which int) int {
	m, first := t.positions(n)
	if v < first {
		return min(m, 1)
	}
	x := t.position(v, n, which)
	return 1 - x&1 + min(right(x, m), 1)
}

func (t doubleTree) child(v, n, which, i int) int {
	m, first := t.positions(n)
	if v < first {
		return t.rank(topmost(m), n, which)
	}
	x := t.position(v, n, which)
	if i == 0 {
		return t.rank(x-x&-x/2, n, which)
	}
	return t.rank(x+right(x, m), n, which)
}

func (t doubleTree) depth(v, n, which int) int {
	m, first := t.positions(n)
	if v < first {
		return 0
	}
	d := first
	for x := above(t.position(v, n, which), m); x > 0; x = above(x, m) {
		d++
	}
	return d
}
