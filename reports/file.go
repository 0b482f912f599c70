package reports

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
)

// Writer appends results to a file, one JSON object a line, in zstd frames
// where the name ends in ".zst". Each record is flushed: whatever ends the
// run, the file is readable up to the last whole record.
type Writer struct {
	file *os.File
	zstd *zstd.Encoder // nil for a plain file
	out  io.Writer     // file or zstd
	name string
	sure time.Time // when what had been written was last put on the disk
}

// syncEvery is how much a machine that crashes may cost: the records of so long.
// A sync takes milliseconds on some disks, and files of other programs' results
// have a hundred thousand records.
const syncEvery = time.Second

// Create makes a new results file and the folders above it. A file that is
// there already is not touched: it is an error that errors.Is fs.ErrExist.
func Create(name string) (*Writer, error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return nil, fmt.Errorf("results file: %w", err)
	}
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("results file: %s is %s; give the name of a file that does not exist yet", name, kindOf(info.Mode()))
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("results file %s exists and is kept: choose another name, or resume it: %w", name, fs.ErrExist)
	}
	if err != nil {
		return nil, fmt.Errorf("results file: %w", err)
	}
	return newWriter(f, name)
}

func kindOf(m os.FileMode) string {
	if m.IsDir() {
		return "a folder"
	}
	return "a device or a pipe, not a file"
}

// Append opens a results file to go on from its last whole record; it makes
// the file where there is none. The whole lines move into a new file that then
// takes the name: a frame cut off by an interruption cannot be continued.
func Append(name string) (*Writer, error) {
	old, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return Create(name)
	}
	if err != nil {
		return nil, fmt.Errorf("results file: %w", err)
	}
	defer old.Close()
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*.part")
	if err != nil {
		return nil, fmt.Errorf("results file: %w", err)
	}
	w, err := newWriter(f, name)
	if err == nil {
		err = w.adopt(old)
	}
	if err != nil {
		f.Close()
		os.Remove(f.Name())
		return nil, err
	}
	return w, nil
}

// adopt copies old's whole lines, whatever they say, and takes its place.
func (w *Writer) adopt(old *os.File) error {
	info, err := old.Stat()
	if err != nil {
		return fmt.Errorf("results file: %w", err)
	}
	err = eachLine(old, w.name, func(_ int, line []byte, whole bool) error {
		if !whole && !json.Valid(line) {
			return nil
		}
		return w.line(line)
	})
	var torn *tornError
	if err != nil && !errors.As(err, &torn) {
		return err
	}
	if err := w.flush(); err != nil {
		return err
	}
	if err := w.file.Chmod(info.Mode().Perm()); err != nil {
		return fmt.Errorf("results file: %w", err)
	}
	if err := os.Rename(w.file.Name(), w.name); err != nil {
		return fmt.Errorf("results file: %w", err)
	}
	return nil
}

func newWriter(f *os.File, name string) (*Writer, error) {
	w := &Writer{file: f, out: f, name: name}
	if strings.HasSuffix(name, ".zst") {
		// One goroutine and a small window: the writer lives beside a benchmark.
		z, err := zstd.NewWriter(f, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
		if err != nil {
			return nil, fmt.Errorf("results file %s: %w", name, err)
		}
		w.zstd, w.out = z, z
	}
	return w, nil
}

// Name is the file's name.
func (w *Writer) Name() string { return w.name }

// Write appends a record and flushes it; once a second it also waits until the
// file is on the disk, so that a crash of the machine leaves the rest. After an error the file still holds
// all records before this one.
func (w *Writer) Write(r Result) error {
	line, err := encode(r)
	if err != nil {
		return fmt.Errorf("results file %s: %w", w.name, err)
	}
	if err := w.line(line); err != nil {
		return err
	}
	return w.flush()
}

func (w *Writer) line(line []byte) error {
	if _, err := w.out.Write(append(line, '\n')); err != nil {
		return w.failed(err)
	}
	return nil
}

func (w *Writer) flush() error {
	if w.zstd != nil {
		if err := w.zstd.Flush(); err != nil {
			return w.failed(err)
		}
	}
	if now := time.Now(); now.Sub(w.sure) >= syncEvery {
		w.sure = now
		if err := w.sync(); err != nil {
			return w.failed(err)
		}
	}
	return nil
}

// sync waits until what was written is on the disk. A pipe or a terminal has
// nothing to wait for and refuses.
func (w *Writer) sync() error {
	if info, err := w.file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	return w.file.Sync()
}

func (w *Writer) failed(err error) error {
	return fmt.Errorf("results file %s: cannot write; it holds all records before this one: %w", w.name, err)
}

// Close ends the file and waits until it is on the disk.
func (w *Writer) Close() error {
	var errs []error
	if w.zstd != nil {
		errs = append(errs, w.zstd.Close())
	}
	errs = append(errs, w.sync(), w.file.Close())
	if err := errors.Join(errs...); err != nil {
		return w.failed(err)
	}
	return nil
}

// encode is a record as it goes to a file: of this format, without secrets.
func encode(r Result) ([]byte, error) {
	r.Format = Format
	r.Config = redact(r.Config)
	line, err := []byte(nil), error(nil)
	if r.Stated != nil {
		line, err = r.importedJSON()
	} else {
		line, err = json.Marshal(r)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s %d B: %w", r.Op, r.Algorithm, r.Bytes, err)
	}
	return line, nil
}

// secretWords mark a setting whose value is nobody's business. They match
// whole words of a name, so that NCCL_IB_PKEY, a partition number, stays.
var secretWords = [...]string{"secret", "secrets", "token", "tokens", "password", "passwd", "passphrase", "key", "keys", "apikey",
	"credential", "credentials", "auth", "authorization", "cookie"}

// redacted stands for the value of a setting whose name says that it is secret.
const redacted = "(redacted)"

func redact(config map[string]string) map[string]string {
	var out map[string]string
	for name := range config {
		if !secret(name) {
			continue
		}
		if out == nil {
			out = make(map[string]string, len(config))
			for k, v := range config {
				out[k] = v
			}
		}
		out[name] = redacted
	}
	if out == nil {
		return config
	}
	return out
}

func secret(name string) bool {
	words := strings.FieldsFunc(strings.ToLower(name), func(c rune) bool { return (c < 'a' || c > 'z') && (c < '0' || c > '9') })
	for _, w := range words {
		for _, s := range secretWords {
			if w == s {
				return true
			}
		}
	}
	return false
}
