package reports

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

const zstdMagic = 0xFD2FB528 // RFC 8878, 3.1.1; little endian

// Unpack gives the text of a plain or zstd stream, told apart by its content.
// It holds at most one window of the stream, 64 MiB. The caller calls done.
func Unpack(r io.Reader) (text *bufio.Reader, done func(), err error) {
	in := bufio.NewReaderSize(r, 256<<10)
	// A file shorter than the magic number is no zstd file; its error comes again.
	if head, _ := in.Peek(4); len(head) < 4 || binary.LittleEndian.Uint32(head) != zstdMagic {
		return in, func() {}, nil
	}
	z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(64<<20), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, nil, fmt.Errorf("zstd: %w", err)
	}
	return bufio.NewReaderSize(z, 256<<10), z.Close, nil
}
