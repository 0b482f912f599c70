package worker

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"busbw/collectives"
	"busbw/coordinator"
	"busbw/reports/imports"
	"busbw/worker/nccl"
)

// engine is NCCL in this process, for the cases that run on it.
type engine struct {
	version int
	log     string // NCCL's own words go to this file; "": it was told otherwise
	key     string // of the communicators that the ranks are in
	told    map[string]string
}

// openNCCL loads NCCL and makes the ids of the groups whose first rank is here.
func (r *runner) openNCCL(b coordinator.NCCLBody) (any, error) {
	if len(b.Groups) > r.total() {
		return nil, fmt.Errorf("%d groups of %d ranks", len(b.Groups), r.total())
	}
	if r.gpus.own == nil {
		return nil, errors.New("engine nccl: no GPUs were found here")
	}
	if r.nccl.version == 0 {
		if err := r.loadNCCL(); err != nil {
			return nil, fmt.Errorf("engine nccl: %w", err)
		}
	}
	reply := coordinator.NCCLReply{Version: nccl.VersionText(r.nccl.version), IDs: make([][]byte, len(b.Groups)), Notes: injected(r.root)}
	for i, g := range b.Groups {
		if len(g) == 0 || coordinator.NodeOf(r.plan.Nodes, g[0]) != r.plan.Node {
			continue
		}
		id, err := nccl.NewID()
		if err != nil {
			return nil, err
		}
		reply.IDs[i] = id[:]
	}
	return reply, nil
}

// loadNCCL sets what has to be set before NCCL reads its environment, once.
// Files of settings are kept out where that can be done; what they inject
// nevertheless is told.
func (r *runner) loadNCCL() error {
	for _, kv := range [][2]string{{"NCCL_CONF_FILE", os.DevNull}, {"NCCL_DEBUG", "INFO"}, {"NCCL_DEBUG_SUBSYS", "INIT,ENV,NET"}} {
		if _, set := os.LookupEnv(kv[0]); !set {
			os.Setenv(kv[0], kv[1])
		}
	}
	if _, set := os.LookupEnv("NCCL_DEBUG_FILE"); !set {
		dir, err := os.MkdirTemp("", "busbw-nccl-")
		if err != nil {
			return err
		}
		r.nccl.log = filepath.Join(dir, "log")
		os.Setenv("NCCL_DEBUG_FILE", r.nccl.log)
	}
	var err error
	r.nccl.version, err = nccl.Open()
	return err
}

// injected are settings that /etc/nccl.conf gives every process of the node
// (NCCL user guide, configuration files).
func injected(root fs.FS) (notes []string) {
	f, err := root.Open("etc/nccl.conf")
	if err != nil {
		return nil
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan() && len(notes) < 16; {
		if text := strings.TrimSpace(lines.Text()); text != "" && text[0] != '#' && len(text) < 200 {
			notes = append(notes, "/etc/nccl.conf sets "+text)
		}
	}
	return notes
}

// joinNCCL puts every rank of the case into its group's communicator. refused
// says why this NCCL cannot run the case.
func (r *runner) joinNCCL(ctx context.Context, c *liveCase, b coordinator.CaseBody) (refused string, err error) {
	if len(b.NCCL) != len(c.groups) {
		return "", fmt.Errorf("%d ids for %d groups", len(b.NCCL), len(c.groups))
	}
	if err := nccl.Offers(r.nccl.version, c.Dtype, c.Redop); err != nil {
		return err.Error(), nil
	}
	key := fmt.Sprint(b.NCCL)
	if r.nccl.key == key {
		return "", nil
	}
	if err := r.leaveNCCL(); err != nil {
		return "", err
	}
	r.nccl.key = key
	ctx, cancel := context.WithTimeout(ctx, joinTime)
	defer cancel()
	err = r.each(func(k *rank) error {
		id := b.NCCL[k.group]
		if len(id) != nccl.IDBytes {
			return fmt.Errorf("rank %d: an id of %d bytes", k.global, len(id))
		}
		comm, err := nccl.Join(ctx, len(c.groups[k.group]), nccl.ID(id), k.me)
		k.comm = comm
		return err
	})
	r.nccl.told = r.readNCCL()
	return "", err
}

// joinTime is how long the ranks of a communicator wait for each other.
const joinTime = 2 * time.Minute

// leaveNCCL ends the communicators that the ranks are in.
func (r *runner) leaveNCCL() error {
	r.nccl.key = ""
	return r.on(r.ranks, func(k *rank) (err error) {
		if k.comm != nil {
			err = k.comm.Close()
			k.comm = nil
		}
		return err
	})
}

// endNCCL is leaveNCCL at the end of the process, whatever others do.
func (r *runner) endNCCL() {
	if r.nccl.version == 0 {
		return
	}
	_ = r.on(r.ranks, func(k *rank) error { // there is nobody left to tell
		if k.comm == nil {
			return nil
		}
		return k.comm.Abort()
	})
	if r.nccl.log != "" {
		os.RemoveAll(filepath.Dir(r.nccl.log))
	}
}

// readNCCL is what NCCL says took effect: its network, the ways between
// ranks, the settings that it took from the environment.
func (r *runner) readNCCL() map[string]string {
	if r.nccl.log == "" {
		return map[string]string{"nccl log": "not read: NCCL_DEBUG_FILE was set"}
	}
	f, err := os.Open(r.nccl.log)
	if err != nil {
		return map[string]string{"nccl log": "not written"}
	}
	defer f.Close()
	return imports.NCCLEffect(f)
}

// queue runs the case's collective on NCCL and waits for it. The wait ends when
// the communicator reports an error or the run ends; a rank that hangs is found
// by the coordinator, for it does not answer.
func (k *rank) queue(c *liveCase, abort *collectives.Abort, b collectives.Buffers) error {
	call := nccl.Call{Op: c.Op, Dtype: c.Dtype, Redop: c.Redop, Root: c.Root, Count: c.Count, In: b.In, Out: b.Out}
	if err := k.comm.Queue(call, k.seat.Stream()); err != nil {
		return k.ncclError(abort, err)
	}
	for i := 1; ; i++ {
		done, err := k.seat.Done()
		if done || err != nil {
			return k.ncclError(abort, err)
		}
		if i%watchEvery != 0 {
			continue
		}
		if err := k.comm.Fault(); err != nil {
			return k.ncclError(abort, err)
		}
		if err := abort.Err(); err != nil {
			return err
		}
	}
}

// watchEvery is how many looks at the stream lie between two at the communicator.
const watchEvery = 4096

func (k *rank) ncclError(abort *collectives.Abort, err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("rank %d: %w", k.global, err)
	abort.Set(err)
	return err
}
