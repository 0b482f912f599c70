package coordinator

import (
	"context"
	"fmt"
	"math"
	"time"

	"busbw/reports"
)

// KindDevices has every node measure its own devices, one after the other, all
// nodes at once: DevicesBody → DevicesReply.
const KindDevices = "devices"

// DeviceScope is the scope of results that are of one device of one node.
const DeviceScope = "devices"

// The tests of a node's own devices, by the name that their results have as
// their operation. A port sends to itself, which uses its slot both ways and
// no cable; a GPU copies between its memory and locked host memory, and into
// the memory of the next GPU.
const (
	NICLoopback  = "nic_loopback"
	HostToDevice = "host_to_device"
	DeviceToHost = "device_to_host"
	GPUToGPU     = "gpu_to_gpu"
)

// DevicesBody asks for the tests of a node's devices.
type DevicesBody struct {
	Bytes   int     `json:"bytes"`   // of a transfer
	Seconds float64 `json:"seconds"` // to measure each device and direction for
}

// DevicesReply is what a node measured of its devices.
type DevicesReply struct {
	Tests []DeviceTest `json:"tests,omitempty"`
	None  []NoDevice   `json:"none,omitempty"`
}

// DeviceTest is one device measured in one way.
type DeviceTest struct {
	Test     string    `json:"test"`
	Device   string    `json:"device"` // "mlx5_0:1", "GPU 3 (NVIDIA …, 0000:3b:00.0)"
	Kind     string    `json:"kind"`   // the same for devices that should be alike: "MT4129", "NVIDIA H100 80GB HBM3"
	Memory   string    `json:"memory"` // "host", "cuda": where the data lies at this device
	Seconds  []float64 `json:"seconds,omitempty"`
	Warmup   int       `json:"warmup,omitempty"`
	LineGBps *float64  `json:"line_gb_per_s,omitempty"`
	Notes    []string  `json:"notes,omitempty"`
	Error    string    `json:"error,omitempty"` // it could not be measured, or failed
}

// NoDevice is why a node makes a test of no device at all.
type NoDevice struct {
	Test string `json:"test"`
	Why  string `json:"why"`
}

// mostTests bounds what is taken from one node.
const mostTests = 4096

// Devices measures the devices of all nodes. none has, by node, why a node has
// nothing to test.
func (s *Sweep) Devices(ctx context.Context, bytes int, seconds float64) (all []reports.Result, none map[int][]NoDevice, err error) {
	begun := time.Now().UTC()
	// A node with many devices takes its time; its heartbeats say that it is alive.
	replies, err := ask[DevicesReply](ctx, s, KindDevices, func(int) any { return DevicesBody{Bytes: bytes, Seconds: seconds} }, 5*grace)
	if err != nil {
		return nil, nil, err
	}
	none = map[int][]NoDevice{}
	for i, reply := range replies {
		if len(reply.Tests) > mostTests || len(reply.None) > mostTests {
			return nil, nil, fmt.Errorf("%s answers with %d tests of devices", NodeName(s.Nodes, i), len(reply.Tests)+len(reply.None))
		}
		none[i] = reply.None
		for _, t := range reply.Tests {
			r := s.deviceResult(i, t, int64(bytes))
			r.Time = begun
			if err := r.Check(); err != nil {
				return nil, nil, fmt.Errorf("%s: test of %.100q: %w", NodeName(s.Nodes, i), t.Device, err)
			}
			all = append(all, r)
		}
	}
	return all, none, nil
}

func (s *Sweep) deviceResult(node int, t DeviceTest, bytes int64) reports.Result {
	r := reports.Result{
		Format: reports.Format, Run: s.Run, Launch: s.Launch, Verb: s.req.Verb, Op: clean(t.Test, 40), Algorithm: "copy", Engine: "native", Scope: DeviceScope, Link: "pcie",
		Memory: clean(t.Memory, 20), Dtype: "uint8", Ranks: 1, Nodes: 1, Groups: 1, Bytes: bytes, Count: bytes, Mode: "pipelined", Aggregate: 1,
		Seconds: t.Seconds, Warmup: t.Warmup, Settled: t.Warmup > 0, Hosts: []string{s.Nodes[node].Host}, Config: map[string]string{"device": clean(t.Device, 200), "kind": clean(t.Kind, 100)},
		Source: s.Source, Error: clean(t.Error, 600),
	}
	for _, n := range t.Notes[:min(len(t.Notes), 8)] {
		r.Notes = append(r.Notes, clean(n, 300))
	}
	switch t.Test {
	case NICLoopback:
		r.Algorithm, r.Link = "rc", "verbs"
		if t.LineGBps != nil && *t.LineGBps > 0 && !math.IsInf(*t.LineGBps, 0) {
			r.Limit = &reports.Limit{Name: "NIC line rate", GBps: *t.LineGBps, How: "rate of the port, as the kernel tells it"}
		}
	case GPUToGPU:
		r.Link = "cuda"
	}
	if r.Error == "" && len(r.Seconds) == 0 {
		r.Error = "the node answers without a time"
	}
	return r
}
