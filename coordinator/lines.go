package coordinator

import (
	"fmt"
	"strings"
)

// maxLines bounds the settings of one file.
const maxLines = 1000

// ReadLines reads settings as people keep them: "-x NAME=VALUE" of mpirun,
// several on a line or one, "export NAME=VALUE", "NAME=VALUE"; # begins a
// comment. "-x NAME" passes on a variable of this environment, which lookup
// finds. Only NCCL's variables are settings; others are passed over.
func ReadLines(text []byte, lookup func(string) (string, bool)) (map[string]string, error) {
	env := map[string]string{}
	for i, line := range strings.Split(string(text), "\n") {
		line, _, _ = strings.Cut(line, "#")
		words, err := split(strings.TrimSuffix(strings.TrimSpace(line), "\\"))
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		for _, w := range words {
			if w == "-x" || w == "export" || w == "env" {
				continue
			}
			name, value, ok := strings.Cut(strings.TrimPrefix(w, "-x"), "=")
			if !ok {
				if value, ok = lookup(name); !ok && strings.HasPrefix(name, "NCCL_") {
					return nil, fmt.Errorf("line %d: %s has no value here and none in the environment", i+1, clean(name, maxHost))
				}
			}
			if !strings.HasPrefix(name, "NCCL_") {
				continue
			}
			if old, twice := env[name]; twice && old != value {
				return nil, fmt.Errorf("line %d: %s is given twice, as %q and %q", i+1, name, clean(old, 100), clean(value, 100))
			}
			if env[name] = value; len(env) > maxLines {
				return nil, fmt.Errorf("more than %d settings", maxLines)
			}
		}
	}
	return env, nil
}

// split cuts a line into words as a shell does, without expansions.
func split(line string) (words []string, err error) {
	var word strings.Builder
	in, quote := false, rune(0)
	for _, c := range line {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote, in = c, true
		case quote == 0 && (c == ' ' || c == '\t' || c == '\r' || c == ';'):
			if in {
				words = append(words, word.String())
			}
			word.Reset()
			in = false
		default:
			word.WriteRune(c)
			in = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("a quotation mark (%c) is not closed", quote)
	}
	if in {
		words = append(words, word.String())
	}
	return words, nil
}
