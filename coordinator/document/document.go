// Package document reads the YAML that people write: cluster descriptions,
// profiles, matrices of settings. What is wrong with one is said on one short
// line without control characters, whatever the file is.
package document

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"
)

// ErrEmpty is a text without a document: nothing, blanks or comments.
var ErrEmpty = errors.New("the file is empty")

// Most of a message, and of a line that it quotes, in characters.
const (
	maxMessage = 160
	maxQuote   = 60
)

// ErrAlias is a document that repeats parts of itself by reference: a few lines
// of them are as much as gigabytes.
var ErrAlias = errors.New("aliases (*name) are not read: write the value out")

// Decode reads the one document of text. Fields that into does not have are
// errors, and so are values of the wrong kind; both are named. The library
// panics on some texts that are no YAML.
func Decode(text []byte, into any) (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("malformed YAML: a tag or a list without a value")
		}
	}()
	if at := binary(text); at >= 0 {
		return fmt.Errorf("no YAML: byte %d, %#02x, belongs to no text", at, text[at])
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	for _, t := range lexer.Tokenize(string(text)) {
		if t.Type == token.AliasType {
			return fmt.Errorf("[%d:%d] %w", t.Position.Line, t.Position.Column, ErrAlias)
		}
	}
	d := yaml.NewDecoder(bytes.NewReader(text), yaml.Strict())
	var all, more any
	if err := d.Decode(&all); errors.Is(err, io.EOF) {
		return ErrEmpty
	} else if err != nil {
		return errors.New(oneLine(err, text))
	}
	if err := d.Decode(&more); !errors.Is(err, io.EOF) {
		return errors.New("it holds more than one document")
	}
	if err := fits("", reflect.TypeOf(into), all); err != nil {
		return err
	}
	if err := yaml.NewDecoder(bytes.NewReader(text), yaml.Strict()).Decode(into); err != nil {
		return errors.New(oneLine(err, text))
	}
	return nil
}

// binary is where text stops being text; -1: it is.
func binary(text []byte) int {
	for at := 0; at < len(text); {
		r, n := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && n == 1 || unicode.IsControl(r) && !strings.ContainsRune("\t\n\r\u0085", r) {
			return at
		}
		at += n
	}
	return -1
}

var place = regexp.MustCompile(`^\[(\d+):\d+\] `)

// oneLine is the library's error without the source that it draws, and with
// the line that it means.
func oneLine(err error, text []byte) string {
	message := strings.TrimSpace(yaml.FormatError(err, false, false))
	message = strings.Replace(message, "found character '\t' that cannot start any token", "a tab cannot indent: use blanks", 1)
	out := plain(message, maxMessage)
	if m := place.FindStringSubmatch(message); m != nil {
		lines := strings.Split(string(text), "\n")
		if n, err := strconv.Atoi(m[1]); err == nil && n >= 1 && n <= len(lines) {
			out += ": " + strconv.Quote(short(strings.TrimSpace(lines[n-1]), maxQuote))
		}
	}
	return out
}

// plain is s on one line, with what cannot be printed replaced.
func plain(s string, limit int) string {
	return short(strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return '?'
		}
		return r
	}, s), limit)
}

func short(s string, limit int) string {
	if r := []rune(s); len(r) > limit {
		return string(r[:limit]) + "…"
	}
	return s
}
