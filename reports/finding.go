package reports

// Verdict of a check, and of a node or a set of nodes as a whole. Unknown and
// not-applicable are not pass.
type Verdict string

// The verdicts, from the best to the worst that one finding can be.
const (
	Pass    Verdict = "pass"
	NA      Verdict = "n/a"     // does not apply: no such hardware, by design
	Unknown Verdict = "unknown" // could not be read; the evidence says why
	Warn    Verdict = "warn"
	Fail    Verdict = "fail"
)

// Finding is what a check says of one thing on one node.
type Finding struct {
	ID       string     `json:"id"` // of the check: "rdma-port-state"
	Verdict  Verdict    `json:"verdict"`
	Node     string     `json:"node,omitempty"` // display name; "" on a bare node
	Subject  string     `json:"subject"`        // "mlx5_0 port 1", "GPU 3", "memlock"
	Got      string     `json:"got,omitempty"`  // with its unit
	Want     string     `json:"want,omitempty"` // with its unit and where it comes from
	Evidence []Evidence `json:"evidence,omitempty"`
	Remedy   string     `json:"remedy,omitempty"` // what to do, for warn and fail
}

// Evidence is a value and where it was read.
type Evidence struct {
	From  string `json:"from"` // "/sys/class/infiniband/mlx5_0/ports/1/state", "NVML nvmlDeviceGetNvLinkState"
	Value string `json:"value"`
}
