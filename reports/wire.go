package reports

import "strings"

// AboveWire is how far busbw may rightly lie above the rate of the wire. busbw
// is defined by what a ring moves; an algorithm that moves less shows more
// than the wire carries, and that is no fault. factor is 1 where it may not.
// algorithm is in NCCL's or our words; "" stands for whatever NCCL picked.
//
//   - NVLS: the NVSwitch reduces and multicasts. A GPU sends its buffer and
//     its n-th part of the result, (n+1)/n of it where a ring sends 2(n−1)/n.
//   - Tree on two nodes: a buffer crosses once each way, where a ring sends
//     2(n−1)/n of it through every adapter.
//   - CollNet (SHARP): the network's switches reduce; a buffer is sent once.
//
// (NCCL src/graph/tuning.cc gives the same ratios; nccl-tests doc/PERFORMANCE.md
// defines busbw.)
func AboveWire(op, algorithm string, ranks, nodes int) (factor float64, why string) {
	if op != "all_reduce" || ranks < 2 || nodes < 1 {
		return 1, "" // what every rank must receive, or send, is what busbw counts
	}
	n := float64(ranks)
	ring := 2 * (n - 1) / n
	allowed := []struct {
		algorithm string
		here      bool
		factor    float64
		why       string
	}{
		{"nvls", nodes == 1 && ranks > 2, ring * n / (n + 1), "the NVSwitch reduces (NVLS), so that each GPU sends less than in a ring"},
		{"tree", nodes == 2, ring, "a tree on two nodes sends each buffer across once, a ring nearly twice"},
		{"nvlstree", nodes == 2, ring, "a tree on two nodes sends each buffer across once, a ring nearly twice"},
		{"collnetchain", nodes > 1, ring, "the network's switches reduce (SHARP), so that each buffer crosses once"},
		{"collnetdirect", nodes > 1, ring, "the network's switches reduce (SHARP), so that each buffer crosses once"},
	}
	factor = 1
	for _, a := range allowed {
		if a.here && a.factor > factor && (algorithm == "" || strings.EqualFold(algorithm, a.algorithm)) {
			factor, why = a.factor, a.why
		}
	}
	if why != "" && algorithm == "" {
		why = "which algorithm ran is not known; it may be that " + why
	}
	return factor, why
}

// groupNodes is on how many nodes one group of a result is.
func (r *Result) groupNodes() int {
	if r.Scope == "intra" {
		return 1
	}
	return max(1, r.Nodes)
}

// aboveLimit is AboveWire for the limit of a result: that counts already what
// must cross between nodes, by any algorithm whose ranks reduce themselves.
func (r *Result) aboveLimit() (factor float64, why string) {
	if a := strings.ToLower(r.Algorithm); !strings.HasPrefix(a, "nvls") && !strings.HasPrefix(a, "collnet") {
		return 1, ""
	}
	return AboveWire(r.Op, r.Algorithm, r.Ranks, r.groupNodes())
}
