// Package plan predicts what collectives cost on a cluster that is described
// rather than measured: from a description in YAML, from the measurements of a
// smaller one, or both. It is arithmetic on schedules and records only.
package plan

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"busbw/coordinator/document"
)

// Cluster is a cluster of nodes that are all alike. What is a Range is given as
// one number, or as [low, high] where it is not known better; predictions carry
// the interval on.
type Cluster struct {
	Name   string `yaml:"name"`
	Nodes  int    `yaml:"nodes"`
	GPUs   int    `yaml:"gpus_per_node"`
	NICs   int    `yaml:"nics_per_node"` // default: one for each GPU
	NVLink NVLink `yaml:"nvlink"`
	NIC    NIC    `yaml:"nic"`
	Leaf   Leaf   `yaml:"leaf"`
	// CombineGBps is how fast a GPU reduces what it receives; absent: at no cost.
	CombineGBps Range  `yaml:"combine_gb_per_s"`
	Chunk       int64  `yaml:"chunk_bytes"` // largest message; default 512 KiB
	Channels    int    `yaml:"channels"`    // default 1; Fastest tries more if none is given
	anyChannels bool   // none was given
	SHARP       Answer `yaml:"sharp"`
}

// NVLink is what connects GPUs that need no NIC.
type NVLink struct {
	Domain     int   `yaml:"domain"` // GPUs; default: those of a node
	GBps       Range `yaml:"gb_per_s"`
	Efficiency Range `yaml:"efficiency"`
	Latency    Range `yaml:"latency_us"`
}

// NIC is what connects a node with the others.
type NIC struct {
	GBps       Range `yaml:"gb_per_s"` // of one NIC, each way
	Efficiency Range `yaml:"efficiency"`
	Latency    Range `yaml:"latency_us"`
	Rails      bool  `yaml:"rail_optimized"` // NICs of a number share a leaf, not those of a node
}

// Leaf is the switches that nodes are connected to; the zero value is one
// switch that never limits.
type Leaf struct {
	Nodes            int     `yaml:"nodes"`
	Oversubscription float64 `yaml:"oversubscription"` // NICs' bandwidth over uplinks'; default 1
	Latency          Range   `yaml:"latency_us"`       // more than within a leaf
}

// Answer is yes or no, or what was said instead.
type Answer struct {
	Yes bool
	odd string
}

// UnmarshalYAML takes what YAML calls true and false, in either of its versions.
func (a *Answer) UnmarshalYAML(text []byte) error {
	switch s := strings.TrimSpace(string(text)); strings.ToLower(s) {
	case "yes", "true", "on":
		a.Yes = true
	case "no", "false", "off", "null", "~", "":
	default:
		a.odd = s
	}
	return nil
}

// Range is a number that is known to lie between Low and High.
type Range struct {
	Low, High float64
	zero      bool   // 0 was said, so it is no missing number
	odd       string // what was said instead of numbers
}

// UnmarshalYAML takes a number or [low, high]. What is neither is kept for an
// error that names the field.
func (r *Range) UnmarshalYAML(decode func(any) error) error {
	var x any
	if err := decode(&x); err != nil {
		r.odd = "too large"
		return nil
	}
	ends, ok := x.([]any)
	if !ok {
		ends = []any{x, x}
	}
	if len(ends) == 2 {
		low, ok1 := document.Number(ends[0])
		high, ok2 := document.Number(ends[1])
		if ok1 && ok2 {
			*r = Range{Low: low, High: high, zero: high == 0}
			return nil
		}
	}
	r.odd = fmt.Sprint(x)
	return nil
}

func (r Range) given() bool { return r != Range{} }

// maxYAML is far more than a description needs, and not so much that reading
// brackets in brackets, for which the library takes quadratic time, takes long.
const maxYAML = 16 << 10

// ErrDescription is a description that cannot be used as it stands.
var ErrDescription = errors.New("cluster description")

// Read reads a description. Errors are ErrDescription and name the field.
func Read(r io.Reader) (*Cluster, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxYAML+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxYAML {
		return nil, fmt.Errorf("%w: it is longer than %d bytes", ErrDescription, maxYAML)
	}
	c := &Cluster{}
	if err := document.Decode(text, c); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDescription, err)
	}
	if err := c.complete(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDescription, err)
	}
	return c, nil
}

// Bounds of what a description may say; beyond them a number is a slip.
const (
	maxNodes    = 1 << 20
	maxPerNode  = 1024
	maxGBps     = 1e6
	maxLatency  = 1e6 // µs
	maxChannels = 64
)

// Where a description gives no efficiency or latency. NVLink: rings measured on
// A100 to B200 reach 76 to 82 % of the links' rate. NIC: 73 % (four B200 nodes)
// to what ib_write_bw reaches of a 400 Gb/s port, 98 %. Latencies are those of
// NCCL's tuning table, base and hop, for its Simple protocol.
var (
	nvlinkEfficiency = Range{Low: 0.76, High: 0.82}
	nicEfficiency    = Range{Low: 0.73, High: 0.98}
	nvlinkLatency    = Range{Low: 0.6, High: 4}
	nicLatency       = Range{Low: 2.7, High: 14}
)

// complete fills in defaults and finds what makes no sense.
func (c *Cluster) complete() error {
	if c.NICs == 0 {
		c.NICs = c.GPUs
	}
	if c.NVLink.Domain == 0 {
		c.NVLink.Domain = c.GPUs
	}
	if c.Leaf.Oversubscription == 0 {
		c.Leaf.Oversubscription = 1
	}
	if c.Chunk == 0 {
		c.Chunk = 512 << 10
	}
	if c.Channels == 0 {
		c.Channels, c.anyChannels = 1, true
	}
	for _, d := range []struct{ field, value *Range }{
		{&c.NVLink.Efficiency, &nvlinkEfficiency}, {&c.NIC.Efficiency, &nicEfficiency},
		{&c.NVLink.Latency, &nvlinkLatency}, {&c.NIC.Latency, &nicLatency},
	} {
		if !d.field.given() {
			*d.field = *d.value
		}
	}
	for _, n := range []struct {
		field string
		n     int64
		most  int64
	}{
		{"nodes", int64(c.Nodes), maxNodes}, {"gpus_per_node", int64(c.GPUs), maxPerNode}, {"nics_per_node", int64(c.NICs), maxPerNode},
		{"nvlink.domain", int64(c.NVLink.Domain), maxNodes}, {"chunk_bytes", c.Chunk, 1 << 40}, {"channels", int64(c.Channels), maxChannels},
	} {
		if n.n == 0 {
			return fmt.Errorf("%s is missing, or 0: want 1 to %d", n.field, n.most)
		}
		if n.n < 1 || n.n > n.most {
			return fmt.Errorf("%s is %d: want 1 to %d", n.field, n.n, n.most)
		}
	}
	for _, r := range []struct {
		field     string
		r         Range
		low, high float64
	}{
		{"nvlink.gb_per_s", c.NVLink.GBps, 1e-3, maxGBps}, {"nic.gb_per_s", c.NIC.GBps, 1e-3, maxGBps},
		{"nvlink.efficiency", c.NVLink.Efficiency, 0.01, 1}, {"nic.efficiency", c.NIC.Efficiency, 0.01, 1},
		{"nvlink.latency_us", c.NVLink.Latency, 0, maxLatency}, {"nic.latency_us", c.NIC.Latency, 0, maxLatency},
		{"leaf.latency_us", c.Leaf.Latency, 0, maxLatency}, {"combine_gb_per_s", c.CombineGBps, 0, maxGBps},
	} {
		if !r.r.given() { // what needs it asks for it
			continue
		}
		if r.r.odd != "" {
			return fmt.Errorf("%s is %.60s: want a number or [low, high]", r.field, r.r.odd)
		}
		if !(r.r.Low >= r.low && r.r.High <= r.high) || r.r.Low > r.r.High {
			return fmt.Errorf("%s is %s: want %g to %g, the lower end first", r.field, r.r, r.low, r.high)
		}
	}
	return c.sense()
}

// sense finds fields that contradict each other.
func (c *Cluster) sense() error {
	switch o := c.Leaf.Oversubscription; {
	case c.SHARP.odd != "":
		return fmt.Errorf("sharp is %.60s: want no", c.SHARP.odd)
	case c.SHARP.Yes:
		return errors.New("sharp: reductions in switches are not modelled; say no, or leave it out, to see the cluster without them")
	case !(o >= 1 && o <= 1000):
		return fmt.Errorf("leaf.oversubscription is %g: want 1 (none) to 1000", o)
	case c.Leaf.Nodes < 0 || c.Leaf.Nodes > maxNodes:
		return fmt.Errorf("leaf.nodes is %d: want 1 to %d", c.Leaf.Nodes, maxNodes)
	case o > 1 && c.Leaf.Nodes == 0:
		return errors.New("leaf.nodes is missing: oversubscription needs leaves to be between")
	case c.NVLink.Domain > 1 && c.NVLink.Domain%c.GPUs != 0 && c.GPUs%c.NVLink.Domain != 0:
		return fmt.Errorf("nvlink.domain is %d GPUs: it must be whole nodes of %d, or divide one", c.NVLink.Domain, c.GPUs)
	case c.NICs > c.GPUs && c.NICs%c.GPUs != 0, c.NICs < c.GPUs && c.GPUs%c.NICs != 0:
		return fmt.Errorf("nics_per_node is %d for %d GPUs: one must divide the other", c.NICs, c.GPUs)
	case c.Leaf.Nodes > 0 && c.NVLink.Domain > c.GPUs && c.Leaf.Nodes*c.GPUs%c.NVLink.Domain != 0:
		return fmt.Errorf("leaf.nodes is %d: a leaf must hold whole NVLink domains of %d nodes", c.Leaf.Nodes, c.NVLink.Domain/c.GPUs)
	}
	return c.Size(c.Nodes)
}

// Size says why the cluster cannot have so many nodes.
func (c *Cluster) Size(nodes int) error {
	switch {
	case nodes < 1 || nodes > maxNodes || nodes > maxNodes/c.GPUs:
		return fmt.Errorf("nodes is %d: want at least 1, and at most %d GPUs in all", nodes, maxNodes)
	case c.NVLink.Domain > c.GPUs && nodes*c.GPUs > c.NVLink.Domain && nodes*c.GPUs%c.NVLink.Domain != 0:
		return fmt.Errorf("nodes is %d: want whole NVLink domains of %d nodes", nodes, c.NVLink.Domain/c.GPUs)
	}
	return nil
}

func (r Range) String() string {
	if r.Low == r.High || math.IsNaN(r.Low) {
		return fmt.Sprint(r.Low)
	}
	return fmt.Sprintf("[%g, %g]", r.Low, r.High)
}
