package coordinator

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Blocks is the order in which variants are launched: blocks of a random order
// and its reverse (A B C, C B A, …), so that each variant has the same mean
// place and a machine that gets slower evenly favours none. A variant is
// launched as often as asked for, rounded up to an even number. The same seed
// gives the same order, and more launches only make it longer.
func Blocks(variants, launches int, seed uint64) (order []int) {
	r := rand.New(rand.NewPCG(seed, 0))
	for range (launches + 1) / 2 {
		p := r.Perm(variants)
		order = append(order, p...)
		slices.Reverse(p)
		order = append(order, p...)
	}
	return order
}

// Fit is how many launches of each variant a budget allows: an even number, at
// most as many as are asked for, 0 where not even one block fits. each is what
// one launch takes.
func Fit(left, each time.Duration, variants, asked int) int {
	if each <= 0 {
		return asked
	}
	n := int(left / each / time.Duration(max(variants, 1)))
	return min(n-n%2, asked)
}
