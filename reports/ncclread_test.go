package reports

import (
	"bufio"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The programs that read nccl-tests' text today, each with what it relies on.
// They must get our numbers from our text.
type logReader struct {
	who  string
	read func(text string) (got []float64, err error)
	want func(rows []halves, mean float64) []float64
}

func inPlaceBus(rows []halves, _ float64) (want []float64) {
	for _, h := range rows {
		bus, _ := h.in.Busbw()
		want = append(want, bus)
	}
	return want
}

func theMean(_ []halves, mean float64) []float64 { return []float64{mean} }

func logReaders() []logReader {
	return []logReader{
		{"SuperBench: rows between two marks, header tokens from the end", func(text string) (got []float64, err error) {
			inside, column := false, 0
			for _, line := range strings.Split(text, "\n") {
				f := strings.Fields(line)
				switch {
				case strings.Contains(line, "out-of-place"):
					inside = true
				case strings.Contains(line, "Out of bounds values"):
					inside = false
				case inside && len(f) > 1 && f[1] == "size":
					for i, h := range f {
						if h == "busbw" {
							column = i - len(f) // the last one: in place
						}
					}
				case inside && len(f) > 0 && f[0][0] >= '0' && f[0][0] <= '9':
					got = append(got, number(f[len(f)+column]))
				}
			}
			return got, nil
		}, inPlaceBus},
		{"nccl_startup: 13 tokens, the third is the type, the twelfth the busbw", func(text string) (got []float64, err error) {
			for _, line := range strings.Split(text, "\n") {
				if f := strings.Fields(line); len(f) == 13 && f[2] == "float" {
					got = append(got, number(f[11]))
				}
			}
			return got, nil
		}, inPlaceBus},
		{"AWS: rows that begin with blanks and a digit, last column but one", func(text string) (got []float64, err error) {
			for _, line := range regexp.MustCompile(`(?m)^ +\d.*$`).FindAllString(text, -1) {
				f := strings.Fields(line)
				got = append(got, number(f[len(f)-2]))
			}
			return got, nil
		}, inPlaceBus},
		{"Azure: no FAILED, sixth word of the first line with bandwidth", func(text string) ([]float64, error) {
			if strings.Contains(text, "FAILED") {
				return nil, fmt.Errorf("FAILED is in it")
			}
			for _, line := range strings.Split(text, "\n") {
				if strings.Contains(line, "bandwidth") {
					return []float64{number(strings.Fields(line)[5])}, nil
				}
			}
			return nil, fmt.Errorf("no bandwidth")
		}, theMean},
		{"cvs: expression on the footer", func(text string) ([]float64, error) {
			m := regexp.MustCompile(`# Avg bus bandwidth\s+:\s+(\d+(?:\.\d+)?(?:e[-+]\d+)?)`).FindStringSubmatch(text)
			if m == nil {
				return nil, fmt.Errorf("no footer")
			}
			return []float64{number(m[1])}, nil
		}, theMean},
		{"gcm: first number on the footer", func(text string) ([]float64, error) {
			_, rest, _ := strings.Cut(text, "Avg bus bandwidth")
			line, _, _ := strings.Cut(rest, "\n")
			return []float64{number(regexp.MustCompile(`[0-9.]+(e[-+]\d+)?`).FindString(line))}, nil
		}, theMean},
		{"cloudai, DCGM: both footers and a device line for each rank", func(text string) ([]float64, error) {
			bounds := regexp.MustCompile(`(?m)^# Out of bounds values : 0 OK$`).MatchString(text)
			devices := regexp.MustCompile(`(?m)^#\s+Rank\s+\d+ Group\s+\d+ on\s+\S+ device\s+\d+ \[\w+\] .+$`).FindAllString(text, -1)
			if !bounds || len(devices) != 4 || !strings.Contains(text, "# Using devices\n") {
				return nil, fmt.Errorf("bounds %v, devices %q", bounds, devices)
			}
			return nil, nil
		}, func([]halves, float64) []float64 { return nil }},
	}
}

// number is NaN-free: a token that is no number reads as -1.
func number(token string) float64 {
	v, err := strconv.ParseFloat(token, 64)
	if err != nil {
		return -1
	}
	return v
}

func TestReadersOfNcclTests(t *testing.T) {
	var results []Result
	for i, bytes := range []int64{8, 64 << 10, 1 << 20, 4 << 30} {
		for _, inPlace := range []bool{false, true} {
			r := sample("global", "ring", 4, bytes, spread(9, 9000+bytes/(1+int64(i)))...)
			r.InPlace, r.Wrong, r.Hosts = inPlace, new(int64(0)), []string{"gpu-a.example.org", "gpu-b"}
			// Words that readers search for must not come in through a value.
			r.Limit = &Limit{Name: "memory bandwidth", GBps: 40, How: "FAILED out-of-place"}
			r.Notes = []string{"the bandwidth FAILED"}
			results = append(results, r)
		}
	}
	figures := Figures(results)
	var all []*Figure
	mean := 0.0
	for i := range figures {
		all = append(all, &figures[i])
		bus, _ := figures[i].Busbw()
		mean += bus / float64(len(figures))
	}
	text := string(render(t, "nccl", results))
	for _, r := range logReaders() {
		got, err := r.read(text)
		want := r.want(pair(all), mean)
		ok := err == nil && len(got) == len(want)
		for i := 0; ok && i < len(want); i++ {
			// Two decimals are printed, and six digits of the mean.
			ok = got[i]-want[i] <= 0.00501 && want[i]-got[i] <= 0.00501 && got[i] >= 0
		}
		if !ok {
			t.Errorf("%s: got %v, %v; want %v from\n%s", r.who, got, err, want, text)
		}
	}
}

// Every data line has 13 tokens in the widths of nccl-tests' own format.
func TestNcclTestsLayout(t *testing.T) {
	row := regexp.MustCompile(`^ *\d+ {2,}\d+ {2,}\w+ {2,}\w+ {2,}-?\d+( {2,}\S+){8}$`)
	for _, results := range [][]Result{campaign(), places()} {
		rows := 0
		for s := bufio.NewScanner(strings.NewReader(string(render(t, "nccl", results)))); s.Scan(); {
			if line := s.Text(); line != "" && line[0] != '#' {
				rows++
				if !row.MatchString(line) || len(line) != 12+2+12+2+8+2+6+2+6+2*(2+7+2+6+2+6+2+6) {
					t.Errorf("%d bytes: %q", len(line), line)
				}
			}
		}
		if rows == 0 {
			t.Error("no rows")
		}
	}
}

// A sweep whose algorithms busbw chose is one test; two algorithms by name are two.
func TestNcclTestsAuto(t *testing.T) {
	for auto, want := range map[bool]int{true: 1, false: 2} {
		small, large := sample("intra", "oneshot", 2, 8, 1e-6), sample("intra", "direct", 2, 16, 1e-6)
		small.Auto, large.Auto = auto, auto
		if n := strings.Count(string(render(t, "nccl", []Result{small, large})), "# Collective test starting"); n != want {
			t.Errorf("auto %v: %d tests, want %d", auto, n, want)
		}
	}
	one, two := sample("intra", "oneshot", 2, 8, 1e-6), sample("intra", "direct", 2, 8, 1e-6)
	one.Auto, two.Auto, two.Launch = true, true, 1
	if n := strings.Count(string(render(t, "nccl", []Result{one, two})), "\n           8  "); n != 2 {
		t.Errorf("%d rows of 8 B, want both", n)
	}
}

// A line of nccl-tests 2.19.4 on eight GPUs, with its own numbers.
func TestNcclTestsRow(t *testing.T) {
	at := func(us float64, inPlace bool) *Figure {
		r := sample("intra", "ring", 8, 134217728, us/1e6)
		r.InPlace, r.Wrong = inPlace, new(int64(0))
		f := merge([]Result{r})
		return &f
	}
	got := half(at(1295.41, false)) + half(at(1284.21, true))
	if want := "  1295.41  103.61  181.32       0  1284.21  104.51  182.90       0"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestFit(t *testing.T) {
	for _, c := range []struct {
		v     float64
		width int
		want  string
	}{{34.84, 7, "34.84"}, {12345.67, 7, "12345.7"}, {1234567.8, 7, "1234568"}, {17e6, 7, "1.7e+07"}, {1234.5, 6, "1234.5"}, {0, 6, "0.00"}} {
		if got := fit(c.v, c.width); got != c.want {
			t.Errorf("%g in %d: %q, want %q", c.v, c.width, got, c.want)
		}
	}
}

// A failed size and wrong data must fail a node for whoever reads the text.
func TestNcclTestsFailures(t *testing.T) {
	bad := sample("intra", "ring", 2, 8, 1e-6)
	bad.Wrong = new(int64(3))
	if text := string(render(t, "nccl", []Result{bad})); !strings.Contains(text, "# Out of bounds values : 3 FAILED\n") || strings.Contains(text, "0.01") {
		t.Errorf("wrong data:\n%s", text)
	}
	bad = sample("intra", "ring", 2, 8)
	bad.Error = "rank 1: no bandwidth"
	text := string(render(t, "nccl", []Result{bad}))
	if !strings.Contains(text, "# error: FAILED 8 B ring: launch 0: rank 1: no bandwidth\n") || strings.Index(text, "bandwidth") != strings.Index(text, "# Avg bus bandwidth")+len("# Avg bus ") {
		t.Errorf("failed size:\n%s", text)
	}
}

// Hostile numbers of ranks make no endless list.
func TestDevicesAreBounded(t *testing.T) {
	r := sample("intra", "ring", maxRanks, 8, 1e-6)
	r.Groups = maxRanks
	if n := strings.Count(string(render(t, "nccl", []Result{r})), " device "); n != maxDevices {
		t.Errorf("%d device lines, want %d", n, maxDevices)
	}
}
