package coordinator

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// Nursery starts processes that die with this one, however it ends. The
// kernel ties that promise (PR_SET_PDEATHSIG) to the thread that started the
// process, so one thread is kept for it until Close.
type Nursery struct {
	start chan func()
	once  sync.Once
}

// NewNursery keeps a thread.
func NewNursery() *Nursery {
	n := &Nursery{start: make(chan func())}
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for f := range n.start {
			f()
		}
	}()
	return n
}

// Start starts cmd in a process group of its own, so that Ctrl-C in a terminal
// reaches only this process, which then ends the others in order.
func (n *Nursery) Start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	err := make(chan error, 1)
	n.start <- func() { err <- cmd.Start() }
	return <-err
}

// Close lets the thread go; no process may run any more.
func (n *Nursery) Close() { n.once.Do(func() { close(n.start) }) }

// Tail keeps the last bytes written to it, for messages about a process that
// failed.
type Tail struct {
	mu   sync.Mutex
	buf  []byte
	lost bool
}

// tailSize holds a Go crash with the goroutine that caused it.
const tailSize = 8 << 10

func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - tailSize; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
		t.lost = true
	}
	return len(p), nil
}

// String is what was kept.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lost {
		return "… " + string(t.buf)
	}
	return string(t.buf)
}
