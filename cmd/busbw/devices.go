package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"busbw/coordinator"
	"busbw/reports"
)

// deviceRun measures what nodes can of their own devices, before anything
// between nodes is.
type deviceRun struct {
	bytes int           // of a transfer
	time  time.Duration // of each device and direction
	n     int           // results
	none  map[string]map[string]string
}

// largestTransfer is the size that published limits of ports are for: more
// takes longer and tells nothing new.
const largestTransfer = 8 << 20

// measure tests all devices of a launch's nodes and keeps each result.
func (d *deviceRun) measure(ctx context.Context, s *coordinator.Sweep, keep func(reports.Result) error) error {
	all, none, err := s.Devices(ctx, min(d.bytes, largestTransfer), d.time.Seconds())
	if err != nil {
		return err
	}
	d.n, d.none = len(all), map[string]map[string]string{}
	for i, tests := range none {
		host := map[string]string{}
		for _, t := range tests {
			host[t.Test] = t.Why
		}
		d.none[s.Nodes[i].Host] = host
	}
	for _, r := range all {
		if err := keep(r); err != nil {
			return err
		}
	}
	return nil
}

// why tells each reason for testing nothing once, with how many nodes gave it.
func (d *deviceRun) why() string {
	count := map[string]int{}
	for _, tests := range d.none {
		for _, why := range tests {
			count[why]++
		}
	}
	var out []string
	for _, why := range slices.Sorted(maps.Keys(count)) {
		out = append(out, fmt.Sprintf("%s (%s)", why, plural(count[why], "node")))
	}
	return strings.Join(out, "; ")
}
