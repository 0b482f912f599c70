//go:build linux && cgo

package rdma

// #cgo CFLAGS: -O2
// #cgo LDFLAGS: -ldl
// #include "verbs.h"
import "C"

import (
	"fmt"
	"net/netip"
	"os"
	"path"
	"strconv"
	"syscall"
	"time"
	"unsafe"
)

const library = "libibverbs.so.1"

// Available says nil where RDMA can be used, and why not elsewhere.
func Available() error {
	name := C.CString(library)
	defer C.free(unsafe.Pointer(name))
	var text [256]C.char
	switch C.rv_load(name, &text[0], C.int(len(text))) {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("%w: %s (Debian: libibverbs1 and ibverbs-providers; RHEL: libibverbs)", ErrAbsent, C.GoString(&text[0]))
	}
	return fmt.Errorf("%w: %s", ErrAbsent, C.GoString(&text[0]))
}

// Device is an open port of an RDMA device, with the protection domain that
// everything of one rank lives in. It belongs to one goroutine.
type Device struct {
	Rail     Rail
	GID      GID
	Settings Settings
	Firmware string
	MTU      int // bytes that are active on the port

	ctx  *C.struct_rv_context
	pd   *C.struct_rv_pd
	port C.struct_rv_port_attr
	attr C.struct_rv_device_attr
}

// Open opens a rail, and chooses its GID.
func Open(r Rail, s Settings) (*Device, error) {
	if err := Available(); err != nil {
		return nil, err
	}
	gid, err := PickGID(r.HCA.Name, r.Port, s)
	if err != nil {
		return nil, err
	}
	d := &Device{Rail: r, GID: gid, Settings: s}
	if err := d.open(); err != nil {
		d.Close()
		return nil, fmt.Errorf("%s: %w", r, err)
	}
	return d, nil
}

func (d *Device) open() error {
	var n C.int
	all, err := C.rv_list(&n)
	if all == nil {
		return fmt.Errorf("cannot list RDMA devices: %w", err)
	}
	defer C.rv_free_list(all)
	for _, x := range unsafe.Slice(all, int(n)) {
		if C.GoString(&x.name[0]) != d.Rail.HCA.Name {
			continue
		}
		if d.ctx, err = C.rv_open(x); d.ctx == nil {
			return fmt.Errorf("cannot open the device: %w%s", err, permissionHint(err))
		}
		break
	}
	if d.ctx == nil {
		return fmt.Errorf("libibverbs does not know the device (of %d that it knows): its provider library is missing, or /dev/infiniband is not there", int(n))
	}
	if r := C.rv_port(d.ctx, C.int(d.Rail.Port.Num), &d.port); r != 0 {
		return fmt.Errorf("cannot query the port: %w", syscall.Errno(r))
	}
	if d.port.state != PortActive {
		return fmt.Errorf("the port is not active (state %d)", int(d.port.state))
	}
	if r := C.rv_attr(d.ctx, &d.attr); r != 0 {
		return fmt.Errorf("cannot query the device: %w", syscall.Errno(r))
	}
	if d.Settings.PKey >= int(d.port.pkey_tbl_len) {
		return fmt.Errorf("%w: NCCL_IB_PKEY=%d is an index into a table of %d keys", ErrSetting, d.Settings.PKey, int(d.port.pkey_tbl_len))
	}
	d.Firmware, d.MTU = C.GoString(&d.attr.fw_ver[0]), 128<<d.port.active_mtu
	if d.pd, err = C.rv_pd(d.ctx); d.pd == nil {
		return fmt.Errorf("cannot allocate a protection domain: %w%s", err, memlockHint(err, 0))
	}
	return nil
}

func permissionHint(err error) string {
	if err == syscall.EACCES || err == syscall.EPERM {
		return " (/dev/infiniband/uverbs* is not open to this user or container)"
	}
	return ""
}

// infiniband says that queue pairs are addressed by LID rather than by GID.
func (d *Device) infiniband() bool { return d.port.link_layer == 1 && d.port.lid != 0 }

// adaptive says that writes may overtake each other on the way, so that a long
// write carries no immediate: that follows in a write of its own.
func (d *Device) adaptive() bool {
	return d.Settings.AdaptiveRouting == 1 || d.Settings.AdaptiveRouting < 0 && d.port.link_layer == 1
}

// hello is what every connection of the device has in common.
func (d *Device) hello(from, to int) Hello {
	return Hello{From: int32(from), To: int32(to), LinkLayer: uint8(d.port.link_layer), MTU: uint8(d.port.active_mtu), LID: uint16(d.port.lid), GIDIndex: uint8(d.GID.Index), Reads: uint8(min(max(d.attr.max_qp_rd_atom, 0), 255)), GID: d.GID.Raw}
}

// Event is the next asynchronous event that waits, or nil. It may be called
// from any goroutine.
func (d *Device) Event() *Event {
	var port C.int
	var qpn C.uint32_t
	t := int(C.rv_async(d.ctx, &port, &qpn))
	if t < 0 {
		return nil
	}
	return &Event{Type: t, Device: d.Rail.HCA.Name, Port: int(port), QP: uint32(qpn)}
}

// Trouble is the next asynchronous event that ends a run, or nil. What waits
// before it and is harmless is passed over. It may be called from any goroutine.
func (d *Device) Trouble() error {
	for {
		e := d.Event()
		switch {
		case e == nil:
			return nil
		case e.Bad():
			return e
		case e.Type == gidChange && e.Port == d.Rail.Port.Num:
			dir := path.Join(infiniband, d.Rail.HCA.Name, "ports", strconv.Itoa(e.Port), "gids")
			if now, err := netip.ParseAddr(word(os.DirFS("/"), dir, strconv.Itoa(d.GID.Index))); err != nil || now.As16() != d.GID.Raw {
				return fmt.Errorf("%w, and GID row %d, which the queue pairs use, is no longer %s", e, d.GID.Index, d.GID.Addr)
			}
		}
	}
}

// explain gives the device a moment to say what made a request fail.
func (d *Device) explain(failed error) error {
	for end := time.Now().Add(50 * time.Millisecond); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if e := d.Trouble(); e != nil {
			return fmt.Errorf("%w; %w", e, failed)
		}
	}
	return failed
}

// Close gives the device back. Links and regions must be closed before.
func (d *Device) Close() error {
	if d.pd != nil {
		if r := C.rv_dealloc_pd(d.pd); r != 0 {
			return fmt.Errorf("%s: the protection domain is still in use: %w", d.Rail, syscall.Errno(r))
		}
		d.pd = nil
	}
	if d.ctx != nil {
		C.rv_close(d.ctx)
		d.ctx = nil
	}
	return nil
}

// String names the device, its port and its address.
func (d *Device) String() string {
	if d.infiniband() {
		return fmt.Sprintf("%s (LID %d)", d.Rail, uint16(d.port.lid))
	}
	return fmt.Sprintf("%s (GID %s)", d.Rail, d.GID)
}

func gidString(raw [16]byte) string { return netip.AddrFrom16(raw).Unmap().String() }
