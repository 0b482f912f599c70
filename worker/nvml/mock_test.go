//go:build cgo && linux

package nvml

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxa100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxb200"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh200"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"

	"busbw/worker/topo"
)

func busID(s string) (p nvml.PciInfo) {
	for i, c := range s {
		p.BusId[i] = int8(c)
	}
	return p
}

// complete gives a mock what it lacks (NVML's published numbers of that
// machine) and hides every function that it still lacks.
func complete(s *server.Server, links int, version uint32, mbps uint32) {
	have := map[string]bool{
		"nvmlDeviceGetCount_v2": true, "nvmlDeviceGetHandleByIndex_v2": true, "nvmlDeviceGetPciInfo_v3": true, "nvmlDeviceGetName": true, "nvmlDeviceGetUUID": true,
		"nvmlDeviceGetMemoryInfo": true, "nvmlDeviceGetCudaComputeCapability": true, "nvmlDeviceGetMigMode": true, "nvmlDeviceGetNvLinkState": true,
		"nvmlDeviceGetNvLinkVersion": true, "nvmlDeviceGetNvLinkRemoteDeviceType": true, "nvmlDeviceGetNvLinkRemotePciInfo_v2": true,
		"nvmlDeviceGetFieldValues": true, "nvmlDeviceGetGpuFabricInfo": true,
	}
	s.LookupSymbolFunc = func(name string) error {
		if have[name] {
			return nil
		}
		return errors.New("no such symbol")
	}
	for i, dev := range s.Devices {
		d := dev.(*server.Device)
		d.GetPciInfoFunc = func() (nvml.PciInfo, nvml.Return) {
			return busID(fmt.Sprintf("00000000:%02X:00.0", 0x1b+0x10*i)), nvml.SUCCESS
		}
		d.GetNvLinkStateFunc = func(l int) (nvml.EnableState, nvml.Return) {
			if l >= links {
				return 0, nvml.ERROR_INVALID_ARGUMENT
			}
			return nvml.FEATURE_ENABLED, nvml.SUCCESS
		}
		d.GetNvLinkVersionFunc = func(int) (uint32, nvml.Return) { return version, nvml.SUCCESS }
		d.GetNvLinkRemotePciInfoFunc = func(l int) (nvml.PciInfo, nvml.Return) {
			return busID(fmt.Sprintf("00000000:%02X:00.0", 7+l%4)), nvml.SUCCESS
		}
		d.GetNvLinkRemoteDeviceTypeFunc = func(int) (nvml.IntNvLinkDeviceType, nvml.Return) {
			return nvml.NVLINK_DEVICE_TYPE_SWITCH, nvml.SUCCESS
		}
		d.GetGpuFabricInfoFunc = func() (nvml.GpuFabricInfo, nvml.Return) {
			return nvml.GpuFabricInfo{State: nvml.GPU_FABRIC_STATE_IN_PROGRESS}, nvml.SUCCESS
		}
		d.GetFieldValuesFunc = func(vs []nvml.FieldValue) nvml.Return {
			for i := range vs {
				v := &vs[i]
				v.NvmlReturn = uint32(nvml.ERROR_NOT_SUPPORTED)
				set := func(kind nvml.ValueType, n uint64) {
					v.NvmlReturn, v.ValueType = uint32(nvml.SUCCESS), uint32(kind)
					binary.LittleEndian.PutUint64(v.Value[:], n)
				}
				switch {
				case version < 6 && int(v.FieldId) == nvml.FI_DEV_NVLINK_SPEED_MBPS_L6, version >= 6 && v.FieldId == nvml.FI_DEV_NVLINK_GET_SPEED:
					set(nvml.VALUE_TYPE_UNSIGNED_INT, uint64(mbps))
				case version >= 7 && v.FieldId == nvml.FI_DEV_NVLINK_COUNT_XMIT_BYTES:
					set(nvml.VALUE_TYPE_UNSIGNED_LONG_LONG, 1<<40)
				case version < 7 && v.FieldId == nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_TX:
					set(nvml.VALUE_TYPE_UNSIGNED_LONG_LONG, 1<<30) // KiB
				}
			}
			return nvml.SUCCESS
		}
	}
}

// Every platform's effective rate: links × GB/s each way.
func TestPlatforms(t *testing.T) {
	for _, p := range []struct {
		name       string
		s          *server.Server
		links      int
		version    uint32
		mbps       uint32
		generation int
		gbps       float64
		capability string
	}{
		{"NVIDIA A100-SXM4-40GB", dgxa100.New(), 12, uint32(nvml.NVLINK_VERSION_3_0), 25000, 3, 25, "8.0"},
		{"NVIDIA H100 80GB HBM3", dgxh100.New(), 18, uint32(nvml.NVLINK_VERSION_4_0), 26562, 4, 25, "9.0"},
		{"NVIDIA H200", dgxh200.New(), 18, uint32(nvml.NVLINK_VERSION_4_0), 26562, 4, 25, "9.0"},
		{"NVIDIA B200", dgxb200.New(), 18, uint32(nvml.NVLINK_VERSION_5_0), 53125, 5, 50, "10.0"},
	} {
		complete(p.s, p.links, p.version, p.mbps)
		d, err := open(p.s)
		if err != nil {
			t.Fatal(err)
		}
		gpus, err := d.GPUs()
		if err != nil || len(gpus) != 8 {
			t.Fatalf("%s: %d GPUs, %v", p.name, len(gpus), err)
		}
		g := gpus[3]
		if g.Index != 3 || g.Vendor != "nvidia" || g.PCI != "0000:4b:00.0" || g.UUID == "" || g.Capability != p.capability || g.MemoryBytes == nil || !eq(g.MIG, false) || !strings.Contains(g.Name, p.name) {
			t.Errorf("%s: %+v", p.name, g)
		}
		if g.Fabric == nil || g.Fabric.State != "in_progress" || g.Fabric.CliqueID != nil {
			t.Errorf("%s: fabric %+v", p.name, g.Fabric)
		}
		if len(g.NVLinks) != p.links {
			t.Fatalf("%s: %d links", p.name, len(g.NVLinks))
		}
		// only link 6 of the old generations has a number of its own in the mock
		if l := g.NVLinks[6]; l.Version != p.generation || !eq(l.GBps, p.gbps) || !eq(l.TxBytes, 1<<40) || l.RxBytes != nil {
			t.Errorf("%s: link 6 %+v", p.name, l)
		}
	}
}

func TestAddress(t *testing.T) {
	for in, want := range map[string]string{
		"00000000:1B:00.0": "0000:1b:00.0", "0000:3B:00.0": "0000:3b:00.0", "00010000:01:00.0": "10000:01:00.0", "00000009:01:00.0": "0009:01:00.0", "": "", "junk": "", "x:y": "",
	} {
		if got := address(busID(in)); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// What links carry beside what they signal.
func TestPayload(t *testing.T) {
	for _, p := range []struct {
		version       int
		signals, want float64
	}{{1, 20, 20}, {2, 25.781, 25}, {2, 25, 25}, {3, 25, 25}, {3, 14.063, 14.06}, {4, 26.562, 25}, {5, 53.125, 50}} {
		if got := payload(p.version, p.signals); got != p.want {
			t.Errorf("NVLink %d at %g GB/s: %g, want %g", p.version, p.signals, got, p.want)
		}
	}
}

// The matrix of every platform: all pairs joined by all links, through switches.
func TestPlatformMatrix(t *testing.T) {
	for _, p := range []struct {
		s       *server.Server
		links   int
		version uint32
		mbps    uint32
	}{
		{dgxa100.New(), 12, uint32(nvml.NVLINK_VERSION_3_0), 25000},
		{dgxh100.New(), 18, uint32(nvml.NVLINK_VERSION_4_0), 26562},
		{dgxh200.New(), 18, uint32(nvml.NVLINK_VERSION_4_0), 26562},
		{dgxb200.New(), 18, uint32(nvml.NVLINK_VERSION_5_0), 53125},
	} {
		complete(p.s, p.links, p.version, p.mbps)
		d, err := open(p.s)
		if err != nil {
			t.Fatal(err)
		}
		gpus, err := d.GPUs()
		if err != nil {
			t.Fatal(err)
		}
		m := topo.Read("n", fstest.MapFS{}, gpus, "")
		if err := m.Check(); err != nil || len(m.GPUs) != 8 || len(m.Bonds) != 28 {
			t.Fatalf("%s: %d GPUs, %d bonds, %v", gpus[0].Name, len(m.GPUs), len(m.Bonds), err)
		}
		for i := range m.GPUs {
			for j := range m.GPUs {
				if want := map[bool]string{true: "X", false: fmt.Sprintf("NV%d", p.links)}[i == j]; m.Paths[i][j] != want {
					t.Errorf("%s: GPU %d to %d: %s, want %s", gpus[0].Name, i, j, m.Paths[i][j], want)
				}
			}
		}
		if b := m.Bonds[0]; b.Links != p.links || !b.Switch {
			t.Errorf("%s: %+v", gpus[0].Name, b)
		}
	}
}
