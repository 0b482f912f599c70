package reports

// GPU is what a GPU and its driver say. A pointer that is nil, and an empty
// string, mean that it was not told; Absent then says why where that is known.
type GPU struct {
	Index       int     `json:"index"`
	Vendor      string  `json:"vendor"` // "nvidia", "amd"
	Name        string  `json:"name"`   // "NVIDIA H100 80GB HBM3"
	UUID        string  `json:"uuid,omitempty"`
	PCI         string  `json:"pci,omitempty"` // "0000:1b:00.0", lower case
	MemoryBytes *uint64 `json:"memory_bytes,omitempty"`
	Capability  string  `json:"capability,omitempty"` // compute capability, "9.0"
	NUMA        *int    `json:"numa,omitempty"`
	CPUs        string  `json:"cpus,omitempty"` // affinity, as a kernel list: "0-47,96-143"

	PCIeGen      *int    `json:"pcie_gen,omitempty"` // now
	PCIeWidth    *int    `json:"pcie_width,omitempty"`
	PCIeGenMax   *int    `json:"pcie_gen_max,omitempty"`
	PCIeWidthMax *int    `json:"pcie_width_max,omitempty"`
	PCIeReplays  *uint64 `json:"pcie_replays,omitempty"`
	PCIeTxBytes  *uint64 `json:"pcie_tx_bytes,omitempty"`
	PCIeRxBytes  *uint64 `json:"pcie_rx_bytes,omitempty"`

	NVLinks []NVLink `json:"nvlinks,omitempty"` // every link the GPU has, up or not
	Fabric  *Fabric  `json:"fabric,omitempty"`  // NVSwitch fabric registration
	C2C     *bool    `json:"c2c,omitempty"`     // joined to its processor by NVLink-C2C
	XGMI    []XGMI   `json:"xgmi,omitempty"`    // AMD: the GPUs that it reaches over Infinity Fabric

	ECC            *bool    `json:"ecc,omitempty"`
	ECCCorrected   *uint64  `json:"ecc_corrected,omitempty"`   // since the driver loaded
	ECCUncorrected *uint64  `json:"ecc_uncorrected,omitempty"` // since the driver loaded
	RemappedRows   *int     `json:"remapped_rows,omitempty"`   // for uncorrectable errors
	RemapPending   *bool    `json:"remap_pending,omitempty"`
	RemapFailed    *bool    `json:"remap_failed,omitempty"`
	RetiredPages   *int     `json:"retired_pages,omitempty"`
	RetiredPending *bool    `json:"retired_pending,omitempty"`
	Throttle       []string `json:"throttle,omitempty"` // active reasons, "hw_thermal_slowdown"; "gpu_idle" is none
	ClockMHz       *int     `json:"clock_mhz,omitempty"`
	ClockMaxMHz    *int     `json:"clock_max_mhz,omitempty"`
	TemperatureC   *int     `json:"temperature_c,omitempty"`
	PowerW         *float64 `json:"power_w,omitempty"`
	PowerLimitW    *float64 `json:"power_limit_w,omitempty"`
	PowerLimitMaxW *float64 `json:"power_limit_max_w,omitempty"`
	Persistence    *bool    `json:"persistence,omitempty"`
	UtilisationPct *int     `json:"utilisation_pct,omitempty"`
	ProcessIDs     []int    `json:"process_ids,omitempty"` // compute processes on it
	MIG            *bool    `json:"mig,omitempty"`
	DMABuf         *bool    `json:"dma_buf,omitempty"` // CUDA exports dma-buf handles
	Absent         []string `json:"absent,omitempty"`  // "ecc: NVML says not supported"
}

// NVLink is one link of a GPU.
type NVLink struct {
	Link       int               `json:"link"`
	Up         *bool             `json:"up,omitempty"`
	Version    int               `json:"version,omitempty"`     // NVLink generation
	GBps       *float64          `json:"gb_per_s,omitempty"`    // each direction
	RemoteKind string            `json:"remote_kind,omitempty"` // "gpu", "switch", "cpu"
	RemotePCI  string            `json:"remote_pci,omitempty"`  // of a GPU or a switch
	TxBytes    *uint64           `json:"tx_bytes,omitempty"`    // payload since a reset
	RxBytes    *uint64           `json:"rx_bytes,omitempty"`    // payload since a reset
	Errors     map[string]uint64 `json:"errors,omitempty"`      // "replay", "recovery", "crc_flit", "crc_data", "ecc"
	Absent     string            `json:"absent,omitempty"`      // why the rest is missing
}

// XGMI is an AMD GPU's way to a neighbour over Infinity Fabric.
type XGMI struct {
	PCI  string   `json:"pci"`                // of the neighbour
	GBps *float64 `json:"gb_per_s,omitempty"` // each direction, as the driver says
}

// Fabric is a GPU's registration with the NVSwitch fabric.
type Fabric struct {
	State       string `json:"state"`            // "completed", "in_progress", "not_started", "not_supported"
	Status      string `json:"status,omitempty"` // NVML's return code in words, of a completed registration
	ClusterUUID string `json:"cluster_uuid,omitempty"`
	CliqueID    *int   `json:"clique_id,omitempty"` // GPUs of one clique reach each other over NVLink
}
