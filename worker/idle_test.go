package worker

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"busbw/coordinator"
)

var (
	idle        = flag.Duration("idle", 0, "measure idle workers for so long (TestIdle); 0: not")
	idleWorkers = flag.Int("idle-workers", 16, "how many workers TestIdle starts")
)

// TestIdle measures what workers cost that have no job:
//
//	go test ./worker -run TestIdle -idle 20s -idle-workers 64 -v
func TestIdle(t *testing.T) {
	if *idle == 0 {
		t.Skip("takes time on an idle machine: -idle 20s")
	}
	began := time.Now()
	l, err := coordinator.StartLocal(t.Context(), coordinator.LocalOptions{Nodes: *idleWorkers, Ranks: 1, Version: "test", Log: quiet(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	t.Logf("%d workers were members after %s", *idleWorkers, time.Since(began).Round(time.Millisecond))
	time.Sleep(5 * time.Second) // joining is not idle
	var ticks []int
	for _, pid := range l.Pids() {
		ticks = append(ticks, cpuTicks(t, pid))
	}
	time.Sleep(*idle)
	const hz = 100 // USER_HZ, the same on every Linux that Go runs on
	var rss, most, all int
	for i, pid := range l.Pids() {
		used := cpuTicks(t, pid) - ticks[i]
		rss, most, all = max(rss, rssKiB(t, pid)), max(most, used), all+used
	}
	share := func(n int) float64 { return float64(n) / hz / idle.Seconds() }
	t.Logf("largest resident set %.1f MB; of a core: %.2f %% the busiest, %.2f %% the mean", float64(rss)*1024/1e6, 100*share(most), 100*share(all)/float64(*idleWorkers))
	if rss*1024 > 40e6 {
		t.Errorf("resident set of %d KiB, want less than 40 MB", rss)
	}
	if share(all)/float64(*idleWorkers) > 0.01 {
		t.Errorf("an idle worker uses %.2f %% of a core, want less than 1 %%", 100*share(all)/float64(*idleWorkers))
	}
}

// cpuTicks are utime and stime of proc_pid_stat(5), fields 14 and 15.
func cpuTicks(t *testing.T, pid int) int {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	u, _ := strconv.Atoi(string(f[11]))
	s, _ := strconv.Atoi(string(f[12]))
	return u + s
}

func rssKiB(t *testing.T, pid int) int {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(b), "VmRSS:")
	n, err := strconv.Atoi(strings.Fields(after)[0])
	if err != nil {
		t.Fatal(err)
	}
	return n
}
