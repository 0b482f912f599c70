//go:build cgo && linux

package nvml

import (
	"encoding/binary"
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"busbw/reports"
)

// field is a value that is asked for by number (nvml.h, NVML_FI_…) and where it goes.
type field struct {
	id, scope uint32
	wide      bool // only where it is given in 64 bits: in 32 it wraps within a second
	to        func(uint64)
}

// askFields asks for several at once. What the GPU does not tell stays unset.
func (d *Driver) askFields(dev nvml.Device, fields []field) {
	if !d.knows("nvmlDeviceGetFieldValues") {
		return
	}
	values := make([]nvml.FieldValue, len(fields))
	for i, f := range fields {
		values[i].FieldId, values[i].ScopeId = f.id, f.scope
	}
	if dev.GetFieldValues(values) != nvml.SUCCESS {
		return
	}
	for i, v := range values {
		if n, wide, ok := value(v); ok && (wide || !fields[i].wide) {
			fields[i].to(n)
		}
	}
}

// value reads a field by its type tag.
func value(f nvml.FieldValue) (v uint64, wide, ok bool) {
	if nvml.Return(f.NvmlReturn) != nvml.SUCCESS {
		return 0, false, false
	}
	switch nvml.ValueType(f.ValueType) {
	case nvml.VALUE_TYPE_UNSIGNED_INT:
		return uint64(binary.LittleEndian.Uint32(f.Value[:])), false, true
	case nvml.VALUE_TYPE_UNSIGNED_LONG, nvml.VALUE_TYPE_UNSIGNED_LONG_LONG:
		return binary.LittleEndian.Uint64(f.Value[:]), true, true
	}
	return 0, false, false
}

// fields asks for what has no function of its own.
func (d *Driver) fields(dev nvml.Device, g *reports.GPU) {
	d.askFields(dev, []field{
		{nvml.FI_DEV_PCIE_COUNT_TX_BYTES, 0, true, func(v uint64) { g.PCIeTxBytes = &v }},
		{nvml.FI_DEV_PCIE_COUNT_RX_BYTES, 0, true, func(v uint64) { g.PCIeRxBytes = &v }},
	})
	if g.PCIeTxBytes == nil {
		g.Absent = append(g.Absent, "pcie_tx_bytes: this GPU or driver does not count them")
	}
}

// links lists every NVLink of a GPU.
func (d *Driver) links(dev nvml.Device, g *reports.GPU) {
	if !d.knows("nvmlDeviceGetNvLinkState") {
		g.Absent = append(g.Absent, "nvlinks: this driver is too old to tell")
		return
	}
	for l := range nvml.NVLINK_MAX_LINKS {
		state, r := dev.GetNvLinkState(l)
		if r == nvml.ERROR_INVALID_ARGUMENT { // past the last link of this GPU
			break
		}
		if r == nvml.ERROR_NOT_SUPPORTED { // it has no such link
			continue
		}
		k := reports.NVLink{Link: l, Errors: map[string]uint64{}}
		if r != nvml.SUCCESS {
			k.Absent = words(r)
		} else {
			up := on(state)
			k.Up = &up
			d.link(dev, &k)
		}
		g.NVLinks = append(g.NVLinks, k)
	}
}

// generation is NVLink's, by nvml.h's nvmlNvlinkVersion_t.
var generation = []int{0, 1, 2, 2, 3, 3, 4, 5, 6}

// link asks for one link. A link that is down tells its counters only.
func (d *Driver) link(dev nvml.Device, k *reports.NVLink) {
	l := k.Link
	if *k.Up {
		if d.knows("nvmlDeviceGetNvLinkVersion") {
			if v, r := dev.GetNvLinkVersion(l); r == nvml.SUCCESS && int(v) < len(generation) {
				k.Version = generation[v]
			}
		}
		d.remote(dev, k)
	}
	for _, e := range []struct {
		counter nvml.NvLinkErrorCounter
		name    string
	}{{nvml.NVLINK_ERROR_DL_REPLAY, "replay"}, {nvml.NVLINK_ERROR_DL_RECOVERY, "recovery"}, {nvml.NVLINK_ERROR_DL_CRC_FLIT, "crc_flit"},
		{nvml.NVLINK_ERROR_DL_CRC_DATA, "crc_data"}, {nvml.NVLINK_ERROR_DL_ECC_DATA, "ecc"}} {
		if d.knows("nvmlDeviceGetNvLinkErrorCounter") {
			if v, r := dev.GetNvLinkErrorCounter(l, e.counter); r == nvml.SUCCESS {
				k.Errors[e.name] = v
			}
		}
	}
	errs := func(name string) func(uint64) { return func(v uint64) { k.Errors[name] = v } }
	kib := func(to **uint64) func(uint64) { return func(v uint64) { v *= 1024; *to = &v } }
	bytes := func(to **uint64) func(uint64) { return func(v uint64) { *to = &v } }
	var mbps, mbpsOld uint64
	old := nvml.FI_DEV_NVLINK_SPEED_MBPS_COMMON
	if l < 6 {
		old = nvml.FI_DEV_NVLINK_SPEED_MBPS_L0 + l
	} else if l < 12 {
		old = nvml.FI_DEV_NVLINK_SPEED_MBPS_L6 + l - 6
	}
	at := uint32(l)
	d.askFields(dev, []field{
		{uint32(old), 0, false, func(v uint64) { mbpsOld = v }},
		{nvml.FI_DEV_NVLINK_GET_SPEED, at, false, func(v uint64) { mbps = v }},
		{nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_TX, at, true, kib(&k.TxBytes)},
		{nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_RX, at, true, kib(&k.RxBytes)},
		// NVLink 5 counts these instead.
		{nvml.FI_DEV_NVLINK_COUNT_XMIT_BYTES, at, true, bytes(&k.TxBytes)},
		{nvml.FI_DEV_NVLINK_COUNT_RCV_BYTES, at, true, bytes(&k.RxBytes)},
		{nvml.FI_DEV_NVLINK_COUNT_RCV_ERRORS, at, false, errs("rcv_errors")},
		{nvml.FI_DEV_NVLINK_COUNT_LOCAL_LINK_INTEGRITY_ERRORS, at, false, errs("local_link_integrity")},
		{nvml.FI_DEV_NVLINK_COUNT_XMIT_DISCARDS, at, false, errs("xmit_discards")},
		{nvml.FI_DEV_NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS, at, false, errs("recovery_failed")},
		{nvml.FI_DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS, at, false, errs("recovery_events")},
		{nvml.FI_DEV_NVLINK_COUNT_EFFECTIVE_ERRORS, at, false, errs("effective_errors")},
		{nvml.FI_DEV_NVLINK_COUNT_SYMBOL_ERRORS, at, false, errs("symbol_errors")},
	})
	if mbps == 0 {
		mbps = mbpsOld
	}
	if *k.Up && mbps > 0 {
		v := payload(k.Version, float64(mbps)/1000)
		k.GBps = &v
	}
}

// payload is what a link carries each way when it signals at gbps GB/s: from
// generation 4 on, 50 bits of payload are sent in 53.125 (26.562 → 25 GB/s for
// an H100, 53.125 → 50 for a B200); a V100 signals 25.781 for 25 (64b/66b);
// an A100's 25 GB/s are told as they are.
func payload(version int, gbps float64) float64 {
	switch {
	case version >= 4:
		gbps *= 50 / 53.125
	case version == 2 && gbps > 25:
		gbps *= 64.0 / 66
	}
	return float64(int(gbps*100+0.5)) / 100
}

// remote asks what is at the other end.
func (d *Driver) remote(dev nvml.Device, k *reports.NVLink) {
	if d.knows("nvmlDeviceGetNvLinkRemoteDeviceType") {
		switch t, r := dev.GetNvLinkRemoteDeviceType(k.Link); {
		case r != nvml.SUCCESS:
			k.Absent = "remote_kind: " + words(r)
		case t == nvml.NVLINK_DEVICE_TYPE_GPU:
			k.RemoteKind = "gpu"
		case t == nvml.NVLINK_DEVICE_TYPE_SWITCH:
			k.RemoteKind = "switch"
		case t == nvml.NVLINK_DEVICE_TYPE_IBMNPU:
			k.RemoteKind = "cpu"
		default:
			k.Absent = fmt.Sprintf("remote_kind: NVML says %d", t)
		}
	}
	if d.knows("nvmlDeviceGetNvLinkRemotePciInfo_v2", "nvmlDeviceGetNvLinkRemotePciInfo") {
		if p, r := dev.GetNvLinkRemotePciInfo(k.Link); r == nvml.SUCCESS {
			k.RemotePCI = address(p)
		}
	}
}
