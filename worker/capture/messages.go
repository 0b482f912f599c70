package capture

import (
	"fmt"
	"regexp"
	"strings"

	"busbw/reports"
)

// message is a line of a program that did not get on, and what it means. The
// first group, where there is one, is the subject.
type message struct {
	id      string
	line    *regexp.Regexp
	verdict reports.Verdict
	what    string
	remedy  string
}

// messages are matched in this order; a line counts for the first only.
var messages = []message{
	{"subnet-manager", regexp.MustCompile(`sminfo: iberror: failed`), reports.Fail, "no subnet manager answers", "start one (opensm, or the switch's own) or look at why this port does not reach it"},
	{"subnet-manager", regexp.MustCompile(`sminfo: sm lid (\d+) .*SMINFO_MASTER`), reports.Pass, "a subnet manager is master", ""},
	{"rendezvous-port", regexp.MustCompile(`(?i)(?:bind|listen)\S*.*(Address already in use)|(Address already in use).*(?:bind|listen|port)|errno: ?98`), reports.Fail, "the port is taken, often by a process that an earlier job left", "find it (ss -ltnp) and end it, or use another port"},
	{"launch-ssh", regexp.MustCompile(`(Host key verification failed|Permission denied \(publickey)`), reports.Fail, "ssh between nodes is refused: nothing was started there", "exchange keys and host keys; or use a launcher that needs no ssh"},
	{"launch-slots", regexp.MustCompile(`There are not enough slots available`), reports.Fail, "the launcher has fewer slots than ranks were asked for", "give slots for each host (host:8), or fewer ranks"},
	{"launch-program", regexp.MustCompile(`(?:orted: command not found|unable to find the specified executable file|cannot execute binary file|error while loading shared libraries: (\S+?):)`), reports.Fail, "the program or a library of it is not there on a node", "install it at the same place on every node, and see that remote shells have PATH and LD_LIBRARY_PATH"},
	{"gpu-shared", regexp.MustCompile(`Duplicate GPU detected : rank (\d+) and rank \d+ both on CUDA device`), reports.Fail, "two ranks use one GPU", "give each local rank its own device (CUDA_VISIBLE_DEVICES, or the launcher's binding)"},
	{"software-version", regexp.MustCompile(`(?i)(Mismatched NCCL version|mismatched? (?:version|nccl).*detected|NCCL version mismatch)`), reports.Fail, "ranks run different versions of NCCL", "use one image, or one library path, on all nodes"},
	{"software-version", regexp.MustCompile(`(?i)(Driver/library version mismatch|CUDA driver version is insufficient)`), reports.Fail, "driver and libraries do not fit each other", "reboot after a driver's update, or use a CUDA that the driver knows"},
	{"gpu-fabric", regexp.MustCompile(`(?i)(system not yet initialized|error 802|CUDA_ERROR_SYSTEM_NOT_READY)`), reports.Fail, "the NVSwitch fabric is not initialised", "start the fabric manager of the driver's version (systemctl status nvidia-fabricmanager)"},
	{"shm", regexp.MustCompile(`(?i)(?:(/dev/shm\S*).*(?:No space left|failed)|No space left on device.*(/dev/shm)|shm_open.*failed|Error while creating shared memory segment|unexpected bus error.*shared memory|insufficient shared memory)`), reports.Fail, "/dev/shm is full or too small", "make it larger (containers: --shm-size=1g, or an emptyDir of medium Memory; --ipc=host)"},
	{"gpudirect", regexp.MustCompile(`(nvidia_peermem|nv_peer_mem): (?:Unknown symbol|disagrees about version of symbol)`), reports.Fail, "the peer memory module was built against other RDMA drivers", "rebuild or reinstall it behind the RDMA drivers that are loaded"},
	{"open-files", regexp.MustCompile(`(?i)(Too many open files)`), reports.Fail, "the limit on open files is reached", "raise it where ranks run (ulimit -n 65536, LimitNOFILE)"},
	{"rdma-library", regexp.MustCompile(`(?i)(?:Failed to open |cannot open shared object file.*|unable to load )(libibverbs\.so\S*|libmlx5\S*|libnccl-net\.so)`), reports.Warn, "a library for RDMA is not there: traffic goes over sockets", "install rdma-core (libibverbs1, ibverbs-providers) in the image"},
	{"rdma-device", regexp.MustCompile(`NET/IB : (No device found)`), reports.Warn, "no RDMA device is visible: traffic goes over sockets", "give the container /dev/infiniband, look at ibv_devices, NCCL_IB_HCA and the driver"},
	{"interface", regexp.MustCompile(`(?i)(Bootstrap : no socket interface found|no socket interface found|No interface found)`), reports.Fail, "no interface fits what was asked for", "correct NCCL_SOCKET_IFNAME (a prefix, =exact, ^exclude); ip -br addr lists the interfaces"},
	{"rdma-connect", regexp.MustCompile(`(ibv_modify_qp) failed with(?: error)? (?:110 )?Connection timed out`), reports.Fail, "a queue pair could not reach its peer's address: GID row, VLAN or route", "use a routable RoCE v2 row (leave NCCL_IB_GID_INDEX unset), look at addresses and routes of the RDMA interfaces on both nodes"},
	{"rdma-connect", regexp.MustCompile(`(ibv_modify_qp) failed with(?: error)? (?:\d+ )?(?:Invalid argument|No data available|Network is unreachable|No route to host)`), reports.Fail, "a queue pair was refused: GID row empty, link layers or MTUs that do not fit, or no route", "compare GID tables, link layer and MTU of both ends; leave NCCL_IB_GID_INDEX unset"},
	{"peer-unreachable", regexp.MustCompile(`(?:connect\S*|Call to connect|connecting|remote).{0,120}?(No route to host|Network is unreachable)`), reports.Fail, "there is no route, or a firewall rejects", "look at addresses, routes and firewall between the nodes (ip route get, nft list ruleset)"},
	{"peer-unreachable", regexp.MustCompile(`Call to connect (?:timeout|returned).*?(Connection refused|Connection timed out)`), reports.Warn, "a peer's socket could not be reached: wrong interface, firewall, or the peer is gone", "look at which address the peer announced, and whether packets to its ports pass"},
	{"hang", regexp.MustCompile(`Watchdog caught collective operation timeout: WorkNCCL\((SeqNum=\d+, OpType=\w+)`), reports.Fail, "a collective did not end in time: a rank is missing, stuck, or called another one", "find the rank that did not report this operation: it is the cause, the ones that time out are not"},
	{"rank-memory", regexp.MustCompile(`(?:CUDA out of memory|(out of memory) \(CUDA|Cuda failure.*'out of memory')`), reports.Fail, "a GPU's memory is full: other processes, or sizes too large", "nvidia-smi shows who uses it; smaller -e"},
	{"iommu", regexp.MustCompile(`iommu: Default domain type: (Translated)`), reports.Warn, "the IOMMU translates every transfer of a device", "boot with iommu=pt"},
	{"governor", regexp.MustCompile(`(?:The governor "|scaling_governor[:=\s]\s*)(powersave|ondemand|conservative|schedutil)`), reports.Warn, "CPUs change their frequency", "cpupower frequency-set -g performance, and at boot"},
	{"topology-file", regexp.MustCompile(`could not read \S*/(max_link_(?:speed|width)), ignoring`), reports.Pass, "a virtual machine does not show its links: no fault", ""},
}

// messageWords: every message has one of these, in small letters. Patterns
// are slow, and logs are long.
var messageWords = []string{
	"sminfo", "already in use", "errno", "verification failed", "permission denied", "enough slots", "orted", "executable", "binary file", "shared libraries", "duplicate gpu",
	"mismatch", "insufficient", "initialized", "error 802", "not_ready", "shm", "space left", "shared memory", "symbol", "too many open", "libibverbs", "libmlx5", "libnccl-net",
	"no device found", "interface found", "ibv_modify_qp", "no route", "unreachable", "call to connect", "watchdog", "out of memory", "domain type", "governor", "could not read",
}

// readMessages finds known messages, each once for a subject.
func readMessages(s section) []reports.Finding {
	type key struct{ id, subject, what string }
	count := map[key]int{}
	at := map[key]int{}
	var out []reports.Finding
	for _, l := range s.lines {
		if !contains(strings.ToLower(l), messageWords) {
			continue
		}
		for _, m := range messages {
			g := m.line.FindStringSubmatch(l)
			if g == nil {
				continue
			}
			subject := ""
			for _, x := range g[1:] {
				subject = or(subject, x)
			}
			if sp := speaker.FindStringSubmatch(l); sp != nil {
				subject = sp[1] + " " + subject
			}
			subject = strings.TrimSpace(or(subject, "message"))
			k := key{m.id, subject, m.what}
			if count[k]++; count[k] == 1 && len(out) < 4096 {
				at[k] = len(out)
				out = append(out, reports.Finding{ID: m.id, Node: s.node, Subject: subject, Verdict: m.verdict, Got: m.what, Want: "no such message", Evidence: []reports.Evidence{{From: "message", Value: shorten(l)}}, Remedy: m.remedy})
			}
			break
		}
	}
	for k, n := range count {
		if i, ok := at[k]; ok && n > 1 {
			out[i].Got += fmt.Sprintf(" (%d lines)", n)
		}
	}
	return out
}
