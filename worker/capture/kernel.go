package capture

import (
	"fmt"
	"regexp"
	"strings"

	"busbw/reports"
	"busbw/worker/judge"
)

var xidLine = regexp.MustCompile(`(?i)NVRM: +Xid +\(([^)]*)\): *(\d{1,4})`)

// pciAddr takes "PCI:0000:3b:00" and "0000:3b:00.0" to "0000:3b:00".
var pciAddr = regexp.MustCompile(`([0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}`)

// kernelEvent is a message of the kernel that has a meaning here.
type kernelEvent struct {
	id      string
	line    *regexp.Regexp // first group: the subject, where there is one
	verdict reports.Verdict
	what    string
	remedy  string
}

// kernelEvents are matched in this order; a line counts for the first only.
var kernelEvents = []kernelEvent{
	{"kernel-module", regexp.MustCompile(`mlx5_core (\S+?):? .*(?:Cable unplugged|module \d+, Cable error|Cable error)`), reports.Fail, "the driver reports a cable or module as unplugged or faulty", "reseat or replace the cable or module"},
	{"kernel-module", regexp.MustCompile(`mlx5_core (\S+?):? .*(?i:high temperature|over.?temperature)`), reports.Warn, "the driver reports a hot module", "look at the airflow of this cage"},
	{"kernel-pcie-power", regexp.MustCompile(`mlx5_core (\S+?):? .*insufficient power on the PCIe slot`), reports.Warn, "the slot gives the card too little power", "look at the slot's power in the BIOS and at the card's own supply"},
	{"kernel-pcie-bandwidth", regexp.MustCompile(`\w+ (\S+?): .*available PCIe bandwidth, limited by`), reports.Warn, "the driver reports less PCIe bandwidth than the card can use", "look at the link that the line names: reseat the card, BIOS, slot"},
	{"kernel-device-stuck", regexp.MustCompile(`mlx5_core (\S+?):? .*(?:health poll failed|device's health compromised|Fatal error|assert_var)`), reports.Fail, "the device's firmware stopped", "reset the card (power cycle), update the firmware"},
	{"kernel-link", regexp.MustCompile(`(?:mlx5_core|bnxt_en|ice|i40e) .*?(\w+): (?i:link down|NIC Link is Down)`), reports.Warn, "the link of an interface went down", "was it taken down on purpose? If not: cable, module or peer"},
	{"kernel-aer", regexp.MustCompile(`(?i)(?:pcieport|AER).*?([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]).*(?:uncorrect|severity=uncorrected|\(fatal\))`), reports.Fail, "an uncorrected PCIe error", "reseat the card and its riser, then swap the card"},
	{"kernel-aer-corrected", regexp.MustCompile(`(?i)([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]): PCIe Bus Error: severity=correct`), reports.Warn, "corrected PCIe errors", "if they go on under load: reseat the card and its riser"},
	{"gpu-sxid", regexp.MustCompile(`SXid \((PCI:[0-9a-fA-F:.]+)\): *\d+, Fatal`), reports.Fail, "a fatal error of an NVSwitch or its link", "reset GPUs and switches (fabric manager); if it comes back, the baseboard or switch is broken"},
	{"gpu-sxid", regexp.MustCompile(`SXid \((PCI:[0-9a-fA-F:.]+)\): *\d+, Non-fatal`), reports.Warn, "an error of an NVSwitch or its link that it got over", "watch the link's counters"},
	{"gpu-driver", regexp.MustCompile(`NVRM: (?:GPU ([0-9a-fA-F:.]+): )?(?:RmInitAdapter failed|rm_init_adapter failed)`), reports.Fail, "the driver could not start the GPU", "reset or power-cycle the node; if it comes back, reseat or replace the GPU"},
	{"gpu-driver", regexp.MustCompile(`NVRM: API mismatch`), reports.Fail, "driver and libraries are of different versions", "reboot after a driver's update"},
	{"gpu-driver", regexp.MustCompile(`amdgpu ([0-9a-f:.]+): .*(?:GPU reset begin|ring \S+ timeout)`), reports.Fail, "the GPU hung and was reset", "look at what ran; if it comes back on this GPU only, replace it"},
	{"kernel-memory", regexp.MustCompile(`EDAC (MC\d+): \d+ UE`), reports.Fail, "an uncorrected memory error", "replace the memory module that the log names"},
	{"kernel-memory", regexp.MustCompile(`EDAC (MC\d+): \d+ CE`), reports.Warn, "corrected memory errors", "if they go on: replace the memory module that the log names"},
	{"kernel-hung", regexp.MustCompile(`INFO: task (\S+) blocked for more than \d+ seconds`), reports.Warn, "a process hung in the kernel", "look at the call trace behind the line: storage, RDMA or GPU driver"},
	{"kernel-hung", regexp.MustCompile(`watchdog: BUG: soft lockup - (CPU#\d+)`), reports.Fail, "a CPU was stuck in the kernel", "look at the call trace behind the line; update kernel and drivers"},
	{"kernel-mce", regexp.MustCompile(`(?:mce: )?\[Hardware Error\]: (Machine check|CPU \d+|.*Uncorrected)`), reports.Warn, "a machine check", "look at the memory module or CPU that the log names (rasdaemon, BMC)"},
	{"kernel-oom", regexp.MustCompile(`(?i)out of memory: kill(?:ed)? process (\d+ ?\([^)]{0,64}\))`), reports.Warn, "a process was killed for lack of memory", "give the job more memory, or less to do"},
	{"kernel-iommu", regexp.MustCompile(`(?i)(?:DMAR:.*(?:fault|device \[)|AMD-Vi:.*IO_PAGE_FAULT)`), reports.Warn, "the IOMMU refused an access of a device", "boot with iommu=pt; with GPU peer access look at ACS"},
}

// kernelWords: every line that means something has one of these, in small letters.
var kernelWords = []string{
	"xid", "cable", "temperature", "insufficient power", "available pcie", "health", "fatal", "assert_var", "link down", "link is down", "aer", "pcie bus error", "rminitadapter",
	"rm_init", "api mismatch", "amdgpu", "edac", "blocked for more", "soft lockup", "hardware error", "out of memory", "dmar", "amd-vi",
}

// Kernel judges the lines of a kernel log. relevant is false where no line
// looked like one of those that mean something.
func Kernel(text, node string, from judge.Origin) (out []reports.Finding, relevant bool) {
	var xs []judge.Xid
	type key struct{ id, subject string }
	count := map[key]int{}
	first := map[key]int{}
	for line := range lines(text) {
		if !contains(strings.ToLower(line), kernelWords) {
			continue
		}
		if m := xidLine.FindStringSubmatch(line); m != nil {
			code := whole(m[2])
			xs = append(xs, judge.Xid{PCI: strings.ToLower(pciAddr.FindString(m[1])), Code: code, Line: shorten(line)})
			continue
		}
		for _, e := range kernelEvents {
			m := e.line.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			subject := "kernel log"
			if len(m) > 1 && m[1] != "" {
				subject = m[1]
			}
			k := key{e.id, subject}
			if count[k]++; count[k] == 1 {
				first[k] = len(out)
				out = append(out, reports.Finding{ID: e.id, Node: node, Subject: subject, Verdict: e.verdict, Got: e.what, Remedy: e.remedy, Want: "none",
					Evidence: []reports.Evidence{{From: string(from), Value: shorten(line)}}})
			}
			break
		}
	}
	for k, n := range count {
		if k.id == "kernel-link" && n < 3 { // drivers say it at boot, and whenever an interface is set up
			out[first[k]].Verdict, out[first[k]].Remedy = reports.Pass, ""
		}
		if n > 1 {
			out[first[k]].Got += fmt.Sprintf(" (%d lines)", n)
		}
	}
	if len(xs) > 0 {
		out = append(judge.Xids(xs, node, from), out...)
	}
	return out, len(out) > 0
}
