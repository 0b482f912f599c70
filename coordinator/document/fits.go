package document

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
)

// fits says in which field a document does not suit a type: what it says there
// and what is wanted. Types that read themselves, and texts, are left to the
// decoder.
func fits(path string, t reflect.Type, v any) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if v == nil || readsItself(t) {
		return nil
	}
	wrong := func(want string) error {
		if path == "" {
			return fmt.Errorf("the document is %s: want %s", shown(v), want)
		}
		return fmt.Errorf("%s is %s: want %s", path, shown(v), want)
	}
	switch t.Kind() {
	case reflect.Struct:
		all, ok := v.(map[string]any)
		if !ok {
			return wrong("fields: " + strings.Join(fields(t), ", "))
		}
		return structFits(path, t, all)
	case reflect.Slice:
		all, ok := v.([]any)
		if !ok {
			return wrong("a list")
		}
		for i, x := range all {
			if err := fits(fmt.Sprintf("%s[%d]", path, i), t.Elem(), x); err != nil {
				return err
			}
		}
	case reflect.Int, reflect.Int64:
		if !whole(v) {
			return wrong("a whole number")
		}
	case reflect.Float64:
		if _, ok := Number(v); !ok {
			return wrong("a number")
		}
	case reflect.Bool:
		if _, ok := v.(bool); !ok {
			return wrong("true or false")
		}
	case reflect.String:
		switch v.(type) {
		case map[string]any, []any:
			return wrong("text")
		}
	}
	return nil
}

// structFits looks at the fields in order, so that the same one is named each time.
func structFits(path string, t reflect.Type, all map[string]any) error {
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	known := fields(t)
	for _, name := range names {
		full := name
		if path != "" {
			full = path + "." + name
		}
		i := slices.Index(known, name)
		if i < 0 {
			near := "want one of " + strings.Join(known, ", ")
			if k := nearest(name, known); k != "" {
				near = fmt.Sprintf("did you mean %q?", k)
			}
			return fmt.Errorf("unknown field %q: %s", short(plain(full, maxQuote), maxQuote), near)
		}
		if err := fits(full, t.Field(i).Type, all[name]); err != nil {
			return err
		}
	}
	return nil
}

// fields are the names of a struct's fields in a document, in their order; what
// is no part of it has an empty name.
func fields(t reflect.Type) (names []string) {
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
		names = append(names, name)
	}
	return names
}

func readsItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[yaml.BytesUnmarshaler]()) || p.Implements(reflect.TypeFor[yaml.InterfaceUnmarshaler]()) || t == reflect.TypeFor[yaml.MapSlice]()
}

// Number is a value as a number. The library takes some, such as 1e3, for text.
func Number(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case uint64:
		return float64(v), true
	case float64:
		return v, true
	case string:
		x, err := strconv.ParseFloat(v, 64)
		return x, err == nil
	}
	return 0, false
}

func whole(v any) bool {
	switch v := v.(type) {
	case int64:
		return true
	case uint64:
		return v <= math.MaxInt64
	}
	x, ok := Number(v)
	return ok && x == math.Trunc(x) && math.Abs(x) < 1<<53
}

// shown is a value in a message.
func shown(v any) string {
	switch v := v.(type) {
	case string:
		return strconv.Quote(short(plain(v, maxQuote), maxQuote))
	case map[string]any:
		return "a group of fields"
	case []any:
		return "a list"
	}
	return fmt.Sprint(v)
}

// nearest is the name that was likely meant: one that begins with what was
// written, or differs from it in few letters.
func nearest(name string, known []string) string {
	best, at := "", len(name)/3+1
	for _, k := range known {
		if k == "" {
			continue
		}
		if len(name) > 2 && strings.HasPrefix(k, strings.ToLower(name)) {
			return k
		}
		if d := distance(strings.ToLower(name), k); d <= at && d < len(k) {
			best, at = k, d-1
		}
	}
	return best
}

// distance is how many letters to insert, delete or replace (Levenshtein).
func distance(a, b string) int {
	if len(a) > 64 {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		left := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := left
			if a[i] != b[j] {
				cost++
			}
			left, row[j+1] = row[j+1], min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
