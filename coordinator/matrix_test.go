package coordinator

import (
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

const matrixText = `
engine: native
base: {NCCL_SOCKET_NTHREADS: 2}
matrix:
  NCCL_ALGO: [Ring, Tree]
  NCCL_BUFFSIZE: [1048576, 4194304]
exclude:
  - {NCCL_ALGO: Tree, NCCL_BUFFSIZE: 1048576}
variants:
  - name: many channels
    env: {NCCL_MIN_NCHANNELS: 4}
  - name: site
    file: site.env
`

func none(string) (string, bool) { return "", false }

func siteFile(name string) ([]byte, error) {
	if name != "site.env" {
		return nil, errors.New("no such file")
	}
	return []byte("-x NCCL_ALGO=Ring -x NCCL_NSOCKS_PERTHREAD=4 -x PATH \\\n# comment\nexport NCCL_SHM_DISABLE='1'\n"), nil
}

func TestMatrix(t *testing.T) {
	m, err := ReadMatrix(strings.NewReader(matrixText), siteFile, none)
	if err != nil {
		t.Fatal(err)
	}
	all, notes, err := m.Variants([]string{"HOME=/", "NCCL_MAX_NCHANNELS=32"})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, v := range all {
		names = append(names, v.Name)
		if v.Settings["NCCL_SOCKET_NTHREADS"] != "2" || v.Settings["NCCL_MAX_CTAS"] != "32" {
			t.Errorf("%s: %v lacks what all have", v.Name, v.Settings)
		}
	}
	want := []string{"base", "NCCL_ALGO=Ring NCCL_BUFFSIZE=1048576", "NCCL_ALGO=Ring NCCL_BUFFSIZE=4194304", "NCCL_ALGO=Tree NCCL_BUFFSIZE=4194304", "many channels", "site"}
	if !slices.Equal(names, want) || len(notes) != 0 {
		t.Errorf("variants %q, notes %q; want %q", names, notes, want)
	}
	if s := all[4].Settings; s["NCCL_MIN_CTAS"] != "4" {
		t.Errorf("the older name of a setting was lost: %v", s)
	}
	if s := all[5].Settings; s["NCCL_NSOCKS_PERTHREAD"] != "4" || s["NCCL_SHM_DISABLE"] != "1" || s["NCCL_ALGO"] != "Ring" {
		t.Errorf("the file's settings: %v", s)
	}
}

func TestMatrixMeasuresTheSameOnce(t *testing.T) {
	a, err := ParseAxis("NCCL_MIN_CTAS=1, 2")
	if err != nil {
		t.Fatal(err)
	}
	all, notes, err := (&Matrix{Engine: "native", Axes: []Axis{a}}).Variants(nil)
	if err != nil || len(all) != 2 || len(notes) != 1 || !strings.Contains(notes[0], "NCCL_MIN_CTAS=1 comes to the same settings as base") {
		t.Errorf("%d variants, notes %q, %v; want that 1 channel is the base", len(all), notes, err)
	}
	if _, _, err := (&Matrix{Engine: "native", Axes: []Axis{{"NCCL_MIN_CTAS", []string{"1"}}}}).Variants(nil); err == nil || !strings.Contains(err.Error(), "nothing to compare") {
		t.Errorf("only the base: %v", err)
	}
}

func TestMatrixRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"matrix: {NCCL_NVLS_ENABLE: [0, 1]}":                         "NCCL_NVLS_ENABLE: not a setting of the native engine",
		"base: {LD_PRELOAD: x}\nmatrix: {NCCL_ALGO: [Ring]}":         "LD_PRELOAD",
		"matrix: {NCCL_ALGO: Ring}":                                  "list of values",
		"matrix: {NCCL_ALGO: [[Ring]]}":                              "NCCL_ALGO",
		"matrix: {NCCL_BUFFSIZE: [lots]}":                            "NCCL_BUFFSIZE",
		"matrix: {NCCL_MIN_CTAS: [8], NCCL_MAX_CTAS: [4]}":           "NCCL_MIN_CTAS=8 is more",
		"matrix: {NCCL_ALGO: [Ring]}\nexclude: [{NCCL_BUFFSIZE: 1}]": "exclude",
		"matrices: {}": "matrices",
		"engine: gpu\nmatrix: {NCCL_ALGO: [Ring]}":                                         "native",
		"variants: [{env: {NCCL_ALGO: Ring}}]":                                             "no name",
		"variants: [{name: x, file: nowhere}]":                                             "nowhere",
		"variants: [{name: x, env: {NCCL_ALGO: Ring}}, {name: x, env: {NCCL_ALGO: Tree}}]": "two variants",
		"matrix: {NCCL_MIN_CTAS: [2], NCCL_MIN_NCHANNELS: [3]}":                            "twice",
		"matrix: {NCCL_ALGO: [Ring]}\nexclude:\n !0 00\n":                                  "want a list",
		"matrix: {NCCL_ALGO: [}":                                                           "[1:",
	} {
		m, err := ReadMatrix(strings.NewReader(text), func(string) ([]byte, error) { return nil, errors.New("nowhere") }, none)
		if err == nil {
			if m.Engine == "" {
				m.Engine = "native"
			}
			_, _, err = m.Variants(nil)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", text, err, want)
		}
	}
	big := Matrix{Engine: "native"}
	for _, n := range settingNames() {
		big.Axes = append(big.Axes, Axis{n, slices.Repeat([]string{"1"}, maxAxis)})
	}
	if _, _, err := big.Variants(nil); err == nil || !strings.Contains(err.Error(), "million") {
		t.Errorf("a huge matrix: %v", err)
	}
}

func TestReadLines(t *testing.T) {
	env, err := ReadLines([]byte("mpirun -np 2 -xNCCL_A=1 -x NCCL_B=\"x y\" -x NCCL_C\nNCCL_D=  # none\n"), func(n string) (string, bool) { return "here", n == "NCCL_C" })
	if want := map[string]string{"NCCL_A": "1", "NCCL_B": "x y", "NCCL_C": "here", "NCCL_D": ""}; err != nil || !maps.Equal(env, want) {
		t.Errorf("%v, %v; want %v", env, err, want)
	}
	for text, want := range map[string]string{"NCCL_A=1\nNCCL_A=2": "line 2", "-x NCCL_A": "NCCL_A has no value", "NCCL_A='1": "not closed"} {
		if _, err := ReadLines([]byte(text), none); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Each variant has the same number of launches and the same mean place.
func TestBlocks(t *testing.T) {
	for _, variants := range []int{2, 3, 7} {
		order := Blocks(variants, 5, 42)
		if len(order) != 6*variants {
			t.Fatalf("%d launches of %d variants; want 6 of each", len(order), variants)
		}
		place, n := make([]float64, variants), make([]int, variants)
		for i, v := range order {
			place[v] += float64(i)
			n[v]++
		}
		for v := range variants {
			if n[v] != 6 || math.Abs(place[v]/6-float64(len(order)-1)/2) > 1e-9 {
				t.Errorf("variant %d of %d: %d launches at the mean place %.2f", v, variants, n[v], place[v]/6)
			}
		}
		if !slices.Equal(order, Blocks(variants, 10, 42)[:len(order)]) {
			t.Error("more launches change the order of the first")
		}
	}
	if slices.Equal(Blocks(6, 20, 1), Blocks(6, 20, 2)) {
		t.Error("two seeds give one order")
	}
}

func TestFit(t *testing.T) {
	for _, c := range []struct {
		left time.Duration
		want int
	}{{time.Hour, 10}, {time.Minute, 4}, {30 * time.Second, 2}, {20 * time.Second, 0}} {
		if got := Fit(c.left, 4*time.Second, 3, 10); got != c.want {
			t.Errorf("%s for launches of 4 s of 3 variants: %d, want %d", c.left, got, c.want)
		}
	}
}

func FuzzMatrix(f *testing.F) {
	f.Add([]byte(matrixText))
	f.Add([]byte("a: &a [1]\nb: [*a, *a]\nmatrix: {NCCL_ALGO: *a}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := ReadMatrix(strings.NewReader(string(text)), siteFile, none)
		if err != nil {
			return
		}
		m.Engine = "native"
		if all, _, err := m.Variants(nil); err == nil && len(all) > maxVariants+1 {
			t.Errorf("%d variants", len(all))
		}
	})
}

func FuzzReadLines(f *testing.F) {
	f.Add([]byte("-x NCCL_ALGO=Ring"))
	f.Fuzz(func(t *testing.T, text []byte) {
		env, _ := ReadLines(text, none)
		for k := range env {
			if !strings.HasPrefix(k, "NCCL_") {
				t.Errorf("%q is no setting", k)
			}
		}
	})
}
