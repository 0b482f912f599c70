package coordinator

import (
	"fmt"
	"slices"
	"strings"
)

// What a matrix of settings means depends on the engine: the native one honours
// those of a list, with defaults; NCCL has variables that only it knows, and what
// took effect is read from its log.

// today is a setting's name of today. NCCL itself takes names as they are given,
// for older versions know only the older ones.
func (m *Matrix) today(name string) string {
	if m.Engine == "nccl" {
		return name
	}
	return canonical(name)
}

// takes says why the engine cannot be given a setting; nil: it can.
func (m *Matrix) takes(name string) error {
	switch {
	case m.Engine != "nccl" && !Honoured(name):
		return fmt.Errorf("not a setting of the %s engine, so that it could only seem to make no difference; the settings are %s", m.Engine, strings.Join(settingNames(), ", "))
	case m.Engine != "nccl":
	case slices.Contains(ncclOwn, name):
		return fmt.Errorf("busbw sets it, to read from NCCL's log what took effect")
	case !ncclName(name):
		return fmt.Errorf("no variable of NCCL: these are NCCL_ and capitals, digits and _")
	}
	return nil
}

// ncclOwn are variables of NCCL by which busbw learns what took effect.
var ncclOwn = []string{"NCCL_DEBUG", "NCCL_DEBUG_FILE", "NCCL_DEBUG_SUBSYS", "NCCL_CONF_FILE"}

func ncclName(name string) bool {
	rest, ok := strings.CutPrefix(name, "NCCL_")
	return ok && rest != "" && len(name) <= 64 && !strings.ContainsFunc(rest, func(c rune) bool {
		return c != '_' && (c < 'A' || c > 'Z') && (c < '0' || c > '9')
	})
}

// effective is what variables come to.
func (m *Matrix) effective(env map[string]string) (map[string]string, error) {
	if m.Engine != "nccl" {
		var list []string
		for k, v := range env {
			list = append(list, k+"="+v)
		}
		slices.Sort(list)
		values, _, err := Settings(list)
		return values, err
	}
	values := map[string]string{}
	for k, v := range env {
		if len(v) >= maxNCCLValue || strings.Contains(v, "\x00") {
			return nil, fmt.Errorf("%s has a value of %d bytes, at most %d are possible, none of them 0", k, len(v), maxNCCLValue)
		}
		if v != "" {
			values[k] = v
		}
	}
	return values, nil
}

// EffectiveSettings are those of an engine's variant that was written down before.
func EffectiveSettings(engine string, settings map[string]string) (map[string]string, error) {
	m := &Matrix{Engine: engine}
	for k := range settings {
		if err := m.takes(k); err != nil && engine == "nccl" {
			return nil, fmt.Errorf("%s: %w", clean(k, 64), err)
		}
	}
	return m.effective(settings)
}

// ExportsOf are the shell lines that set an engine's settings.
func ExportsOf(engine string, effective map[string]string) (lines []string) {
	if engine != "nccl" {
		return Exports(effective)
	}
	for k, v := range effective {
		lines = append(lines, "export "+k+"="+quoted(v))
	}
	slices.Sort(lines)
	return lines
}
