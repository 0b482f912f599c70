// Package ptxvm runs the part of PTX that clang makes of busbw's kernels, for
// tests on machines without a GPU (PTX ISA manual, NVIDIA). It is strict: an
// unknown instruction, an undeclared or mistyped register, a missing label, and
// an access that is misaligned or outside every buffer are errors.
package ptxvm

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Module is a parsed PTX file.
type Module struct {
	Version, Target string
	Funcs           map[string]*Func
}

// Func is a kernel with one parameter, a struct.
type Func struct {
	Name   string
	param  string
	bytes  int // of the parameter
	Most   int // threads of a block that it may be started with; 0: not said
	regs   map[string]int
	kinds  []string // of each register: pred, b16, b32, b64, f32, f64
	code   []inst
	labels map[string]int
}

// inst is one instruction. Those that branch have a label, until it is resolved.
type inst struct {
	line   int
	guard  int // register, −1: none
	negate bool
	what   what
	label  string
	to     int
	run    func(t *thread) error
}

type what int

const (
	plain what = iota
	branch
	exit
	barrier
)

var (
	reEntry = regexp.MustCompile(`^\.visible \.entry (\w+)\($`)
	reParam = regexp.MustCompile(`^\.param \.align 8 \.b8 (\w+)\[(\d+)\]$`)
	reMost  = regexp.MustCompile(`^\.maxntid (\d+)$`)
	reReg   = regexp.MustCompile(`^\.reg \.(pred|b16|b32|b64|f32|f64) (%\w+?)<(\d+)>;$`)
	reLabel = regexp.MustCompile(`^(\$?\w+):$`)
	reGuard = regexp.MustCompile(`^@(!?)(%p\d+) `)
	reHalf  = regexp.MustCompile(`^\{ \.reg \.b\d+ tmp; (mov\.b\d+ .*;) \}$`)
)

// Parse reads a PTX file.
func Parse(src string) (*Module, error) {
	m := &Module{Funcs: map[string]*Func{}}
	var f *Func
	body := false
	for n, line := range strings.Split(src, "\n") {
		line, _, _ = strings.Cut(line, "//")
		s := strings.Join(strings.Fields(line), " ")
		if x := reHalf.FindStringSubmatch(s); x != nil {
			s = x[1] // clang's way to take one half: tmp is thrown away
		}
		var err error
		switch {
		case s == "", s == ")", s == ".address_size 64", strings.HasPrefix(s, ".pragma "):
		case strings.HasPrefix(s, ".version "):
			m.Version = s[len(".version "):]
		case strings.HasPrefix(s, ".target "):
			m.Target = s[len(".target "):]
		case f == nil && reEntry.MatchString(s):
			f = &Func{Name: reEntry.FindStringSubmatch(s)[1], regs: map[string]int{}, labels: map[string]int{}}
		case f == nil:
			err = fmt.Errorf("not understood")
		case !body && reParam.MatchString(s) && f.param == "":
			x := reParam.FindStringSubmatch(s)
			f.param = x[1]
			f.bytes, err = strconv.Atoi(x[2])
		case !body && reMost.MatchString(s):
			f.Most, err = strconv.Atoi(reMost.FindStringSubmatch(s)[1])
		case s == "{" && !body:
			body = true
		case !body:
			err = fmt.Errorf("not understood")
		case s == "}":
			m.Funcs[f.Name], body = f, false
			err = f.resolve()
			f = nil
		case reReg.MatchString(s):
			err = f.declare(reReg.FindStringSubmatch(s))
		case reLabel.MatchString(s):
			f.labels[reLabel.FindStringSubmatch(s)[1]] = len(f.code)
		case strings.HasSuffix(s, ";"):
			err = f.instruction(n+1, strings.TrimSuffix(s, ";"))
		default:
			err = fmt.Errorf("not understood")
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %q: %w", n+1, s, err)
		}
	}
	return m, nil
}

func (f *Func) declare(x []string) error {
	n, err := strconv.Atoi(x[3])
	for i := range n {
		f.regs[x[2]+strconv.Itoa(i)] = len(f.kinds)
		f.kinds = append(f.kinds, x[1])
	}
	return err
}

func (f *Func) resolve() error {
	for i := range f.code {
		c := &f.code[i]
		if to, ok := f.labels[c.label]; ok {
			c.to = to
		} else if c.what == branch {
			return fmt.Errorf("line %d: no label %s", c.line, c.label)
		}
	}
	return nil
}

func (f *Func) instruction(line int, s string) error {
	c := inst{line: line, guard: -1}
	if x := reGuard.FindStringSubmatch(s); x != nil {
		g, err := f.reg(x[2], "pred")
		if err != nil {
			return err
		}
		c.guard, c.negate = g, x[1] == "!"
		s = s[len(x[0]):]
	}
	op, rest, _ := strings.Cut(s, " ")
	args := operands(rest)
	switch op {
	case "ret":
		c.what = exit
	case "bar.sync":
		c.what = barrier
	case "bra", "bra.uni":
		if len(args) != 1 {
			return fmt.Errorf("%d operands", len(args))
		}
		c.what, c.label = branch, args[0]
	default:
		var err error
		if c.run, err = f.decode(op, args); err != nil {
			return err
		}
	}
	f.code = append(f.code, c)
	return nil
}

// operands splits at commas outside braces.
func operands(s string) (out []string) {
	depth, from := 0, 0
	for i, r := range s + "," {
		switch {
		case r == '{':
			depth++
		case r == '}':
			depth--
		case r == ',' && depth == 0:
			if x := strings.TrimSpace(s[from:i]); x != "" {
				out = append(out, x)
			}
			from = i + 1
		}
	}
	return out
}
