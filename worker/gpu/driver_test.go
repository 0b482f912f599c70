//go:build linux && cgo

package gpu

import (
	"bytes"
	"errors"
	"strings"
	"syscall"
	"testing"

	"busbw/collectives"
	"busbw/worker/gpu/gputest"
)

// onFake runs the rest of the test on the fake driver.
func onFake(t *testing.T, env ...string) bool { return gputest.OnFake(t, ".", env...) }

func open(t testing.TB) *Driver {
	t.Helper()
	d, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func device(t testing.TB, i int) *Device {
	t.Helper()
	g, err := open(t).Device(i)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ok(t, g.Close()) })
	return g
}

func stream(t testing.TB, g *Device) *Stream {
	t.Helper()
	s, err := g.Stream()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ok(t, s.Close()) })
	return s
}

// memory is device memory with these bytes.
func memory(t testing.TB, s *Stream, b []byte) *Memory {
	t.Helper()
	m, err := s.g.Alloc(int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ok(t, m.Free()) })
	put(t, s, m.Span(0, int64(len(b))), b)
	return m
}

// host is locked host memory with these bytes.
func host(t testing.TB, g *Device, b []byte) []byte {
	t.Helper()
	m, err := g.AllocHost(int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ok(t, m.Free()) })
	out := m.Span(0, int64(len(b)))
	copy(out, b)
	return out
}

func put(t testing.TB, s *Stream, to, b []byte) {
	t.Helper()
	ok(t, s.CopyIn(to, host(t, s.g, b)))
	ok(t, s.Sync())
}

func get(t testing.TB, s *Stream, from []byte) []byte {
	t.Helper()
	to := host(t, s.g, make([]byte, len(from)))
	ok(t, s.CopyOut(to, from))
	ok(t, s.Sync())
	return bytes.Clone(to)
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// What is missing is said, and each thing differently.
func TestNoGPU(t *testing.T) {
	for _, c := range []struct {
		name string
		env  []string
		want error
		text string
	}{
		{"absent", []string{"LD_LIBRARY_PATH=/nowhere"}, ErrAbsent, "install NVIDIA's driver"},
		{"no device", []string{"FAKECUDA_DEVICES=0"}, ErrNoDevice, "CUDA_VISIBLE_DEVICES"},
		{"old driver", []string{"FAKECUDA_DRIVER=10020"}, ErrTooOld, "it speaks CUDA 10.2, busbw needs 11.0"},
		{"broken", []string{"FAKECUDA_FAIL=cuInit:1:803"}, Code(803), "reboot after a driver update"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !onFake(t, c.env...) {
				return
			}
			_, err := Open()
			if c.want == ErrAbsent && err == nil {
				t.Skip("this machine has a CUDA driver")
			}
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%v; want %v and %q", err, c.want, c.text)
			}
		})
	}
}

func TestDevices(t *testing.T) {
	if !onFake(t, "FAKECUDA_DEVICES=3", "FAKECUDA_CC=80", "FAKECUDA_DMABUF=1") {
		return
	}
	d := open(t)
	all, err := d.Devices()
	ok(t, err)
	want := Info{Ordinal: 2, Name: "Fake GPU", UUID: "GPU-00000000-0000-0000-0000-000000000002", PCI: "0000:38:00.0", Memory: 256 << 20, Major: 8, SMs: 4, GPUDirect: true, DMABuf: true}
	if len(all) != 3 || all[2] != want {
		t.Errorf("%+v", all)
	}
	for _, id := range []string{"2", want.UUID, "0000:38:00.0", "00000000:38:00.0", "38:00.0"} {
		if g, err := d.Find(id); err != nil || g.Info != want {
			t.Errorf("%s: %v %v", id, g, err)
		}
	}
	if _, err := d.Find("GPU-1"); !errors.Is(err, ErrNoDevice) || !strings.Contains(err.Error(), "0000:18:00.0") {
		t.Error(err)
	}
}

func TestCopies(t *testing.T) {
	if !onFake(t, "FAKECUDA_JITTER=200") {
		return
	}
	a, b := device(t, 0), device(t, 1)
	sa, sb := stream(t, a), stream(t, b)
	ma, mb := memory(t, sa, bytes.Repeat([]byte("a"), 1000)), memory(t, sb, bytes.Repeat([]byte("b"), 1000))
	ready, err := a.Event(false)
	ok(t, err)
	// b takes what a's stream has made by then, and no earlier.
	ok(t, sa.Set(ma.Span(0, 500), 'x'))
	ok(t, sa.Record(ready))
	ok(t, sb.Wait(ready))
	ok(t, sb.CopyPeer(b, mb.Span(100, 800), a, ma.Span(100, 800)))
	if got, want := get(t, sb, mb.Span(0, 1000)), strings.Repeat("b", 100)+strings.Repeat("x", 400)+strings.Repeat("a", 400)+strings.Repeat("b", 100); string(got) != want {
		t.Errorf("%s", got)
	}
	ok(t, ready.Sync())
	ok(t, ready.Close())
	// Without peer access the copy engine of one device may not touch the other.
	if err := sa.Copy(mb.Span(0, 8), ma.Span(0, 8)); err == nil {
		t.Error("a copy to a peer without access")
	}
	ok(t, a.EnablePeer(b))
	ok(t, a.EnablePeer(b)) // once more is no fault
	ok(t, sa.Copy(mb.Span(0, 8), ma.Span(0, 8)))
	if got := get(t, sa, mb.Span(0, 9)); string(got) != "xxxxxxxxb" {
		t.Errorf("%s", got)
	}
	if done, err := sa.Done(); !done || err != nil {
		t.Error(done, err)
	}
}

func TestTimedEvents(t *testing.T) {
	if !onFake(t) {
		return
	}
	g := device(t, 0)
	s := stream(t, g)
	first, err := g.Event(true)
	ok(t, err)
	last, err := g.Event(true)
	ok(t, err)
	ok(t, s.Record(first))
	ok(t, s.Record(last))
	ok(t, s.Sync())
	if d, err := last.Since(first); err != nil || d < 0 {
		t.Error(d, err)
	}
}

func TestOutOfMemory(t *testing.T) {
	if !onFake(t, "FAKECUDA_MEM=16", "FAKECUDA_FAIL=cuMemAlloc_v2:2:2") {
		return
	}
	g := device(t, 0)
	m, err := g.Alloc(1 << 20)
	ok(t, err)
	before, err := g.Free()
	ok(t, err)
	for _, size := range []int64{1 << 20, 17 << 20} { // refused by the knob, then for its size
		_, err = g.Alloc(size)
		if !errors.Is(err, OutOfMemory) || !strings.Contains(err.Error(), "GPU 0 (Fake GPU, 0000:18:00.0)") {
			t.Error(err)
		}
	}
	ok(t, m.Free())
	ok(t, m.Free())
	if after, err := g.Free(); err != nil || after != before+1<<20 {
		t.Errorf("%d bytes free, %d before: %v", after, before, err)
	}
}

func TestNoPeerAccess(t *testing.T) {
	if !onFake(t, "FAKECUDA_P2P=none") {
		return
	}
	a, b := device(t, 0), device(t, 1)
	if can, rank, err := a.CanAccess(b); can || rank != -1 || err != nil {
		t.Error(can, rank, err)
	}
	if err := a.EnablePeer(b); !errors.Is(err, NoPeerAccess) {
		t.Error(err)
	}
}

// A GPU without NVSwitch has room for so many peers: one more is a pair without
// peer access, not a failure.
func TestTooManyPeers(t *testing.T) {
	if !onFake(t, "FAKECUDA_FAIL=cuCtxEnablePeerAccess:1:711") {
		return
	}
	q, err := device(t, 0).Seat()
	ok(t, err)
	defer q.Close()
	if can, why, err := q.Reach(device(t, 1)); can || err != nil || !strings.Contains(why, "8 peers") {
		t.Error(can, why, err)
	}
}

// The writes of network devices are flushed where the driver offers that, and
// only there: it refuses the call otherwise.
func TestFlush(t *testing.T) {
	for _, c := range []struct {
		env  string
		want Code
	}{{"FAKECUDA_FLUSH=1", 999}, {"FAKECUDA_FLUSH=0", 0}} {
		t.Run(c.env, func(t *testing.T) {
			if !onFake(t, c.env, "FAKECUDA_FAIL=cuFlushGPUDirectRDMAWrites:1:999") {
				return
			}
			if err := device(t, 0).FlushRDMA(); c.want == 0 && err != nil || c.want != 0 && !errors.Is(err, c.want) {
				t.Error(err)
			}
		})
	}
}

func TestDMABuf(t *testing.T) {
	if !onFake(t, "FAKECUDA_DMABUF=1") {
		return
	}
	g := device(t, 0)
	if _, err := g.Alloc(100); err != nil { // so that the next does not start a page
		t.Fatal(err)
	}
	m, err := g.Alloc(10000)
	ok(t, err)
	fd, off, err := m.Export()
	if err != nil || fd < 0 || off != m.Address()%4096 || off == 0 {
		t.Error(fd, off, err)
	}
	syscall.Close(fd)
}

// What a device, a seat and a link were made of is freed with them, also where
// making them fails half way.
func TestNothingIsLeft(t *testing.T) {
	for _, fail := range []string{"", "cuDevicePrimaryCtxRetain:1:2", "cuStreamCreate:1:2", "cuModuleLoadDataEx:1:2", "cuModuleGetFunction:7:500", "cuModuleGetFunction:50:500",
		"cuEventCreate:1:2", "cuEventCreate:64:2", "cuMemHostAlloc:1:2", "cuMemAlloc_v2:1:2", "cuEventCreate:66:2"} {
		t.Run(fail, func(t *testing.T) {
			if !onFake(t, "FAKECUDA_FAIL="+fail) {
				return
			}
			err := takeAndGive(open(t))
			var e *Error
			if failed := errors.As(err, &e); failed != (fail != "") || failed && (e.Code != 2 && e.Code != 500) {
				t.Error(err)
			}
			if n := live(); n != 0 {
				t.Errorf("%d things are left", n)
			}
		})
	}
}

func takeAndGive(d *Driver) (err error) {
	g, err := d.Device(0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	q, err := g.Seat()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	if _, err := q.Alloc(1000); err != nil {
		return err
	}
	l, err := NewLink(q, 0, NewExchange(new(collectives.Abort)), []int{1}, nil)
	if err != nil {
		return err
	}
	return errors.Join(l.Send(1, make([]byte, 10)), l.Close())
}
