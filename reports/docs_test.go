package reports

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// fields lists the json names of a record, those of its limit with a dot.
func fields(t reflect.Type, prefix string) (names []string) {
	for i := range t.NumField() {
		f := t.Field(i)
		n, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, prefix+n)
		if f.Type.Kind() == reflect.Pointer && f.Type.Elem().Kind() == reflect.Struct {
			names = append(names, fields(f.Type.Elem(), prefix+n+".")...)
		}
	}
	return names
}

// docs/results.md has a row for every field of the record, for no other, in
// the same order, and one for every format.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile("../docs/results.md")
	if err != nil {
		t.Fatal(err)
	}
	section := func(from, to string) (names []string) {
		_, s, ok1 := strings.Cut(string(text), from)
		s, _, ok2 := strings.Cut(s, to)
		if !ok1 || !ok2 && to != "\x00" {
			t.Fatalf("no section from %q to %q", from, to)
		}
		for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(s, -1) {
			names = append(names, m[1])
		}
		return names
	}
	if got, want := section("## The record", "## What is derived"), fields(reflect.TypeFor[Result](), ""); !slices.Equal(got, want) {
		t.Errorf("fields in docs/results.md: %q\nfields of Result: %q", got, want)
	}
	if got := section("## Formats", "## Imports"); !slices.Equal(got, Formats()) {
		t.Errorf("formats in docs/results.md: %q, in the program: %q", got, Formats())
	}
}
