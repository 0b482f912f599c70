package worker

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"busbw/reports"
	"busbw/worker/nvml"
	"busbw/worker/topo"
)

// Node is a machine as a value: what checks and the topology look at, whether
// it is this machine, a copy of another one's files, or a test's archive.
type Node struct {
	Name   string        // display name
	Root   fs.FS         // its files, from / on
	GPUs   []reports.GPU // in the order of their indices
	NoGPUs string        // why GPUs are not known, or not fully; "" when they are (none is an answer)
}

// ReadNode reads the machine whose files lie under dir: "/" is this one, whose
// GPU driver is asked in this process (an agent asks in another one: see
// readNode). A link in a copy that leads out of it is not followed.
func ReadNode(name, dir string) (*Node, error) {
	if dir = filepath.Clean(dir); dir == "/" {
		n := &Node{Name: name, Root: os.DirFS("/")}
		n.GPUs, n.NoGPUs = localGPUs(n.Root)
		return n, nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("files of a machine: %w", err)
	}
	n := &Node{Name: name, Root: plainFiles{root.FS()}}
	if _, err := fs.Stat(n.Root, "sys"); err != nil {
		if _, err := fs.Stat(n.Root, "proc"); err != nil {
			return nil, fmt.Errorf("%s is not the root of a machine's files: it has neither sys nor proc", dir)
		}
	}
	if n.GPUs, err = topo.GPUs(n.Root); err != nil {
		n.NoGPUs = err.Error()
	} else if countVendor(n.GPUs, "nvidia") > 0 {
		n.NoGPUs = "NVLink, memory, clocks and errors of the GPUs: these are the files of another machine, and only its driver tells"
	}
	return n, nil
}

// plainFiles is the files of a copy, of which only folders and regular files
// are opened: a pipe in it would wait for a writer for ever.
type plainFiles struct{ fs.FS }

func (p plainFiles) Open(name string) (fs.File, error) {
	i, err := fs.Stat(p.FS, name)
	if err == nil && !i.IsDir() && !i.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	if err != nil {
		return nil, err
	}
	return p.FS.Open(name)
}

// Lstat and ReadLink are those of the files.
func (p plainFiles) Lstat(name string) (fs.FileInfo, error) { return fs.Lstat(p.FS, name) }

// ReadLink is fs.ReadLinkFS's.
func (p plainFiles) ReadLink(name string) (string, error) { return fs.ReadLink(p.FS, name) }

// Topology is how the node's devices are joined.
func (n *Node) Topology() reports.Topology { return topo.Read(n.Name, n.Root, n.GPUs, n.NoGPUs) }

// localGPUs asks this machine's driver, and its files for what there is besides.
func localGPUs(root fs.FS) (gpus []reports.GPU, why string) {
	var reasons []string
	files, err := topo.GPUs(root)
	if err != nil {
		reasons = append(reasons, err.Error())
	}
	d, err := nvml.Open()
	if err == nil {
		defer d.Close()
		gpus, err = d.GPUs()
	}
	onBus := countVendor(files, "nvidia")
	switch {
	case err == nil && onBus > len(gpus):
		reasons = append(reasons, fmt.Sprintf("%d NVIDIA GPUs are on the PCI bus and the driver lists %d (see the kernel log; a container may have been given only some)", onBus, len(gpus)))
	case err != nil && (onBus > 0 || !errors.Is(err, nvml.ErrNoLibrary) && !errors.Is(err, nvml.ErrNoCgo) && !errors.Is(err, nvml.ErrNoDriver)):
		reasons = append(reasons, err.Error())
	}
	known := err == nil
	for i := range gpus {
		topo.Locate(root, &gpus[i])
	}
	for _, g := range files {
		if g.Vendor == "nvidia" && known {
			continue
		}
		g.Index = len(gpus)
		gpus = append(gpus, g)
	}
	return gpus, strings.Join(reasons, "; ")
}

func countVendor(gpus []reports.GPU, vendor string) (n int) {
	for _, g := range gpus {
		if g.Vendor == vendor {
			n++
		}
	}
	return n
}

// GPUsVerb is the argument of the runner verb that makes it call PrintGPUs.
const GPUsVerb = "gpus"

// asked is what the process that asks the GPU driver prints.
type asked struct {
	GPUs   []reports.GPU `json:"gpus"`
	NoGPUs string        `json:"no_gpus,omitempty"`
}

// PrintGPUs is the life of a process that asks this machine's GPU driver: one
// line of JSON.
func PrintGPUs(out io.Writer) error {
	var a asked
	a.GPUs, a.NoGPUs = localGPUs(os.DirFS("/"))
	return json.NewEncoder(out).Encode(a)
}

// How long a GPU driver may take to answer, and how much it may say.
const (
	driverPatience = time.Minute // without persistence mode the driver starts each GPU anew, some seconds for each
	driverAnswer   = 16 << 20
)

// readNode is this machine for the agent.
func (a *agent) readNode(ctx context.Context) *Node {
	a.asking.Lock() // one at a time is enough for a driver
	defer a.asking.Unlock()
	return ThisNode(ctx, a.self.Host, a.opts.Runner, a.patience)
}

// ThisNode is this machine, whose GPU driver is asked in a process of its own
// (runner: the command line of a runner) for at most so long (0: a minute). A
// driver that crashes or hangs takes that process with it, not the caller.
func ThisNode(ctx context.Context, name string, runner []string, patience time.Duration) *Node {
	n := &Node{Name: name, Root: os.DirFS("/")}
	patience = cmp.Or(patience, driverPatience)
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, runner[0], append(runner[1:len(runner):len(runner)], GPUsVerb)...)
	cmd.Env, cmd.WaitDelay = environment(nil), time.Second
	var out, errs limited
	cmd.Stdout, cmd.Stderr = &out, &errs
	var got asked
	switch err := cmd.Run(); {
	case ctx.Err() != nil:
		n.NoGPUs = fmt.Sprintf("the GPU driver did not answer within %s (a hung driver or GPU: see the kernel log)", patience)
	case err != nil:
		said, _, _ := strings.Cut(errs.String(), "\n")
		n.NoGPUs = fmt.Sprintf("the process that asks the GPU driver failed: %v: %.300s", err, said)
	default:
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			n.NoGPUs = fmt.Sprintf("what the process that asks the GPU driver said cannot be read: %v", err)
		}
	}
	n.GPUs = got.GPUs
	if n.NoGPUs == "" {
		n.NoGPUs = got.NoGPUs
	} else if files, err := topo.GPUs(n.Root); err == nil {
		n.GPUs = files
	}
	return n
}

// limited keeps the first bytes of what is written to it.
type limited struct{ bytes.Buffer }

func (l *limited) Write(b []byte) (int, error) {
	if room := driverAnswer - l.Len(); room > 0 {
		l.Buffer.Write(b[:min(room, len(b))])
	}
	return len(b), nil
}
