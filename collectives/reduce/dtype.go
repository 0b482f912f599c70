// Package reduce holds the element types, the reduction operators and the
// kernels that combine buffers, chosen at run time for the processor.
package reduce

import (
	"fmt"
	"strings"
)

// Dtype is an element type, named as nccl-tests names it.
type Dtype uint8

const (
	Int8 Dtype = iota
	Uint8
	Int32
	Uint32
	Int64
	Uint64
	Half
	Float
	Double
	BFloat16
	F8E4M3
	F8E5M2
)

var dtypes = [...]struct {
	name string
	size int
}{{"int8", 1}, {"uint8", 1}, {"int32", 4}, {"uint32", 4}, {"int64", 8}, {"uint64", 8}, {"half", 2}, {"float", 4}, {"double", 8}, {"bfloat16", 2}, {"f8e4m3", 1}, {"f8e5m2", 1}}

// Dtypes lists every element type.
func Dtypes() []Dtype {
	out := make([]Dtype, len(dtypes))
	for i := range out {
		out[i] = Dtype(i)
	}
	return out
}

func (d Dtype) String() string {
	if int(d) < len(dtypes) {
		return dtypes[d].name
	}
	return fmt.Sprintf("dtype(%d)", uint8(d))
}

// Size is the bytes of one element.
func (d Dtype) Size() int { return dtypes[d].size }

// ParseDtype reads an element type's name.
func ParseDtype(s string) (Dtype, error) {
	var names []string
	for i, d := range dtypes {
		if strings.EqualFold(d.name, s) {
			return Dtype(i), nil
		}
		names = append(names, d.name)
	}
	return 0, fmt.Errorf("unknown data type %q; the types are %s", s, strings.Join(names, ", "))
}

// Op is a reduction operator.
type Op uint8

const (
	Sum Op = iota
	Prod
	Min
	Max
	Avg
)

var opNames = [...]string{"sum", "prod", "min", "max", "avg"}

// Ops lists every reduction operator.
func Ops() []Op { return []Op{Sum, Prod, Min, Max, Avg} }

func (o Op) String() string {
	if int(o) < len(opNames) {
		return opNames[o]
	}
	return fmt.Sprintf("redop(%d)", uint8(o))
}

// ParseOp reads a reduction operator's name.
func ParseOp(s string) (Op, error) {
	for i, n := range opNames {
		if strings.EqualFold(n, s) {
			return Op(i), nil
		}
	}
	return 0, fmt.Errorf("unknown reduction %q; the reductions are %s", s, strings.Join(opNames[:], ", "))
}
