// Package reports holds the Result record that every measurement becomes, its
// file format, the statistics on it, and the texts that people read.
package reports

import (
	"errors"
	"fmt"
	"time"
)

// Format is the number of the record's format that this version writes. A
// reader takes every format up to its own.
const Format = 1

// Result is one measured size of one operation, one JSON object a line.
// Times are stored, bandwidths are derived from them. What does not apply or
// was not measured is absent, never zero.
type Result struct {
	Format    int       `json:"format"` // of this record; Format
	Time      time.Time `json:"time,omitzero"`
	Run       string    `json:"run"`               // id of the busbw run
	Launch    int       `json:"launch"`            // 0, 1, …: fresh start of all ranks
	Verb      string    `json:"verb,omitempty"`    // busbw command that measured it: "run", "sweep", …
	Planned   int       `json:"planned,omitempty"` // records that the whole run is to have
	Op        string    `json:"op"`                // "all_reduce", …
	Algorithm string    `json:"algorithm"`
	Auto      bool      `json:"auto,omitempty"` // the algorithm was chosen by "auto"
	Engine    string    `json:"engine"`         // "native"
	Scope     string    `json:"scope"`          // "intra", "cross", "global"
	Link      string    `json:"link"`           // "memory", "tcp", "memory+verbs", …
	Memory    string    `json:"memory"`         // "host"
	Dtype     string    `json:"dtype"`
	Redop     string    `json:"redop,omitempty"`
	Root      *int      `json:"root,omitempty"`
	Ranks     int       `json:"ranks"`           // of one group; 0 where an import cannot tell
	Nodes     int       `json:"nodes"`           // of the run
	Groups    int       `json:"groups"`          // that ran at once
	Pairs     []Pair    `json:"pairs,omitempty"` // of scope "pairs": what each group is
	Bytes     int64     `json:"bytes"`           // S, the whole buffer
	Asked     int64     `json:"asked,omitempty"` // size asked for, where rounding to whole blocks changed it
	Count     int64     `json:"count"`           // elements, as nccl-tests counts them
	InPlace   bool      `json:"in_place"`

	Mode      string    `json:"mode"`                     // "barrier" before each iteration, or "pipelined"
	Aggregate int       `json:"aggregate"`                // collectives in one timed iteration; Seconds are of one collective
	Seconds   []float64 `json:"seconds,omitempty"`        // completion time of each iteration: the slowest rank's
	Warmup    int       `json:"warmup"`                   // iterations thrown away
	Settled   bool      `json:"settled"`                  // two windows of the warm-up agreed
	RankP50   []float64 `json:"rank_p50,omitempty"`       // each rank's median, s, group-major
	Skew      *float64  `json:"skew,omitempty"`           // median over iterations of (last start − first start), s
	Wrong     *int64    `json:"wrong,omitempty"`          // elements; absent: not checked
	AtLeast   bool      `json:"wrong_at_least,omitempty"` // wrong is a lower bound: the text tells that, not how many
	Predicted *float64  `json:"predicted,omitempty"`      // s, by the model
	// Expected is the interval of a prediction that stands alone, low and high, s.
	Expected *[2]float64 `json:"expected,omitempty"`
	Limit    *Limit      `json:"limit,omitempty"`
	Verbs    *Verbs      `json:"verbs,omitempty"`    // how data went over RC queue pairs; absent: none did
	NVLink   *LinkUse    `json:"nvlink,omitempty"`   // how busy NVLink was; absent: no GPU counted
	Counters []Counter   `json:"counters,omitempty"` // hardware counters that moved while the size was measured

	Stated     *Stated           `json:"stated,omitempty"`    // of an imported record: what the text said
	Config     map[string]string `json:"config,omitempty"`    // effective settings by NCCL's or our name
	Effective  map[string]string `json:"effective,omitempty"` // what the ranks say that these came to; see docs/results.md
	Notes      []string          `json:"notes,omitempty"`
	Hosts      []string          `json:"hosts,omitempty"`       // by node
	OneMachine bool              `json:"one_machine,omitempty"` // all nodes were workers of one machine (and one network namespace): no NIC or cable lies between them
	Source     string            `json:"source"`                // "busbw VERSION"
	Error      string            `json:"error,omitempty"`       // this size failed: who, where, what
}

// Pair is two nodes that were measured with each other, by their index in
// Hosts: rank 0 of the group is on A, rank 1 on B. Rail is the local index of
// both ranks.
type Pair struct {
	A    int `json:"a"`
	B    int `json:"b"`
	Rail int `json:"rail"`
}

// Limit is the most that this machine allows one rank's busbw to be.
type Limit struct {
	Name string  `json:"name"` // "memory bandwidth", "loopback stream"
	GBps float64 `json:"gb_per_s"`
	How  string  `json:"how"` // how it was measured
}

// Verbs says over which queue pairs a size's data went between nodes.
type Verbs struct {
	Rails      []string `json:"rails"`      // by global rank: "mlx5_0:1 GID 3: 10.0.0.1 v2"
	QPs        int      `json:"qps"`        // of a connection
	MTU        int      `json:"mtu"`        // bytes: the least that two peers agreed on
	Attributes []string `json:"attributes"` // what devices say of the queue pairs, each different text once
}

// LinkUse is what the GPU that sent most sent over its NVLinks while the size
// was timed, barriers between iterations included.
type LinkUse struct {
	Where string   `json:"where"` // "node1 GPU3"
	GBps  float64  `json:"gb_per_s"`
	Share *float64 `json:"share,omitempty"` // of what its links carry each way; absent: not known
}

// Counter is what a hardware counter did while a size was measured, on all
// devices of all nodes that have it.
type Counter struct {
	Name      string `json:"name"`                // as the device names it: "port_xmit_discards", "hw_counters/out_of_sequence"
	Add       uint64 `json:"add"`                 // over all devices
	Devices   int    `json:"devices"`             // on how many it moved
	Most      string `json:"most"`                // where it moved most: "node 3 (gpu4) mlx5_0:1"
	MostAdd   uint64 `json:"most_add"`            // by how much there
	Saturated bool   `json:"saturated,omitempty"` // some device's counter is stuck at its greatest value and says nothing
}

// Stated is what another tool's text says of a size. Its time is one sample in
// Seconds, unless the text lists the iterations; what it does not say is absent.
type Stated struct {
	Time        string   `json:"time,omitempty"` // what its time is: "mean", "median"
	Iterations  int64    `json:"iterations,omitempty"`
	Algbw       *float64 `json:"algbw_gb_per_s,omitempty"`
	Busbw       *float64 `json:"busbw_gb_per_s,omitempty"`
	Peak        *float64 `json:"peak_gb_per_s,omitempty"`
	MessageRate *float64 `json:"messages_per_s,omitempty"`
	Min         *float64 `json:"min_s,omitempty"`
	P50         *float64 `json:"p50_s,omitempty"`
	P99         *float64 `json:"p99_s,omitempty"`
	P999        *float64 `json:"p999_s,omitempty"`
	Max         *float64 `json:"max_s,omitempty"`
	Stdev       *float64 `json:"stdev_s,omitempty"`
}

// check wants every number within bounds.
func (s *Stated) check() error {
	for i, v := range [...]*float64{s.Algbw, s.Busbw, s.Peak, s.MessageRate, s.Min, s.P50, s.P99, s.P999, s.Max, s.Stdev} {
		if v != nil && !aTime(*v) {
			what := [...]string{"algbw", "busbw", "peak", "message rate", "min", "p50", "p99", "p99.9", "max", "stdev"}[i]
			return fmt.Errorf("stated %s is %g: want 0, or %g to %g", what, *v, minNumber, maxNumber)
		}
	}
	if s.Iterations < 0 {
		return fmt.Errorf("stated iterations are %d: want at least 0", s.Iterations)
	}
	return nil
}

// Check says what is wrong with a record, for one that came from elsewhere.
func (r *Result) Check() error {
	switch {
	case r.Format > Format:
		return fmt.Errorf("%w: %d, and this busbw reads formats up to %d; use a newer busbw", ErrNewer, r.Format, Format)
	case r.Format < 1:
		return errors.New("not a busbw result: it has no format number")
	case r.Op == "":
		return errors.New("it names no op")
	case r.Ranks < 1 && (r.Stated == nil || r.Ranks < 0) || r.Nodes < 0 || r.Groups < 0 || max(r.Ranks, r.Nodes, r.Groups) > maxRanks:
		return fmt.Errorf("%d ranks, %d nodes, %d groups: want at least 1 rank, and of each at most %d", r.Ranks, r.Nodes, r.Groups, maxRanks)
	case r.Planned < 0:
		return fmt.Errorf("%d records planned: want none below 0", r.Planned)
	case r.Bytes < 0 || r.Asked < 0 || r.Count < 0:
		return fmt.Errorf("%d bytes, %d asked for, count %d: want none below 0", r.Bytes, r.Asked, r.Count)
	case r.Wrong != nil && *r.Wrong < 0:
		return fmt.Errorf("wrong is %d: want at least 0", *r.Wrong)
	case r.Limit != nil && !(r.Limit.GBps >= minNumber && r.Limit.GBps <= maxNumber):
		return fmt.Errorf("limit of %g GB/s: want %g to %g", r.Limit.GBps, minNumber, maxNumber)
	case r.Skew != nil && !aTime(*r.Skew):
		return fmt.Errorf("skew of %g s: want a time", *r.Skew)
	case r.Predicted != nil && !aTime(*r.Predicted):
		return fmt.Errorf("prediction of %g s: want a time", *r.Predicted)
	case r.Expected != nil && !(aTime(r.Expected[0]) && aTime(r.Expected[1]) && r.Expected[0] <= r.Expected[1]):
		return fmt.Errorf("expected %g to %g s: want two times, the lower first", r.Expected[0], r.Expected[1])
	}
	for i, p := range r.Pairs {
		if n := len(r.Hosts); len(r.Pairs) != r.Groups || p.A < 0 || p.A >= n || p.B < 0 || p.B >= n || p.A == p.B || p.Rail < 0 || p.Rail > maxRanks {
			return fmt.Errorf("pair %d of %d is %+v, with %d hosts and %d groups: want two of the hosts for each group", i, len(r.Pairs), p, n, r.Groups)
		}
	}
	if r.Stated != nil {
		if err := r.Stated.check(); err != nil {
			return err
		}
	}
	for i, s := range r.Seconds {
		if !aTime(s) {
			return fmt.Errorf("seconds[%d] is %g: want a time", i, s)
		}
	}
	for i, s := range r.RankP50 {
		if !aTime(s) {
			return fmt.Errorf("rank_p50[%d] is %g: want a time", i, s)
		}
	}
	return nil
}

// Foretold says that the result is a prediction, not a measurement.
func (r *Result) Foretold() bool { return r.Error == "" && len(r.Seconds) == 0 && r.Predicted != nil }

// What is derived from numbers within these bounds is finite.
const (
	minNumber = 1e-15
	maxNumber = 1e15
)

// aTime says whether s can be a number of seconds; 0 is a clock too coarse.
func aTime(s float64) bool { return s == 0 || s >= minNumber && s <= maxNumber }

// maxRanks is far above any machine; the product of two such numbers is an int64.
const maxRanks = 1 << 24

// ErrNewer is the format number of a later version of the program.
var ErrNewer = errors.New("newer record format")
