package rdma

import (
	"encoding/binary"
	"fmt"
	"strings"
	"time"
)

// Verb is what a link test does.
type Verb uint8

const (
	Write Verb = iota + 1
	Read
	SendRecv
)

func (v Verb) String() string {
	return [...]string{"nothing", "write", "read", "send"}[v&3]
}

// ParseVerb reads a verb's name.
func ParseVerb(s string) (Verb, error) {
	for v := Write; v <= SendRecv; v++ {
		if v.String() == s {
			return v, nil
		}
	}
	return 0, fmt.Errorf("unknown link test %q; there are write, read and send", s)
}

// Test is one link test of one size.
type Test struct {
	Verb          Verb
	Latency       bool // one message at a time; else as many as the depth allows
	Bidirectional bool // bandwidth: both sides send at once
	Size          int  // bytes of a message
	Count         int  // messages of a round, and, of bandwidth, of each direction
}

// Kind is the test's name in results: "write_bw", "read_lat".
func (t Test) Kind() string {
	if t.Latency {
		return t.Verb.String() + "_lat"
	}
	return t.Verb.String() + "_bw"
}

// ParseKind reads what Kind writes.
func ParseKind(s string) (t Test, err error) {
	verb, what, _ := strings.Cut(s, "_")
	if t.Verb, err = ParseVerb(verb); err != nil || what != "bw" && what != "lat" {
		return t, fmt.Errorf("unknown link test %q; there are %s", s, strings.Join(Kinds(), ", "))
	}
	t.Latency = what == "lat"
	return t, nil
}

// Kinds lists the link tests.
func Kinds() (out []string) {
	for v := Write; v <= SendRecv; v++ {
		out = append(out, Test{Verb: v}.Kind(), Test{Verb: v, Latency: true}.Kind())
	}
	return out
}

const mostCount = 1 << 24

func (t Test) check(room int) error {
	switch {
	case t.Verb < Write || t.Verb > SendRecv:
		return fmt.Errorf("link test %d is not one of write, read and send", t.Verb)
	case t.Size < 1 || t.Size > room:
		return fmt.Errorf("messages of %d bytes; 1 to %d are possible", t.Size, room)
	case t.Count < 1 || t.Count > mostCount:
		return fmt.Errorf("%d messages; 1 to %d are possible", t.Count, mostCount)
	case t.Latency && t.Bidirectional:
		return fmt.Errorf("latency is measured in one direction at a time")
	}
	return nil
}

// order is what one side of a Pair tells the other over the pair itself.
type order struct {
	kind orderKind
	test Test
	took time.Duration // done: how long the passive side's own messages took
}

type orderKind uint8

const (
	orderTest  orderKind = iota + 1 // do this test with me
	orderReady                      // begin
	orderDone                       // my part is done
	orderEnd                        // no more tests
)

const orderSize = 32

func (o order) encode(b []byte) {
	le := binary.LittleEndian
	clear(b[:orderSize])
	flags := byte(0)
	if o.test.Latency {
		flags |= 1
	}
	if o.test.Bidirectional {
		flags |= 2
	}
	b[0], b[1], b[2] = byte(o.kind), byte(o.test.Verb), flags
	le.PutUint64(b[8:], uint64(o.test.Size))
	le.PutUint64(b[16:], uint64(o.test.Count))
	le.PutUint64(b[24:], uint64(o.took))
}

// parseOrder reads an order; room is the longest message that this side takes.
func parseOrder(b []byte, room int) (order, error) {
	le := binary.LittleEndian
	if len(b) != orderSize || b[0] < byte(orderTest) || b[0] > byte(orderEnd) || b[2] > 3 {
		return order{}, fmt.Errorf("the peer sent %d bytes that are no order", len(b))
	}
	size, count, took := le.Uint64(b[8:]), le.Uint64(b[16:]), le.Uint64(b[24:])
	if size > 1<<40 || count > mostCount || took > uint64(time.Hour*24) {
		return order{}, fmt.Errorf("the peer's order has absurd numbers: %d, %d, %d", size, count, took)
	}
	o := order{orderKind(b[0]), Test{Verb(b[1]), b[2]&1 != 0, b[2]&2 != 0, int(size), int(count)}, time.Duration(took)}
	if o.kind == orderTest {
		if err := o.test.check(room); err != nil {
			return order{}, fmt.Errorf("the peer orders %w", err)
		}
	}
	return o, nil
}
