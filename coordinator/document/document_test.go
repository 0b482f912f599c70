package document

import (
	"errors"
	"strings"
	"testing"
	"unicode"
)

type thing struct {
	Name  string   `yaml:"name"`
	Items []string `yaml:"items"`
}

// Whatever the file is, its error is one short line that a terminal can show.
func TestDecode(t *testing.T) {
	for text, want := range map[string]string{
		"name: a\nitems: [b]\n": "",
		"":                      "the file is empty",
		" \n# a comment\n":      "the file is empty",
		"\x28\xb5\x2f\xfd\x04\x00" + strings.Repeat("\x01\xff", 2000): "byte 1, 0xb5, belongs to no text",
		"name: \x1b[2J\n":                             "byte 6, 0x1b, belongs to no text",
		"name: a\nbanana: 1\n":                        `unknown field "banana": "banana: 1"`,
		"items: [" + strings.Repeat("x", 5000) + "\n": "…",
		strings.Repeat("x", 5000) + ": 1\n":           "…",
		"name: a\n---\nname: b\n":                     "more than one document",
		"items:\n !0 00\n":                            "malformed YAML",
		"name: [1\u2028,\n":                           "[1:",
	} {
		err := Decode([]byte(text), &thing{})
		if want == "" {
			if err != nil {
				t.Errorf("%.40q: %v", text, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
			continue
		}
		if len(err.Error()) > 1000 || strings.ContainsFunc(err.Error(), func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%.40q: %q", text, err)
		}
	}
	if err := Decode(nil, &thing{}); !errors.Is(err, ErrEmpty) {
		t.Error(err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{"name: a", "items: [", "? !x", "\x28\xb5\x2f\xfd", "a: &a [*a]"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 4096 {
			return
		}
		if err := Decode(text, &thing{}); err != nil && (len(err.Error()) > 1000 || strings.ContainsFunc(err.Error(), func(r rune) bool { return !unicode.IsPrint(r) })) {
			t.Errorf("%q", err)
		}
	})
}
