package ptxvm

import "fmt"

// launch is what the threads of one launch share.
type launch struct {
	vm          *VM
	grid, block int
	param       []byte
}

type thread struct {
	r          []uint64
	pc         int
	state      what // plain: runs; barrier: waits; exit: is done
	tid, block int
	launch     *launch
}

// slice is how many instructions a thread runs before the next has its turn.
const slice = 97

// Launch runs grid blocks of so many threads, by turns. A kernel that takes more
// than steps instructions is taken to hang. A register that nothing was written
// to holds garbage.
func (v *VM) Launch(f *Func, grid, block int, steps int64, param []byte) error {
	if len(param) != f.bytes {
		return fmt.Errorf("%s: a parameter of %d bytes, want %d", f.Name, len(param), f.bytes)
	}
	l := &launch{v, grid, block, param}
	threads := make([]thread, grid*block)
	for i := range threads {
		t := &threads[i]
		*t = thread{r: make([]uint64, len(f.kinds)), tid: i % block, block: i / block, launch: l}
		for j := range t.r {
			t.r[j] = 0xdeadbeefdeadbeef & mask(f.kinds[j])
		}
	}
	for left := len(threads); left > 0; {
		for b := range grid {
			waiting, live := 0, 0
			for i := range threads[b*block : (b+1)*block] {
				t := &threads[b*block+i]
				for n := 0; n < slice && t.state == plain; n++ {
					if steps--; steps < 0 {
						return fmt.Errorf("%s: too many steps", f.Name)
					}
					if err := t.step(f); err != nil {
						return err
					}
				}
				switch t.state {
				case exit:
					continue
				case barrier:
					waiting++
				}
				live++
			}
			if waiting == live {
				for i := range threads[b*block : (b+1)*block] {
					if t := &threads[b*block+i]; t.state == barrier {
						t.state = plain
					}
				}
			}
		}
		left = 0
		for i := range threads {
			if threads[i].state != exit {
				left++
			}
		}
	}
	return nil
}

func (t *thread) step(f *Func) error {
	if t.pc >= len(f.code) {
		return fmt.Errorf("%s: ran off its end", f.Name)
	}
	c := &f.code[t.pc]
	t.pc++
	if c.guard >= 0 && (t.r[c.guard] != 0) == c.negate {
		return nil
	}
	switch c.what {
	case branch:
		t.pc = c.to
	case exit, barrier:
		t.state = c.what
	default:
		if err := c.run(t); err != nil {
			return fmt.Errorf("%s line %d, thread %d of block %d: %w", f.Name, c.line, t.tid, t.block, err)
		}
	}
	return nil
}
