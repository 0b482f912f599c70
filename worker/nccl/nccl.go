// Package nccl runs collectives through NVIDIA's NCCL, whose library is loaded
// at run time. Ranks of one communicator may be threads or processes; each has
// its GPU's context current on its thread (worker/gpu).
package nccl

import (
	"errors"
	"fmt"

	"busbw/collectives"
	"busbw/collectives/reduce"
)

// ErrAbsent means that this machine has no NCCL that the loader finds.
var ErrAbsent = errors.New("no NCCL library on this machine")

// ErrTooOld means that the library there lacks what busbw needs.
var ErrTooOld = errors.New("the NCCL library is too old")

// Library is the NCCL that was loaded.
type Library struct {
	Name    string // "libnccl.so.2"
	Version int    // 22304 for 2.23.4; of RCCL that of the NCCL that it follows
}

// String is the version, with the name where that is not NCCL's.
func (l Library) String() string {
	if l.Name == libraries[0] {
		return VersionText(l.Version)
	}
	return VersionText(l.Version) + " (" + l.Name + ")"
}

// libraries are the names under which packages install NVIDIA's library, and
// AMD's, which has the same interface.
var libraries = [...]string{"libnccl.so.2", "librccl.so.1"}

// ErrGone is what a communicator answers that was aborted.
var ErrGone = errors.New("NCCL: the communicator was aborted")

// Error is a result of the library that is not success.
type Error struct {
	What string // that was tried
	Code int    // ncclResult_t
	Text string // ncclGetErrorString
	Last string // ncclGetLastError, which is longer
}

func (e *Error) Error() string {
	s := fmt.Sprintf("NCCL: %s: %s (%d)", e.What, e.Text, e.Code)
	if e.Last != "" {
		s += ": " + e.Last
	}
	if hint := hints[e.Code]; hint != "" {
		s += "; " + hint
	}
	return s
}

// Consequence says that the error follows from another rank's end.
func (e *Error) Consequence() bool { return e.Code == 6 }

// hints say what results usually mean (NCCL user guide, troubleshooting).
var hints = map[int]string{
	1: "a CUDA call failed: see the node's kernel log for an Xid",
	2: "a system call failed: NCCL_DEBUG=WARN in the log tells which",
	5: "often ranks that called different operations, or one GPU in two ranks",
	6: "another rank ended or its network failed: look there first",
}

// IDBytes is the size of ncclUniqueId.
const IDBytes = 128

// ID lets the ranks of a communicator find each other.
type ID [IDBytes]byte

// VersionText writes a version as people do; NCCL changed its number's form
// with 2.9.
func VersionText(v int) string {
	if v < 10000 {
		return fmt.Sprintf("%d.%d.%d", v/1000, v%1000/100, v%100)
	}
	return fmt.Sprintf("%d.%d.%d", v/10000, v%10000/100, v%100)
}

// dtypes are ncclDataType_t, and the version that brought them.
var dtypes = map[reduce.Dtype]struct{ id, since int }{
	reduce.Int8: {0, 0}, reduce.Uint8: {1, 0}, reduce.Int32: {2, 0}, reduce.Uint32: {3, 0}, reduce.Int64: {4, 0}, reduce.Uint64: {5, 0},
	reduce.Half: {6, 0}, reduce.Float: {7, 0}, reduce.Double: {8, 0}, reduce.BFloat16: {9, 21000}, reduce.F8E4M3: {10, 22400}, reduce.F8E5M2: {11, 22400},
}

// redops are ncclRedOp_t.
var redops = map[reduce.Op]struct{ id, since int }{
	reduce.Sum: {0, 0}, reduce.Prod: {1, 0}, reduce.Max: {2, 0}, reduce.Min: {3, 0}, reduce.Avg: {4, 21000},
}

// floats8 is the compute capability from which on NCCL reduces 8-bit floats; others
// only move them (src/enqueue.cc).
const floats8 = 90

// leastBits is of the smallest value that an 8-bit float has: 2 to the minus this.
var leastBits = map[reduce.Dtype]int{reduce.F8E4M3: 9, reduce.F8E5M2: 16}

// Offers says why a version does not offer an operation on an element type, with a
// reduction, to so many ranks on GPUs of a compute capability (90 for 9.0); nil: it
// does. An average of NCCL's multiplies each rank's value by 1/ranks in the type
// (src/enqueue.cc, hostToDevRedOp): where that rounds to 0, so is every result.
func Offers(version, compute, ranks int, what collectives.Op, t reduce.Dtype, op reduce.Op) error {
	if !what.Reduces() {
		op = reduce.Sum
	} else if (t == reduce.F8E4M3 || t == reduce.F8E5M2) && compute < floats8 {
		return fmt.Errorf("NCCL reduces %s on GPUs of compute capability 9.0 and later, not %d.%d", t, compute/10, compute%10)
	}
	if least := leastBits[t]; what.Reduces() && op == reduce.Avg && least > 0 && ranks >= 2<<least {
		return fmt.Errorf("NCCL makes an average of %s by multiplying by 1/%d, which is 0 in that type", t, ranks)
	}
	if d := dtypes[t]; version < d.since {
		return fmt.Errorf("NCCL %s has no %s: that came with %s", VersionText(version), t, VersionText(d.since))
	}
	if o := redops[op]; version < o.since {
		return fmt.Errorf("NCCL %s has no %s: that came with %s", VersionText(version), op, VersionText(o.since))
	}
	return nil
}

// Call is one collective as a rank sees it; buffers are as in
// collectives.Buffers, in GPU memory.
type Call struct {
	Op      collectives.Op
	Dtype   reduce.Dtype
	Redop   reduce.Op
	Root    int
	Count   int64 // elements of the whole buffer S
	In, Out []byte
}
