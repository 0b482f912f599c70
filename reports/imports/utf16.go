package imports

import (
	"bufio"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// utf16Reader gives UTF-16 as UTF-8.
type utf16Reader struct {
	in   *bufio.Reader
	big  bool // the high byte comes first
	rest []byte
}

func (u *utf16Reader) Read(p []byte) (n int, err error) {
	for n < len(p) {
		if len(u.rest) > 0 {
			k := copy(p[n:], u.rest)
			n, u.rest = n+k, u.rest[k:]
			continue
		}
		c, err := u.unit()
		if err != nil {
			return n, err
		}
		if utf16.IsSurrogate(c) {
			low, err := u.unit()
			if err != nil {
				return n, err
			}
			c = utf16.DecodeRune(c, low)
		}
		if c != '\ufeff' { // the mark at its beginning
			u.rest = utf8.AppendRune(u.rest[:0], c)
		}
	}
	return n, nil
}

func (u *utf16Reader) unit() (rune, error) {
	var b [2]byte
	if _, err := io.ReadFull(u.in, b[:]); err != nil {
		return 0, io.EOF // half a unit is none
	}
	if u.big {
		return rune(b[0])<<8 | rune(b[1]), nil
	}
	return rune(b[1])<<8 | rune(b[0]), nil
}
