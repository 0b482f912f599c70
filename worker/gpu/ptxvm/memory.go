package ptxvm

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Buffer is memory that kernels reach.
type Buffer struct {
	Addr uint64
	Data []byte
}

// VM holds buffers and runs kernels over them.
type VM struct {
	buffers []*Buffer
	next    uint64
}

// Alloc makes a buffer at a multiple of 256. Between buffers is nothing.
func (v *VM) Alloc(data []byte) *Buffer {
	if v.next == 0 {
		v.next = 0x7f0000000000
	}
	b := &Buffer{v.next, data}
	v.next += uint64(len(data)+255)&^255 + 4096
	v.buffers = append(v.buffers, b)
	return b
}

func (v *VM) at(addr uint64, n int) ([]byte, error) {
	if addr%uint64(n) != 0 {
		return nil, fmt.Errorf("misaligned access of %d bytes at %#x", n, addr)
	}
	for _, b := range v.buffers {
		if off := addr - b.Addr; off < uint64(len(b.Data)) && uint64(n) <= uint64(len(b.Data))-off {
			return b.Data[off:][:n], nil
		}
	}
	return nil, fmt.Errorf("access of %d bytes at %#x, outside every buffer", n, addr)
}

// place decodes "[register+offset]" or "[parameter+offset]".
func (f *Func) place(s string) (value, error) {
	base, off, _ := strings.Cut(strings.Trim(s, "[]"), "+")
	plus := int64(0)
	if off != "" {
		var err error
		if plus, err = strconv.ParseInt(off, 10, 64); err != nil {
			return nil, err
		}
	}
	if base != f.param && base[0] != '%' {
		return nil, fmt.Errorf("no parameter %s", base)
	}
	at, err := f.value(base, "b64", false)
	return func(t *thread) uint64 { return at(t) + uint64(plus) }, err
}

// memory decodes ld and st: .param and .global, one value or a vector.
func (f *Func) memory(p, args []string) (run, error) {
	load, ty := p[0] == "ld", p[len(p)-1]
	mods, count := p[1:len(p)-1], 1
	if i := slices.IndexFunc(mods, func(m string) bool { return m == "v2" || m == "v4" }); i == len(mods)-1 && i > 0 {
		count, mods = int(mods[i][1]-'0'), mods[:i]
	}
	space := strings.Join(mods, ".")
	if space != "global" && !(space == "param" && load) {
		return nil, fmt.Errorf("%s of %q is not known", p[0], space)
	}
	regs, where := args[0], args[1]
	if !load {
		regs, where = where, regs
	}
	names := operands(strings.Trim(regs, "{}"))
	if len(names) != count {
		return nil, fmt.Errorf("%d registers for %d values", len(names), count)
	}
	at, err := f.place(where)
	if err != nil {
		return nil, err
	}
	var slots []int
	for _, n := range names {
		r, err := f.anyReg(n, ty, true)
		if err != nil {
			return nil, err
		}
		slots = append(slots, r)
	}
	n := width(ty)
	return func(t *thread) error {
		var b []byte
		a := at(t)
		if space == "param" {
			if a%uint64(n) != 0 || a > uint64(len(t.launch.param)-n) {
				return fmt.Errorf("%d bytes at %d of a parameter of %d", n, a, len(t.launch.param))
			}
			b = t.launch.param[a:]
		} else if b, err = t.launch.vm.at(a, n*count); err != nil {
			return err
		}
		for i, r := range slots {
			if load {
				v := get(b[i*n:], n)
				if ty[0] == 's' {
					v = uint64(signed(v, ty)) & mask(f.kinds[r])
				}
				t.r[r] = v
			} else {
				put(b[i*n:], n, t.r[r])
			}
		}
		return nil
	}, nil
}

func (f *Func) atom(op string, args []string) (run, error) {
	if op != "atom.global.add.u64" && op != "atom.global.min.u64" {
		return nil, fmt.Errorf("instruction %s is not known", op)
	}
	d, err := f.reg(args[0], "u64")
	if err != nil {
		return nil, err
	}
	at, err := f.place(args[1])
	if err != nil {
		return nil, err
	}
	x, err := f.value(args[2], "u64", false)
	if err != nil {
		return nil, err
	}
	return func(t *thread) error {
		b, err := t.launch.vm.at(at(t), 8)
		if err != nil {
			return err
		}
		old := get(b, 8)
		if op == "atom.global.add.u64" {
			put(b, 8, old+x(t))
		} else {
			put(b, 8, min(old, x(t)))
		}
		t.r[d] = old
		return nil
	}, nil
}

func get(b []byte, n int) uint64 {
	var w [8]byte
	copy(w[:], b[:n])
	return binary.LittleEndian.Uint64(w[:])
}

func put(b []byte, n int, v uint64) {
	var w [8]byte
	binary.LittleEndian.PutUint64(w[:], v)
	copy(b[:n], w[:])
}
