package capture

import (
	"encoding/csv"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"busbw/reports"
	"busbw/worker/judge"
)

var (
	smiGPU  = regexp.MustCompile(`^GPU ([0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])\s*$`)
	smiLine = regexp.MustCompile(`^(\s+)([A-Za-z][\w /().-]*?)\s*(?::\s*(.*))?$`)
)

// readSMI reads nvidia-smi -q and nvidia-smi --query-gpu=… --format=csv.
func readSMI(s section) []reports.Finding {
	gpus := append(smiQuery(s.lines), smiCSV(s.lines)...)
	if gpus == nil {
		return nil
	}
	var out []reports.Finding
	var slots []judge.PCI
	for _, g := range gpus {
		if g.PCIeGen != nil && g.PCIeGenMax != nil {
			d := judge.PCI{Origin: "nvidia-smi", Node: s.node, Addr: g.PCI, Kind: judge.GPU, Speed: speedOf(*g.PCIeGen), MaxSpeed: speedOf(*g.PCIeGenMax)}
			if g.PCIeWidth != nil && g.PCIeWidthMax != nil {
				d.Width, d.MaxWidth = *g.PCIeWidth, *g.PCIeWidthMax
			} else {
				d.Width, d.MaxWidth = 16, 16
			}
			if g.UtilisationPct != nil {
				busy := *g.UtilisationPct >= 20
				d.Busy = &busy
			}
			slots = append(slots, d)
		}
	}
	out = append(out, judge.GPUs(gpus, "", s.node)...)
	out = append(out, judge.Links(slots)...)
	for _, f := range slices.Concat(judge.GPUMemory(gpus, "nvidia-smi", s.node), judge.GPUClocks(gpus, "nvidia-smi", s.node), judge.GPULoad(gpus, "nvidia-smi", s.node)) {
		if f.Verdict != reports.Unknown { // an output without these lines is no finding
			out = append(out, f)
		}
	}
	return append(out, judge.Fabric(gpus, "nvidia-smi", s.node)...)
}

// speedOf is the lane speed of a PCIe generation, GT/s.
func speedOf(gen int) float64 {
	if gen < 1 || gen > 6 {
		return 0
	}
	return []float64{2.5, 5, 8, 16, 32, 64}[gen-1]
}

// smiQuery reads nested "name : value" lines; the path to a value is that of
// the less indented lines above it.
func smiQuery(lines []string) []reports.GPU {
	var out []reports.GPU
	type level struct {
		indent int
		name   string
	}
	var above []level
	for _, l := range lines {
		if m := smiGPU.FindStringSubmatch(l); m != nil && len(out) < 256 {
			out = append(out, reports.GPU{Index: len(out), Vendor: "nvidia", PCI: strings.ToLower(m[1][4:])})
			above = nil
			continue
		}
		m := smiLine.FindStringSubmatch(l)
		if m == nil || len(out) == 0 {
			continue
		}
		indent := len(m[1])
		for len(above) > 0 && above[len(above)-1].indent >= indent {
			above = above[:len(above)-1]
		}
		path := ""
		for _, a := range above {
			path += a.name + "/"
		}
		if len(above) < 16 {
			above = append(above, level{indent, m[2]})
		}
		smiField(&out[len(out)-1], path, m[2], strings.TrimSpace(m[3]))
	}
	return out
}

func smiField(g *reports.GPU, path, name, v string) {
	number := func() *int {
		n, err := strconv.Atoi(strings.TrimSuffix(first(v), "x"))
		if err != nil {
			return nil
		}
		return &n
	}
	yes := func() *bool {
		b := strings.EqualFold(v, "Yes") || strings.EqualFold(v, "Enabled") || strings.EqualFold(v, "Active")
		if !b && !strings.EqualFold(v, "No") && !strings.EqualFold(v, "Disabled") && !strings.EqualFold(v, "Not Active") {
			return nil
		}
		return &b
	}
	switch {
	case name == "Product Name":
		g.Name = v
	case name == "Persistence Mode":
		g.Persistence = yes()
	case strings.HasSuffix(path, "PCIe Generation/") && name == "Max":
		g.PCIeGenMax = number()
	case strings.HasSuffix(path, "PCIe Generation/") && name == "Current":
		g.PCIeGen = number()
	case strings.HasSuffix(path, "Link Width/") && name == "Max":
		g.PCIeWidthMax = number()
	case strings.HasSuffix(path, "Link Width/") && name == "Current":
		g.PCIeWidth = number()
	case name == "Replays Since Reset":
		if n := number(); n != nil && *n >= 0 {
			u := uint64(*n)
			g.PCIeReplays = &u
		}
	case strings.HasSuffix(path, "Remapped Rows/") && name == "Pending":
		g.RemapPending = yes()
	case strings.HasSuffix(path, "Remapped Rows/") && strings.HasPrefix(name, "Remapping Failure"):
		g.RemapFailed = yes()
	case strings.HasSuffix(path, "Remapped Rows/") && name == "Uncorrectable Error":
		g.RemappedRows = number()
	case strings.Contains(path, "ECC Errors/Volatile/") && strings.Contains(name, "Uncorrectable"):
		if n := number(); n != nil && *n >= 0 {
			u := uint64(*n)
			if g.ECCUncorrected != nil {
				u += *g.ECCUncorrected
			}
			g.ECCUncorrected = &u
		}
	case strings.HasSuffix(path, "ECC Mode/") && name == "Current":
		g.ECC = yes()
	case strings.Contains(path, "Event Reasons/") || strings.Contains(path, "Throttle Reasons/"):
		if b := yes(); b != nil {
			if g.Throttle == nil {
				g.Throttle = []string{}
			}
			if *b && name != "Idle" && name != "SW Power Cap" {
				g.Throttle = append(g.Throttle, strings.ReplaceAll(strings.ToLower(name), " ", "_"))
			}
		}
	case strings.HasSuffix(path, "Fabric/") && name == "State":
		g.Fabric = &reports.Fabric{State: strings.ReplaceAll(strings.ToLower(v), " ", "_")}
		if v == "N/A" {
			g.Fabric = nil
		}
	case strings.HasSuffix(path, "Fabric/") && name == "Status" && g.Fabric != nil && v != "N/A":
		g.Fabric.Status = v
	case strings.HasSuffix(path, "Temperature/") && name == "GPU Current Temp":
		g.TemperatureC = number()
	case strings.HasSuffix(path, "Max Clocks/") && name == "SM":
		g.ClockMaxMHz = number()
	case strings.HasSuffix(path, "/Clocks/") && name == "SM", path == "Clocks/" && name == "SM":
		g.ClockMHz = number()
	case strings.Contains(path, "Power Readings/") && (name == "Current Power Limit" || name == "Enforced Power Limit"):
		g.PowerLimitW = watts(v)
	case strings.Contains(path, "Power Readings/") && name == "Max Power Limit":
		g.PowerLimitMaxW = watts(v)
	case strings.HasSuffix(path, "MIG Mode/") && name == "Current":
		g.MIG = yes()
	case strings.HasSuffix(path, "Utilization/") && (name == "Gpu" || name == "GPU"):
		g.UtilisationPct = number()
	}
}

// watts reads "700.00 W"; nil for what is none.
func watts(v string) *float64 {
	w, err := strconv.ParseFloat(first(v), 64)
	if err != nil || !(w > 0) || w > 1e5 {
		return nil
	}
	return &w
}

func first(s string) string {
	s, _, _ = strings.Cut(s, " ")
	return s
}

// smiCSV reads a table whose head names nvidia-smi's fields.
func smiCSV(lines []string) []reports.GPU {
	var head []string
	var out []reports.GPU
	for _, l := range lines {
		if strings.Contains(l, "pcie.link.") || strings.Contains(l, "ecc.errors") || strings.Contains(l, "remapped_rows") || strings.Contains(l, "clocks_throttle_reasons") || strings.Contains(l, "clocks_event_reasons") {
			if h := fields(l); len(h) > 1 {
				head = h
				continue
			}
		}
		row := fields(l)
		if head == nil || len(row) != len(head) || len(out) >= 256 {
			continue
		}
		g := reports.GPU{Index: len(out), Vendor: "nvidia"}
		for i, h := range head {
			csvField(&g, strings.Fields(h)[0], row[i])
		}
		out = append(out, g)
	}
	return out
}

// fields splits a line at its commas; nil where an entry is empty.
func fields(l string) []string {
	r, err := csv.NewReader(strings.NewReader(l)).Read()
	if err != nil {
		return nil
	}
	for i := range r {
		if r[i] = strings.TrimSpace(r[i]); r[i] == "" {
			return nil
		}
	}
	return r
}

func csvField(g *reports.GPU, name, v string) {
	n, err := strconv.Atoi(first(v))
	set := func(p **int) {
		if err == nil {
			*p = &n
		}
	}
	switch name {
	case "index":
		if err == nil {
			g.Index = n
		}
	case "name", "gpu_name":
		g.Name = v
	case "pci.bus_id", "gpu_bus_id":
		if len(v) > 12 {
			g.PCI = strings.ToLower(v[len(v)-12:])
		}
	case "pcie.link.gen.current", "pcie.link.gen.gpucurrent":
		set(&g.PCIeGen)
	case "pcie.link.gen.max", "pcie.link.gen.gpumax":
		set(&g.PCIeGenMax)
	case "pcie.link.width.current":
		set(&g.PCIeWidth)
	case "pcie.link.width.max":
		set(&g.PCIeWidthMax)
	case "utilization.gpu":
		set(&g.UtilisationPct)
	case "remapped_rows.uncorrectable":
		set(&g.RemappedRows)
	case "remapped_rows.pending":
		b := v == "1" || strings.EqualFold(v, "yes")
		g.RemapPending = &b
	case "remapped_rows.failure":
		b := v == "1" || strings.EqualFold(v, "yes")
		g.RemapFailed = &b
	case "ecc.errors.uncorrected.volatile.total":
		if err == nil && n >= 0 {
			u := uint64(n)
			g.ECCUncorrected = &u
		}
	}
}
