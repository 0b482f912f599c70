package capture

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"busbw/reports"
)

// FuzzJudge: whatever a capture holds, reading ends, and what it says is a
// verdict with a subject.
func FuzzJudge(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.txt")
	for _, file := range files {
		if b, err := os.ReadFile(file); err == nil {
			_, input, _ := strings.Cut(string(b), "-- input --\n")
			f.Add(input)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<16 {
			t.Skip()
		}
		for _, x := range Judge(text, 0) {
			if x.ID == "" || x.Subject == "" || x.Verdict == "" || len(x.Got) > 1<<14 {
				t.Errorf("%+v", x)
			}
		}
	})
}

func TestReadBounds(t *testing.T) {
	if _, err := Read(strings.NewReader("hello\nworld\n"), 0); !errors.Is(err, ErrNothing) {
		t.Errorf("nothing known: %v", err)
	}
	if _, err := Read(strings.NewReader(strings.Repeat("x", MaxBytes+2)), 0); err == nil || errors.Is(err, ErrNothing) {
		t.Errorf("too long: %v", err)
	}
}

// TestWithoutFault: outputs of healthy machines that look alarming.
func TestWithoutFault(t *testing.T) {
	for name, text := range map[string]string{
		"RoCE port": "CA 'mlx5_2'\n\tCA type: MT4129\n\tNumber of ports: 1\n\tPort 1:\n\t\tState: Active\n\t\tPhysical state: LinkUp\n\t\tRate: 400\n\t\tBase lid: 0\n\t\tLMC: 0\n\t\tSM lid: 0\n\t\tLink layer: Ethernet\n",
		"ibstatus":  "Infiniband device 'mlx5_0' port 1 status:\n\tdefault gid:\t fe80::1\n\tbase lid:\t 0x9a\n\tsm lid:\t\t 0x1\n\tstate:\t\t 4: ACTIVE\n\tphys state:\t 5: LinkUp\n\trate:\t\t 400 Gb/sec (4X NDR)\n\tlink_layer:\t InfiniBand\n",
		"counters":  "# Port counters: Lid 1 port 1 (CapMask: 0x5A00)\nSymbolErrorCounter:..............0\nLinkDownedCounter:...............0\nPortXmitWait:....................123456\n",
		"unlimited": "$ ulimit -l\nunlimited\n",
		"H100 NVL":  "GPU 0: NVIDIA H100 NVL (UUID: GPU-0)\n" + links(12) + strings.Repeat("\t Link 12: <inactive>\n", 1) + "\t Link 13: <inactive>\n\t Link 14: <inactive>\n\t Link 15: <inactive>\n\t Link 16: <inactive>\n\t Link 17: <inactive>\n",
		"modules":   "[0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0/GDRDMA\n",
		"boot log":  "[    1.0] mlx5_core 0000:3b:00.0: 252.048 Gb/s available PCIe bandwidth (16.0 GT/s PCIe x16 link)\n[ 9.1] NVRM: Xid (PCI:0000:3b:00): 63, pid=1, Row remapper\n",
	} {
		fs := Judge(text, 0)
		if len(fs) == 0 && name != "boot log" {
			t.Errorf("%s: not recognised", name)
		}
		for _, f := range fs {
			if f.Verdict == reports.Fail || f.Verdict == reports.Warn {
				t.Errorf("%s: %+v", name, f)
			}
		}
	}
}

func links(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("\t Link " + string(rune('0'+i/10)) + string(rune('0'+i%10)) + ": 26.562 GB/s\n")
	}
	return b.String()
}
