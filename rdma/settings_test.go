package rdma

import (
	"reflect"
	"strings"
	"testing"
)

func TestParseHCAList(t *testing.T) {
	for _, tc := range []struct {
		list, yes, no string // ports that it chooses and does not, as name:port
	}{
		{"", "mlx5_0:1 any:2", ""},
		{"mlx5", "mlx5_0:1 mlx5_12:2", "bnxt_re0:1"},
		{"=mlx5_1", "mlx5_1:1 mlx5_1:2", "mlx5_10:1 mlx5:1"},
		{"mlx5_1", "mlx5_1:1 mlx5_10:1", "mlx5_2:1"},
		{"mlx5_0:1,mlx5_1:2", "mlx5_0:1 mlx5_1:2", "mlx5_0:2 mlx5_1:1"},
		{"^mlx5_3", "mlx5_0:1", "mlx5_3:1 mlx5_30:1"},
		{"^=mlx5_3,mlx5_4:2", "mlx5_30:1 mlx5_4:1", "mlx5_3:1 mlx5_4:2"},
	} {
		l, err := ParseHCAList(tc.list)
		if err != nil {
			t.Errorf("%q: %v", tc.list, err)
			continue
		}
		for want, names := range map[bool]string{true: tc.yes, false: tc.no} {
			for f := range strings.FieldsSeq(names) {
				name, port, _ := strings.Cut(f, ":")
				if got := l.Match(name, int(port[0]-'0')); got != want {
					t.Errorf("%q chooses %s: %t", tc.list, f, got)
				}
			}
		}
	}
	for _, bad := range []string{"^", "=", "a,", ",", "a:0", "a:x", "a:256", "=a,^b", "a b", strings.Repeat("a,", 32) + "a"} {
		if l, err := ParseHCAList(bad); err == nil {
			t.Errorf("%q was taken as %+v", bad, l)
		}
	}
}

func TestParseSettings(t *testing.T) {
	s, force, err := ParseSettings(nil)
	if err != nil {
		t.Fatal(err)
	}
	want := Settings{GIDIndex: -1, RoCEVersion: 2, Family: 4, Timeout: 20, Retries: 7, QPs: 1, ARThreshold: 8192, AdaptiveRouting: -1, RelaxedOrdering: 2}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("defaults %+v, want %+v", s, want)
	}
	if len(force) != len(Defaults()) || force["NCCL_IB_TIMEOUT"] != "20" {
		t.Errorf("in force: %v", force)
	}
	s, _, err = ParseSettings(map[string]string{"NCCL_IB_TIMEOUT": "32", "NCCL_IB_HCA": "=a:1", "NCCL_IB_DISABLE": "1", "OTHER": "x"})
	if err != nil || s.Timeout != 0 || len(s.Warnings()) != 2 {
		t.Errorf("%+v, %v, %v", s, s.Warnings(), err)
	}
	for name, v := range map[string]string{
		"NCCL_IB_DISABLE": "2", "NCCL_IB_HCA": "^", "NCCL_IB_GID_INDEX": "256", "NCCL_IB_ROCE_VERSION_NUM": "3", "NCCL_IB_ADDR_FAMILY": "inet", "NCCL_IB_ADDR_RANGE": "10.0.0.0",
		"NCCL_IB_TIMEOUT": "-1", "NCCL_IB_RETRY_CNT": "8", "NCCL_IB_SL": "16", "NCCL_IB_TC": "256", "NCCL_IB_PKEY": "0x8001", "NCCL_IB_QPS_PER_CONNECTION": "129",
		"NCCL_IB_SPLIT_DATA_ON_QPS": "yes", "NCCL_IB_AR_THRESHOLD": "8k", "NCCL_IB_ADAPTIVE_ROUTING": "2", "NCCL_IB_PCI_RELAXED_ORDERING": "3",
	} {
		if _, _, err := ParseSettings(map[string]string{name: v}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s=%s: %v", name, v, err)
		}
	}
}

func TestIdle(t *testing.T) {
	for _, tc := range []struct {
		env   map[string]string
		layer string
		want  string // of the only line; "" is none
	}{
		{nil, "Ethernet", ""},
		{map[string]string{"NCCL_IB_TC": "106", "NCCL_IB_ADDR_FAMILY": "AF_INET6"}, "Ethernet", ""},
		{map[string]string{"NCCL_IB_ADDR_FAMILY": "AF_INET6"}, "InfiniBand", "NCCL_IB_ADDR_FAMILY=AF_INET6 has no effect: the ports are InfiniBand"},
		{map[string]string{"NCCL_IB_GID_INDEX": "3", "NCCL_IB_ADDR_RANGE": "10.0.0.0/8"}, "Ethernet", "NCCL_IB_ADDR_RANGE=10.0.0.0/8 has no effect: NCCL_IB_GID_INDEX names the row"},
		{map[string]string{"NCCL_IB_AR_THRESHOLD": "0"}, "Ethernet", "NCCL_IB_AR_THRESHOLD=0 has no effect: adaptive routing is off (NCCL_IB_ADAPTIVE_ROUTING)"},
		{map[string]string{"NCCL_IB_AR_THRESHOLD": "0"}, "InfiniBand", ""},
		{map[string]string{"NCCL_IB_SPLIT_DATA_ON_QPS": "1"}, "InfiniBand", "NCCL_IB_SPLIT_DATA_ON_QPS=1 has no effect: a connection has one queue pair (NCCL_IB_QPS_PER_CONNECTION)"},
	} {
		s, force, err := ParseSettings(tc.env)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(s.Idle(force, tc.layer), "; "); got != tc.want {
			t.Errorf("%v on %s: %q, want %q", tc.env, tc.layer, got, tc.want)
		}
	}
}
