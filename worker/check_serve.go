package worker

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"busbw/coordinator"
)

// probePatience is how long registering memory may take, the start of a GPU
// driver included.
const probePatience = time.Minute

// check checks the node for a coordinator. The process is the worker's own,
// so that limits are those that runners inherit.
func (a *agent) check(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	watch, err := time.ParseDuration(q.Get("watch"))
	gbps, err2 := strconv.ParseFloat(q.Get("gbps"), 64)
	if err != nil || err2 != nil || watch < 0 || watch > coordinator.MaxWatch || !(gbps >= 0 && gbps < 1e6) {
		refuse(w, http.StatusBadRequest, fmt.Errorf("want watch=0s to %s and gbps=0 or a rate", coordinator.MaxWatch))
		return
	}
	if !a.checking.TryLock() {
		refuse(w, http.StatusConflict, errors.New("the node is being checked already"))
		return
	}
	defer a.checking.Unlock()
	begin(w)
	o := CheckOptions{Watch: watch, Gbps: gbps, KernelLog: KernelLog()}
	probed := make(chan struct{})
	go func() {
		o.Probe(r.Context(), a.opts.Runner, probePatience)
		close(probed)
	}()
	n := a.readNode(r.Context())
	n.Name = ""
	<-probed
	f, facts := Inspect(r.Context(), n, o)
	facts["busbw"] = a.opts.Version
	if i := a.self.Data.Iface; i != "" {
		if b, err := os.ReadFile("/sys/class/net/" + i + "/mtu"); err == nil {
			facts["MTU of the data interface"] = strings.TrimSpace(string(b))
		}
	}
	reply(w, coordinator.NodeCheck{Findings: f, Facts: facts, Time: time.Now()})
}
