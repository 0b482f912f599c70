package ptxvm

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"strings"
)

// signed widens a value of the type.
func signed(v uint64, ty string) int64 {
	n := 64 - 8*width(ty)
	return int64(v<<n) >> n
}

func f32(v uint64) float32 { return math.Float32frombits(uint32(v)) }
func f64(v uint64) float64 { return math.Float64frombits(v) }

// operation is an operation on two values of a type; its result may have more bits
// than the type. nil: it is not known.
func operation(op []string, ty string) func(x, y uint64) uint64 {
	name := strings.Join(op, ".")
	switch ty {
	case "f32", "f64", "f16":
		fn := map[string]func(x, y float64) float64{
			"add.rn": func(x, y float64) float64 { return x + y },
			"mul.rn": func(x, y float64) float64 { return x * y },
			"div.rn": func(x, y float64) float64 { return x / y },
		}[name]
		switch {
		case fn == nil:
			return nil
		case ty == "f64":
			return func(x, y uint64) uint64 { return math.Float64bits(fn(f64(x), f64(y))) }
		case ty == "f16": // a sum or product of two of these is exact in float64
			return func(x, y uint64) uint64 { return toHalf(fn(fromHalf(x), fromHalf(y))) }
		}
		// A float64 has more than twice the bits of a float32 and two more, so
		// that rounding twice is rounding once (Figueroa, 1995).
		return func(x, y uint64) uint64 {
			return uint64(math.Float32bits(float32(fn(float64(f32(x)), float64(f32(y))))))
		}
	case "f16x2":
		if one := operation(op, "f16"); one != nil {
			return func(x, y uint64) uint64 { return one(x&0xffff, y&0xffff) | one(x>>16, y>>16)<<16 }
		}
		return nil
	}
	s, size := ty[0] == 's', uint64(8*width(ty))
	switch name {
	case "add":
		return func(x, y uint64) uint64 { return x + y }
	case "sub":
		return func(x, y uint64) uint64 { return x - y }
	case "mul.lo", "mul.wide":
		if name == "mul.wide" && ty != "u32" {
			return nil
		}
		return func(x, y uint64) uint64 { return x * y }
	case "and":
		return func(x, y uint64) uint64 { return x & y }
	case "or":
		return func(x, y uint64) uint64 { return x | y }
	case "xor":
		return func(x, y uint64) uint64 { return x ^ y }
	case "shl":
		return func(x, y uint64) uint64 { return x << min(y, size) }
	case "shr":
		if s {
			return func(x, y uint64) uint64 { return uint64(signed(x, ty) >> min(y, 63)) }
		}
		return func(x, y uint64) uint64 { return x >> min(y, size) }
	case "min", "max":
		sign := map[string]int{"min": -1, "max": 1}[name]
		return func(x, y uint64) uint64 {
			if order(x, y, ty) == sign {
				return x
			}
			return y
		}
	case "div", "rem":
		return func(x, y uint64) uint64 {
			switch {
			case y == 0:
				return ^uint64(0) // the manual leaves it open
			case s && name == "div":
				return uint64(signed(x, ty) / signed(y, ty))
			case s:
				return uint64(signed(x, ty) % signed(y, ty))
			case name == "div":
				return x / y
			}
			return x % y
		}
	}
	return nil
}

// order is −1, 0 or 1 for integers.
func order(x, y uint64, ty string) int {
	if ty[0] == 's' {
		return cmp.Compare(signed(x, ty), signed(y, ty))
	}
	return cmp.Compare(x, y)
}

// setp compares. With a NaN every ordered comparison is false.
func (f *Func) setp(op, args []string) (run, error) {
	if len(op) != 2 {
		return nil, fmt.Errorf("setp.%s is not known", strings.Join(op, "."))
	}
	ty := op[1]
	d, err := f.reg(args[0], "pred")
	if err != nil {
		return nil, err
	}
	x, err := f.value(args[1], ty, false)
	if err != nil {
		return nil, err
	}
	y, err := f.value(args[2], ty, false)
	if err != nil {
		return nil, err
	}
	yes, ok := map[string][3]bool{"lt": {true, false, false}, "le": {true, true, false}, "eq": {false, true, false}, "ne": {true, false, true}, "ge": {false, true, true}, "gt": {false, false, true}}[op[0]]
	if !ok || ty[0] == 'f' && op[0] == "ne" {
		return nil, fmt.Errorf("setp.%s.%s is not known", op[0], ty)
	}
	return func(t *thread) error {
		a, b := x(t), y(t)
		c, nan := order(a, b, ty), false
		switch ty {
		case "f32":
			c, nan = cmp.Compare(f32(a), f32(b)), f32(a) != f32(a) || f32(b) != f32(b)
		case "f64":
			c, nan = cmp.Compare(f64(a), f64(b)), f64(a) != f64(a) || f64(b) != f64(b)
		}
		t.r[d] = 0
		if yes[c+1] && !nan {
			t.r[d] = 1
		}
		return nil
	}, nil
}

// cvt converts between types; a register may be wider than the type that is
// read from it, or written to it.
func (f *Func) cvt(op, args []string) (run, error) {
	rounds := op[0] == "rn"
	if rounds {
		op = op[1:]
	}
	if len(op) != 2 {
		return nil, fmt.Errorf("cvt.%s is not known", strings.Join(op, "."))
	}
	to, from := op[0], op[1]
	d, err := f.anyReg(args[0], to, true)
	if err != nil {
		return nil, err
	}
	x, err := f.value(args[1], from, true)
	if err != nil {
		return nil, err
	}
	var fn func(v uint64) uint64
	switch to + " " + from {
	case "f32 f16":
		fn = func(v uint64) uint64 { return uint64(math.Float32bits(float32(fromHalf(v)))) }
	case "f16 f32":
		fn = func(v uint64) uint64 { return toHalf(float64(f32(v))) }
	case "f32 u32":
		fn = func(v uint64) uint64 { return uint64(math.Float32bits(float32(uint32(v)))) }
	case "f64 u32":
		fn = func(v uint64) uint64 { return math.Float64bits(float64(uint32(v))) }
	default:
		if to[0] == 'f' || from[0] == 'f' || rounds {
			return nil, fmt.Errorf("cvt.%s.%s is not known", to, from)
		}
		fn = func(v uint64) uint64 {
			if from[0] == 's' {
				v = uint64(signed(v, from))
			}
			return v & mask(to)
		}
	}
	if exact := to == "f32" && from == "f16"; to[0] == 'f' && rounds == exact {
		return nil, fmt.Errorf("cvt.%s.%s: wrong rounding", to, from)
	}
	return func(t *thread) error { t.r[d] = fn(x(t)); return nil }, nil
}

// fromHalf and toHalf are IEEE 754's binary16, written for float64 and so
// apart from what collectives/reduce does with bits.
func fromHalf(h uint64) float64 {
	e, m := int(h>>10&31), float64(h&1023)
	v := math.Ldexp(1024+m, e-25)
	switch {
	case e == 31 && m != 0:
		return math.NaN()
	case e == 31:
		v = math.Inf(1)
	case e == 0:
		v = math.Ldexp(m, -24)
	}
	if h>>15 != 0 {
		return -v
	}
	return v
}

func toHalf(x float64) uint64 {
	if x != x {
		return 0x7fff
	}
	var sign uint64
	if math.Signbit(x) {
		sign, x = 0x8000, -x
	}
	switch {
	case math.IsInf(x, 0):
		return sign | 0x7c00
	case x == 0:
		return sign
	}
	e := max(math.Ilogb(x), -14)
	n := uint64(math.RoundToEven(math.Ldexp(x, 10-e))) // the significand, an integer
	if bits.Len64(n) > 11 {
		n, e = n>>1, e+1
	}
	switch {
	case e > 15:
		return sign | 0x7c00
	case n < 1<<10:
		return sign | n
	}
	return sign | uint64(e+15)<<10 | n&1023
}
