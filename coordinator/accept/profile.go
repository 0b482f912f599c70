// Package accept decides which nodes may go into service: it holds what nodes
// of a kind must reach (profiles), judges what was found and measured against
// it, and says what most likely is wrong where they fall short. It is
// arithmetic only: it neither measures nor reads a clock.
package accept

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"busbw/collectives"
	"busbw/coordinator/document"
)

//go:embed profiles/*.yaml
var files embed.FS

// Profile is what nodes of one kind are and must reach.
type Profile struct {
	Name   string  `yaml:"name"`
	Title  string  `yaml:"title"`
	GPUs   *GPUs   `yaml:"gpus,omitempty"`
	NICs   *NICs   `yaml:"nics,omitempty"`
	PCIe   *PCIe   `yaml:"pcie,omitempty"`
	Ranks  int     `yaml:"ranks,omitempty"` // on each node; 0: as many as it has GPUs
	Limits []Limit `yaml:"limits"`
	Notes  []Note  `yaml:"notes,omitempty"`
}

// GPUs are those of a node.
type GPUs struct {
	Count      int     `yaml:"count"`
	Product    string  `yaml:"product"`                   // regular expression on the product's name
	NVLinks    int     `yaml:"nvlinks,omitempty"`         // of each GPU; 0: it has none
	NVLinkGBps float64 `yaml:"nvlink_gb_per_s,omitempty"` // of all links of a GPU, each direction
	Source     string  `yaml:"source"`
}

// NICs are those of a node that carry collectives.
type NICs struct {
	Count  int     `yaml:"count"`
	Gbps   float64 `yaml:"gbps"` // of one port, Gb/s
	Link   string  `yaml:"link"` // "InfiniBand", "Ethernet"; "": either
	Source string  `yaml:"source"`
}

// PCIe is the slot of a GPU and of a NIC.
type PCIe struct {
	Gen   int `yaml:"gen"`
	Width int `yaml:"width"`
}

// Limit is what a test must reach. A test that was not run in that way says
// nothing about it.
type Limit struct {
	Test    string  `yaml:"test"`             // an operation, or one of Tests
	Scope   string  `yaml:"scope,omitempty"`  // of an operation: intra, cross, global
	Memory  string  `yaml:"memory,omitempty"` // "device", "host"
	Engine  string  `yaml:"engine,omitempty"` // "native", "nccl"; "": either
	Link    string  `yaml:"link,omitempty"`   // "verbs", "tcp", "memory"; "": any
	Ranks   int     `yaml:"ranks,omitempty"`  // of the group; 0: any
	Nodes   int     `yaml:"nodes,omitempty"`  // at least so many; 0: any
	Bytes   Size    `yaml:"bytes,omitempty"`  // at least so many
	AtLeast float64 `yaml:"at_least,omitempty"`
	AtMost  float64 `yaml:"at_most,omitempty"`
	Unit    string  `yaml:"unit"`
	Source  string  `yaml:"source"`
}

// Note is a measured or published figure that is no limit: for orientation.
type Note struct {
	Text   string `yaml:"text"`
	Source string `yaml:"source"`
}

// Tests are the tests that are no collective operation.
func Tests() []string {
	return []string{"pair", "pair both ways", "pair latency", "nic loopback", "host to device", "device to host", "gpu to gpu"}
}

// Units by what they measure.
func units() []string { return []string{"GB/s", "Gb/s", "µs"} }

// ErrProfile is a profile that cannot be used.
var ErrProfile = errors.New("profile")

// Names lists the profiles of the program.
func Names() []string {
	found, _ := fs.Glob(files, "profiles/*.yaml") // a constant pattern
	var out []string
	for _, f := range found {
		out = append(out, strings.TrimSuffix(path.Base(f), ".yaml"))
	}
	return out
}

// Builtin is a profile of the program.
func Builtin(name string) (*Profile, error) {
	text, err := Text(name)
	if err != nil {
		return nil, err
	}
	return Parse(bytes.NewReader(text), name)
}

// Text is a profile of the program as it is written.
func Text(name string) ([]byte, error) {
	if !slices.Contains(Names(), name) {
		return nil, fmt.Errorf("unknown %w %q; the profiles are %s, and a file with / or .yaml in its name is one of your own", ErrProfile, name, strings.Join(Names(), ", "))
	}
	return files.ReadFile("profiles/" + name + ".yaml")
}

// maxProfile bounds a profile's text, bytes.
const maxProfile = 1 << 20

// Parse reads a profile; from names it in errors.
func Parse(in io.Reader, from string) (*Profile, error) {
	text, err := io.ReadAll(io.LimitReader(in, maxProfile+1))
	if err != nil {
		return nil, fmt.Errorf("%w %s: %w", ErrProfile, from, err)
	}
	if len(text) > maxProfile {
		return nil, fmt.Errorf("%w %s: longer than %d bytes", ErrProfile, from, maxProfile)
	}
	var p Profile
	if err := document.Decode(text, &p); err != nil {
		return nil, fmt.Errorf("%w %s: %w", ErrProfile, from, err)
	}
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("%w %s: %w", ErrProfile, from, err)
	}
	return &p, nil
}

func (p *Profile) check() error {
	switch {
	case p.Name == "" || strings.ContainsAny(p.Name, " \t\n/"):
		return fmt.Errorf("name %q: want a short name without blanks", p.Name)
	case p.Ranks < 0 || p.Ranks > 1024:
		return fmt.Errorf("ranks %d: want 0 to 1024", p.Ranks)
	case p.GPUs != nil && (p.GPUs.Count < 0 || p.GPUs.Count > 1024 || p.GPUs.Source == ""):
		return fmt.Errorf("gpus: want a count of 0 to 1024, and a source")
	case p.NICs != nil && (p.NICs.Count < 0 || p.NICs.Count > 1024 || !(p.NICs.Gbps >= 0 && p.NICs.Gbps < 1e5) || p.NICs.Source == ""):
		return fmt.Errorf("nics: want a count of 0 to 1024, a rate in Gb/s, and a source")
	case len(p.Limits) > 1000:
		return fmt.Errorf("%d limits: at most 1000", len(p.Limits))
	}
	if p.GPUs != nil {
		if _, err := regexp.Compile(p.GPUs.Product); err != nil {
			return fmt.Errorf("gpus: product: %w", err)
		}
	}
	for i, l := range p.Limits {
		if err := l.check(); err != nil {
			return fmt.Errorf("limits[%d] (%s): %w", i, l.Test, err)
		}
	}
	return nil
}

func (l *Limit) check() error {
	_, err := collectives.ParseOp(l.Test)
	op := err == nil
	switch {
	case !op && !slices.Contains(Tests(), l.Test):
		return fmt.Errorf("unknown test: want an operation (all_reduce, …) or one of %s", strings.Join(Tests(), ", "))
	case op && !slices.Contains([]string{"intra", "cross", "global"}, l.Scope):
		return fmt.Errorf("scope %q: want intra, cross or global", l.Scope)
	case !slices.Contains([]string{"", "device", "host"}, l.Memory):
		return fmt.Errorf("memory %q: want device or host", l.Memory)
	case !slices.Contains([]string{"", "verbs", "tcp", "memory"}, l.Link):
		return fmt.Errorf("link %q: want verbs, tcp or memory", l.Link)
	case !slices.Contains(units(), l.Unit):
		return fmt.Errorf("unit %q: want %s", l.Unit, strings.Join(units(), ", "))
	case !(l.AtLeast > 0) == !(l.AtMost > 0):
		return fmt.Errorf("want at_least or at_most, above 0")
	case l.AtLeast > 1e9 || l.AtMost > 1e9 || l.Ranks < 0 || l.Nodes < 0 || l.Bytes < 0:
		return fmt.Errorf("a number is out of range")
	case l.Source == "":
		return fmt.Errorf("source is missing: a limit says where it comes from")
	}
	return nil
}

// value is the limit in GB/s, or in seconds for a time.
func (l *Limit) value() float64 {
	v := cmp.Or(l.AtLeast, l.AtMost)
	switch l.Unit {
	case "Gb/s":
		return v / 8
	case "µs":
		return v * 1e-6
	}
	return v
}

// Text says what the limit asks: "at least 380 Gb/s (47.50 GB/s)".
func (l *Limit) Text() string {
	word := "at least"
	if l.AtMost > 0 {
		word = "at most"
	}
	s := fmt.Sprintf("%s %g %s", word, cmp.Or(l.AtLeast, l.AtMost), l.Unit)
	if l.Unit == "Gb/s" {
		s += fmt.Sprintf(" (%.2f GB/s)", l.value())
	}
	return s
}
