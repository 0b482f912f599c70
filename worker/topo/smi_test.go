package topo

import (
	"errors"
	"strings"
	"testing"

	"busbw/reports"
)

// As nvidia-smi prints it: tabs, underlined header, NIC numbers explained below.
const captured = "\t\x1b[4mGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n" +
	"GPU0\t X \tNV12\tNV12\tNV12\tPXB\tSYS\t0-31,64-95\t0\t\tN/A\n" +
	"GPU1\tNV12\t X \tNV12\tNV12\tPXB\tSYS\t0-31,64-95\t0\t\tN/A\n" +
	"GPU2\tNV12\tNV12\t X \tNV12\tSYS\tPXB\t32-63,96-127\t1\t\tN/A\n" +
	"GPU3\tNV12\tNV12\tNV12\t X \tSYS\tPXB\t32-63,96-127\t1\t\tN/A\n" +
	"NIC0\tPXB\tPXB\tSYS\tSYS\t X \tSYS\t\t\t\t\n" +
	"NIC1\tSYS\tSYS\tPXB\tPXB\tSYS\t X \t\t\t\t\n\n" +
	"Legend:\n\n  X    = Self\n  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)\n\n" +
	"NIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_1\n"

// An older version, pasted with blanks, adapters by name among the GPUs' columns, SOC for SYS.
const pasted = `$ nvidia-smi topo -m
        GPU0    GPU1    mlx5_0  CPU Affinity
GPU0     X      SOC     PHB     0-13,28-41
GPU1    SOC      X      SOC     14-27,42-55
mlx5_0  PHB     SOC      X
`

func TestParseSMI(t *testing.T) {
	top, err := ParseSMI("file", strings.NewReader(captured))
	if err != nil {
		t.Fatal(err)
	}
	if len(top.GPUs) != 4 || len(top.NICs) != 2 || top.NICs[1].Name != "mlx5_1" || top.GPUs[2].CPUs != "32-63,96-127" || *top.GPUs[2].NUMA != 1 || len(top.Bonds) != 6 || top.Bonds[0].Links != 12 {
		t.Errorf("%+v", top)
	}
	if got := strings.Join(top.Paths[2], " "); got != "NV12 NV12 X NV12 SYS PXB" || len(top.Odd) != 0 {
		t.Errorf("%s, odd %q", got, top.Odd)
	}
	if _, nics := Beside(top, 3); len(nics) != 1 || nics[0].Name != "mlx5_1" {
		t.Errorf("beside GPU3: %+v", nics)
	}
	weak, err := ParseSMI("file", strings.NewReader(strings.NewReplacer("GPU2\tNV12\tNV12\t X \tNV12", "GPU2\tNV10\tNV10\t X \tNV10", " X \tNV12\tNV12\tNV12", " X \tNV12\tNV10\tNV12",
		"GPU1\tNV12\t X \tNV12\tNV12", "GPU1\tNV12\t X \tNV10\tNV12", "GPU3\tNV12\tNV12\tNV12", "GPU3\tNV12\tNV12\tNV10").Replace(captured)))
	if err != nil || len(weak.Odd) != 1 || !strings.HasPrefix(weak.Odd[0], "GPU2 reaches the other GPUs by 3 × NV10; most") {
		t.Errorf("a GPU with fewer links: %q, %v", weak.Odd, err)
	}
	old, err := ParseSMI("file", strings.NewReader(pasted))
	if err != nil || old.Paths[0][1] != SYS || old.NICs[0].Name != "mlx5_0" || old.GPUs[1].CPUs != "14-27,42-55" || old.GPUs[1].NUMA != nil {
		t.Errorf("%+v, %v", old, err)
	}
	if len(old.Odd) != 1 || !strings.Contains(old.Odd[0], "GPU1 has no adapter on its socket") {
		t.Errorf("odd %q", old.Odd)
	}
	cut, err := ParseSMI("file", strings.NewReader(captured[:strings.Index(captured, "GPU2\tNV12")]))
	if err != nil || cut.Paths[0][2] != "NV12" || cut.Paths[2][0] != Unknown {
		t.Errorf("cut in the middle: %+v, %v", cut.Paths, err)
	}
}

// Machines from the field whose GPUs are not all alike, and are well: a DGX-1
// with its mesh of single and double links and an adapter for four GPUs, and a
// server with GPUs and adapters spread over four NUMA nodes.
func TestParseSMIOfUnevenMachines(t *testing.T) {
	for name, text := range map[string]string{
		"DGX-1": "GPU0 GPU1 GPU2 GPU3 GPU4 GPU5 GPU6 GPU7 mlx5_0 mlx5_1 CPU Affinity NUMA Affinity\n" +
			"GPU0 X NV1 NV2 NV1 SYS SYS SYS NV2 NODE SYS 0-23,48-71 0\nGPU1 NV1 X NV1 NV2 SYS SYS NV2 SYS NODE SYS 0-23,48-71 0\n" +
			"GPU2 NV2 NV1 X NV2 SYS NV1 SYS SYS PIX SYS 0-23,48-71 0\nGPU3 NV1 NV2 NV2 X NV1 SYS SYS SYS PIX SYS 0-23,48-71 0\n" +
			"GPU4 SYS SYS SYS NV1 X NV2 NV2 NV1 SYS NODE 24-47,72-95 1\nGPU5 SYS SYS NV1 SYS NV2 X NV1 NV2 SYS NODE 24-47,72-95 1\n" +
			"GPU6 SYS NV2 SYS SYS NV2 NV1 X NV1 SYS PIX 24-47,72-95 1\nGPU7 NV2 SYS SYS SYS NV1 NV2 NV1 X SYS PIX 24-47,72-95 1\n" +
			"mlx5_0 NODE NODE PIX PIX SYS SYS SYS SYS X SYS\nmlx5_1 SYS SYS SYS SYS NODE NODE PIX PIX SYS X\n",
		"behind another matrix": " GPU0 GPU1\n GPU0 X GNS\n GPU1 GNS X\n\n\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \tPHB\t0-63\t0\t\tN/A\nGPU1\tPHB\t X \t0-63\t0\t\tN/A\n",
		"one GPU":               "\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \t0-19\t0\t\tN/A\n",
		"four NUMA nodes": "GPU0 GPU1 GPU2 GPU3 NIC0 NIC1 NIC2 NIC3 CPU Affinity\nGPU0 X NV18 NV18 NV18 PIX NODE NODE SYS 0-23\nGPU1 NV18 X NV18 NV18 NODE PIX NODE SYS 0-23\n" +
			"GPU2 NV18 NV18 X NV18 NODE NODE PIX SYS 0-23\nGPU3 NV18 NV18 NV18 X SYS SYS SYS PIX 24-47\nNIC0 PIX NODE NODE SYS X NODE NODE SYS\n",
	} {
		if top, err := ParseSMI("file", strings.NewReader(text)); err != nil || len(top.Odd) != 0 {
			t.Errorf("%s: odd %q, %v", name, top.Odd, err)
		}
	}
	far := "\tGPU0\tGPU1\tNIC0\tCPU Affinity\nGPU0\t X \tNV12\tSYS\t32-63\nGPU1\tNV12\t X \tSYS\t32-63\nNIC0\tSYS\tSYS\t X \n"
	if top, err := ParseSMI("file", strings.NewReader(far)); err != nil || len(top.Odd) != 1 || !strings.HasPrefix(top.Odd[0], "no GPU has an adapter on its socket") {
		t.Errorf("all far: odd %q, %v", top.Odd, err)
	}
}

func TestParseSMIRefuses(t *testing.T) {
	if _, err := ParseSMI("file", strings.NewReader("nothing of the kind\n")); !errors.Is(err, ErrNoMatrix) {
		t.Error(err)
	}
	for text, want := range map[string]string{
		strings.Replace(captured, "GPU0\t X \tNV12", "GPU0\t X \tFAR", 1):   "from GPU0 to GPU1 the matrix says \"FAR\"",
		strings.Replace(captured, "GPU0\t X \tNV12", "GPU0\t X \tNV4", 1):   "contradicts itself",
		strings.Replace(captured, "GPU0\t X \tNV12", "GPU0\tNV12\tNV12", 1): "from GPU0 to GPU0",
		"GPU0 GPU0 CPU\nGPU0 X X\n":                                         "names GPU0 twice",
		strings.Repeat("x", maxCapture+1):                                   "too long",
	} {
		if _, err := ParseSMI("file", strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

func FuzzParseSMI(f *testing.F) {
	f.Add(captured)
	f.Add(pasted)
	f.Fuzz(func(t *testing.T, text string) {
		top, err := ParseSMI("file", strings.NewReader(text))
		if err != nil {
			return
		}
		n := len(top.GPUs) + len(top.NICs)
		if n == 0 || len(top.Paths) != n || len(top.Use) != len(top.GPUs) {
			t.Fatalf("%d devices, %d rows, %d uses", n, len(top.Paths), len(top.Use))
		}
		var b strings.Builder
		if err := Text(&b, top); err != nil || strings.ContainsAny(b.String(), "\x1b\x00") {
			t.Fatal(err)
		}
		Across([]reports.Topology{top, top})
	})
}

func TestText(t *testing.T) {
	m, gpus := hgx()
	down(gpus, 3, 17)
	gpus[0].Name = "evil\x1b[2J\u202ename"
	var b strings.Builder
	if err := Text(&b, Read("a", m, gpus, "")); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"node a: 8 GPUs, 8 RDMA devices", "GPU3    NV17  NV17  NV17  X     NV17", "48-95  1", "  NV#   # NVLinks bonded", "17 of 18, NVLink 4, 425 GB/s", "Gen1 x16 (Gen5 x16)",
		"mlx5_3 (PIX)", "0000:41:00.0: GPU3 mlx5_3 (Gen5 x16, 63.0 GB/s each way for all)", "! GPU3 has 17 NVLinks up", "mlx5_7: 0000:84:00.0, InfiniBand, 400 Gb/s",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
	if strings.ContainsAny(b.String(), "\x1b\u202e") {
		t.Error("a device's name steers the terminal")
	}
}
