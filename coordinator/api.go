package coordinator

import "time"

// The worker's HTTPS interface. All bodies are JSON; an error is a Refusal.
//
//	POST   /v1/job                Plan → Accepted: start a runner; 409 while another job has the node
//	GET    /v1/job/{id}/events    Events, one a line, until the runner is gone; one reader
//	POST   /v1/job/{id}/command   Command → 204; KindPing only shows that the owner lives
//	DELETE /v1/job/{id}           stop the runner → 204 when it is gone
//	GET    /v1/node               → NodeInfo
//	GET    /v1/topo               → reports.Topology
//	GET    /v1/check              → NodeCheck; ?watch=1s&gbps=400
//	GET    /v1/time               → {"time": the node's clock}
const (
	PathJob   = "/v1/job"
	PathNode  = "/v1/node"
	PathTopo  = "/v1/topo"
	PathCheck = "/v1/check"
	PathTime  = "/v1/time"
	KindPing  = "ping"
)

// Bounds and times that both sides of the interface know.
const (
	MaxBody    = 8 << 20  // bytes of a Plan or Command: some 50 000 nodes
	MaxEvent   = 64 << 20 // bytes of an Event: a batch of a million iterations
	AliveEvery = 500 * time.Millisecond
	PingEvery  = 2 * time.Second
	OwnerGone  = 15 * time.Second // without a ping or command the runner is stopped
)

// Refusal is why a worker did not do what it was asked.
type Refusal struct {
	Error string `json:"error"`
}

// Accepted answers a Plan.
type Accepted struct {
	Job  string   `json:"job"`
	Data DataAddr `json:"data"` // as picked with the plan's settings
	Why  string   `json:"why"`
}

// NodeInfo describes the machine of a worker.
type NodeInfo struct {
	Host    string `json:"host"`
	Version string `json:"version"`
	OS      string `json:"os"` // kernel and architecture
	CPU     string `json:"cpu,omitempty"`
	CPUs    int    `json:"cpus"`
	Memory  int64  `json:"memory_bytes,omitempty"`
	Net     Choice `json:"net"`
	Job     string `json:"job,omitempty"` // that it is busy with
}
