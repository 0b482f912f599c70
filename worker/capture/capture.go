// Package capture reads what other programs printed (ibstat, lspci,
// nvidia-smi, show_gids, kernel logs, NCCL logs …) and has the facts judged by
// the rules that also judge a machine's own files. It parses loosely: the
// outputs come trimmed, joined, indented anew and with notes between them.
package capture

import (
	"errors"
	"fmt"
	"io"

	"busbw/reports"
	"busbw/worker/judge"
)

// MaxBytes is how much of a capture is read.
const MaxBytes = 64 << 20

// ErrNothing says that no output in a capture was recognised.
var ErrNothing = errors.New("nothing in it is output that is known here (busbw check --help lists what is)")

// Read judges a capture. gbps is the rate that RDMA ports should have; 0: not
// known.
func Read(r io.Reader, gbps float64) ([]reports.Finding, error) {
	b, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err != nil {
		return nil, err
	}
	if len(b) > MaxBytes {
		return nil, fmt.Errorf("longer than %d MiB", MaxBytes>>20)
	}
	fs := Judge(string(b), gbps)
	if len(fs) == 0 {
		return nil, ErrNothing
	}
	return fs, nil
}

// Judge reads and judges a text. What is printed for different nodes, below
// headings or behind names at the beginning of lines, is judged apart.
func Judge(text string, gbps float64) []reports.Finding {
	var out []reports.Finding
	var gids []judge.GIDs
	var ports []judge.Port
	for _, s := range sections(text) {
		list, fs := readPorts(s)
		ports = append(ports, list...)
		out = append(out, fs...)
		out = append(out, readPKeys(s)...)
		tables := readGIDs(s)
		for _, t := range tables {
			out = append(out, judge.GIDTable(t)...)
		}
		gids = append(gids, tables...)
		for _, read := range readers() {
			out = append(out, read(s)...)
		}
	}
	for _, f := range judge.Rates(ports, gbps) {
		if f.Verdict != reports.Unknown { // an output without rates is no finding
			out = append(out, f)
		}
	}
	return append(out, judge.GIDAgreement(gids)...)
}

// readers are one for each kind of output besides ports and GIDs.
func readers() []func(section) []reports.Finding {
	return []func(section) []reports.Finding{
		readLinkInfo, readCounters, readModules, readPCI, readNVLinks, readDirect, readGPUMemory, readLimits, readEvents, readAddresses, readHosts, readLaunch, readHealth, readMessages, readSMI, readTopo,
		func(s section) []reports.Finding {
			out, _ := Kernel(s.text(), s.node, "kernel log")
			return out
		},
	}
}
