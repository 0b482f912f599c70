//go:build cgo && linux

package nvml

import (
	"fmt"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"busbw/reports"
)

// Driver is the opened library.
type Driver struct {
	lib nvml.Interface
	has map[string]bool // symbols looked up so far
}

// Open loads the library and asks the driver behind it to begin. Its error
// matches one of Err… where that is what it is.
func Open() (*Driver, error) { return open(nvml.New()) }

func open(lib nvml.Interface) (*Driver, error) {
	switch r := lib.Init(); r {
	case nvml.SUCCESS:
		return &Driver{lib, map[string]bool{}}, nil
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		return nil, ErrNoLibrary
	case nvml.ERROR_DRIVER_NOT_LOADED:
		return nil, ErrNoDriver
	case nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		return nil, ErrMismatch
	case nvml.ERROR_NO_PERMISSION:
		return nil, fmt.Errorf("NVML: no permission to talk to the driver (/dev/nvidiactl is not open to this user)")
	default:
		return nil, fmt.Errorf("NVML does not start: %v", r)
	}
}

// Close lets the driver go.
func (d *Driver) Close() { d.lib.Shutdown() }

// knows says whether the library has one of the symbols. The binding ends the
// process at a call of a function that an older driver lacks, so that every
// function is looked up before its first call.
func (d *Driver) knows(symbols ...string) bool {
	for _, s := range symbols {
		ok, seen := d.has[s]
		if !seen {
			ok = d.lib.Extensions().LookupSymbol(s) == nil
			d.has[s] = ok
		}
		if ok {
			return true
		}
	}
	return false
}

// maxGPUs is far above any machine.
const maxGPUs = 1024

// GPUs asks for everything that reports.GPU holds and NVML tells, by NVML's
// index. A GPU that does not answer is listed, and what it said.
func (d *Driver) GPUs() ([]reports.GPU, error) { return d.all(facts) }

// all asks every GPU for some facts, its fields and its links.
func (d *Driver) all(which []fact) ([]reports.GPU, error) {
	if !d.knows("nvmlDeviceGetCount_v2", "nvmlDeviceGetCount") || !d.knows("nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex") {
		return nil, fmt.Errorf("NVML: the library cannot list GPUs")
	}
	n, r := d.lib.DeviceGetCount()
	if r != nvml.SUCCESS {
		return nil, fmt.Errorf("NVML cannot count GPUs: %v", r)
	}
	if n < 0 || n > maxGPUs {
		return nil, fmt.Errorf("NVML tells of %d GPUs: want at most %d", n, maxGPUs)
	}
	gpus := make([]reports.GPU, n)
	for i := range gpus {
		gpus[i] = d.gpu(i, which)
	}
	return gpus, nil
}

func (d *Driver) gpu(i int, which []fact) reports.GPU {
	g := reports.GPU{Index: i, Vendor: "nvidia"}
	dev, r := d.lib.DeviceGetHandleByIndex(i)
	if r != nvml.SUCCESS {
		g.Absent = []string{"everything: " + words(r)}
		return g
	}
	for k, f := range which {
		switch more := k+1 < len(which) && which[k+1].name == f.name; {
		case k > 0 && which[k-1].name == f.name && d.knows(which[k-1].symbols...):
			// asked in the newer way
		case d.knows(f.symbols...):
			if r := f.ask(dev, &g); r != nvml.SUCCESS {
				g.Absent = append(g.Absent, f.name+": "+words(r))
			}
		case !more:
			g.Absent = append(g.Absent, f.name+": this driver is too old to tell")
		}
	}
	d.fields(dev, &g)
	d.links(dev, &g)
	return g
}

// words says why NVML did not answer.
func words(r nvml.Return) string {
	switch r {
	case nvml.ERROR_NOT_SUPPORTED:
		return "this GPU does not tell (NVML: not supported)"
	case nvml.ERROR_NO_PERMISSION:
		return "this user may not ask (NVML: no permission)"
	case nvml.ERROR_GPU_IS_LOST:
		return "the GPU has fallen off the bus (NVML: GPU is lost)"
	}
	return "NVML: " + r.Error()
}

// address is a PCI address as sysfs writes it: lower case, and no more than
// four digits of domain where four are enough.
func address(p nvml.PciInfo) string {
	var b strings.Builder
	for _, c := range p.BusId {
		if c == 0 {
			break
		}
		b.WriteByte(byte(c))
	}
	domain, rest, ok := strings.Cut(strings.ToLower(b.String()), ":")
	if !ok || strings.Trim(domain+rest, "0123456789abcdef:.") != "" {
		return ""
	}
	return fmt.Sprintf("%04s", strings.TrimLeft(domain, "0")) + ":" + rest
}
