package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"busbw/rdma"
)

// ProbeVerb is the argument of the runner verb that makes it call PrintProbes.
const ProbeVerb = "probe"

// Probe is what registering memory with a NIC showed.
type Probe struct {
	HCA  string `json:"hca"`
	Port int    `json:"port"`
	MTU  int    `json:"mtu,omitempty"` // active, bytes
	Host string `json:"host"`          // why host memory does not register; "": it does
	GPU  string `json:"gpu,omitempty"` // how GPU memory registers: "dma-buf", "peer memory"; "": it does not, or there is none
	Why  string `json:"why,omitempty"` // why GPU memory does not
}

// gpuRange is memory of a GPU.
type gpuRange interface {
	Address() uint64
	Size() int64
	Export() (fd int, offset uint64, err error)
}

// probeBytes are registered on each port: more than the usual limit of 8 MiB
// on locked memory, as ranks' buffers are.
const probeBytes = 16 << 20

// PrintProbes is the life of a process that registers memory with every active
// port: one line of JSON. A driver that crashes takes only this process.
func PrintProbes(out io.Writer) error {
	hcas, err := rdma.HCAs(os.DirFS("/"))
	if err != nil {
		return err
	}
	set, _, err := rdma.ParseSettings(nil)
	if err != nil {
		return err
	}
	rails, _ := rdma.Rails(hcas, set)
	var mem gpuRange
	infos, why := cudaDevices()
	if why == "" {
		var free func() error
		if mem, free, err = gpuMemory(infos[0].Ordinal, 2<<20); err != nil {
			why = err.Error()
		} else {
			defer free() // the process ends
		}
	}
	host, err := unix.Mmap(-1, 0, probeBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return fmt.Errorf("cannot map %d bytes: %w", probeBytes, err)
	}
	defer unix.Munmap(host)
	probes := []Probe{}
	for _, r := range rails {
		probes = append(probes, probe(r, set, host, mem, why))
	}
	return json.NewEncoder(out).Encode(probes)
}

func probe(r rdma.Rail, set rdma.Settings, host []byte, mem gpuRange, why string) Probe {
	p := Probe{HCA: r.HCA.Name, Port: r.Port.Num, Why: why}
	d, err := rdma.Open(r, set)
	if err != nil {
		p.Host = err.Error()
		return p
	}
	defer d.Close()
	p.MTU = d.MTU
	region, err := d.Register(host)
	if err != nil {
		p.Host = err.Error()
	} else {
		region.Close()
	}
	if mem == nil {
		return p
	}
	region, tried := d.RegisterGPU(mem.Address(), uint64(mem.Size()), mem.Export)
	if region != nil {
		p.GPU = region.How
		region.Close()
		return p
	}
	var all []string
	for _, a := range tried {
		all = append(all, fmt.Sprintf("%s: %v", a.How, a.Err))
	}
	p.Why = strings.Join(all, "; ")
	return p
}

// Probe registers memory with the node's ports, where it has any, and gives up
// after a while.
func (o *CheckOptions) Probe(ctx context.Context, runner []string, patience time.Duration) {
	if err := rdma.Available(); err != nil {
		o.NoProbes = err.Error()
		return
	}
	if hcas, err := rdma.HCAs(os.DirFS("/")); err != nil || len(hcas) == 0 {
		return
	}
	var err error
	if o.Probes, err = readProbes(ctx, runner, patience); err != nil {
		o.NoProbes = err.Error()
	}
}

// readProbes starts a process that registers memory (runner: the command line
// of a runner), which inherits this one's limits.
func readProbes(ctx context.Context, runner []string, patience time.Duration) ([]Probe, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, runner[0], append(runner[1:len(runner):len(runner)], ProbeVerb)...)
	cmd.Env, cmd.WaitDelay = environment(nil), time.Second
	var out, errs limited
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		said, _, _ := bytes.Cut(errs.Bytes(), []byte("\n"))
		if ctx.Err() != nil {
			return nil, fmt.Errorf("registering memory took longer than %s", patience)
		}
		return nil, fmt.Errorf("the process that registers memory failed: %w: %.300s", err, said)
	}
	var probes []Probe
	if err := json.Unmarshal(out.Bytes(), &probes); err != nil {
		return nil, errors.New("the process that registers memory said what cannot be read")
	}
	return probes, nil
}
