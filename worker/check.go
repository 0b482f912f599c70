package worker

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	"busbw/rdma"
	"busbw/reports"
	"busbw/worker/judge"
)

// Check is one question about a node.
type Check struct {
	Name string // begins the ids of its findings
	Doc  string // one line, for docs/checks.md
	Run  func(*survey) []reports.Finding
}

// CheckOptions are what a node's files do not tell.
type CheckOptions struct {
	Watch     time.Duration                    // between two readings of the port counters; 0: one reading
	Gbps      float64                          // rate that ports should have; 0: not known
	KernelLog string                           // "": from log files
	Probes    []Probe                          // what registering memory with each port showed; nil: not tried
	NoProbes  string                           // why it was not tried, or failed
	Progress  func(done, of int, check string) // before each check; may be nil
}

// survey is what several checks read, read once.
type survey struct {
	*Node
	opts  CheckOptions
	hcas  []rdma.HCA
	err   error       // of reading them
	pci   []judge.PCI // NICs, GPUs and the bridges above them
	guest bool        // a virtual machine
	now   map[string]rdma.Counters
	later map[string]rdma.Counters
	apart time.Duration
}

// Checks is every check of busbw check, in the order in which they run.
func Checks() []Check {
	return []Check{
		{"rdma-port-state", "state and physical state of each RDMA port, as a decision tree: cable, module or peer; disabled; subnet manager; virtual function", checkStates},
		{"rdma-port-rate", "rate and lanes against the wanted rate, the other ports and the card's type", checkRates},
		{"rdma-mtu", "MTU in use, and what its headers cost", checkMTU},
		{"rdma-pkey", "partition table: a full member's key, in row 0", checkPKeys},
		{"rdma-gid", "GID table of RoCE ports: which row is used, its RoCE version, and whether it can be routed", checkGIDs},
		{"rdma-counters", "error counters as differences between two readings; counters that are saturated", checkCounters},
		{"pcie-link", "speed and width of every PCIe link from NIC or GPU to the root, against what both ends can do", checkLinks},
		{"pcie-acs", "access control bits that redirect peer traffic, on bridges above NICs and GPUs", checkACS},
		{"pcie-transfers", "payload size, read request size and relaxed ordering of NICs and GPUs", checkTransfers},
		{"pcie-aer", "PCIe errors counted by the kernel since boot", checkAER},
		{"pcie-iommu", "whether the IOMMU translates for NICs and GPUs", checkIOMMU},
		{"gpu-nic-distance", "the nearest NIC of each GPU, and how far it is", checkDistance},
		{"pcie-shared", "NICs that share one upstream link which is slower than they are together; GPUs and NICs that share one, and whether that matters", checkShared},
		{"nic-temperature", "temperature of cards and of the modules in them, where they tell it", checkHeat},
		{"gpu-count", "number and product of the GPUs", checkGPUs},
		{"gpu-nvlink", "NVLinks up against the product's number, their rate and errors", checkNVLinks},
		{"gpu-fabric", "registration with the NVSwitch fabric (fabric manager)", checkFabric},
		{"gpu-memory", "ECC, row remapping, retired pages", checkGPUMemory},
		{"gpu-throttle", "throttling, clocks of busy GPUs against their maximum, power limit, temperature, MIG, persistence, foreign processes, PCIe replays", checkClocks},
		{"gpu-xid", "errors of GPUs, cards and links in the kernel log", checkKernel},
		{"gpudirect", "GPUDirect RDMA, proved by registering GPU memory with each NIC where that can be tried", checkDirect},
		{"memlock", "limit on locked memory in this process, which ranks inherit", checkMemlock},
		{"shm", "size of /dev/shm", checkShm},
		{"governor", "CPU frequency governor", checkGovernor},
		{"numa", "NUMA node of each NIC, and whether its interrupts are served there", checkNUMA},
		{"clocksource", "the kernel's clock source, on which times are measured", checkClockSource},
		{"host-name", "whether the host's own name is a loopback address in /etc/hosts", checkHostName},
		{"routes", "networks that can be reached over two interfaces, so that the kernel's choice is arbitrary", checkRoutes},
		{"nccl-conf", "NCCL settings in files, which apply whatever the environment says", checkNCCLConf},
		{"hugepages", "reserved huge pages", checkHugePages},
	}
}

// RunChecks runs every check on a node. A check never ends the others: what it
// could not read is a finding. With ctx's end the checks not yet begun are
// left out.
func RunChecks(ctx context.Context, n *Node, o CheckOptions) []reports.Finding {
	out, _ := Inspect(ctx, n, o)
	return out
}

// Inspect is RunChecks, and the facts that are compared between nodes.
func Inspect(ctx context.Context, n *Node, o CheckOptions) (out []reports.Finding, facts map[string]string) {
	s := take(n, o)
	start := time.Now()
	list := Checks()
	for i, c := range list {
		if ctx.Err() != nil {
			break
		}
		if o.Progress != nil {
			o.Progress(i, len(list), c.Name)
		}
		if c.Name == "rdma-counters" && o.Watch > 0 && len(s.now) > 0 {
			if !sleep(ctx, o.Watch-time.Since(start)) {
				break
			}
			s.later, s.apart = s.counters(), time.Since(start)
		}
		fs := c.Run(s)
		for i := range fs {
			fs[i].Node = n.Name
		}
		out = append(out, fs...)
	}
	return out, s.facts()
}

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

func take(n *Node, o CheckOptions) *survey {
	s := &survey{Node: n, opts: o}
	s.hcas, s.err = rdma.HCAs(n.Root)
	s.now = s.counters()
	s.pci = s.readPCI()
	s.guest = strings.Contains(s.text("proc/cpuinfo"), " hypervisor")
	return s
}

func (s *survey) counters() map[string]rdma.Counters {
	out := map[string]rdma.Counters{}
	for _, h := range s.hcas {
		for _, p := range h.Ports {
			if c, err := rdma.ReadCounters(s.Root, h.Name, p.Num); err == nil && len(c) > 0 {
				out[fmt.Sprintf("%s/%d", h.Name, p.Num)] = c
			}
		}
	}
	return out
}

// maxFile is how much of a file of the node is read.
const maxFile = 4 << 20

// text is a file of the node, "" where it cannot be read; of long ones the end.
func (s *survey) text(name string) string {
	f, err := s.Root.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	if i, err := f.Stat(); err != nil || i.IsDir() || i.Mode()&(fs.ModeNamedPipe|fs.ModeDevice|fs.ModeSocket) != 0 {
		return ""
	}
	if i, err := f.Stat(); err == nil && i.Size() > maxFile {
		if s, ok := f.(io.Seeker); ok { // only the end is kept
			s.Seek(-maxFile, io.SeekEnd)
		}
	}
	return tail(f, maxFile)
}

// word is a file's text without the white space around it.
func (s *survey) word(dir, file string) string {
	return strings.TrimSpace(s.text(path.Join(dir, file)))
}

// number is a file with a decimal number; ok is false without one.
func (s *survey) number(dir, file string) (n int, ok bool) {
	n, err := strconv.Atoi(s.word(dir, file))
	return n, err == nil
}

func (s *survey) names(dir string) []string {
	es, _ := fs.ReadDir(s.Root, dir)
	var out []string
	for _, e := range es {
		out = append(out, e.Name())
	}
	return out
}

func (s *survey) has(name string) bool {
	_, err := fs.Stat(s.Root, name)
	return err == nil
}

func finding(id, subject string, v reports.Verdict, got string) reports.Finding {
	return reports.Finding{ID: id, Subject: subject, Verdict: v, Got: got}
}

func evidence(from, value string) []reports.Evidence {
	return []reports.Evidence{{From: from, Value: value}}
}
