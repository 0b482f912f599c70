// Package reports holds the Result record that every measurement becomes, its
// file format, the statistics on it, and the texts that people read.
package reports

import "time"

// Result is one measured size of one operation, one JSON object a line.
// Times are stored, bandwidths are derived from them. What does not apply or
// was not measured is absent, never zero.
type Result struct {
	Format    int       `json:"format"` // of this record; 1
	Time      time.Time `json:"time"`
	Run       string    `json:"run"`    // id of the busbw run
	Launch    int       `json:"launch"` // 0, 1, …: fresh start of all ranks
	Op        string    `json:"op"`     // "all_reduce", …
	Algorithm string    `json:"algorithm"`
	Auto      bool      `json:"auto,omitempty"` // the algorithm was chosen by "auto"
	Engine    string    `json:"engine"`         // "native"
	Scope     string    `json:"scope"`          // "intra", "cross", "global"
	Link      string    `json:"link"`           // "memory", "tcp", "memory+tcp"
	Memory    string    `json:"memory"`         // "host"
	Dtype     string    `json:"dtype"`
	Redop     string    `json:"redop,omitempty"`
	Root      *int      `json:"root,omitempty"`
	Ranks     int       `json:"ranks"`  // of one group
	Nodes     int       `json:"nodes"`  // of the run
	Groups    int       `json:"groups"` // that ran at once
	Bytes     int64     `json:"bytes"`  // S, the whole buffer
	Count     int64     `json:"count"`  // elements, as nccl-tests counts them
	InPlace   bool      `json:"in_place"`

	Mode      string    `json:"mode"`               // "barrier" before each iteration, or "pipelined"
	Aggregate int       `json:"aggregate"`          // collectives in one timed iteration; Seconds are of one collective
	Seconds   []float64 `json:"seconds"`            // completion time of each iteration: the slowest rank's
	Warmup    int       `json:"warmup"`             // iterations thrown away
	Settled   bool      `json:"settled"`            // two windows of the warm-up agreed
	RankP50   []float64 `json:"rank_p50,omitempty"` // each rank's median, s, group-major
	Skew      *float64  `json:"skew,omitempty"`     // median over iterations of (last start − first start), s
	Wrong     *int64    `json:"wrong,omitempty"`    // elements; absent: not checked
	Predicted *float64  `json:"predicted,omitempty"`
	Limit     *Limit    `json:"limit,omitempty"`

	Config map[string]string `json:"config,omitempty"` // effective settings by NCCL's or our name
	Notes  []string          `json:"notes,omitempty"`
	Hosts  []string          `json:"hosts,omitempty"` // by node
	Source string            `json:"source"`          // "busbw VERSION"
	Error  string            `json:"error,omitempty"` // this size failed: who, where, what
}

// Limit is the most that this machine allows one rank's busbw to be.
type Limit struct {
	Name string  `json:"name"`   // "memory bandwidth", "loopback stream"
	GBps float64 `json:"gb_per_s"`
	How  string  `json:"how"` // how it was measured
}
