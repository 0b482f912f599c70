package rdma

import (
	"errors"
	"fmt"
)

// ErrAbsent says that this machine has no libibverbs.so.1, or that the program
// was built without cgo.
var ErrAbsent = errors.New("RDMA is not available here")

// ErrSetting says that a setting asks for what this machine does not have.
var ErrSetting = errors.New("a setting does not fit this machine")

// ErrDead is what a rank sees of a peer whose device no longer answers.
var ErrDead = errors.New("no sign of life")

// Completion is a work request that failed.
type Completion struct {
	Status         int // enum ibv_wc_status
	Vendor         uint32
	Op             string // "write", "receive", …
	Device         string
	Local, Remote  uint32 // queue pair numbers
	LocalGID, Peer string // addresses
}

// statuses are the completion statuses (enum ibv_wc_status of rdma-core's
// verbs.h), each with what it usually means to an operator.
var statuses = [...]struct{ name, means string }{
	{"success", ""},
	{"local length error", "a message is longer than the buffer that was posted for it: both sides disagree on a size"},
	{"local QP operation error", "the device refused the work request: inline data or a message longer than the queue pair allows"},
	{"local EE context operation error", ""},
	{"local protection error", "the memory is not, or no longer, registered for this use: a wrong lkey or range"},
	{"flushed", "the queue pair was already in the error state: a consequence of an earlier error"},
	{"memory window bind error", ""},
	{"bad response", "the peer answered what no correct device answers: firmware, or packets altered on the way"},
	{"local access error", "the peer wrote beyond what this side allows"},
	{"remote invalid request", "the peer's queue pair does not take this operation or this length"},
	{"remote access error", "the peer's memory region is gone, or the address or rkey does not belong to it"},
	{"remote operation error", "the peer's device failed on it: its queue pair is in the error state"},
	{"transport retry counter exceeded", "no acknowledgement came: the peer or its port is down, the path is broken or loses packets (cable, optics, PFC), or both sides disagree on the MTU, the GID or the P_Key"},
	{"RNR retry counter exceeded", "the peer has posted no receive: it is stuck or gone"},
	{"local RDD violation", ""},
	{"remote invalid RD request", ""},
	{"remote aborted", "the peer gave up the operation"},
	{"invalid EE context number", ""},
	{"invalid EE context state", ""},
	{"fatal error", "the device is in trouble: see the kernel's log"},
	{"response timeout", "the peer did not answer a read in time"},
	{"general error", "the device gives no reason: see the kernel's log"},
	{"tag matching error", ""},
	{"tag matching rendezvous incomplete", ""},
}

const (
	statusFlushed  = 5
	statusExceeded = 12
)

func (c *Completion) Error() string {
	name, means := "unknown", ""
	if c.Status >= 0 && c.Status < len(statuses) {
		name, means = statuses[c.Status].name, statuses[c.Status].means
	}
	s := fmt.Sprintf("%s failed with status %d (%s), vendor code %#x, on %s %s queue pair %d to %s queue pair %d", c.Op, c.Status, name, c.Vendor, c.Device, c.LocalGID, c.Local, c.Peer, c.Remote)
	if means != "" {
		s += ": " + means
	}
	return s
}

// Flushed says that the completion only follows from an earlier error.
func (c *Completion) Flushed() bool { return c.Status == statusFlushed }

// gidChange is IBV_EVENT_GID_CHANGE.
const gidChange = 18

// Event is an asynchronous event of a device (enum ibv_event_type).
type Event struct {
	Type   int
	Device string
	Port   int    // of a port event
	QP     uint32 // of a queue pair event
}

// events are the asynchronous events; bad ones end a run.
var events = [...]struct {
	name string
	bad  bool
}{
	{"CQ_ERR: a completion queue overran", true}, {"QP_FATAL", true}, {"QP_REQ_ERR: a transport error on the responder's side", true},
	{"QP_ACCESS_ERR: the peer tried to reach memory that it may not", true}, {"COMM_EST", false}, {"SQ_DRAINED", false}, {"PATH_MIG", false}, {"PATH_MIG_ERR", true},
	{"DEVICE_FATAL", true}, {"PORT_ACTIVE", false}, {"PORT_ERR: the link went down", true}, {"LID_CHANGE", true}, {"PKEY_CHANGE", true}, {"SM_CHANGE", false},
	{"SRQ_ERR", true}, {"SRQ_LIMIT_REACHED", false}, {"QP_LAST_WQE_REACHED", false}, {"CLIENT_REREGISTER", false}, {"GID_CHANGE: an address was added to or taken from the port", false}, {"WQ_FATAL", true},
}

// Bad says whether the event ends a run. A change of the GID table does only
// where it is the row in use that changed: see Device.Trouble.
func (e *Event) Bad() bool { return e.Type >= 0 && e.Type < len(events) && events[e.Type].bad }

func (e *Event) Error() string {
	name := fmt.Sprintf("unknown event %d", e.Type)
	if e.Type >= 0 && e.Type < len(events) {
		name = events[e.Type].name
	}
	switch {
	case e.QP != 0:
		return fmt.Sprintf("%s queue pair %d reported %s", e.Device, e.QP, name)
	case e.Port != 0:
		return fmt.Sprintf("%s port %d reported %s", e.Device, e.Port, name)
	}
	return fmt.Sprintf("%s reported %s", e.Device, name)
}

// Attributes are what the device says of a connected queue pair.
type Attributes struct {
	State, MTU, GIDIndex, SL, TrafficClass, PKey, Timeout, Retries, RNRRetries, RNRTimer int
	Remote                                                                               uint32
}

func (a Attributes) String() string {
	return fmt.Sprintf("MTU %d, GID row %d, SL %d, traffic class %d, P_Key row %d, timeout %d, retries %d, RNR retries %d, RNR timer %d", a.MTU, a.GIDIndex, a.SL, a.TrafficClass, a.PKey, a.Timeout, a.Retries, a.RNRRetries, a.RNRTimer)
}

// Attempt is one way of registering GPU memory, and why it failed.
type Attempt struct {
	How string
	Err error // nil: it worked
}
