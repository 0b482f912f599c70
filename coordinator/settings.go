package coordinator

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// setting is one NCCL variable that the native engine honours, with NCCL's
// meaning and default (NCCL 2.30 user guide, env.rst).
type setting struct {
	name, def, doc string
	check          func(string) error
}

func settings() []setting {
	return []setting{
		{"NCCL_ALGO", "", "algorithms that auto may choose from: Ring,Tree, ^Tree, or allreduce:Ring;broadcast:Tree", nil},
		{"NCCL_BUFFSIZE", "4194304", "bytes; an eighth of it is the largest chunk", within(64<<10, 1<<30)},
		{"NCCL_MIN_CTAS", "1", "fewest channels (older name NCCL_MIN_NCHANNELS)", within(1, 64)},
		{"NCCL_MAX_CTAS", "64", "most channels (older name NCCL_MAX_NCHANNELS)", within(1, 64)},
		{"NCCL_SOCKET_IFNAME", "", "interfaces: prefixes, =exact, ^exclude", nil},
		{"NCCL_SOCKET_FAMILY", "", "AF_INET or AF_INET6", oneOf("", "AF_INET", "AF_INET6")},
		{"NCCL_SOCKET_NTHREADS", "1", "threads that move one peer's data", within(1, 16)},
		{"NCCL_NSOCKS_PERTHREAD", "1", "sockets of each such thread; the product is at most 64", within(1, 16)},
		{"NCCL_SHM_DISABLE", "0", "1: ranks of one node use sockets or queue pairs too", oneOf("0", "1")},
		{"NCCL_P2P_DISABLE", "0", "1: GPUs of a node do not reach each other's memory", oneOf("0", "1")},
		{"NCCL_P2P_LEVEL", "", "farthest path on which they do: LOC, NVL, NVB, C2C, PIX, PXB, PHB, SYS (or 0 to 5: LOC, PIX, PXB, PHB, SYS, SYS; not set: PXB, of two GPUs on AMD processors SYS)", pathLevel()},
		{"NCCL_NET_GDR_LEVEL", "", "farthest path between GPU and RDMA device on which that reaches GPU memory: LOC (never), PIX, PXB, P2C, PHB, SYS (or 0 to 5; not set: P2C)", pathLevel()},
		{"NCCL_NET_GDR_C2C", "1", "0: not set, that level is PXB: not through a processor, though the GPU has NVLink-C2C to it", oneOf("0", "1")},
		{"NCCL_NET_GDR_READ", "", "0: RDMA devices write GPU memory and do not read it; 1: they do both (not set: 1, of GPUs before Ampere without NVLink 0)", oneOf("", "0", "1")},
		// Package rdma reads and checks these; a test pins that it has the same.
		{"NCCL_IB_DISABLE", "0", "1: no RDMA between nodes", nil},
		{"NCCL_IB_HCA", "", "RDMA devices: prefixes with :port, =exact, ^exclude", nil},
		{"NCCL_IB_GID_INDEX", "-1", "row of the GID table; -1: chosen", nil},
		{"NCCL_IB_ROCE_VERSION_NUM", "2", "RoCE version of the chosen GID", nil},
		{"NCCL_IB_ADDR_FAMILY", "AF_INET", "address family of the chosen GID, or AF_INET6", nil},
		{"NCCL_IB_ADDR_RANGE", "", "network that the chosen GID must be in, as 10.0.0.0/8", nil},
		{"NCCL_IB_TIMEOUT", "20", "a try lasts 4.096 us x 2^this; 0 or 32 and more: for ever", nil},
		{"NCCL_IB_RETRY_CNT", "7", "tries", nil},
		{"NCCL_IB_SL", "0", "service level", nil},
		{"NCCL_IB_TC", "0", "traffic class", nil},
		{"NCCL_IB_PKEY", "0", "row of the P_Key table", nil},
		{"NCCL_IB_QPS_PER_CONNECTION", "1", "queue pairs of a connection", nil},
		{"NCCL_IB_SPLIT_DATA_ON_QPS", "0", "1: stripe each message over them", nil},
		{"NCCL_IB_AR_THRESHOLD", "8192", "bytes; with adaptive routing longer writes carry no immediate", nil},
		{"NCCL_IB_ADAPTIVE_ROUTING", "-1", "1 on, 0 off; -1: on InfiniBand", nil},
		{"NCCL_IB_PCI_RELAXED_ORDERING", "2", "0 off, 1 on, 2 where the device can", nil},
	}
}

// pathLevel takes NCCL's words for paths, and the numbers of older versions.
func pathLevel() func(string) error {
	return oneOf("", "LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS", "0", "1", "2", "3", "4", "5")
}

// renamed maps older names to today's.
var renamed = map[string]string{"NCCL_MIN_NCHANNELS": "NCCL_MIN_CTAS", "NCCL_MAX_NCHANNELS": "NCCL_MAX_CTAS", "NCCL_IB_GDR_LEVEL": "NCCL_NET_GDR_LEVEL"}

// Settings reads the NCCL_* variables of an environment ("K=V" strings). It
// returns the effective value of every setting that the native engine honours
// and, in notes, each variable that is set but cannot apply to it.
func Settings(env []string) (values map[string]string, notes []string, err error) {
	values = map[string]string{}
	known := settings()
	for _, s := range known {
		values[s.name] = s.def
	}
	for _, kv := range env {
		name, v, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, "NCCL_") {
			continue
		}
		if to, ok := renamed[name]; ok {
			if _, both := lookup(env, to); both {
				notes = append(notes, fmt.Sprintf("%s is ignored: %s is set too", name, to))
				continue
			}
			name = to
		}
		i := index(known, name)
		if i < 0 {
			notes = append(notes, fmt.Sprintf("%s is set but not applicable on the native engine", name))
			continue
		}
		v = strings.TrimSpace(v)
		if known[i].check != nil {
			if err := known[i].check(v); err != nil {
				return nil, nil, fmt.Errorf("%s=%q: %w (%s)", name, v, err, known[i].doc)
			}
		}
		values[name] = v
	}
	if number(values, "NCCL_MIN_CTAS") > number(values, "NCCL_MAX_CTAS") {
		return nil, nil, fmt.Errorf("NCCL_MIN_CTAS=%s is more than NCCL_MAX_CTAS=%s", values["NCCL_MIN_CTAS"], values["NCCL_MAX_CTAS"])
	}
	if n := number(values, "NCCL_SOCKET_NTHREADS") * number(values, "NCCL_NSOCKS_PERTHREAD"); n > 64 {
		return nil, nil, fmt.Errorf("NCCL_SOCKET_NTHREADS × NCCL_NSOCKS_PERTHREAD is %d; at most 64 sockets a peer are allowed", n)
	}
	return values, notes, nil
}

// SettingsHelp is a line for each setting, for --help.
func SettingsHelp() string {
	var b strings.Builder
	for _, s := range settings() {
		fmt.Fprintf(&b, "  %-28s %s", s.name, s.doc)
		if s.def != "" {
			fmt.Fprintf(&b, " (default %s)", s.def)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Environ is Settings of this process's environment.
func Environ() (map[string]string, []string, error) { return Settings(os.Environ()) }

// number is the value of a setting that Settings has checked.
func number(values map[string]string, name string) int {
	n, _ := strconv.Atoi(values[name])
	return n
}

func index(known []setting, name string) int {
	for i, s := range known {
		if s.name == name {
			return i
		}
	}
	return -1
}

func lookup(env []string, name string) (string, bool) {
	for _, kv := range env {
		if k, v, _ := strings.Cut(kv, "="); k == name {
			return v, true
		}
	}
	return "", false
}

func within(lo, hi int) func(string) error {
	return func(s string) error {
		n, err := strconv.Atoi(s)
		if err != nil || n < lo || n > hi {
			return fmt.Errorf("want a whole number from %d to %d", lo, hi)
		}
		return nil
	}
}

func oneOf(values ...string) func(string) error {
	return func(s string) error {
		for _, v := range values {
			if v == s {
				return nil
			}
		}
		return fmt.Errorf("want one of %q", values)
	}
}
