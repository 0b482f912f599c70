package worker

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"busbw/coordinator"
)

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
	n := a.readNode(r.Context())
	n.Name = ""
	o := CheckOptions{Watch: watch, Gbps: gbps, KernelLog: KernelLog()}
	f, facts := Inspect(r.Context(), n, o)
	facts["busbw"] = a.opts.Version
	reply(w, coordinator.NodeCheck{Findings: f, Facts: facts, Time: time.Now()})
}
