// Command node is what a laboratory machine runs: one process of several that
// meet over TCP, connect over RDMA, and do one of
//
//	collectives   every operation by every algorithm, all bytes checked
//	hold          all-reduce again and again, until something breaks
//	bench         link tests and an all-reduce beside perftest, in turns
//
// Process 1 is where the others meet.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

// options are the command line.
type options struct {
	id, nodes, ranks int
	hub, only        string
	rounds           int
	limit            time.Duration
	rails            map[string]string // NCCL_IB_* from the environment
}

func main() {
	var o options
	flag.IntVar(&o.id, "id", 1, "`number` of this process, from 1")
	flag.IntVar(&o.nodes, "nodes", 1, "`processes` in all")
	flag.IntVar(&o.ranks, "ranks", 1, "`ranks` of each process")
	flag.StringVar(&o.hub, "hub", "node1:7000", "`address` of process 1")
	flag.StringVar(&o.only, "only", "", "bench only link tests whose name has this `part`, or \"ring\"")
	flag.IntVar(&o.rounds, "rounds", 5, "interleaved `rounds` of a bench")
	flag.DurationVar(&o.limit, "limit", 30*time.Second, "`time` to hold")
	flag.Parse()
	o.rails = map[string]string{}
	for _, kv := range os.Environ() {
		if k, v, _ := strings.Cut(kv, "="); strings.HasPrefix(k, "NCCL_IB_") {
			o.rails[k] = v
		}
	}
	modes := map[string]func(*options, *meeting) error{"collectives": collect, "hold": hold, "bench": bench}
	mode, ok := modes[flag.Arg(0)]
	if !ok || flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	m, err := meet(&o)
	if err == nil {
		defer m.close()
		err = mode(&o, m)
	}
	if err != nil {
		fmt.Println("FAILED:", err)
		os.Exit(1)
	}
	fmt.Println("node", o.id, "done")
}
