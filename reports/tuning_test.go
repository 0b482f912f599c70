package reports

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// trial is n launches of three sizes, one of each band, with 1 % noise. speed
// is against the base, by size.
func trial(r *rand.Rand, name string, n int, speed map[int64]float64, effect string) Trial {
	t := Trial{Name: name, Lines: []string{"export NCCL_X=" + name}}
	for l := range n {
		day := 1 + 0.01*r.NormFloat64() // of the whole launch
		for _, bytes := range []int64{1 << 10, 1 << 20, 64 << 20} {
			f := speed[bytes]
			if f == 0 {
				f = 1
			}
			s := sample("global", "ring", 4, bytes, math.Round(1e12*(1e-5+float64(bytes)/1e9)/f*day*(1+0.005*r.NormFloat64()))/1e12)
			s.Launch, s.Auto, s.Wrong = l, true, new(int64(0))
			s.Time = s.Time.Add(time.Duration(l*100+r.IntN(100)) * time.Second)
			s.Config = map[string]string{"NCCL_X": name}
			s.Effective = map[string]string{"pieces": effect, "channels": "1"}
			t.Results = append(t.Results, s)
		}
	}
	return t
}

func tuned(t *testing.T, trials []Trial, twice []Result) *Tuning {
	t.Helper()
	got, err := Tune(trials, twice, 0.02)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func sweepOfFive() ([]Trial, []Result) {
	r := rand.New(rand.NewPCG(41, 42))
	const n = 10
	base := trial(r, "base", n, nil, "1")
	large := trial(r, "large", n, map[int64]float64{64 << 20: 1.15, 1 << 10: 0.9}, "8")
	also := trial(r, "also", n, map[int64]float64{64 << 20: 1.15}, "8")
	inert := trial(r, "inert", n, nil, "1")
	wrong := trial(r, "wrong", n, map[int64]float64{1 << 10: 7, 1 << 20: 7, 64 << 20: 7}, "9")
	wrong.Results[4].Wrong = new(int64(12))
	twice := trial(r, "base", 6, nil, "1").Results
	for i := range twice {
		twice[i].Time = twice[i].Time.Add(-time.Hour)
	}
	return []Trial{base, large, also, inert, wrong}, twice
}

func TestTune(t *testing.T) {
	trials, twice := sweepOfFive()
	got := tuned(t, trials, twice)
	if len(got.Bands) != 3 || got.Tests != 9 {
		t.Fatalf("%d bands, %d tests; want 3 and 3 settings × 3", len(got.Bands), got.Tests)
	}
	small, medium, big := got.Bands[0], got.Bands[1], got.Bands[2]
	if small.Winner != 0 || medium.Winner != 0 {
		t.Errorf("small: %+v, medium: %+v; want no winner", small, medium)
	}
	if big.Winner != 1 && big.Winner != 2 || len(big.Tied) != 1 || *big.Noise < 0.001 || *big.Noise > 0.05 {
		t.Errorf("large: %+v; want one of the two fast ones, and the other tied", big)
	}
	for _, e := range small.Entries {
		if e.Setting == 1 && (e.Verdict != Slower || math.Abs(*e.Change+0.1) > 0.02) {
			t.Errorf("small: %+v; want 10 %% slower", e)
		}
	}
	if s := got.Settings[4]; s.Out != Wrong || !strings.Contains(s.Why, "12 elements") {
		t.Errorf("the wrong one: %+v", s)
	}
	if !got.Settings[3].Inert || got.Settings[1].Inert || got.Settings[1].Effects[0] != "pieces 1 → 8" {
		t.Errorf("effects: %+v and %+v", got.Settings[3], got.Settings[1])
	}
	if len(got.One) != 3 || got.One[0].Setting != 2 || got.One[0].Worst > 0.03 || got.One[2].Setting != 0 && got.One[2].Setting != 1 || got.One[2].Worst < 0.08 {
		t.Errorf("one for all: %+v; want the one that is nowhere slow", got.One)
	}
	if got.Drift == nil || got.Drift.P < level {
		t.Errorf("drift: %+v; want none", got.Drift)
	}
	for _, f := range TuningFormats() {
		var b bytes.Buffer
		if err := got.Render(&b, f); err != nil {
			t.Fatal(err)
		}
		golden(t, "tuning."+f, b.Bytes())
		if f == "json" {
			var again Tuning
			if err := json.Unmarshal(b.Bytes(), &again); err != nil || len(again.Bands) != 3 {
				t.Errorf("json: %v", err)
			}
		}
	}
}

func TestTuneFindsDrift(t *testing.T) {
	trials, twice := sweepOfFive()
	for i := range trials {
		for j := range trials[i].Results {
			if r := &trials[i].Results[j]; r.Launch >= 5 {
				r.Seconds[0] *= 1.05
			}
		}
	}
	got := tuned(t, trials, twice)
	if got.Drift.P >= level || got.Drift.Change > -0.03 || !strings.Contains(strings.Join(got.Warnings, "\n"), "the machine changed") {
		t.Errorf("%+v, %q; want a drift of 5 %%", got.Drift, got.Warnings)
	}
	if got.Bands[2].Winner == 0 {
		t.Errorf("the balanced order lost the winner: %+v", got.Bands[2])
	}
}

// Equal settings: a winner in at most 5 % of sweeps, whatever their number.
func TestTuneClaimsNothingOfEqualSettings(t *testing.T) {
	r := rand.New(rand.NewPCG(43, 44))
	rounds := *simulations / 10
	won := 0
	for range rounds {
		var trials []Trial
		for i := range 5 {
			trials = append(trials, trial(r, string(rune('a'+i)), 8, nil, string(rune('1'+i))))
		}
		got, err := Tune(trials, trial(r, "a", 6, nil, "1").Results, 0)
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(got.Bands, func(b Band) bool { return b.Winner != 0 }) {
			won++
		}
	}
	t.Logf("a winner in %d of %d sweeps of equal settings", won, rounds)
	if won > 2+rounds/20 {
		t.Errorf("a winner in %d of %d sweeps of equal settings", won, rounds)
	}
}

func TestTuneSaysWhenLaunchesAreTooFew(t *testing.T) {
	r := rand.New(rand.NewPCG(45, 46))
	var trials []Trial
	for i := range 12 {
		trials = append(trials, trial(r, string(rune('a'+i)), 6, nil, string(rune('a'+i))))
	}
	got := tuned(t, trials, nil)
	if got.Bands[0].Noise != nil || !strings.Contains(strings.Join(got.Warnings, "\n"), "33 tests are too many for 6 launches") {
		t.Errorf("noise %v, warnings %q", got.Bands[0].Noise, got.Warnings)
	}
	if n := LeastLaunches(33); n != 8 || LeastLaunches(23) != 6 || LeastLaunches(1) != 6 {
		t.Errorf("33 tests need %d launches, 23 need %d", n, LeastLaunches(23))
	}
	if _, err := Tune([]Trial{{Name: "base"}}, nil, 0); err == nil {
		t.Error("nothing was judged")
	}
}

// Without a test no claim is spoken of; the base comes first, and what is so in
// every case is not counted.
func TestTuneOfTwoLaunches(t *testing.T) {
	r := rand.New(rand.NewPCG(47, 48))
	quick := map[int64]float64{1 << 10: 3, 1 << 20: 3, 64 << 20: 3}
	got := tuned(t, []Trial{trial(r, "base", 2, nil, "1"), trial(r, "quick", 2, quick, "8")}, nil)
	var b strings.Builder
	if err := got.Render(&b, "table"); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	if strings.Contains(text, "0 tests") || strings.Contains(text, "Holm") || !strings.Contains(text, "n<6: fewer than 6 launches") || strings.Contains(text, "cases") {
		t.Error(text)
	}
	for _, band := range got.Bands {
		if band.Entries[0].Setting != 0 {
			t.Errorf("the base is not first: %+v", band.Entries)
		}
	}
}
