package reports

import (
	"errors"
	"fmt"
)

// Topology is how the GPUs and network adapters of a node are joined.
type Topology struct {
	Node   string `json:"node"` // display name
	GPUs   []GPU  `json:"gpus"`
	NoGPUs string `json:"no_gpus,omitempty"` // why GPUs are not known, or not fully
	NICs   []NIC  `json:"nics"`
	NoNICs string `json:"no_nics,omitempty"` // why adapters are not known
	// Virtual is how many RDMA devices are virtual functions of others that
	// are listed; they are left out.
	Virtual int `json:"virtual_functions,omitempty"`
	// Paths[i][j] is the way from device i to j (GPUs first, then NICs) in the
	// words of nvidia-smi topo -m: "X", "NV18", "PIX", "PXB", "PHB", "NODE",
	// "SYS"; "XGMI" between AMD GPUs, "?" where not known.
	Paths  [][]string `json:"paths"`
	Bonds  []Bond     `json:"bonds,omitempty"` // pairs of GPUs joined by NVLink or XGMI
	Use    []Near     `json:"use,omitempty"`   // for each GPU: where its rank and traffic belong
	Shared []Shared   `json:"shared,omitempty"`
	Odd    []string   `json:"odd,omitempty"` // what is not as it is elsewhere in the node
}

// NIC is a network adapter: an RDMA device, or an interface where the node has
// none.
type NIC struct {
	Name   string   `json:"name"`           // "mlx5_0", "eth0"
	RDMA   bool     `json:"rdma,omitempty"` // Name is an RDMA device
	PCI    string   `json:"pci,omitempty"`
	NUMA   *int     `json:"numa,omitempty"`
	CPUs   string   `json:"cpus,omitempty"`
	Up     *bool    `json:"up,omitempty"`     // some port is active
	Gbps   *float64 `json:"gbps,omitempty"`   // of its fastest active port, Gb/s
	Layer  string   `json:"layer,omitempty"`  // "InfiniBand", "Ethernet"
	Netdev []string `json:"netdev,omitempty"` // its network interfaces
}

// Bond is what joins two GPUs.
type Bond struct {
	A          int      `json:"a"` // GPU indices in Topology.GPUs, A < B
	B          int      `json:"b"`
	Links      int      `json:"links,omitempty"`      // absent: not told
	Generation int      `json:"generation,omitempty"` // of NVLink
	GBps       *float64 `json:"gb_per_s,omitempty"`   // each way, all links together
	Switch     bool     `json:"switch,omitempty"`     // the links go to NVSwitches: shared with all other pairs
}

// Near is what lies next to a GPU.
type Near struct {
	GPU  int    `json:"gpu"`            // in Topology.GPUs
	CPUs string `json:"cpus,omitempty"` // for its rank's threads, as a kernel list
	NICs []int  `json:"nics,omitempty"` // in Topology.NICs, nearest; the first is the one to use
	Path string `json:"path,omitempty"` // to them
}

// Shared is a PCIe port that several devices send through.
type Shared struct {
	Port    string   `json:"port"`               // PCI address of the bridge
	Devices []string `json:"devices"`            // "GPU0", "mlx5_0"
	GBps    *float64 `json:"gb_per_s,omitempty"` // of its link upwards, each way
	Gen     int      `json:"gen,omitempty"`
	Lanes   int      `json:"lanes,omitempty"`
}

// maxJoined is far above any machine.
const maxJoined = 4096

// Check says what is wrong with a topology that came from elsewhere: its
// indices and the size of its matrix must be those of its devices.
func (t *Topology) Check() error {
	n := len(t.GPUs) + len(t.NICs)
	if n > maxJoined {
		return fmt.Errorf("%d devices: want at most %d", n, maxJoined)
	}
	if len(t.Paths) != n {
		return fmt.Errorf("%d rows of paths for %d devices", len(t.Paths), n)
	}
	for i, row := range t.Paths {
		if len(row) != n {
			return fmt.Errorf("row %d has %d paths for %d devices", i, len(row), n)
		}
	}
	for _, b := range t.Bonds {
		if b.A < 0 || b.B <= b.A || b.B >= len(t.GPUs) {
			return errors.New("a bond between GPUs that are not there")
		}
	}
	for _, u := range t.Use {
		if u.GPU < 0 || u.GPU >= len(t.GPUs) {
			return errors.New("neighbours of a GPU that is not there")
		}
		for _, k := range u.NICs {
			if k < 0 || k >= len(t.NICs) {
				return errors.New("an adapter that is not there")
			}
		}
	}
	return nil
}
