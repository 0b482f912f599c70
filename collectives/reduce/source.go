package reduce

import (
	"bytes"
	"encoding/binary"
)

// sourceWords is the period of the inputs of operations that only move data, in
// words of 8 bytes: a prime, so that chunks are no multiple of it.
const sourceWords = 4093

// Source is one period of what FillSource writes, or its first most bytes if
// that is less.
func Source(d Dtype, source int, first int64, most int) []byte {
	return sourcePeriod(source, first*int64(d.Size()), min(sourceWords*8, most))
}

// FillSource writes the input of rank source of an operation that moves data
// without combining it (broadcast, all-gather, …): the elements first, first+1,
// … of it. Every 8 bytes are a hash of the rank and of the place modulo 4093 words,
// so data from another rank or another place shows.
func FillSource(buf []byte, d Dtype, source int, first int64) {
	repeat(buf, copy(buf, Source(d, source, first, len(buf))))
}

// CheckSource compares a buffer with what FillSource wrote for rank source. It
// gives the number of wrong elements and the first of them, counted like first;
// -1 if all are right.
func CheckSource(buf []byte, d Dtype, source int, first int64) (wrong, firstWrong int64) {
	return mismatches(buf, Source(d, source, first, len(buf)), d.Size(), first)
}

// sourcePeriod gives n bytes of source's input from byte off on.
func sourcePeriod(source int, off int64, n int) []byte {
	skip := int(off % 8)
	out := make([]byte, 0, n+16)
	for w := off / 8; len(out) < skip+n; w++ {
		out = binary.LittleEndian.AppendUint64(out, mix(uint64(source)<<32|uint64(w%sourceWords)))
	}
	return out[skip : skip+n]
}

// repeat fills buf with copies of its first period bytes.
func repeat(buf []byte, period int) {
	for at := period; at < len(buf); at += period {
		copy(buf[at:], buf[:period])
	}
}

// mismatches counts the elements of buf that differ from want repeated.
func mismatches(buf, want []byte, size int, first int64) (wrong, firstWrong int64) {
	firstWrong = -1
	for at := 0; at < len(buf); at += len(want) {
		got := buf[at:min(at+len(want), len(buf))]
		if bytes.Equal(got, want[:len(got)]) {
			continue
		}
		for i := 0; i < len(got); i += size {
			if !bytes.Equal(got[i:i+size], want[i:i+size]) {
				if wrong++; firstWrong < 0 {
					firstWrong = first + int64(at+i)/int64(size)
				}
			}
		}
	}
	return wrong, firstWrong
}
