package capture

import (
	"strings"
	"testing"
)

// TestLines reads single outputs: "verdict check", and a word of what is found.
func TestLines(t *testing.T) {
	for _, c := range []struct{ text, want, word string }{
		{"ulimit -l: 64", "fail memlock", "64 kB"},
		{"* soft memlock 65536\n* hard memlock 65536", "fail memlock", "65536 kB"},
		{"* - memlock unlimited", "pass memlock", "unlimited"},
		{"LimitMEMLOCK=infinity", "pass memlock", "unlimited"},
		{"Max locked memory         65536                65536                bytes\nCapEff:\t000001ffffffffff", "pass memlock", "CAP_IPC_LOCK"},
		{"link mlx5_0/1 rx_write_requests 5 out_of_sequence 0 packet_seq_err 0\nlink mlx5_0/1 rx_write_requests 9 out_of_sequence 0 packet_seq_err 4", "fail rdma-counters", "+4"},
		{"[ 1.0] nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 38 LTSSM Fault Up", "fail gpu-sxid", "NVSwitch"},
		{"[ 1.0] NVRM: GPU 0000:1b:00.0: RmInitAdapter failed! (0x62:0x0:2477)", "fail gpu-driver", "0000:1b:00.0"},
		{"nvidia_peermem: Unknown symbol ib_register_peer_memory_client (err -2)", "fail gpudirect", "built against"},
		{"sminfo: iberror: failed: query", "fail subnet-manager", "no subnet manager"},
		{"sminfo: sm lid 1 sm guid 0x1, activity count 9 priority 14 state 3 SMINFO_MASTER", "pass subnet-manager", "1"},
		{"RuntimeError: The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).", "fail rendezvous-port", "taken"},
		{"Host key verification failed.", "fail launch-ssh", "ssh"},
		{"There are not enough slots available in the system to satisfy the 16 slots", "fail launch-slots", "slots"},
		{"node-a:1:2 [0] NCCL WARN Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1b000", "fail gpu-shared", "one GPU"},
		{"node-a:1:2 [0] NCCL WARN Error while creating shared memory segment /dev/shm/nccl-abc (size 9637888)", "fail shm", "/dev/shm"},
		{"node-a:1:2 [0] NCCL WARN Call to ibv_modify_qp failed with error No route to host", "fail rdma-connect", "refused"},
		{"node-a:1:2 [0] NCCL INFO NET/IB : No device found.", "warn rdma-device", "sockets"},
		{"[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE, Timeout(ms)=1800000) ran for 1800042 milliseconds", "fail hang", "SeqNum=12"},
		{"The governor \"powersave\" may decide which speed to use", "warn governor", "powersave"},
		{"index, name, pcie.link.gen.current, pcie.link.gen.max, pcie.link.width.current, pcie.link.width.max\n0, NVIDIA H100 80GB HBM3, 5, 5, 8, 16", "fail pcie-link", "x8"},
		{"mlx5_0\t1\t3\t0000:0000:0000:0000:0000:ffff:0a00:d106\t10.0.209.6\tv2\teth2", "pass rdma-gid", "row 3"},
		{"link mlx5_1/1 state DOWN physical_state POLLING netdev ens2", "fail rdma-port-state", "no partner"},
		{"3b:00.0 Ethernet controller: Mellanox Technologies MT2892 Family [ConnectX-6 Dx]\n\tLnkSta:\tSpeed 8GT/s (downgraded), Width x16 (ok)", "fail pcie-link", "downgraded"},
		{"3b:00.0 Infiniband controller: Mellanox Technologies MT28908 Family [ConnectX-6]\n\tCapabilities: <access denied>", "unknown pcie-acs", "access denied"},
		{"GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n\tNVML: Unable to retrieve NVLink information as all links are inActive", "fail gpu-nvlink", "0 links up"},
		{"GPU 00000000:1B:00.0\n    Product Name                          : NVIDIA H100 80GB HBM3\n    MIG Mode\n        Current                           : Disabled\n        Pending                           : Disabled\n    Utilization\n        Gpu                               : 99 %\n    Temperature\n        GPU Current Temp                  : 60 C\n    GPU Power Readings\n        Power Draw                        : 690.00 W\n        Current Power Limit               : 700.00 W\n        Max Power Limit                   : 700.00 W\n    Clocks\n        Graphics                          : 1000 MHz\n        SM                                : 1000 MHz\n    Max Clocks\n        Graphics                          : 1980 MHz\n        SM                                : 1980 MHz", "warn gpu-clocks", "1000 of 1980"},
		{"GPU 00000000:1B:00.0\n    Product Name                          : NVIDIA H100 80GB HBM3\n    MIG Mode\n        Current                           : Disabled\n        Pending                           : Disabled\n    Utilization\n        Gpu                               : 99 %\n    Temperature\n        GPU Current Temp                  : 60 C\n    GPU Power Readings\n        Power Draw                        : 690.00 W\n        Current Power Limit               : 400.00 W\n        Max Power Limit                   : 700.00 W\n    Clocks\n        Graphics                          : 1000 MHz\n        SM                                : 1900 MHz\n    Max Clocks\n        Graphics                          : 1980 MHz\n        SM                                : 1980 MHz", "warn gpu-power", "400 of 700 W"},
		{"GPU 00000000:1B:00.0\n    Product Name                          : NVIDIA H100 80GB HBM3\n    MIG Mode\n        Current                           : Enabled\n        Pending                           : Disabled\n    Utilization\n        Gpu                               : 99 %\n    Temperature\n        GPU Current Temp                  : 60 C\n    GPU Power Readings\n        Power Draw                        : 690.00 W\n        Current Power Limit               : 700.00 W\n        Max Power Limit                   : 700.00 W\n    Clocks\n        Graphics                          : 1000 MHz\n        SM                                : 1900 MHz\n    Max Clocks\n        Graphics                          : 1980 MHz\n        SM                                : 1980 MHz", "warn gpu-mig", "MIG"},
		{"GPU 00000000:1B:00.0\n    Product Name                          : NVIDIA H100 80GB HBM3\n    MIG Mode\n        Current                           : Disabled\n        Pending                           : Disabled\n    Utilization\n        Gpu                               : 99 %\n    Temperature\n        GPU Current Temp                  : 90 C\n    GPU Power Readings\n        Power Draw                        : 690.00 W\n        Current Power Limit               : [N/A]\n        Max Power Limit                   : 700.00 W\n    Clocks\n        Graphics                          : 1000 MHz\n        SM                                : 1900 MHz\n    Max Clocks\n        Graphics                          : 1980 MHz\n        SM                                : 1980 MHz", "warn gpu-temperature", "90"},
	} {
		var got []string
		ok := false
		for _, f := range Judge(c.text, 0) {
			s := string(f.Verdict) + " " + f.ID
			got = append(got, s+": "+f.Subject+": "+f.Got)
			ok = ok || s == c.want && strings.Contains(f.Subject+f.Got, c.word)
		}
		if !ok {
			t.Errorf("%q: found %q; want %s with %q", c.text, got, c.want, c.word)
		}
	}
}
