package collectives

// A rank has up to three buffers. In holds its input and is only read (unless
// in and out overlap, in place); Out receives its result; Work holds chunks
// that pass through and belong to neither.
//
//	op             in (elements)        out               S (the "size")
//	all_reduce     S                    S                 S
//	broadcast      S at root            S                 S
//	reduce         S                    S at root         S
//	all_gather     S/n: own block       S                 S
//	reduce_scatter S                    S/n: own block    S
//	alltoall       S: block j is for j  S: block i is of i S
//	gather         S/n                  S at root         S
//	scatter        S at root            S/n               S
//	sendrecv       S                    S                 S  (rank r sends to r+1)
//
// In place means what NCCL means: all_reduce, broadcast, reduce: in = out;
// all_gather: in = out + own block; reduce_scatter: out = in + own block.
// The other operations have no in-place form.

// Where names a buffer.
type Where uint8

const (
	Nowhere Where = iota
	In
	Out
	Work
)

// Span is a range of elements of one of a rank's buffers.
type Span struct {
	Where    Where
	Off, Len int // elements
}
