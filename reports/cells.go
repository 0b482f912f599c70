package reports

import (
	"bytes"
	"io"
)

// Texts of other tables than those of results read the same.

// TimeText is a time in the unit that fits, SizeText bytes in the largest binary
// unit that divides them, RateText GB/s, ShareText a ratio in per cent.
func TimeText(seconds float64) string { return timeText(seconds) }
func SizeText(bytes int64) string     { return sizeText(bytes) }
func RateText(gbps float64) string    { return rateText(gbps, true) }
func ShareText(ratio float64) string  { return shareText(ratio, true) }

// Clean makes a text from elsewhere fit to be printed in a line.
func Clean(s string) string { return name(s) }

// Draw writes a table; align has an l (left) or an r (right) for each column.
func Draw(w io.Writer, heads []string, align string, rows [][]string) error {
	var b bytes.Buffer
	if err := draw(&b, heads, align, rows, nil); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}
