package rdma

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
)

// wire runs one stream between a sender and a receiver that share nothing but
// messages: on each queue pair those keep their order, between queue pairs
// they do not, and control messages come late. It checks that every byte
// arrives at its place and that nothing that is not free is overwritten.
func TestStream(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		sh := shape{ring: 4096, chunk: 512, window: 8 + rng.Uint64N(20), qps: 1 + rng.Uint64N(5)}
		tx, rx := sender{shape: sh}, newReceiver(sh)
		ring := make([]byte, sh.ring)
		type write struct {
			c    chunk
			data []byte
		}
		flying := make([][]write, sh.qps)
		var notes []control
		messages := make([][]byte, 40)
		for i := range messages {
			messages[i] = make([]byte, rng.IntN(3000))
			for j := range messages[i] {
				messages[i][j] = byte(rng.Uint32())
			}
		}
		memory := make([][]byte, len(messages)) // the receiver's buffers, each at an address of its own
		address := func(m, at int) uint64 { return uint64(m+1)<<20 + uint64(at) }
		for i := range memory {
			memory[i] = make([]byte, 3000)
		}
		out, sent, soon := 0, 0, 0
		in, got, told := 0, 0, false
		for steps := 0; in < len(messages); steps++ {
			if steps > 1000000 {
				t.Fatalf("seed %d: stuck at message %d of %d", seed, in, len(messages))
			}
			switch rng.IntN(4) {
			case 0: // post
				for out < len(messages) && sent == len(messages[out]) {
					out, sent = out+1, 0
				}
				if out == len(messages) {
					break
				}
				if c, ok := tx.next(uint64(len(messages[out])-sent), 1+rng.Uint64N(600)); ok {
					q := tx.seq % sh.qps
					flying[q] = append(flying[q], write{c, messages[out][sent : sent+int(c.n)]})
					sent += int(c.n)
					tx.posted(c)
				}
			case 1: // deliver
				q := rng.IntN(int(sh.qps))
				if len(flying[q]) == 0 {
					break
				}
				w := flying[q][0]
				flying[q] = flying[q][1:]
				if w.c.direct {
					copy(memory[w.c.addr>>20-1][w.c.addr&(1<<20-1):], w.data)
				} else {
					copy(ring[w.c.offset:w.c.offset+w.c.n], w.data)
				}
				if err := rx.arrive(q, w.c.imm); err != nil {
					t.Fatal(seed, err)
				}
			case 2: // hear
				if len(notes) > 0 {
					if err := tx.heard(notes[0]); err != nil {
						t.Fatal(seed, err)
					}
					notes = notes[1:]
				}
			case 3: // take
				m := messages[in]
				if soon <= in && in+1 < len(messages) && rng.IntN(3) == 0 { // expect the one after
					start := rx.pos + uint64(len(m)-got)
					if n := len(messages[in+1]); n > 0 && rx.mayAnnounce(start) {
						notes = append(notes, rx.told(span{start, uint64(n), address(in+1, 0), 7}))
						soon = in + 1
					}
				}
				if got < len(m) {
					n, offset, direct, ok, err := rx.peek(uint64(len(m) - got))
					if err != nil {
						t.Fatal(seed, err)
					}
					if !ok {
						if !told && rng.IntN(3) == 0 && rx.mayAnnounce(rx.pos) {
							notes = append(notes, rx.told(span{rx.pos, uint64(len(m) - got), address(in, got), 7}))
							told = true
						}
						break
					}
					if !direct {
						copy(memory[in][got:], ring[offset:offset+n])
					} else if at := rx.landing(n); at != address(in, got) {
						t.Fatalf("seed %d: %d bytes landed at %#x, not %#x", seed, n, at, address(in, got))
					}
					rx.took(n, direct)
					got += int(n)
					if rx.due() {
						notes = append(notes, rx.told(span{}))
					}
				}
				if got == len(m) {
					if !bytes.Equal(memory[in][:got], m) {
						t.Fatalf("seed %d: message %d came out wrong", seed, in)
					}
					in, got, told = in+1, 0, false
				}
			}
			if len(notes) > notesBound(sh) {
				t.Fatalf("seed %d: %d control messages under way", seed, len(notes))
			}
		}
	}
}

// notesBound is what a small shape allows: here every message may be announced,
// and the next one with it, so that a window of messages bounds them, not a ring of bytes.
func notesBound(sh shape) int { return 2*int(sh.window) + 8 + 2 }

// A peer that lies is found before this side writes by what it said.
func TestHeardLies(t *testing.T) {
	fresh := func() sender {
		s := sender{shape: shape{ring: 4096, chunk: 512, window: 8, qps: 1}}
		for range 3 {
			c, _ := s.next(512, 512)
			s.posted(c)
		}
		return s
	}
	for name, c := range map[string]control{
		"more messages than were sent": {Taken: 4},
		"more bytes than were sent":    {Taken: 1, Freed: 4096},
		"end before the start":         {Span: span{start: 100, n: ^uint64(0) - 50}},
		"beyond all addresses":         {Span: span{start: 100, n: 10, addr: ^uint64(0) - 5}},
	} {
		s := fresh()
		if err := s.heard(c); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	s := fresh()
	if err := s.heard(control{Taken: 2, Freed: 1024}); err != nil {
		t.Fatal(err)
	}
	if err := s.heard(control{Taken: 1, Freed: 1024}); err == nil {
		t.Error("a count that went back was taken")
	}
	if err := s.heard(control{Taken: 2, Freed: 1024, Span: span{start: 2000, n: 100}}); err != nil {
		t.Fatal(err)
	}
	if err := s.heard(control{Taken: 2, Freed: 1024, Span: span{start: 2050, n: 100}}); err == nil {
		t.Error("a span that overlaps the one before was taken")
	}
	s = fresh()
	var err error
	for i := range uint64(maxAnnounced + 1) {
		err = s.heard(control{Span: span{start: 5000 + 10*i, n: 10}})
	}
	if err == nil {
		t.Errorf("%d spans at once were taken", maxAnnounced+1)
	}
}

// A message that does not fit the stream is refused, never placed.
func TestArriveLies(t *testing.T) {
	sh := shape{ring: 4096, chunk: 512, window: 8, qps: 2}
	for name, imm := range map[string]uint32{"empty": immediate(false, 0, 0), "too long": immediate(false, 0, 513), "wrong number": immediate(false, 2, 5)} {
		r := newReceiver(sh)
		if r.arrive(0, imm) == nil {
			t.Errorf("%s: taken", name)
		}
	}
	r := newReceiver(sh)
	for i := range uint64(4) {
		if err := r.arrive(0, immediate(false, 2*i, 5)); err != nil {
			t.Fatal(err)
		}
	}
	if r.arrive(0, immediate(false, 8, 5)) == nil {
		t.Error("a message beyond the window was taken")
	}
	if _, _, _, _, err := r.peek(4); err == nil {
		t.Error("5 bytes of a message of 4 were taken")
	}
	r = newReceiver(sh)
	if err := r.arrive(0, immediate(true, 0, 5)); err != nil {
		t.Fatal(err)
	}
	if _, _, _, _, err := r.peek(100); err == nil {
		t.Error("a direct write that nobody had offered a place was taken")
	}
}

func FuzzHeard(f *testing.F) {
	b := make([]byte, controlSize)
	control{Taken: 2, Freed: 1024, Span: span{start: 2000, n: 100, addr: 4096, rkey: 9}}.encode(b)
	f.Add(b, uint16(900))
	f.Fuzz(func(t *testing.T, b []byte, n uint16) {
		c, err := parseControl(b)
		if err != nil {
			return
		}
		s := sender{shape: shape{ring: 4096, chunk: 512, window: 8, qps: 1}}
		for range 4 {
			if x, ok := s.next(uint64(n), 512); ok && n > 0 {
				s.posted(x)
			}
		}
		if s.heard(c) != nil || n == 0 {
			return
		}
		for range 20 {
			x, ok := s.next(uint64(n), 512)
			if !ok {
				break
			}
			if x.n == 0 || x.n > 512 || !x.direct && x.offset+x.n > 4096 || x.direct && (x.addr < c.Span.addr || x.addr+x.n > c.Span.addr+c.Span.n) {
				t.Fatalf("chunk %+v after %+v", x, c)
			}
			s.posted(x)
		}
		if s.head-s.tail > s.ring || s.seq-s.acked > s.window {
			t.Fatalf("the sender went beyond what the receiver has: %+v", s)
		}
	})
}

// Whatever immediates a peer sends on whatever queue pair, a chunk that is
// taken lies inside the ring, or inside what was announced for that part of
// the stream, and never has more bytes than are wanted.
func FuzzArrive(f *testing.F) {
	imm := func(direct bool, seq, n uint64) []byte {
		return binary.LittleEndian.AppendUint32([]byte{byte(seq % 3)}, immediate(direct, seq, n))
	}
	f.Add(slices.Concat(imm(false, 0, 512), imm(false, 1, 100), imm(true, 2, 200)), uint16(5000))
	f.Add(slices.Concat(imm(true, 0, 1), imm(false, 1, 1<<24-1)), uint16(1))
	f.Fuzz(func(t *testing.T, sent []byte, left uint16) {
		sh := shape{ring: 4096, chunk: 512, window: 8, qps: 3}
		r := newReceiver(sh)
		announced := span{start: 612, n: 1000, addr: 1 << 30, rkey: 1}
		r.told(announced)
		for ; len(sent) >= 5; sent = sent[5:] {
			if r.arrive(int(sent[0]%3), binary.LittleEndian.Uint32(sent[1:])) != nil {
				return // the link gives up here
			}
			for {
				n, offset, direct, ok, err := r.peek(uint64(left) + 1)
				if err != nil {
					return
				}
				if !ok {
					break
				}
				at := r.landing(n)
				switch {
				case n == 0 || n > uint64(left)+1 || n > sh.chunk:
					t.Fatalf("a chunk of %d bytes of %d wanted", n, left+1)
				case !direct && offset+n > sh.ring:
					t.Fatalf("%d bytes at %d of a ring of %d", n, offset, sh.ring)
				case direct && (at < announced.addr || at+n > announced.addr+announced.n || at-announced.addr != r.pos-announced.start):
					t.Fatalf("%d bytes of the stream from %d landed at %#x; announced was %+v", n, r.pos, at, announced)
				}
				r.took(n, direct)
			}
		}
	})
}
