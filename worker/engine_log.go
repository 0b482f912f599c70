package worker

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"busbw/reports/imports"
)

// ncclLog is the file that NCCL writes its own words to (NCCL_DEBUG_FILE). It
// writes a line for each collective, which costs a microsecond or more: while
// collectives are timed they go to /dev/null.
type ncclLog struct {
	path   string // "": it was told otherwise
	joined int64  // where the words of the communicators begin
	began  int64  // where those of the case begin
	env    map[string]string
	fd     int      // NCCL's, once it was quiet
	null   *os.File // not nil: it has been
	quiet  bool
}

// logMost bounds what is read of it for one case.
const logMost = 4 << 20

// open sets what has to be set before NCCL reads its environment. Files of
// settings are kept out where that can be done; what they inject nevertheless is
// told.
func (l *ncclLog) open() error {
	for _, kv := range [][2]string{{"NCCL_CONF_FILE", os.DevNull}, {"NCCL_DEBUG", "INFO"}, {"NCCL_DEBUG_SUBSYS", "INIT,ENV,NET,TUNING"}} {
		if _, set := os.LookupEnv(kv[0]); !set {
			os.Setenv(kv[0], kv[1])
		}
	}
	if _, set := os.LookupEnv("NCCL_DEBUG_FILE"); set {
		return nil
	}
	dir, err := os.MkdirTemp("", "busbw-nccl-")
	if err != nil {
		return err
	}
	l.path = filepath.Join(dir, "log")
	os.Setenv("NCCL_DEBUG_FILE", l.path)
	return nil
}

func (l *ncclLog) close() {
	if l.null != nil {
		l.null.Close()
	}
	if l.path != "" {
		os.RemoveAll(filepath.Dir(l.path))
		os.Unsetenv("NCCL_DEBUG_FILE")
	}
}

func (l *ncclLog) size() int64 {
	info, err := os.Stat(l.path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// joining is the moment at which ranks join communicators, case the one at
// which they are about to run a size.
func (l *ncclLog) joining() error {
	l.joined = l.size()
	return l.loud()
}

func (l *ncclLog) begin() error {
	l.began = l.size()
	return l.loud()
}

func (l *ncclLog) loud() error {
	if !l.quiet {
		return nil
	}
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return fmt.Errorf("NCCL's log: %w", err)
	}
	defer f.Close()
	l.quiet = false
	return unix.Dup3(int(f.Fd()), l.fd, unix.O_CLOEXEC)
}

// hush sends what NCCL writes from now on to nowhere, once it has told what it
// chose for the size.
func (l *ncclLog) hush() error {
	if l.quiet || l.path == "" {
		return nil
	}
	if l.null == nil {
		fd, ok := l.find()
		if !ok {
			return nil // NCCL has not opened it: there is nothing to stop
		}
		null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		l.fd, l.null = fd, null
	}
	if err := unix.Dup3(int(l.null.Fd()), l.fd, unix.O_CLOEXEC); err != nil {
		return fmt.Errorf("NCCL's log: %w", err)
	}
	l.quiet = true
	return nil
}

// find is the file's descriptor in this process, which NCCL opened.
func (l *ncclLog) find() (fd int, ok bool) {
	all, _ := os.ReadDir("/proc/self/fd")
	for _, e := range all {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && to == l.path {
			fd, err = strconv.Atoi(e.Name())
			return fd, err == nil
		}
	}
	return 0, false
}

// told is what NCCL says took effect: its network, the ways between ranks, the
// settings that it took from the environment, and what it chose for this size.
func (l *ncclLog) told() map[string]string {
	if l.path == "" {
		return map[string]string{"nccl log": "not read: NCCL_DEBUG_FILE was set"}
	}
	f, err := os.Open(l.path)
	if err != nil {
		return map[string]string{"nccl log": "not written"}
	}
	defer f.Close()
	size := l.size()
	part := func(from int64) io.Reader { return io.NewSectionReader(f, from, max(0, min(size-from, logMost))) }
	did := imports.NCCLEffect(part(l.joined))
	for k, v := range did { // NCCL tells of a variable when it reads it first, and never again
		if strings.HasPrefix(k, "NCCL_") {
			if l.env == nil {
				l.env = map[string]string{}
			}
			l.env[k] = v
		}
	}
	maps.Copy(did, l.env)
	for _, own := range []string{"NCCL_DEBUG", "NCCL_DEBUG_FILE", "NCCL_DEBUG_SUBSYS", "NCCL_CONF_FILE"} {
		delete(did, own) // ours
	}
	maps.Copy(did, imports.NCCLChoice(part(l.began)))
	return did
}

// toldNCCL is told, with which NCCL it is.
func (r *runner) toldNCCL() map[string]string {
	did := r.nccl.log.told()
	did["nccl version"] = r.nccl.library.String()
	return did
}

// confFile is the version of NCCL from which on NCCL_CONF_FILE keeps the file of
// settings in the user's home out.
const confFile = 22300

// injected are settings that files give every process of the node: /etc/nccl.conf,
// and, in NCCL before confFile, .nccl.conf in the user's home (NCCL user guide,
// configuration files).
func injected(root fs.FS, home string, version int) (notes []string) {
	files := []string{"etc/nccl.conf"}
	if home = strings.Trim(home, "/"); version < confFile && home != "" {
		files = append(files, home+"/.nccl.conf")
	}
	for _, name := range files {
		f, err := root.Open(name)
		if err != nil {
			continue
		}
		for lines := bufio.NewScanner(f); lines.Scan() && len(notes) < 16; {
			if text := strings.TrimSpace(lines.Text()); text != "" && text[0] != '#' && len(text) < 200 {
				notes = append(notes, "/"+name+" sets "+text)
			}
		}
		f.Close()
	}
	return notes
}

// home is the user's, as the system's list of users has it: NCCL looks there.
func home() string {
	u, err := user.Current()
	if err != nil {
		return ""
	}
	return u.HomeDir
}

// hushNCCL is hush where the case runs on NCCL.
func (r *runner) hushNCCL(err error) error {
	if r.live == nil || !r.live.nccl {
		return err
	}
	return cmp.Or(err, r.nccl.log.hush())
}
