package reports

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// Every list, map and text of a record counts: a field that did not would let
// a small file ask for any amount of memory.
func TestHeldCountsEveryField(t *testing.T) {
	const much = 10000
	long := strings.Repeat("x", much)
	v := reflect.ValueOf(&Result{}).Elem()
	for i := range v.NumField() {
		r := &Result{}
		if what := swell(reflect.ValueOf(r).Elem().Field(i), long, much); what && r.held() < (&Result{}).held()+much {
			t.Errorf("%s: %d bytes held, with %d in it", v.Type().Field(i).Name, r.held(), much)
		}
	}
}

// swell puts n bytes or entries into what can hold them.
func swell(v reflect.Value, long string, n int) bool {
	switch v.Kind() {
	case reflect.String:
		v.SetString(long)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), n, n))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf(long), reflect.ValueOf(""))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		if v.Elem().Kind() != reflect.Struct {
			return false
		}
		for i := range v.Elem().NumField() {
			if swell(v.Elem().Field(i), long, n) {
				return true // the first one
			}
		}
		return false
	default:
		return false
	}
	return true
}

func TestHeldIsBounded(t *testing.T) {
	var h Held
	small := random(rand.New(rand.NewPCG(1, 1)))
	small.Seconds, small.Notes = nil, nil
	for range maxRecords {
		if err := h.Add(&small); err != nil {
			t.Fatalf("%d records of %d bytes: %v", h.records, small.held(), err)
		}
	}
	if err := h.Add(&small); err == nil {
		t.Error("no bound on records")
	}
	h = Held{}
	large := Result{Notes: make([]string, 1<<20)}
	for range maxHeld/large.held() + 1 {
		if err := h.Add(&large); err != nil {
			return
		}
	}
	t.Error("no bound on what records hold")
}

// A document of findings that would become many times its size is refused.
func TestFindingsAreBounded(t *testing.T) {
	for _, text := range []string{
		`{"findings":[` + strings.Repeat(`{},`, maxFindings) + `{}]}`,
		`{"findings":[],"odd":[` + strings.Repeat(`"",`, maxValues+1) + `""]}`,
	} {
		if _, err := ReadAround(strings.NewReader(text), "F"); err == nil || !strings.Contains(err.Error(), "in parts") {
			t.Errorf("%.30s…: %v", text, err)
		}
	}
	if _, err := ReadAround(endless{}, "F"); err == nil || !strings.Contains(err.Error(), fmt.Sprint(maxAround>>20, " MiB")) {
		t.Errorf("endless: %v", err)
	}
}

// A record that would become many times its text is passed over before it does.
func TestRecordsAreBounded(t *testing.T) {
	for _, more := range []string{
		`"counters":[` + strings.Repeat(`{},`, maxObjects) + `{}]`,
		`"notes":[` + strings.Repeat(`"",`, maxTexts) + `""]`,
	} {
		got, warnings, err := Read(strings.NewReader(strings.Replace(good, "{", "{"+more+",", 1)+good), "F")
		if err != nil || len(got) != 1 || len(warnings) != 1 || !strings.Contains(warnings[0], "not a result") {
			t.Errorf("%.20s…: %d records, %q, %v", more, len(got), warnings, err)
		}
	}
}

// The longest record that a run can have is read again.
func TestMostIterations(t *testing.T) {
	r := random(rand.New(rand.NewPCG(1, 1)))
	r.Seconds = slices.Repeat([]float64{1.2310000000000001e-06}, 1_000_000) // worker.maxIterations
	line, err := encode(r)
	if err != nil || len(line) > maxLine {
		t.Errorf("%d bytes, %v", len(line), err)
	}
}
