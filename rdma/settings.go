package rdma

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
)

// Settings are the NCCL_IB_* variables that an engine of RC queue pairs can
// honour, with NCCL's meaning and defaults (NCCL 2.30 user guide, env.rst).
type Settings struct {
	Disable          bool         // NCCL_IB_DISABLE
	HCA              HCAList      // NCCL_IB_HCA
	GIDIndex         int          // NCCL_IB_GID_INDEX; −1: chosen by PickGID
	RoCEVersion      int          // NCCL_IB_ROCE_VERSION_NUM
	Family           int          // NCCL_IB_ADDR_FAMILY: 4 or 6
	Range            netip.Prefix // NCCL_IB_ADDR_RANGE
	Timeout          int          // NCCL_IB_TIMEOUT: a try lasts 4.096 µs × 2^Timeout; 0: for ever
	Retries          int          // NCCL_IB_RETRY_CNT
	SL, TrafficClass int          // NCCL_IB_SL, NCCL_IB_TC
	PKey             int          // NCCL_IB_PKEY: an index into the port's table, not a key
	QPs              int          // NCCL_IB_QPS_PER_CONNECTION
	Split            bool         // NCCL_IB_SPLIT_DATA_ON_QPS: stripe each message over all QPs
	ARThreshold      int          // NCCL_IB_AR_THRESHOLD, bytes: longer writes carry no immediate
	AdaptiveRouting  int          // NCCL_IB_ADAPTIVE_ROUTING; −1: on InfiniBand, off on RoCE
	RelaxedOrdering  int          // NCCL_IB_PCI_RELAXED_ORDERING: 0 off, 1 on, 2 where the device can
}

// setting reads one variable into the Settings.
type setting struct {
	name, def string
	read      func(*Settings, string) error
}

func settings() []setting {
	return []setting{
		{"NCCL_IB_DISABLE", "0", func(s *Settings, v string) error { return flag(&s.Disable, v) }},
		{"NCCL_IB_HCA", "", func(s *Settings, v string) (err error) { s.HCA, err = ParseHCAList(v); return err }},
		{"NCCL_IB_GID_INDEX", "-1", func(s *Settings, v string) error { return number(&s.GIDIndex, v, -1, 255) }},
		{"NCCL_IB_ROCE_VERSION_NUM", "2", func(s *Settings, v string) error { return number(&s.RoCEVersion, v, 1, 2) }},
		{"NCCL_IB_ADDR_FAMILY", "AF_INET", func(s *Settings, v string) error {
			s.Family = map[string]int{"AF_INET": 4, "AF_INET6": 6}[v]
			if s.Family == 0 {
				return fmt.Errorf("%q is neither AF_INET nor AF_INET6", v)
			}
			return nil
		}},
		{"NCCL_IB_ADDR_RANGE", "", func(s *Settings, v string) (err error) {
			if v != "" {
				s.Range, err = netip.ParsePrefix(v)
			}
			return err
		}},
		{"NCCL_IB_TIMEOUT", "20", func(s *Settings, v string) error {
			// 32 and more stand for "for ever" in NCCL, as 0 does; the queue pair's field has five bits.
			err := number(&s.Timeout, v, 0, 255)
			if s.Timeout > 31 {
				s.Timeout = 0
			}
			return err
		}},
		{"NCCL_IB_RETRY_CNT", "7", func(s *Settings, v string) error { return number(&s.Retries, v, 0, 7) }},
		{"NCCL_IB_SL", "0", func(s *Settings, v string) error { return number(&s.SL, v, 0, 15) }},
		{"NCCL_IB_TC", "0", func(s *Settings, v string) error { return number(&s.TrafficClass, v, 0, 255) }},
		{"NCCL_IB_PKEY", "0", func(s *Settings, v string) error { return number(&s.PKey, v, 0, 65535) }},
		{"NCCL_IB_QPS_PER_CONNECTION", "1", func(s *Settings, v string) error { return number(&s.QPs, v, 1, maxQPs) }},
		{"NCCL_IB_SPLIT_DATA_ON_QPS", "0", func(s *Settings, v string) error { return flag(&s.Split, v) }},
		{"NCCL_IB_AR_THRESHOLD", "8192", func(s *Settings, v string) error { return number(&s.ARThreshold, v, 0, 1<<30) }},
		{"NCCL_IB_ADAPTIVE_ROUTING", "-1", func(s *Settings, v string) error { return number(&s.AdaptiveRouting, v, -1, 1) }},
		{"NCCL_IB_PCI_RELAXED_ORDERING", "2", func(s *Settings, v string) error { return number(&s.RelaxedOrdering, v, 0, 2) }},
	}
}

// maxQPs is NCCL's bound on NCCL_IB_QPS_PER_CONNECTION.
const maxQPs = 128

// ParseSettings reads the settings from values by variable name; a variable
// that is absent or empty has its default. It returns what is in force, every
// variable by name, for the record.
func ParseSettings(values map[string]string) (Settings, map[string]string, error) {
	var s Settings
	force := map[string]string{}
	for _, x := range settings() {
		v := cmp.Or(values[x.name], x.def)
		if err := x.read(&s, v); err != nil {
			return s, nil, fmt.Errorf("%s=%s: %w", x.name, v, err)
		}
		force[x.name] = v
	}
	return s, force, nil
}

// Warnings says which values will surprise.
func (s Settings) Warnings() []string {
	var out []string
	if s.Timeout == 0 {
		out = append(out, "NCCL_IB_TIMEOUT of 0 or of 32 and more means for ever: the network will never report a dead peer")
	}
	if s.Disable && len(s.HCA.Entries) > 0 {
		out = append(out, "NCCL_IB_HCA has no effect: NCCL_IB_DISABLE is 1")
	}
	return out
}

func flag(to *bool, v string) error {
	var n int
	err := number(&n, v, 0, 1)
	*to = n == 1
	return err
}

func number(to *int, v string, lo, hi int) error {
	n, err := strconv.Atoi(v)
	if err != nil || n < lo || n > hi {
		return fmt.Errorf("%q is not a number from %d to %d", v, lo, hi)
	}
	*to = n
	return nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
