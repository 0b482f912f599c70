package reports

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
)

// random is a valid Result with every field either absent or set, zeros
// behind pointers included.
func random(r *rand.Rand) Result {
	var res Result
	fill(r, reflect.ValueOf(&res).Elem())
	res.Format = Format
	res.Op = "all_reduce"
	res.Ranks = 1 + r.IntN(8)
	res.Nodes, res.Groups = r.IntN(4), r.IntN(4)
	res.Bytes, res.Asked, res.Count = r.Int64N(1<<40), r.Int64N(2), r.Int64N(1<<40)
	if res.Wrong != nil {
		*res.Wrong = r.Int64N(2)
	}
	if res.Limit != nil {
		res.Limit.GBps = 1 + r.Float64()
	}
	if x := res.Expected; x != nil && x[0] > x[1] {
		x[0], x[1] = x[1], x[0]
	}
	if n := len(res.Pairs); n > 0 {
		res.Groups, res.Hosts = n, []string{"a", "b", "c"}
		for i := range res.Pairs {
			res.Pairs[i] = Pair{A: i % 3, B: (i + 1) % 3, Rail: r.IntN(8)}
		}
	}
	return res
}

func fill(r *rand.Rand, v reflect.Value) {
	absent := r.IntN(3) == 0
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(r.Int64N(4e9), r.Int64N(1e9)).UTC()))
			return
		}
		for i := range v.NumField() {
			fill(r, v.Field(i))
		}
	case reflect.Pointer:
		if !absent {
			v.Set(reflect.New(v.Type().Elem()))
			if r.IntN(2) == 0 || v.Type().Elem().Kind() == reflect.Struct { // else a zero that is there
				fill(r, v.Elem())
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(r, v.Index(i))
		}
	case reflect.Slice:
		if !absent {
			v.Set(reflect.MakeSlice(v.Type(), 1+r.IntN(5), 5))
			for i := range v.Len() {
				fill(r, v.Index(i))
			}
		}
	case reflect.Map:
		if !absent {
			v.Set(reflect.MakeMap(v.Type()))
			v.SetMapIndex(reflect.ValueOf("NCCL_BUFFSIZE"), reflect.ValueOf("4194304"))
			v.SetMapIndex(reflect.ValueOf("NCCL_ALGO"), reflect.ValueOf(""))
		}
	case reflect.String:
		v.SetString([]string{"", "ring", "a \"b\"\n\t\\", "größer ≥ 1", "<&>"}[r.IntN(5)])
	case reflect.Float64:
		v.SetFloat([]float64{0, 1e-7 * r.Float64(), 1.5, maxNumber, minNumber}[r.IntN(5)])
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int, reflect.Int64:
		v.SetInt(r.Int64N(1000))
	case reflect.Uint64:
		v.SetUint([]uint64{0, 7, 1<<64 - 1}[r.IntN(3)])
	default:
		panic("random Result: no rule for " + v.Kind().String())
	}
}

// spread is n times a little above base, in whole nanoseconds as a clock gives
// them, the same on every processor.
func spread(n int, base int64) []float64 {
	s := make([]float64, n)
	for i := range s {
		s[i] = float64(base+base*(int64(i)*37%101)/1000) / 1e9
	}
	return s
}

// sample is one plausible result for tests of texts.
func sample(scope, algorithm string, ranks int, bytes int64, seconds ...float64) Result {
	return Result{
		Format: Format, Time: time.Date(2026, 11, 30, 10, 15, 0, 0, time.UTC), Run: "20261130-101500-3f2a",
		Op: "all_reduce", Algorithm: algorithm, Engine: "native", Scope: scope, Link: map[string]string{"intra": "memory", "cross": "tcp"}[scope],
		Memory: "host", Dtype: "float", Redop: "sum", Ranks: ranks, Nodes: 2, Groups: 1, Bytes: bytes, Count: bytes / 4,
		Mode: "barrier", Aggregate: 1, Seconds: seconds, Warmup: 20, Settled: true, Source: "busbw 0.1.0",
	}
}

func TestRandomIsValid(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		if res := random(r); res.Check() != nil {
			t.Fatalf("%v: %+v", res.Check(), res)
		}
	}
}
