package coordinator

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"busbw/coordinator/document"
)

// SweptEngines lists the engines whose settings can be swept.
func SweptEngines() []string { return Engines() }

// Bounds of a matrix, which may come from anywhere.
const (
	maxMatrix   = 256 << 10 // bytes of YAML
	maxVariants = 64        // beside the base
	maxAxis     = 64        // values of a setting
)

// Matrix says which settings are to be compared.
type Matrix struct {
	Engine  string
	Base    map[string]string   // in every variant, the base too
	Axes    []Axis              // every combination of their values is a variant
	Exclude []map[string]string // combinations that are left out: all of these values
	Named   []Variant           // beside the combinations
}

// Axis is a setting and the values it is to have.
type Axis struct {
	Name   string
	Values []string
}

// Variant is one set of settings that is measured. Variant 0 of a sweep is the
// base, with nothing changed.
type Variant struct {
	Name     string            `json:"name"`
	Env      map[string]string `json:"env,omitempty"` // on top of the base, as asked
	Settings map[string]string `json:"settings"`      // all that the engine honours, effective
}

// BaseName is the name of variant 0.
const BaseName = "base"

// matrixFile is the YAML of a matrix.
type matrixFile struct {
	Engine   string              `yaml:"engine"`
	Base     map[string]string   `yaml:"base"`
	Matrix   yaml.MapSlice       `yaml:"matrix"`
	Exclude  []map[string]string `yaml:"exclude"`
	Variants []struct {
		Name string            `yaml:"name"`
		Env  map[string]string `yaml:"env"`
		File string            `yaml:"file"`
	} `yaml:"variants"`
}

// ReadMatrix reads the YAML of a matrix. Files that variants name are opened
// with read; lookup finds variables that these pass on without a value.
func ReadMatrix(r io.Reader, read func(name string) ([]byte, error), lookup func(string) (string, bool)) (*Matrix, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxMatrix+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxMatrix {
		return nil, fmt.Errorf("more than %d KiB of YAML", maxMatrix>>10)
	}
	var f matrixFile
	if err := document.Decode(text, &f); err != nil && !errors.Is(err, document.ErrEmpty) {
		return nil, err
	}
	m := &Matrix{Engine: f.Engine, Base: f.Base, Exclude: f.Exclude}
	for _, item := range f.Matrix {
		name, ok := item.Key.(string)
		values, list := item.Value.([]any)
		if !ok || !list {
			return nil, fmt.Errorf("matrix: %v: want a list of values, for example NCCL_ALGO: [Ring, Tree]", item.Key)
		}
		a := Axis{Name: name}
		for _, v := range values {
			switch v.(type) {
			case string, uint64, int64, float64, bool:
				a.Values = append(a.Values, fmt.Sprint(v))
			case nil:
				a.Values = append(a.Values, "")
			default:
				return nil, fmt.Errorf("matrix: %s: a value is no text and no number", name)
			}
		}
		m.Axes = append(m.Axes, a)
	}
	for i, v := range f.Variants {
		if v.Name == "" {
			return nil, fmt.Errorf("variants: number %d has no name", i+1)
		}
		named := Variant{Name: clean(v.Name, maxHost), Env: v.Env}
		if v.File != "" {
			text, err := read(v.File)
			if err != nil {
				return nil, fmt.Errorf("variants: %s: %w", v.Name, err)
			}
			env, err := ReadLines(text, lookup)
			if err != nil {
				return nil, fmt.Errorf("variants: %s: %s: %w", v.Name, v.File, err)
			}
			maps.Copy(env, v.Env) // what stands beside the file wins
			named.Env = env
		}
		m.Named = append(m.Named, named)
	}
	return m, nil
}

// ParseAxis reads "NCCL_ALGO=Ring,Tree".
func ParseAxis(s string) (a Axis, err error) {
	name, values, ok := strings.Cut(s, "=")
	if a.Name = strings.TrimSpace(name); !ok || a.Name == "" {
		return a, fmt.Errorf("%q: want NAME=VALUE,VALUE, for example NCCL_ALGO=Ring,Tree", s)
	}
	for _, v := range strings.Split(values, ",") {
		a.Values = append(a.Values, strings.TrimSpace(v))
	}
	return a, nil
}

// Variants lists what the matrix means, the base first; env is the environment
// ("K=V") that all start from. A setting that the engine does not honour is an
// error: "no difference" would be a lie. Variants that come to the same
// settings are measured once, which notes tell.
func (m *Matrix) Variants(env []string) (all []Variant, notes []string, err error) {
	if err := m.valid(); err != nil {
		return nil, nil, err
	}
	base := map[string]string{}
	for _, kv := range env {
		if k, v, _ := strings.Cut(kv, "="); strings.HasPrefix(k, "NCCL_") && m.takes(k) == nil {
			base[m.today(k)] = v
		}
	}
	m.overlay(base, m.Base)
	combos, notes, err := m.combinations()
	if err != nil {
		return nil, nil, err
	}
	for _, v := range slices.Concat([]Variant{{Name: BaseName}}, combos, m.Named) {
		with := maps.Clone(base)
		m.overlay(with, v.Env)
		if v.Settings, err = m.effective(with); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", v.Name, err)
		}
		if i := slices.IndexFunc(all, func(o Variant) bool { return maps.Equal(o.Settings, v.Settings) }); i >= 0 {
			notes = append(notes, fmt.Sprintf("%s comes to the same settings as %s and is measured once", v.Name, all[i].Name))
			continue
		}
		if i := slices.IndexFunc(all, func(o Variant) bool { return o.Name == v.Name }); i >= 0 {
			return nil, nil, fmt.Errorf("two variants are called %q", v.Name)
		}
		all = append(all, v)
	}
	if len(all) < 2 {
		return nil, nil, fmt.Errorf("nothing to compare: give settings with --env NAME=VALUE,VALUE or --matrix FILE%s", because(notes))
	}
	return all, notes, nil
}

func because(notes []string) string {
	if len(notes) == 0 {
		return ""
	}
	return " (" + strings.Join(notes, "; ") + ")"
}

// valid checks everything that does not depend on the environment.
func (m *Matrix) valid() error {
	if !slices.Contains(SweptEngines(), m.Engine) {
		return fmt.Errorf("unknown engine %q; the engines are %s", m.Engine, strings.Join(SweptEngines(), ", "))
	}
	total := 1
	var axes []string
	for _, a := range m.Axes {
		if len(a.Values) == 0 || len(a.Values) > maxAxis {
			return fmt.Errorf("%s has %d values: want 1 to %d", a.Name, len(a.Values), maxAxis)
		}
		if slices.Contains(axes, m.today(a.Name)) {
			return fmt.Errorf("%s is given twice: put all its values in one list", a.Name)
		}
		axes = append(axes, m.today(a.Name))
		if total *= len(a.Values); total > 1<<20 {
			return fmt.Errorf("the matrix has over a million combinations; at most %d settings can be compared", maxVariants)
		}
	}
	sets := slices.Concat([]map[string]string{m.Base}, m.Exclude)
	for _, v := range m.Named {
		sets = append(sets, v.Env)
	}
	names := slices.Clone(axes)
	for _, s := range sets {
		for k := range s {
			names = append(names, k)
		}
	}
	var foreign []string
	var why, err error
	for _, n := range names {
		if err = m.takes(n); err != nil && !slices.Contains(foreign, n) {
			foreign, why = append(foreign, n), err
		}
	}
	if foreign != nil {
		slices.Sort(foreign)
		return fmt.Errorf("%s: %w", clean(strings.Join(foreign, ", "), 300), why)
	}
	for _, e := range m.Exclude {
		for k := range e {
			if !slices.Contains(axes, m.today(k)) {
				return fmt.Errorf("exclude: %s is not in the matrix", k)
			}
		}
	}
	return nil
}

// combinations is the product of the axes, without what is excluded.
func (m *Matrix) combinations() (all []Variant, notes []string, err error) {
	if len(m.Axes) == 0 {
		return nil, nil, nil
	}
	used := make([]bool, len(m.Exclude))
	at := make([]int, len(m.Axes))
	for {
		env := map[string]string{}
		var label []string
		for i, a := range m.Axes {
			env[m.today(a.Name)] = a.Values[at[i]]
			label = append(label, m.today(a.Name)+"="+a.Values[at[i]])
		}
		out := slices.IndexFunc(m.Exclude, func(e map[string]string) bool { return m.covers(env, e) })
		if out >= 0 {
			used[out] = true
		} else {
			all = append(all, Variant{Name: strings.Join(label, " "), Env: env})
		}
		if len(all)+len(m.Named) > maxVariants {
			return nil, nil, fmt.Errorf("the matrix has more than %d settings: leave some out; each is launched at least 6 times", maxVariants)
		}
		i := len(at) - 1
		for ; i >= 0; i-- {
			if at[i]++; at[i] < len(m.Axes[i].Values) {
				break
			}
			at[i] = 0
		}
		if i < 0 {
			break
		}
	}
	for i, u := range used {
		if !u {
			notes = append(notes, fmt.Sprintf("exclude: number %d leaves nothing out", i+1))
		}
	}
	return all, notes, nil
}

// covers says whether env has all of an exclusion's values.
func (m *Matrix) covers(env, exclude map[string]string) bool {
	for k, v := range exclude {
		if env[m.today(k)] != v {
			return false
		}
	}
	return len(exclude) > 0
}

func (m *Matrix) overlay(env, more map[string]string) {
	for k, v := range more {
		env[m.today(k)] = v
	}
}
