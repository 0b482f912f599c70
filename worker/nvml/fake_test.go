//go:build cgo && linux

package nvml

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"busbw/reports"
)

// fakeLibrary builds the library of testdata; flags make it another driver.
func fakeLibrary(t *testing.T, flags ...string) string {
	t.Helper()
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("no gcc to build the library with")
	}
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/NVIDIA/go-nvml").Output()
	if err != nil {
		t.Fatalf("where is the binding: %v", err)
	}
	so := filepath.Join(t.TempDir(), "libnvidia-ml.so.1")
	args := append(flags, "-w", "-fPIC", "-shared", "-Wl,-soname,libnvidia-ml.so.1", "-I"+filepath.Join(strings.TrimSpace(string(dir)), "pkg/nvml"), "-o", so, "testdata/fakenvml.c")
	if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	return so
}

// ask opens a library and reads its GPUs.
func ask(t *testing.T, so string) []reports.GPU {
	t.Helper()
	d, err := open(nvml.New(nvml.WithLibraryPath(so)))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	gpus, err := d.GPUs()
	if err != nil {
		t.Fatal(err)
	}
	return gpus
}

// eq says whether a pointer points to a value.
func eq[T comparable](p *T, v T) bool { return p != nil && *p == v }

func TestThroughTheRealBinding(t *testing.T) {
	t.Setenv("FAKE_DOWN", "2:17,2:3")
	t.Setenv("FAKE_LOST", "7")
	gpus := ask(t, fakeLibrary(t))
	if len(gpus) != 8 {
		t.Fatalf("%d GPUs", len(gpus))
	}
	g := gpus[2]
	if g.Name != "NVIDIA H100 80GB HBM3" || g.UUID != "GPU-00000000-0000-0000-0000-000000000002" || g.PCI != "0000:3b:00.0" || g.Capability != "9.0" ||
		!eq(g.MemoryBytes, 85520809984) || !eq(g.PCIeGen, 1) || !eq(g.PCIeGenMax, 5) || !eq(g.PCIeWidth, 16) || !eq(g.ECC, true) || !eq(g.ECCCorrected, 7) ||
		!eq(g.ECCUncorrected, 0) || !eq(g.RemappedRows, 2) || !eq(g.RemapPending, true) || !eq(g.RemapFailed, false) || !eq(g.ClockMHz, 345) || !eq(g.ClockMaxMHz, 1980) ||
		!eq(g.PowerW, 71.5) || !slices.Equal(g.Throttle, []string{"hw_thermal_slowdown"}) || !slices.Equal(g.ProcessIDs, []int{4242}) {
		t.Errorf("GPU 2: %+v", g)
	}
	if f := g.Fabric; f == nil || f.State != "completed" || f.Status != "ok" || !eq(f.CliqueID, 3) || f.ClusterUUID != "abababab-abab-abab-abab-abababababab" {
		t.Errorf("fabric %+v", f)
	}
	if len(g.NVLinks) != 18 {
		t.Fatalf("%d links", len(g.NVLinks))
	}
	up, down := g.NVLinks[5], g.NVLinks[17]
	if !eq(up.Up, true) || up.Version != 4 || !eq(up.GBps, 25) || up.RemoteKind != "switch" || up.RemotePCI != "0000:08:00.0" || up.Errors["replay"] != 3 ||
		up.TxBytes == nil || *up.TxBytes == 0 || *up.TxBytes%(1<<20) != 0 {
		t.Errorf("link 5: %+v", up)
	}
	if !eq(down.Up, false) || down.GBps != nil || down.RemoteKind != "" {
		t.Errorf("link 17, which is down: %+v", down)
	}
	// Not asked, not told and not permitted are three things; none is 0.
	for _, want := range []string{
		"temperature_c: this driver is too old", "retired_pages: this GPU does not tell", "persistence: this user may not ask", "pcie_tx_bytes:",
	} {
		if !slices.ContainsFunc(g.Absent, func(s string) bool { return strings.HasPrefix(s, want) }) {
			t.Errorf("not said: %q in %q", want, g.Absent)
		}
	}
	if g.TemperatureC != nil || g.RetiredPages != nil || g.Persistence != nil || g.PCIeTxBytes != nil || g.PCIeRxBytes == nil {
		t.Errorf("what was not told: %+v", g)
	}
	if lost := gpus[7]; len(lost.Absent) != 1 || !strings.Contains(lost.Absent[0], "fallen off the bus") {
		t.Errorf("a lost GPU: %+v", lost)
	}
}

// Whether a GPU is joined to its processor by NVLink-C2C; one without has no such
// mode, and that is an answer. A call that fails, and a driver without it, are not.
func TestC2C(t *testing.T) {
	so, yes, no := fakeLibrary(t), true, false
	for _, c := range []struct {
		knob, absent string
		want         *bool
	}{{"", "", &no}, {"0", "", &no}, {"1", "", &yes}, {"2", "c2c: NVML: Unknown Error", nil}} {
		t.Setenv("FAKE_C2C", c.knob)
		g := ask(t, so)[0]
		if (g.C2C == nil) != (c.want == nil) || c.want != nil && *g.C2C != *c.want {
			t.Errorf("FAKE_C2C=%s: %v", c.knob, g.C2C)
		}
		if told := slices.ContainsFunc(g.Absent, func(s string) bool { return strings.HasPrefix(s, "c2c:") }); told != (c.absent != "") || told && !slices.Contains(g.Absent, c.absent) {
			t.Errorf("FAKE_C2C=%s: absent are %q", c.knob, g.Absent)
		}
	}
	if g := ask(t, fakeLibrary(t, "-DOLD"))[0]; g.C2C != nil || !slices.Contains(g.Absent, "c2c: this driver is too old to tell") {
		t.Errorf("an old driver: %v, %q", g.C2C, g.Absent)
	}
}

// Counters of a GPU, all links together; a GPU that is gone has none.
func TestCounters(t *testing.T) {
	t.Setenv("FAKE_LOST", "2")
	d, err := open(nvml.New(nvml.WithLibraryPath(fakeLibrary(t))))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	before, err := d.Counters()
	if err != nil {
		t.Fatal(err)
	}
	after, err := d.Counters()
	if err != nil {
		t.Fatal(err)
	}
	b, a := before["GPU1"], after["GPU1"]
	for _, name := range []string{"nvlink_tx_bytes", "nvlink_rx_bytes", "pcie_rx_bytes"} {
		if b[name] == 0 || a[name] <= b[name] {
			t.Errorf("%s: %d, then %d", name, b[name], a[name])
		}
	}
	if a["nvlink_errors/replay"] != 3 || a["ecc_corrected"] != 7 {
		t.Errorf("%v", a)
	}
	if v, ok := a["ecc_uncorrected"]; !ok || v != 0 {
		t.Error("a counter at 0 is told")
	}
	if _, ok := a["pcie_replays"]; ok {
		t.Error("a counter that the driver does not have is told")
	}
	if len(after) != 8 || len(after["GPU2"]) != 0 {
		t.Errorf("%d GPUs, the lost one counted %v", len(after), after["GPU2"])
	}
}

// A driver that lacks functions ends the process of who calls them.
func TestOldDriver(t *testing.T) {
	g := ask(t, fakeLibrary(t, "-DOLD"))[1]
	if g.Name == "" || g.PCI != "0000:2b:00.0" || g.Capability != "" || g.MemoryBytes != nil || len(g.NVLinks) != 0 {
		t.Errorf("%+v", g)
	}
	tooOld := 0
	for _, a := range g.Absent {
		if strings.HasSuffix(a, "this driver is too old to tell") {
			tooOld++
		}
	}
	if tooOld < 20 {
		t.Errorf("only %d facts are said to be absent: %q", tooOld, g.Absent)
	}
}

func TestNoDriver(t *testing.T) {
	if _, err := open(nvml.New(nvml.WithLibraryPath(filepath.Join(t.TempDir(), "none.so")))); !errors.Is(err, ErrNoLibrary) {
		t.Errorf("no library: %v", err)
	}
	so := fakeLibrary(t)
	for code, want := range map[string]error{"9": ErrNoDriver, "18": ErrMismatch} { // nvml.h, nvmlReturn_t
		t.Setenv("FAKE_INIT", code)
		if _, err := open(nvml.New(nvml.WithLibraryPath(so))); !errors.Is(err, want) {
			t.Errorf("nvmlInit gives %s: %v", code, err)
		}
	}
	t.Setenv("FAKE_INIT", "999")
	if _, err := open(nvml.New(nvml.WithLibraryPath(so))); err == nil || !strings.Contains(err.Error(), "does not start") {
		t.Errorf("nvmlInit fails: %v", err)
	}
}

func TestAbsurdCount(t *testing.T) {
	t.Setenv("FAKE_GPUS", "1000000000")
	d, err := open(nvml.New(nvml.WithLibraryPath(fakeLibrary(t))))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := d.GPUs(); err == nil {
		t.Error("a thousand million GPUs were believed")
	}
	if os.Getenv("FAKE_GPUS") == "" {
		t.Error("the knob did not arrive")
	}
}
