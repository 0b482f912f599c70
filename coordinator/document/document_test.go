package document

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode"
)

type thing struct {
	Name  string   `yaml:"name"`
	Items []string `yaml:"items"`
	Count int      `yaml:"count"`
	Part  struct {
		Rate float64 `yaml:"rate_gb_per_s"`
		On   bool    `yaml:"on"`
	} `yaml:"part"`
}

// Whatever the file is, its error is one short line that a terminal can show.
func TestDecode(t *testing.T) {
	for text, want := range map[string]string{
		"name: a\nitems: [b]\n": "",
		"":                      "the file is empty",
		" \n# a comment\n":      "the file is empty",
		"\x28\xb5\x2f\xfd\x04\x00" + strings.Repeat("\x01\xff", 2000): "byte 1, 0xb5, belongs to no text",
		"name: \x1b[2J\n":               "byte 6, 0x1b, belongs to no text",
		"name: a\nbanana: 1\n":          `unknown field "banana": want one of name, items, count, part`,
		"nmae: a\n":                     `unknown field "nmae": did you mean "name"?`,
		"Count: 1\n":                    `unknown field "Count": did you mean "count"?`,
		"part: {rate: 1}\n":             `unknown field "part.rate": did you mean "rate_gb_per_s"?`,
		"count: 1.5\n":                  "count is 1.5: want a whole number",
		"count: 1e3\n":                  "",
		"count: 9223372036854775808\n":  "count is 9223372036854775808: want a whole number",
		"count: .nan\n":                 "count is NaN: want a whole number",
		"count: four\n":                 `count is "four": want a whole number`,
		"count: [4]\n":                  "count is a list: want a whole number",
		"part: {rate_gb_per_s: fast}\n": `part.rate_gb_per_s is "fast": want a number`,
		"part: {on: 1}\n":               "part.on is 1: want true or false",
		"part: 3\n":                     "part is 3: want fields: rate_gb_per_s, on",
		"items: {a: 1}\n":               "items is a group of fields: want a list",
		"items: [[a]]\n":                "items[0] is a list: want text",
		"- name: a\n":                   "the document is a list: want fields: name, items, count, part",
		"name:\n\tx: 1\n":               "a tab cannot indent",
		"\ufeffname: a\n":               "",
		"name: a\nname: b\n":            `"name" already defined`,
		"items: &a [b]\npart: *a\n":     "[2:7] aliases (*name) are not read",
		"items: [" + strings.Repeat("x", 5000) + "\n": "…",
		strings.Repeat("x", 5000) + ": 1\n":           "…",
		"name: a\n---\nname: b\n":                     "more than one document",
		"items:\n !0 00\n":                            `items is "00": want a list`,
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
	// A few lines that stand for a gigabyte.
	bomb := "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	for i := range 9 {
		bomb += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i), 10), ","))
	}
	if err := Decode([]byte(bomb), &thing{}); !errors.Is(err, ErrAlias) {
		t.Error(err)
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
