package collectives

import (
	"fmt"
	"math"
	"time"
)

// Class is a kind of link in the alpha-beta model: a message of b bytes arrives
// Alpha + b/bandwidth after it was sent.
type Class struct {
	Alpha time.Duration
	GBps  float64 // 1e9 bytes a second, each way
}

// Fabric is a machine for Simulate. Each rank has a port of each class that
// sends one message at a time and, independently, receives one at a time;
// nothing else is shared between ranks.
type Fabric struct {
	Intra, Cross Class   // between ranks of one node; between nodes
	CombineGBps  float64 // received bytes combined a second; 0: at no cost
}

// port is a rank's state in seconds.
type port struct {
	clock                 float64    // end of its last step
	sendFree, receiveFree [2]float64 // by class
}

// Simulate predicts how long a schedule takes for S = bytes. nodes is the node of
// each rank, nil if all share one. A rank takes messages in the order of its
// steps; a Combine takes its time after the message has arrived, while the port
// already receives the next. Empty chunks cost nothing.
func Simulate(op Op, s Schedule, bytes int64, nodes []int, f Fabric) (time.Duration, error) {
	shape := s.Shape()
	if nodes != nil && len(nodes) != shape.Ranks {
		return 0, fmt.Errorf("simulate %s: the nodes of %d ranks are given, but there are %d ranks", op, len(nodes), shape.Ranks)
	}
	crosses := func(a int, b int32) int {
		if nodes == nil || nodes[a] == nodes[b] {
			return 0
		}
		return 1
	}
	classes := [2]Class{f.Intra, f.Cross}
	var alpha, perByte [2]float64
	for i, c := range classes {
		alpha[i], perByte[i] = c.Alpha.Seconds(), 1/(c.GBps*1e9)
		if i == 1 && nodes == nil {
			break
		}
		if c.Alpha < 0 || !(c.GBps > 0) {
			return 0, fmt.Errorf("simulate %s: a link of %v and %v GB/s", op, c.Alpha, c.GBps)
		}
	}
	combine := 0.0
	if f.CombineGBps > 0 {
		combine = 1 / (f.CombineGBps * 1e9)
	}
	size := chunkBytes(op, shape, bytes)
	ports := make([]port, shape.Ranks)
	w := walker[float64]{s: s}
	w.send = func(rank int, st Step) (float64, error) {
		b := size[int(st.Chunk)%len(size)]
		if b == 0 {
			return 0, nil
		}
		p, class := &ports[rank], crosses(rank, st.Peer)
		start := max(p.clock, p.sendFree[class])
		p.sendFree[class] = start + b*perByte[class]
		return start + alpha[class], nil
	}
	w.receive = func(rank int, st Step, first float64) error { // first byte's arrival
		b := size[int(st.Chunk)%len(size)]
		if b == 0 {
			return nil
		}
		p, class := &ports[rank], crosses(rank, st.Peer)
		last := max(first, p.receiveFree[class]) + b*perByte[class]
		p.receiveFree[class] = last
		p.clock = max(p.clock, last)
		if st.Kind == Combine {
			p.clock += b * combine
		}
		return nil
	}
	if err := w.run(); err != nil {
		return 0, fmt.Errorf("simulate %s: %w", op, err)
	}
	seconds := 0.0
	for _, p := range ports {
		seconds = max(seconds, p.clock)
	}
	if ns := seconds * 1e9; ns < math.MaxInt64 {
		return time.Duration(math.Round(ns)), nil
	}
	return 0, fmt.Errorf("simulate %s: %.3g s is more than can be counted", op, seconds)
}

// chunkBytes is the size of chunk c at index c modulo the length: where all
// blocks are alike, those of one block.
func chunkBytes(op Op, s Shape, bytes int64) []float64 {
	chunks := s.Chunks()
	if op.Blocked() || op == SendRecv {
		chunks = s.Pieces
	}
	size := make([]float64, chunks)
	for c := range size {
		_, n := s.Span(op, c, bytes, 1)
		size[c] = float64(n)
	}
	return size
}
