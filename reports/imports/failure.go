package imports

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"

	"busbw/reports"
)

// failures are the lines in which tests and launchers say that they failed.
type failures struct {
	kinds []failure
	exit  string // the first process that a launcher saw fail
}

type failure struct {
	kind  string
	line  int
	count int
	who   []string // ranks or hosts, in order
	text  string   // of the first
	means string
}

var failureKinds = []struct {
	has, kind, means string
}{
	{"invalid device ordinal", "cuda", "more ranks were started on a node than it has GPUs: look at how the launcher placed the ranks"},
	{"no CUDA-capable device", "cuda-none", "the node has no usable GPU: driver, CUDA_VISIBLE_DEVICES, container"},
	{"Test CUDA failure", "cuda-other", ""},
	{"Test NCCL failure", "nccl", ""},
	{"Test timeout", "timeout", "a collective did not end in the time of -T"},
	{"Test failure", "test", ""},
	{"Invalid number of GPUs", "gpus", "fewer GPUs than processes × -t × -g on a node"},
	{"Segmentation fault", "segv", "the tool itself crashed; that may follow from an error before it"},
	{"CUDA DMA-BUF cannot be used without CUDA", "usage", "wrong order of options: --use_cuda before --use_cuda_dmabuf"},
	{"Couldn't allocate MR", "mr", ""},
	{"Failed status", "completion", "a work request failed: the peer, the path or the memory is gone"},
	{"completion with error", "completion", "a work request failed: the peer, the path or the memory is gone"},
	{"Couldn't connect to", "connect", "the other side is not there or its port is blocked"},
	{"Unable to open file descriptor for socket connection", "connect", "the other side is not there or its port is blocked"},
	{"mpirun detected", "launcher", ""},
	{"srun: error", "launcher", ""},
	{"slurmstepd: error", "launcher", ""},
	{"MPI_ABORT", "launcher", ""},
	{"CANCELLED AT", "launcher", "the job was cancelled or ran out of time"},
	{"Connection refused", "connect", "the other side is not there or its address is not reachable"},
}

var (
	whoFails    = regexp.MustCompile(`^\s*([\w.-]+): Test `)
	processName = regexp.MustCompile(`Process name: \[\[\d+,\d+\],(\d+)\]`)
	exitCode    = regexp.MustCompile(`Exit code:\s+(\d+)`)
)

// line takes a line that tells of a failure; false for any other.
func (f *failures) line(s *stream, t []byte) bool {
	if len(t) > 2000 {
		t = t[:2000]
	}
	if m := processName.FindSubmatch(t); m != nil {
		f.exit = "rank " + string(m[1])
		return true
	}
	if m := exitCode.FindSubmatch(t); m != nil && f.exit != "" && !strings.Contains(f.exit, "exit") {
		f.exit += " with exit code " + string(m[1]) + exitMeaning(string(m[1]))
		return true
	}
	for _, k := range failureKinds {
		if !bytes.Contains(t, []byte(k.has)) {
			continue
		}
		who := s.tag
		if who != "" {
			who = "rank " + who[strings.LastIndexByte(who, ',')+1:]
		}
		if m := whoFails.FindSubmatch(t); m != nil {
			who = strings.TrimPrefix(who+" on "+string(m[1]), " on ")
		}
		for i := range f.kinds {
			if f.kinds[i].kind == k.kind {
				f.kinds[i].add(who)
				return true
			}
		}
		f.kinds = append(f.kinds, failure{kind: k.kind, means: k.means, line: s.Lines, text: strings.TrimSpace(string(t[:min(len(t), 300)]))})
		f.kinds[len(f.kinds)-1].add(who)
		return true
	}
	return false
}

func (f *failure) add(who string) {
	f.count++
	if who == "" || len(f.who) == 16 {
		return
	}
	for _, w := range f.who {
		if w == who {
			return
		}
	}
	f.who = append(f.who, who)
}

// exitMeaning is what nccl-tests' exit codes say.
func exitMeaning(code string) string {
	if m := map[string]string{"1": "internal error", "2": "CUDA error", "3": "NCCL error", "4": "timeout", "5": "not implemented", "6": "invalid usage", "7": "wrong values or too little bandwidth"}[code]; m != "" {
		return " (nccl-tests: " + m + ")"
	}
	return ""
}

// first is the earliest failure of a test, not of a launcher that noticed it.
func (f *failures) first() string {
	for _, k := range f.kinds {
		if k.kind != "launcher" && k.kind != "mr" {
			return k.text
		}
	}
	if len(f.kinds) > 0 && f.kinds[0].kind != "mr" {
		return f.kinds[0].text
	}
	return ""
}

// report turns failures into findings.
func (f *failures) report(s *source) {
	for _, k := range f.kinds {
		if k.kind == "mr" {
			continue // perftest's own worlds tell
		}
		found := reports.Finding{ID: "test-failure", Verdict: reports.Fail, Subject: "the test", Got: k.text,
			Evidence: []reports.Evidence{{From: fmt.Sprintf("%s:%d", s.Name, k.line), Value: k.text}}}
		if len(k.who) > 0 {
			found.Subject = strings.Join(k.who, ", ")
		}
		if k.count > 1 {
			found.Got += fmt.Sprintf(" (%d such lines)", k.count)
		}
		found.Remedy = k.means
		s.Findings = append(s.Findings, found)
	}
	if f.exit != "" {
		s.Findings = append(s.Findings, reports.Finding{ID: "test-failure", Verdict: reports.Fail, Subject: "launcher", Got: "the first process to fail was " + f.exit})
	}
}
