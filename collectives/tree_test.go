package collectives

import "testing"

// In the double tree a rank is an inner node of at most one tree, and the trees
// are as flat as binary trees can be.
func TestDoubleTree(t *testing.T) {
	for n := 2; n <= 300; n++ {
		for _, rooted := range []bool{false, true} {
			tree := doubleTree{rooted}
			var tops [2]int
			for v := range n {
				inner := 0
				for w := range 2 {
					children := tree.children(v, n, w)
					for i := range children {
						if c := tree.child(v, n, w, i); tree.parent(c, n, w) != v || tree.depth(c, n, w) != tree.depth(v, n, w)+1 {
							t.Fatalf("n=%d rooted=%v tree %d: %d is child %d of %d, but its parent is %d", n, rooted, w, c, i, v, tree.parent(c, n, w))
						}
					}
					if children > 0 && !(rooted && v == 0) {
						inner++
					}
					if tree.parent(v, n, w) < 0 {
						tops[w] = v
					}
					if d := tree.depth(v, n, w); d > treeDepth(Params{Ranks: n}) {
						t.Fatalf("n=%d rooted=%v tree %d: rank %d at depth %d", n, rooted, w, v, d)
					}
				}
				if inner > 1 {
					t.Errorf("n=%d rooted=%v: rank %d is an inner node of both trees", n, rooted, v)
				}
			}
			if !rooted && tops[0] == tops[1] {
				t.Errorf("n=%d: both trees have root %d", n, tops[0])
			}
		}
	}
}

// With more than one channel half of a ring's and a chain's pieces run the other way.
func TestChannelsUseBothDirections(t *testing.T) {
	for _, c := range []struct {
		op   Op
		name string
	}{{AllReduce, "ring"}, {AllGather, "ring"}, {ReduceScatter, "ring"}, {Broadcast, "chain"}, {Reduce, "chain"}} {
		for channels := 1; channels <= 2; channels++ {
			s := mustNew(t, c.op, c.name, Params{Ranks: 5, Pieces: 2, Channels: channels})
			peers := map[int32]bool{}
			for i := range s.Len(2) {
				if st := s.Step(2, i); st.Kind == Send {
					peers[st.Peer] = true
				}
			}
			if len(peers) != channels {
				t.Errorf("%s %s with %d channels: rank 2 sends to %v", c.op, c.name, channels, peers)
			}
		}
	}
}
