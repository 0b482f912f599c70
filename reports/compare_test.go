package reports

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// sitting is n launches of one case at a mean time with 1 % noise, of run id.
func sitting(r *rand.Rand, id string, n int, bytes int64, mean float64) (all []Result) {
	for l := range n {
		t := math.Round(1e9*mean*(1+0.01*r.NormFloat64())) / 1e9
		s := sample("cross", "ring", 2, bytes, t)
		s.Run, s.Launch, s.Auto, s.Wrong = id, l, true, new(int64(0))
		s.Time = s.Time.Add(time.Duration(l) * time.Minute)
		s.Config = map[string]string{"NCCL_BUFFSIZE": "4194304", "NCCL_MIN_CTAS": "1"}
		all = append(all, s)
	}
	return all
}

// twoSettings differ by nothing at 8 B and by 10 % at 1 MiB.
func twoSettings() []Side {
	r := rand.New(rand.NewPCG(21, 22))
	a := slices.Concat(sitting(r, "a", 8, 8, 5e-6), sitting(r, "a", 8, 1<<20, 1e-3))
	b := slices.Concat(sitting(r, "b", 8, 8, 5e-6), sitting(r, "b", 8, 1<<20, 1.1e-3))
	for i := range b {
		b[i].Config = map[string]string{"NCCL_BUFFSIZE": "4194304", "NCCL_MIN_CTAS": "4"}
	}
	return []Side{{"one channel", a}, {"four channels", b}}
}

func compared(t *testing.T, sides []Side, o CompareOptions) *Comparison {
	t.Helper()
	c, err := Compare(sides, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCompare(t *testing.T) {
	c := compared(t, twoSettings(), CompareOptions{Margin: 0.02})
	if len(c.Rows) != 2 || c.Rows[0].Bytes != 8 || c.Rows[0].Cells[1].Verdict != Same {
		t.Errorf("rows %+v; want 8 B not shown to differ", c.Rows)
	}
	big := c.Rows[1].Cells[1]
	if big.Verdict != Slower || math.Abs(*big.Change+0.09) > 0.015 || big.Between[0] > -0.09 || big.Between[1] < -0.1 || *big.P > 0.001 {
		t.Errorf("1 MiB: %+v; want 9 %% slower", big)
	}
	if len(c.Differ) != 1 || c.Differ[0].What != "NCCL_MIN_CTAS" || len(c.Warnings) != 0 {
		t.Errorf("differ %+v, warnings %q; want the channels alone", c.Differ, c.Warnings)
	}
	if got := c.Regressions(0.05); len(got) != 1 || !strings.Contains(got[0], "1 MiB") {
		t.Errorf("regressions %q", got)
	}
	if got := c.Regressions(0.15); len(got) != 0 {
		t.Errorf("regressions beyond 15 %%: %q", got)
	}
	for _, f := range CompareFormats() {
		var b bytes.Buffer
		if err := c.Render(&b, f); err != nil {
			t.Fatal(err)
		}
		golden(t, "compare."+f, b.Bytes())
	}
	var again Comparison
	var b bytes.Buffer
	if err := c.Render(&b, "json"); err != nil || json.Unmarshal(b.Bytes(), &again) != nil || len(again.Rows) != 2 {
		t.Errorf("json: %v, %d rows", err, len(again.Rows))
	}
	b.Reset()
	if err := c.Render(&b, "csv"); err != nil {
		t.Fatal(err)
	} else if rows, err := csv.NewReader(&b).ReadAll(); err != nil || len(rows) != 1+4 {
		t.Errorf("csv: %v, %d rows", err, len(rows))
	}
}

// Iterations are no launches: a thousand of them on 5 launches claim nothing.
func TestCompareNeedsLaunches(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 24))
	a, b := sitting(r, "a", 5, 8, 1), sitting(r, "b", 9, 8, 2)
	for i := range a {
		a[i].Seconds = slices.Repeat(a[i].Seconds, 1000)
	}
	c := compared(t, []Side{{"a", a}, {"b", b}}, CompareOptions{Margin: 0.02})
	if x := c.Rows[0].Cells[1]; x.Verdict != TooFew || x.Between != nil || x.P != nil || c.Judged() != 0 {
		t.Errorf("%+v; want no interval and no claim", x)
	}
	many := slices.Concat(sitting(r, "a", 6, 8, 1), sitting(r, "a", 6, 16, 1))
	for i := range 30 {
		many = append(many, sitting(r, "a", 6, int64(64+i), 1)...)
	}
	c = compared(t, []Side{{"a", many}, {"b", many}}, CompareOptions{Margin: 0.02})
	if len(c.Warnings) != 2 || !strings.Contains(c.Warnings[0], "too many for so few launches") || !strings.Contains(c.Warnings[1], "6 launches in common") {
		t.Errorf("warnings %q; want that 32 sizes and 6 launches can claim nothing, and that the sides are the same", c.Warnings)
	}
}

// What differs within a side tells its rows apart; what differs between them is compared.
func TestCompareFindsItsRows(t *testing.T) {
	r := rand.New(rand.NewPCG(25, 26))
	ring, tree := sitting(r, "a", 6, 8, 1), sitting(r, "a", 6, 8, 1.5)
	for i := range ring {
		ring[i].Auto, tree[i].Auto, tree[i].Algorithm = false, false, "double_tree"
	}
	c := compared(t, []Side{{"ring", ring}, {"tree", tree}}, CompareOptions{Margin: 0.02})
	if len(c.Rows) != 1 || c.Rows[0].Cells[1].Verdict != Slower || c.Differ[0].What != "algorithm" {
		t.Errorf("%+v: want the algorithms compared", c)
	}
	c = compared(t, []Side{{"both", slices.Concat(ring, tree)}, {"tree", tree}}, CompareOptions{Margin: 0.02})
	if len(c.Rows) != 1 || c.Rows[0].With["algorithm"] != "double_tree" || c.Sides[0].Only != 1 {
		t.Errorf("%+v: want tree beside tree, and ring alone", c)
	}
	if _, err := Compare([]Side{{"a", sitting(r, "a", 6, 8, 1)}, {"b", sitting(r, "b", 6, 16, 1)}}, CompareOptions{}); !errors.Is(err, ErrNothingInCommon) || !strings.Contains(err.Error(), "16 B in b") {
		t.Errorf("error %v; want that the sizes differ", err)
	}
}

// A history of several sittings that differ more than their launches do does
// not make one more sitting a regression.
func TestCompareWithAHistory(t *testing.T) {
	r := rand.New(rand.NewPCG(27, 28))
	var past []Result
	for _, run := range []struct {
		id   string
		mean float64
	}{{"mon", 1}, {"tue", 1.001}, {"wed", 1.12}, {"thu", 1.002}} {
		past = append(past, sitting(r, run.id, 10, 8, run.mean)...)
	}
	for _, c := range []struct {
		mean float64
		want string
	}{{1.1, Same}, {1.3, Slower}, {1, Same}} {
		got := compared(t, []Side{{"baseline", past}, {"today", sitting(r, "fri", 10, 8, c.mean)}}, CompareOptions{Margin: 0.02}).Rows[0].Cells[1]
		if got.Verdict != c.want || c.mean == 1.1 && got.Why == "" {
			t.Errorf("today's mean %g: %s (%s), want %s", c.mean, got.Verdict, got.Why, c.want)
		}
	}
}

// With six sittings or more on both sides a sitting counts as one, however
// many launches it has.
func TestCompareCountsSittings(t *testing.T) {
	r := rand.New(rand.NewPCG(33, 34))
	side := func(prefix string, mean, between float64) (all []Result) {
		for i := range 8 {
			all = append(all, sitting(r, prefix+string(rune('0'+i)), 10, 8, mean*(1+between*r.NormFloat64()))...)
		}
		return all
	}
	claims := 0
	for range 100 {
		if compared(t, []Side{{"a", side("a", 1, 0.05)}, {"b", side("b", 1, 0.05)}}, CompareOptions{}).Rows[0].Cells[1].Verdict != Same {
			claims++
		}
	}
	if claims > 10 { // 80 launches on a side would claim something nearly always
		t.Errorf("%d of 100 comparisons of the same, in 8 sittings each, claim a difference", claims)
	}
	c := compared(t, []Side{{"a", side("a", 1, 0.01)}, {"b", side("b", 1.2, 0.01)}}, CompareOptions{})
	if x := c.Rows[0].Cells[1]; x.Verdict != Slower {
		t.Errorf("%+v; want slower", x)
	}
}

func TestComparePredictions(t *testing.T) {
	r := rand.New(rand.NewPCG(29, 30))
	guess := sample("cross", "ring", 2, 8)
	guess.Predicted, guess.Source = new(0.9), "predicted by busbw"
	c := compared(t, []Side{{"measured", sitting(r, "a", 6, 8, 1)}, {"predicted", []Result{guess}}}, CompareOptions{})
	if x := c.Rows[0].Cells[1]; x.Verdict != Guessed || math.Abs(*x.Change-0.111) > 0.02 || x.Launches != 0 {
		t.Errorf("%+v; want 11 %% faster as a forecast", x)
	}
}

// A setting whose name says that it is secret is not shown, even where it differs.
func TestCompareKeepsSecrets(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 32))
	a, b := sitting(r, "a", 1, 8, 1), sitting(r, "b", 1, 8, 1)
	a[0].Config, b[0].Config = map[string]string{"NCCL_X_TOKEN": "hush"}, map[string]string{"NCCL_X_TOKEN": "hush2"}
	var out bytes.Buffer
	if err := compared(t, []Side{{"a", a}, {"b", b}}, CompareOptions{}).Render(&out, "table"); err != nil || strings.Contains(out.String(), "hush") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// A run that is compared with itself cannot differ, and that is said.
func TestCompareWithItself(t *testing.T) {
	run := page2x2()
	c, err := Compare([]Side{{"a", run}, {"b", run}}, CompareOptions{})
	if err != nil || !strings.Contains(strings.Join(c.Warnings, "\n"), "1 launch in common") {
		t.Errorf("%v, %q", err, c.Warnings)
	}
}
