// Package capture reads what other programs printed (ibstat, lspci,
// nvidia-smi, show_gids, kernel logs, NCCL logs …) and has the facts judged by
// the rules that also judge a machine's own files. It parses loosely: the
// outputs come trimmed, joined, indented anew and with notes between them.
package capture

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

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
		if s.mentions("CA '", `CA "`, "nfiniband", "hca_id", "link ", "state") {
			list, fs := readPorts(s)
			ports = append(ports, list...)
			out = append(out, fs...)
		}
		if s.mentions("GID", "gid", "v1", "v2") {
			tables := readGIDs(s)
			for _, t := range tables {
				out = append(out, judge.GIDTable(t)...)
			}
			gids = append(gids, tables...)
		}
		for _, r := range readers() {
			if x, ok := r.of(s); ok {
				out = append(out, r.read(x)...)
			}
		}
	}
	for _, f := range judge.Rates(ports, gbps) {
		if f.Verdict != reports.Unknown { // an output without rates is no finding
			out = append(out, f)
		}
	}
	return append(out, judge.GIDAgreement(gids)...)
}

// reader reads one kind of output. It is asked only about sections that have
// one of its words; where alone is set, its lines stand each for itself, and
// it gets only those with such a word (logs are long, and patterns slow).
type reader struct {
	alone bool
	words []string
	read  func(section) []reports.Finding
}

// readers are one for each kind of output besides ports and GIDs.
func readers() []reader {
	return []reader{
		{true, []string{"key", "KEY"}, readPKeys},
		{false, []string{"==("}, readLinkInfo},
		{false, []string{" == ", "ounter", "_phy:", "/counters/", "hw_counters", "link "}, readCounters},
		{false, []string{"Physical state", "Operational Info", "State  "}, readModules},
		{false, []string{"Lnk", "ACSCtl", "DevCtl", "access denied", "_link_"}, readPCI},
		{false, []string{"Link "}, readNVLinks},
		{true, []string{"peer", "GPU Direct", "via NET/", "GDRDMA", "DMABUF", "DMA-BUF", "dma-buf", "NCCL version", "use_cuda", "Using network", "NET/IB : Using"}, readDirect},
		{false, []string{"llocate MR"}, readGPUMemory},
		{false, []string{"locked", "ulimit", "emlock", "MEMLOCK", "ibv_", "llocate MR"}, readLimits},
		{true, []string{"async", "NCCL_"}, readEvents},
		{false, []string{"Connection closed by remote peer", "Got completion"}, section.lost},
		{false, []string{"Using", "inet", "remote="}, readAddresses},
		{true, []string{"127.", "::1"}, readHosts},
		{true, []string{"CUDA failure", "Invalid number", "Process name", "Exit code"}, readLaunch},
		{false, []string{"NCCL_", "UCX_", "mtu", "hca=", "GB/s", "Gb/s"}, readSettings},
		{false, []string{"nhc:", "unable to resolve"}, readHealth},
		{false, nil, readMessages},
		{false, []string{"Product Name", "pcie.link", "ecc.errors", "remapped_rows", "_reasons"}, readSMI},
		{false, []string{"GPU0"}, readTopo},
		{false, nil, func(s section) []reports.Finding {
			out, _ := Kernel(s.text(), s.node, "kernel log")
			return out
		}},
	}
}

// of is what the reader is asked about; ok is false for nothing.
func (r reader) of(s section) (x section, ok bool) {
	if r.words != nil && !s.mentions(r.words...) {
		return s, false
	}
	if !r.alone {
		return s, true
	}
	x = section{node: s.node, head: s.head}
	for _, l := range s.lines {
		if contains(l, r.words) {
			x.lines = append(x.lines, l)
		}
	}
	return x, true
}

// mentions says whether a line, or the heading, has one of the words.
func (s section) mentions(words ...string) bool {
	return contains(s.head, words) || slices.ContainsFunc(s.lines, func(l string) bool { return contains(l, words) })
}

func contains(l string, words []string) bool {
	for _, w := range words {
		if strings.Contains(l, w) {
			return true
		}
	}
	return false
}
