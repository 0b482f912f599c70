package reports

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// What a file may make a reader hold. A record of 20 000 iterations is about
// half a megabyte, one of the most iterations that busbw does 24 megabytes, a
// long run of many launches some hundred megabytes.
const (
	maxLine     = 32 << 20 // bytes of a record
	maxObjects  = 1 << 16  // of a record: pairs, counters; each takes many times its text
	maxTexts    = 1 << 19  // of a record: notes, hosts, settings
	maxText     = 2 << 30  // bytes of a file, decompressed
	maxWarnings = 20
)

// longLine stands for a line over maxLine; as it is no JSON, nothing takes it
// for a record.
const longLine = "longer than 32 MiB"

// ReadFile reads the results in a file, or in standard input where name is
// "-": JSON lines, plain or zstd, whatever the name. Records that make no
// sense are passed over, each with a warning ("file:line: why"), and so is a
// record cut off at the end by an interruption. A record of a newer format, a
// damaged file and one beyond all bounds are errors; what was read before is
// returned too.
func ReadFile(name string) (results []Result, warnings []string, err error) {
	if name == "-" {
		return Read(os.Stdin, "standard input")
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, nil, fmt.Errorf("results file: %w", err)
	}
	defer f.Close()
	return Read(f, name)
}

// Read is ReadFile for an open stream; name stands for it in messages.
func Read(r io.Reader, name string) (results []Result, warnings []string, err error) {
	skipped := 0
	var held Held
	warn := func(w string) {
		if skipped++; skipped <= maxWarnings {
			warnings = append(warnings, w)
		}
	}
	err = eachLine(r, name, func(n int, line []byte, whole bool) error {
		if len(bytes.TrimSpace(line)) == 0 {
			return nil
		}
		res, err := decode(line)
		switch {
		case errors.Is(err, ErrNewer):
			return fmt.Errorf("%s:%d: %w", name, n, err)
		case err != nil && !whole:
			warn(fmt.Sprintf("%s:%d: the last record is %s", name, n, cutOff))
			return nil
		case err != nil:
			warn(fmt.Sprintf("%s:%d: passed over: %v", name, n, err))
			return nil
		}
		if err := held.Add(&res); err != nil {
			return fmt.Errorf("%s:%d: %w", name, n, err)
		}
		results = append(results, res)
		return nil
	})
	var torn *tornError
	if errors.As(err, &torn) {
		warn(err.Error())
		err = nil
	}
	if skipped > maxWarnings {
		warnings = append(warnings, fmt.Sprintf("%s: %d more warnings", name, skipped-maxWarnings))
	}
	return results, warnings, err
}

func decode(line []byte) (res Result, err error) {
	if string(line) == longLine {
		return res, errors.New(longLine)
	}
	if bytes.Count(line, []byte("{")) > maxObjects || bytes.Count(line, []byte(`"`)) > 2*maxTexts {
		return res, fmt.Errorf("more than %d objects or %d texts: not a result", maxObjects, maxTexts)
	}
	if err := json.Unmarshal(line, &res); err != nil {
		// A newer format may have changed a field's type: its number tells.
		var head struct {
			Format int `json:"format"`
		}
		if json.Unmarshal(line, &head) == nil && head.Format > Format {
			res = Result{Format: head.Format}
			return res, res.Check()
		}
		return res, err
	}
	return res, res.Check()
}

// cutOff is what a warning says where the end of a file is missing.
const cutOff = "cut off"

// tornError says that a compressed file ends in the middle of a frame, as it
// does when its writer was interrupted.
type tornError struct {
	name  string
	lines int
}

func (e *tornError) Error() string {
	return fmt.Sprintf("%s: %s after line %d, as by an interrupted run", e.name, cutOff, e.lines)
}

// eachLine gives the lines of a plain or zstd stream to fn, numbered from 1,
// without their end; whole is false for a last line that has none. A line
// stays valid until fn returns. A line over maxLine is given as longLine.
func eachLine(r io.Reader, name string, fn func(n int, line []byte, whole bool) error) error {
	text, done, err := Unpack(r)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer done()
	if head, _ := text.Peek(1); len(head) == 1 && head[0] == 0 {
		return fmt.Errorf("%s: starts with a zero byte: not a results file", name)
	}
	var line []byte
	total, long := int64(0), false
	for n := 1; ; {
		part, err := text.ReadSlice('\n')
		if total += int64(len(part)); total > maxText {
			return fmt.Errorf("%s:%d: more than %d GiB of text: not a results file", name, n, maxText>>30)
		}
		if long = long || len(line)+len(part) > maxLine; long {
			line = append(line[:0], longLine...)
		} else {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err == nil:
			if err := fn(n, bytes.TrimSuffix(line, []byte("\n")), true); err != nil {
				return err
			}
			line, long = line[:0], false
			n++
			continue
		case len(line) > 0:
			if err := fn(n, line, false); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			return &tornError{name, n - 1}
		default:
			return fmt.Errorf("%s: damaged or unreadable after line %d: %w", name, n-1, err)
		}
	}
}
