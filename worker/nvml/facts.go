//go:build cgo && linux

package nvml

import (
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"busbw/reports"
)

// fact is a question about a GPU and the C functions of which the library must
// have one for it to be asked. Of several facts of one name the first that can
// be asked is.
type fact struct {
	name    string
	symbols []string
	ask     func(nvml.Device, *reports.GPU) nvml.Return
}

// put stores a value that NVML gave.
func put[T any](to **T, v T, r nvml.Return) nvml.Return {
	if r == nvml.SUCCESS {
		*to = &v
	}
	return r
}

func on(s nvml.EnableState) bool { return s == nvml.FEATURE_ENABLED }

var facts = []fact{
	{"pci", []string{"nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetPciInfo"}, func(d nvml.Device, g *reports.GPU) nvml.Return {
		p, r := d.GetPciInfo()
		g.PCI = address(p)
		return r
	}},
	{"name", []string{"nvmlDeviceGetName"}, func(d nvml.Device, g *reports.GPU) (r nvml.Return) {
		g.Name, r = d.GetName()
		return r
	}},
	{"uuid", []string{"nvmlDeviceGetUUID"}, func(d nvml.Device, g *reports.GPU) (r nvml.Return) {
		g.UUID, r = d.GetUUID()
		return r
	}},
	{"memory_bytes", []string{"nvmlDeviceGetMemoryInfo"}, func(d nvml.Device, g *reports.GPU) nvml.Return {
		m, r := d.GetMemoryInfo()
		return put(&g.MemoryBytes, m.Total, r)
	}},
	{"capability", []string{"nvmlDeviceGetCudaComputeCapability"}, func(d nvml.Device, g *reports.GPU) nvml.Return {
		major, minor, r := d.GetCudaComputeCapability()
		if r == nvml.SUCCESS {
			g.Capability = fmt.Sprintf("%d.%d", major, minor)
		}
		return r
	}},
	{"c2c", []string{"nvmlDeviceGetC2cModeInfoV"}, func(d nvml.Device, g *reports.GPU) nvml.Return {
		m, r := d.GetC2cModeInfoV().V1()
		if r == nvml.ERROR_NOT_SUPPORTED {
			return put(&g.C2C, false, nvml.SUCCESS) // it has none
		}
		return put(&g.C2C, m.IsC2cEnabled != 0, r)
	}},
	{"pcie_gen", []string{"nvmlDeviceGetCurrPcieLinkGeneration"}, func(d nvml.Device, g *reports.GPU) nvml.Return {
		v, r := d.GetCurrPcieLinkGeneration()
		return put(&g.PCIeGen, v, r)
	}},
	{"pcie_width", []string{"nvmlDeviceGetCurrPcieLinkWidth"}, func(d nvml.Device, g *reports.GPU) nvml.Return {
		v, r := d.GetCurrPcieLinkWidth()
		return put(&g.PCIeWidth, v, r)
	}},
	{"pcie_gen_max", []string{"nvmlDeviceGetMaxPcieLinkGeneration"}, func(d nvml.Device, g *reports.GPU) nvml.Return {
		v, r := d.GetMaxPcieLinkGeneration()
		return put(&g.PCIeGenMax, v, r)
	}},
	{"pcie_width_max", []string{"nvmlDeviceGetMaxPcieLinkWidth"}, func(d nvml.Device, g *reports.GPU) nvml.Return {
		v, r := d.GetMaxPcieLinkWidth()
		return put(&g.PCIeWidthMax, v, r)
	}},
	{"pcie_replays", []string{"nvmlDeviceGetPcieReplayCounter"}, func(d nvml.Device, g *reports.GPU) nvml.Return {
		v, r := d.GetPcieReplayCounter()
		return put(&g.PCIeReplays, uint64(v), r)
	}},
	{"fabric", []string{"nvmlDeviceGetGpuFabricInfoV"}, func(d nvml.Device, g *reports.GPU) nvml.Return {
		f, r := d.GetGpuFabricInfoV().V2()
		return fabric(g, nvml.GpuFabricInfo{ClusterUuid: f.ClusterUuid, Status: f.Status, CliqueId: f.CliqueId, State: f.State}, r)
	}},
	{"fabric", []string{"nvmlDeviceGetGpuFabricInfo"}, func(d nvml.Device, g *reports.GPU) nvml.Return {
		f, r := d.GetGpuFabricInfo() // before 550
		return fabric(g, f, r)
	}},
	{"ecc", []string{"nvmlDeviceGetEccMode"}, func(d nvml.Device, g *reports.GPU) nvml.Return {
		now, _, r := d.GetEccMode()
		return put(&g.ECC, on(now), r)
	}},
	{"ecc_corrected", []string{"nvmlDeviceGetTotalEccErrors"}, func(d nvml.Device, g *reports.GPU) nvml.Return {
		v, r := d.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_CORRECTED, nvml.VOLATILE_ECC)
		return put(&g.ECCCorrected, v, r)
	}},
	{"ecc_uncorrected", []string{"nvmlDeviceGetTotalEccErrors"}, func(d nvml.Device, g *reports.GPU) nvml.Return {
		v, r := d.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC)
		return put(&g.ECCUncorrected, v, r)
	}},
	{"remapped_rows", []string{"nvmlDeviceGetRemappedRows"}, func(d nvml.Device, g *reports.GPU) nvml.Return {
		_, rows, pending, failed, r := d.GetRemappedRows()
		put(&g.RemapPending, pending, r)
		put(&g.RemapFailed, failed, r)
		return put(&g.RemappedRows, rows, r)
	}},
	{"retired_pages", []string{"nvmlDeviceGetRetiredPages"}, func(d nvml.Device, g *reports.GPU) nvml.Return {
		one, r := d.GetRetiredPages(nvml.PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS)
		if r != nvml.SUCCESS {
			return r
		}
		two, r := d.GetRetiredPages(nvml.PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR)
		return put(&g.RetiredPages, len(one)+len(two), r)
	}},
	{"retired_pending", []string{"nvmlDeviceGetRetiredPagesPendingStatus"}, func(d nvml.Device, g *reports.GPU) nvml.Return {
		v, r := d.GetRetiredPagesPendingStatus()
		return put(&g.RetiredPending, on(v), r)
	}},
	{"throttle", []string{"nvmlDeviceGetCurrentClocksEventReasons"}, func(d nvml.Device, g *reports.GPU) nvml.Return {
		return throttle(g)(d.GetCurrentClocksEventReasons())
	}},
	{"throttle", []string{"nvmlDeviceGetCurrentClocksThrottleReasons"}, func(d nvml.Device, g *reports.GPU) nvml.Return {
		return throttle(g)(d.GetCurrentClocksThrottleReasons()) // before 535
	}},
	{"clock_mhz", []string{"nvmlDeviceGetClockInfo"}, func(d nvml.Device, g *reports.GPU) nvml.Return {
		v, r := d.GetClockInfo(nvml.CLOCK_SM)
		return put(&g.ClockMHz, int(v), r)
	}},
	{"clock_max_mhz", []string{"nvmlDeviceGetMaxClockInfo"}, func(d nvml.Device, g *reports.GPU) nvml.Return {
		v, r := d.GetMaxClockInfo(nvml.CLOCK_SM)
		return put(&g.ClockMaxMHz, int(v), r)
	}},
	{"temperature_c", []string{"nvmlDeviceGetTemperature"}, func(d nvml.Device, g *reports.GPU) nvml.Return {
		v, r := d.GetTemperature(nvml.TEMPERATURE_GPU)
		return put(&g.TemperatureC, int(v), r)
	}},
	{"power_w", []string{"nvmlDeviceGetPowerUsage"}, func(d nvml.Device, g *reports.GPU) nvml.Return {
		v, r := d.GetPowerUsage()
		return put(&g.PowerW, float64(v)/1000, r)
	}},
	{"power_limit_w", []string{"nvmlDeviceGetEnforcedPowerLimit"}, func(d nvml.Device, g *reports.GPU) nvml.Return {
		v, r := d.GetEnforcedPowerLimit()
		return put(&g.PowerLimitW, float64(v)/1000, r)
	}},
	{"power_limit_max_w", []string{"nvmlDeviceGetPowerManagementLimitConstraints"}, func(d nvml.Device, g *reports.GPU) nvml.Return {
		_, most, r := d.GetPowerManagementLimitConstraints()
		return put(&g.PowerLimitMaxW, float64(most)/1000, r)
	}},
	{"persistence", []string{"nvmlDeviceGetPersistenceMode"}, func(d nvml.Device, g *reports.GPU) nvml.Return {
		v, r := d.GetPersistenceMode()
		return put(&g.Persistence, on(v), r)
	}},
	{"utilisation_pct", []string{"nvmlDeviceGetUtilizationRates"}, func(d nvml.Device, g *reports.GPU) nvml.Return {
		v, r := d.GetUtilizationRates()
		return put(&g.UtilisationPct, int(v.Gpu), r)
	}},
	{"process_ids", []string{"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2", "nvmlDeviceGetComputeRunningProcesses"}, func(d nvml.Device, g *reports.GPU) nvml.Return {
		ps, r := d.GetComputeRunningProcesses()
		for _, p := range ps {
			g.ProcessIDs = append(g.ProcessIDs, int(p.Pid))
		}
		return r
	}},
	{"mig", []string{"nvmlDeviceGetMigMode"}, func(d nvml.Device, g *reports.GPU) nvml.Return {
		now, _, r := d.GetMigMode()
		return put(&g.MIG, now == nvml.DEVICE_MIG_ENABLE, r)
	}},
}

// throttles are the reasons that hold clocks down (nvml.h,
// nvmlClocksThrottleReasons); that a GPU is idle is none.
var throttles = []struct {
	bit  uint64
	name string
}{
	{0x2, "applications_clocks_setting"}, {0x4, "sw_power_cap"}, {0x8, "hw_slowdown"}, {0x10, "sync_boost"}, {0x20, "sw_thermal_slowdown"},
	{0x40, "hw_thermal_slowdown"}, {0x80, "hw_power_brake_slowdown"}, {0x100, "display_clock_setting"}, {0x200, "board_limit"}, {0x400, "reliability"},
}

func throttle(g *reports.GPU) func(bits uint64, r nvml.Return) nvml.Return {
	return func(bits uint64, r nvml.Return) nvml.Return {
		for _, t := range throttles {
			if r == nvml.SUCCESS && bits&t.bit != 0 {
				g.Throttle = append(g.Throttle, t.name)
			}
		}
		return r
	}
}

// fabric is the registration with the NVSwitch fabric. Not supported is an
// answer of its own: GPUs without a fabric manager have none.
func fabric(g *reports.GPU, f nvml.GpuFabricInfo, r nvml.Return) nvml.Return {
	if r != nvml.SUCCESS {
		return r
	}
	states := map[uint8]string{
		nvml.GPU_FABRIC_STATE_NOT_SUPPORTED: "not_supported", nvml.GPU_FABRIC_STATE_NOT_STARTED: "not_started",
		nvml.GPU_FABRIC_STATE_IN_PROGRESS: "in_progress", nvml.GPU_FABRIC_STATE_COMPLETED: "completed",
	}
	s, ok := states[f.State]
	if !ok {
		s = fmt.Sprintf("unknown (%d)", f.State)
	}
	g.Fabric = &reports.Fabric{State: s}
	if f.State == nvml.GPU_FABRIC_STATE_COMPLETED {
		g.Fabric.Status = "ok"
		if st := nvml.Return(f.Status); st != nvml.SUCCESS {
			g.Fabric.Status = st.Error()
		}
		u, id := f.ClusterUuid, int(f.CliqueId)
		g.Fabric.ClusterUUID = fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
		g.Fabric.CliqueID = &id
	}
	return r
}
