package judge

import (
	"fmt"

	"busbw/reports"
)

// Transfers judges what NICs and GPUs may put into a PCIe transaction.
func Transfers(devices []PCI) []reports.Finding {
	var out []reports.Finding
	for _, d := range devices {
		if d.Kind != NIC && d.Kind != GPU {
			continue
		}
		f := reports.Finding{ID: "pcie-transfers", Node: d.Node, Subject: d.Subject(), Verdict: reports.Pass, Want: "payload 256 B or what all in the path can, read request 512 B or more, relaxed ordering"}
		if d.Payload == 0 || d.ReadReq == 0 {
			f.Verdict, f.Got = reports.Unknown, "its capabilities may not be read"
			f.Remedy = "read them as root"
			out = append(out, f)
			continue
		}
		f.Got = fmt.Sprintf("payload %d B, read request %d B", d.Payload, d.ReadReq)
		f.Evidence = []reports.Evidence{d.of("DevCtl", f.Got)}
		if d.Relaxed != nil {
			f.Got += map[bool]string{true: ", relaxed ordering on", false: ", relaxed ordering off"}[*d.Relaxed]
		}
		switch {
		case d.Payload < 256 && d.MaxPayload >= 256:
			f.Verdict, f.Remedy = reports.Warn, fmt.Sprintf("the device can take %d B: raise the payload size in the BIOS, or boot with pci=pcie_bus_perf", d.MaxPayload)
		case d.ReadReq < 512:
			f.Verdict, f.Remedy = reports.Warn, "raise the read request size (setpci, or the BIOS); 4096 B suits NICs of 200 Gb/s and more"
		case d.Kind == NIC && d.Relaxed != nil && !*d.Relaxed:
			f.Verdict, f.Remedy = reports.Warn, "switch relaxed ordering on in the BIOS (and PCI_WR_ORDERING=1 in the card's firmware): without it GPUDirect is slow on some hosts"
		}
		out = append(out, f)
	}
	return out
}

// correctable is how many corrected errors since boot are taken for noise
// (ours: links retrain and resend a little at boot).
const correctable = 100

// Errors judges what the kernel's advanced error reporting has counted.
func Errors(devices []PCI) []reports.Finding {
	var out []reports.Finding
	for _, d := range devices {
		if d.Fatal == nil && d.NonFatal == nil && d.Correctable == nil {
			if d.Kind == NIC || d.Kind == GPU {
				out = append(out, reports.Finding{ID: "pcie-aer", Node: d.Node, Subject: d.Subject(), Verdict: reports.Unknown, Got: "no error counts: error reporting is off, or this is a virtual machine"})
			}
			continue
		}
		f := reports.Finding{ID: "pcie-aer", Node: d.Node, Subject: d.Subject(), Verdict: reports.Pass, Want: fmt.Sprintf("no uncorrected error, at most %d corrected since boot", correctable)}
		count := func(name string, v *uint64) uint64 {
			if v == nil {
				return 0
			}
			f.Evidence = append(f.Evidence, d.of(name, *v))
			return *v
		}
		fatal, non, corr := count("aer_dev_fatal", d.Fatal), count("aer_dev_nonfatal", d.NonFatal), count("aer_dev_correctable", d.Correctable)
		f.Got = fmt.Sprintf("%d fatal, %d non-fatal, %d corrected since boot", fatal, non, corr)
		const remedy = "look at the kernel log for the kind of error; reseat the card, then its riser, then swap the card"
		switch {
		case fatal > 0:
			f.Verdict, f.Remedy = reports.Fail, remedy
		case non > 0, corr > correctable:
			f.Verdict, f.Remedy = reports.Warn, remedy
		}
		out = append(out, f)
	}
	return out
}
