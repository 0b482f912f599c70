package ptxvm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// run is what an instruction does.
type run = func(t *thread) error

// value reads an operand.
type value = func(t *thread) uint64

// width is the bytes of a type: u8 … f64, f16x2.
func width(ty string) int {
	switch strings.TrimLeft(ty, "subf") {
	case "8":
		return 1
	case "16":
		return 2
	case "32", "16x2":
		return 4
	case "64":
		return 8
	}
	return 0
}

// mask keeps the bits of a type.
func mask(ty string) uint64 {
	if ty == "pred" {
		return 1
	}
	return ^uint64(0) >> (64 - 8*width(ty))
}

// fits says whether a register of the kind may stand where the instruction says
// ty. PTX lets untyped registers take every type of their size, and the operands
// of cvt, ld and st be wider than the type.
func fits(kind, ty string, wider bool) bool {
	switch {
	case kind == "pred" || ty == "pred":
		return kind == ty
	case width(kind) != width(ty) && !(wider && width(kind) > width(ty) && kind[0] == 'b'):
		return false
	case kind[0] == 'f':
		return ty == kind || ty[0] == 'b'
	case ty == "f32" || ty == "f64":
		return false // these have registers of their own
	}
	return true
}

func (f *Func) reg(name, ty string) (int, error) { return f.anyReg(name, ty, false) }

func (f *Func) anyReg(name, ty string, wider bool) (int, error) {
	i, ok := f.regs[name]
	if !ok {
		return 0, fmt.Errorf("register %s is not declared", name)
	}
	if !fits(f.kinds[i], ty, wider) {
		return 0, fmt.Errorf("register %s is .%s where the instruction says .%s", name, f.kinds[i], ty)
	}
	return i, nil
}

// value decodes an operand that is read: a register, a number, or a special register.
func (f *Func) value(name, ty string, wider bool) (value, error) {
	switch name {
	case "%tid.x":
		return func(t *thread) uint64 { return uint64(t.tid) }, nil
	case "%ntid.x":
		return func(t *thread) uint64 { return uint64(t.launch.block) }, nil
	case "%ctaid.x":
		return func(t *thread) uint64 { return uint64(t.block) }, nil
	case "%nctaid.x":
		return func(t *thread) uint64 { return uint64(t.launch.grid) }, nil
	case f.param: // parameters have addresses of their own, from 0 on
		return func(*thread) uint64 { return 0 }, nil
	}
	if name[0] == '%' {
		i, err := f.anyReg(name, ty, wider)
		m := mask(ty)
		return func(t *thread) uint64 { return t.r[i] & m }, err
	}
	k, err := number(name)
	k &= mask(ty)
	return func(*thread) uint64 { return k }, err
}

// number reads an immediate: decimal, or the bits of a float (0f…, 0d…).
func number(s string) (uint64, error) {
	if strings.HasPrefix(s, "0f") || strings.HasPrefix(s, "0d") {
		return strconv.ParseUint(s[2:], 16, 64)
	}
	if i, err := strconv.ParseInt(s, 0, 64); err == nil {
		return uint64(i), nil
	}
	return strconv.ParseUint(s, 0, 64)
}

// decode turns an instruction that neither branches nor waits into what it does.
func (f *Func) decode(op string, args []string) (run, error) {
	p := strings.Split(op, ".")
	ty := p[len(p)-1]
	want := map[string]int{"neg": 2, "mov": 2, "cvt": 2, "ld": 2, "st": 2, "atom": 3, "selp": 4, "bfe": 4}[p[0]]
	if want == 0 {
		want = 3
	}
	if len(args) != want {
		return nil, fmt.Errorf("%d operands, want %d", len(args), want)
	}
	if ty != "pred" && width(ty) == 0 {
		return nil, fmt.Errorf("type %s is not known", ty)
	}
	switch p[0] {
	case "ld", "st":
		return f.memory(p, args)
	case "atom":
		return f.atom(op, args)
	case "mov":
		return f.mov(ty, args)
	case "cvt":
		return f.cvt(p[1:], args)
	case "setp":
		return f.setp(p[1:], args)
	}
	types := map[string][]string{"selp": {ty, ty, "pred"}, "bfe": {ty, "u32", "u32"}, "shl": {ty, "u32"}, "shr": {ty, "u32"}, "neg": {ty}}[p[0]]
	if types == nil {
		types = []string{ty, ty}
	}
	result := ty
	if slices.Equal(p, []string{"mul", "wide", "u32"}) {
		result = "u64"
	}
	d, err := f.reg(args[0], result)
	if err != nil {
		return nil, err
	}
	var in [3]value
	for i, a := range args[1:] {
		if in[i], err = f.value(a, types[i], false); err != nil {
			return nil, err
		}
	}
	m := mask(result)
	switch op {
	case "selp." + ty:
		return func(t *thread) error {
			v := in[1](t)
			if in[2](t) != 0 {
				v = in[0](t)
			}
			t.r[d] = v
			return nil
		}, nil
	case "bfe.u32", "bfe.s32":
		return func(t *thread) error {
			pos, n := in[1](t)&255, in[2](t)&255
			if n == 0 || pos+n > 32 {
				return fmt.Errorf("bit field of %d bits at %d", n, pos)
			}
			v := in[0](t) >> pos & (1<<n - 1)
			if op == "bfe.s32" && v>>(n-1) != 0 {
				v |= ^uint64(0) << n
			}
			t.r[d] = v & m
			return nil
		}, nil
	case "neg." + ty:
		return func(t *thread) error { t.r[d] = -in[0](t) & m; return nil }, nil
	}
	fn := operation(p[:len(p)-1], ty)
	if fn == nil {
		return nil, fmt.Errorf("instruction %s is not known", op)
	}
	return func(t *thread) error { t.r[d] = fn(in[0](t), in[1](t)) & m; return nil }, nil
}

// mov copies between registers of one size, also one into two halves and back.
func (f *Func) mov(ty string, args []string) (run, error) {
	half := "b" + strconv.Itoa(4*width(ty))
	if strings.HasPrefix(args[0], "{") {
		from, err := f.value(args[1], ty, false)
		if err != nil {
			return nil, err
		}
		var to [2]int
		for i, name := range operands(strings.Trim(args[0], "{}")) {
			if to[i] = -1; name != "tmp" {
				if to[i], err = f.reg(name, half); err != nil {
					return nil, err
				}
			}
		}
		return func(t *thread) error {
			v := from(t)
			for i, r := range to {
				if r >= 0 {
					t.r[r] = v >> (i * 4 * width(ty)) & mask(half)
				}
			}
			return nil
		}, nil
	}
	d, ok := f.regs[args[0]]
	if !ok || ty[0] != 'b' && !fits(f.kinds[d], ty, false) || width(f.kinds[d]) != width(ty) {
		return nil, fmt.Errorf("mov.%s to %s", ty, args[0])
	}
	if strings.HasPrefix(args[1], "{") {
		var in []value
		for _, name := range operands(strings.Trim(args[1], "{}")) {
			v, err := f.value(name, half, false)
			if err != nil {
				return nil, err
			}
			in = append(in, v)
		}
		return func(t *thread) error { t.r[d] = in[0](t) | in[1](t)<<(4*width(ty)); return nil }, nil
	}
	from, err := f.value(args[1], ty, false)
	if err != nil {
		return nil, err
	}
	return func(t *thread) error { t.r[d] = from(t); return nil }, nil
}
