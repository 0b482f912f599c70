// Package coordinator starts jobs on the workers of a cluster and turns what
// they measure into results.
package coordinator

import (
	"encoding/json"
	"fmt"
)

// Plan is what a node's runner process must know before anything else.
type Plan struct {
	Run    string     `json:"run"`    // id
	Launch int        `json:"launch"` // 0, 1, …
	Node   int        `json:"node"`   // index of the node that reads this
	Nodes  []PlanNode `json:"nodes"`  // node-major rank order
	// Settings are the effective settings by name (see cmd's settings list).
	Settings map[string]string `json:"settings"`
	// NCCL is what runners find in their environment instead of Settings, where
	// the NCCL library itself is to run: what the user set and nothing else.
	NCCL map[string]string `json:"nccl,omitempty"`
}

// Variables are the NCCL settings of the runners' environment.
func (p Plan) Variables() map[string]string {
	if p.NCCL != nil {
		return p.NCCL
	}
	return p.Settings
}

// JobID names the launch of a plan on its workers.
func JobID(p Plan) string { return fmt.Sprintf("%s-%d", p.Run, p.Launch) }

// PlanNode is one node of a plan. Its ranks follow those of the node before.
type PlanNode struct {
	ID    string `json:"id"` // generated, never the host name
	Host  string `json:"host"`
	Addr  string `json:"addr"` // data address that the worker advertises (IP)
	Ranks int    `json:"ranks"`
}

// Command is one order to the runner of a node. It answers with one Event of
// the same Seq. A runner reads its Plan first, as one line of JSON, and then
// Commands, one a line; the end of its input means: end.
type Command struct {
	Node int             `json:"-"` // to whom
	Seq  uint64          `json:"seq"`
	Kind string          `json:"kind"` // one of Kind… (cases.go)
	Body json.RawMessage `json:"body,omitempty"`
}

// Event is what a runner says: the answer to a command (Seq > 0), or, with
// Seq 0, a "heartbeat" or a last "failed".
type Event struct {
	Node     int             `json:"node"`
	Seq      uint64          `json:"seq,omitempty"`
	Kind     string          `json:"kind"` // one of Event…
	Body     json.RawMessage `json:"body,omitempty"`
	Error    *Fault          `json:"error,omitempty"`
	Progress *Progress       `json:"progress,omitempty"`
}

// Kinds of events. The agent of a node adds the last two to what its runner says.
const (
	EventOK        = "ok"        // answer to a command
	EventFailed    = "failed"    // a rank could not go on
	EventHeartbeat = "heartbeat" // with Progress, where there is some
	EventAlive     = "alive"     // the agent lives, and so does its runner
	EventLost      = "lost"      // the runner is no more
)

// Fault says who, where and what. Consequence marks an error that follows
// from another one ("peer closed the connection"), so that the cause is named.
type Fault struct {
	Node        int    `json:"node"`
	Rank        int    `json:"rank"` // global; −1: the node itself
	Peer        int    `json:"peer"` // global; −1: none
	Link        string `json:"link,omitempty"`
	Step        string `json:"step,omitempty"` // "iteration 4 step 17"
	Text        string `json:"text"`
	Consequence bool   `json:"consequence,omitempty"`
}

// Progress is the last thing a node's slowest rank completed.
type Progress struct {
	Rank      int `json:"rank"`
	Iteration int `json:"iteration"`
	Step      int `json:"step"`
	// On NCCL: its calls in this case that each local rank has made, and those
	// that have ended; −1 for ranks that have no part in it.
	Arrived  []int64 `json:"arrived,omitempty"`
	Finished []int64 `json:"finished,omitempty"`
}
