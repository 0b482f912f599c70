package worker

import (
	"bytes"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"busbw/coordinator"
)

// node answers what machine this is.
func (a *agent) node(w http.ResponseWriter, _ *http.Request) {
	info := coordinator.NodeInfo{
		Host: a.self.Host, Version: a.opts.Version, OS: runtime.GOOS + "/" + runtime.GOARCH,
		CPU: cpuModel(), CPUs: runtime.NumCPU(), Net: a.self.Choice,
	}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		info.OS = unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:]) + " " + unix.ByteSliceToString(u.Machine[:])
	}
	var s unix.Sysinfo_t
	if unix.Sysinfo(&s) == nil {
		info.Memory = int64(uint64(s.Totalram) * uint64(s.Unit))
	}
	a.mu.Lock()
	if a.job != nil && !a.job.finished() {
		info.Job = a.job.id
	}
	a.mu.Unlock()
	reply(w, info)
}

// topology answers how this machine's devices are joined.
func (a *agent) topology(w http.ResponseWriter, r *http.Request) {
	begin(w)
	reply(w, a.readNode(r.Context()).Topology())
}

// cpuModel is the first model name of /proc/cpuinfo; ARM kernels give none.
func cpuModel() string {
	b, _ := os.ReadFile("/proc/cpuinfo")
	for line := range bytes.Lines(b) {
		if k, v, ok := bytes.Cut(line, []byte(":")); ok && string(bytes.TrimSpace(k)) == "model name" {
			return string(bytes.TrimSpace(v))
		}
	}
	return ""
}

// processState is the letter of proc_pid_stat(5), field 3; 0: no such process.
func processState(pid int) byte {
	b, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	// The command name before it is in brackets and may hold anything.
	if i := bytes.LastIndexByte(b, ')'); i >= 0 && i+2 < len(b) {
		return b[i+2]
	}
	return 0
}

// kept are the variables of the worker's environment that a runner needs: to
// find libraries and devices, and to be understood by people. Nothing else is
// passed on, so that no secret and no stray NCCL setting is.
var kept = []string{
	"PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CUDA_CACHE_PATH",
	"NVIDIA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "GODEBUG", "GOTRACEBACK", "GOCOVERDIR",
}

// environment is a runner's: what is kept, and the NCCL settings of its plan.
func environment(settings map[string]string) []string {
	var env []string
	for _, name := range kept {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	for name, v := range settings {
		if strings.HasPrefix(name, "NCCL_") && v != "" && !strings.ContainsAny(name, "=\x00") && !strings.Contains(v, "\x00") {
			env = append(env, name+"="+v)
		}
	}
	slices.Sort(env)
	return env
}
