package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"sync"
	"time"

	"busbw/coordinator"
)

// agent takes one job at a time.
type agent struct {
	opts Options
	self coordinator.Self
	find func(coordinator.Fingerprint) (coordinator.Member, bool) // among the members

	asking   sync.Mutex    // the GPU driver
	patience time.Duration // with it
	checking sync.Mutex    // one check at a time

	mu      sync.Mutex
	job     *job // the latest; finished or not
	closing bool
}

// member is who shows the certificate f. The owner of a running job stays
// known even if gossip has lost sight of it: its event stream and its pings
// decide whether it lives.
func (a *agent) member(f coordinator.Fingerprint) (name string, ok bool) {
	if m, ok := a.find(f); ok {
		return m.String(), true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.job != nil && a.job.owner == f && !a.job.finished() {
		return a.job.ownerName, true
	}
	return "", false
}

func (a *agent) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+coordinator.PathJob, a.start)
	mux.HandleFunc("GET "+coordinator.PathJob+"/{id}/events", a.owned(a.events))
	mux.HandleFunc("POST "+coordinator.PathJob+"/{id}/command", a.owned(a.command))
	mux.HandleFunc("DELETE "+coordinator.PathJob+"/{id}", a.owned(a.remove))
	mux.HandleFunc("GET "+coordinator.PathNode, a.node)
	mux.HandleFunc("GET "+coordinator.PathTopo, a.topology)
	mux.HandleFunc("GET "+coordinator.PathCheck, a.check)
	mux.HandleFunc("GET "+coordinator.PathTime, func(w http.ResponseWriter, _ *http.Request) {
		reply(w, map[string]time.Time{"time": time.Now()})
	})
	// A connection outlives the handshake that let it in, and maybe its
	// owner's membership: every request is checked.
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f, ok := coordinator.PeerFingerprint(r.TLS)
		if ok {
			_, ok = a.member(f)
		}
		if !ok {
			refuse(w, http.StatusForbidden, coordinator.ErrUnknownMember)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// idForm is what a job may be called.
var idForm = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// start starts the runner of a plan.
func (a *agent) start(w http.ResponseWriter, r *http.Request) {
	var p coordinator.Plan
	if err := read(w, r, &p); err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	id := coordinator.JobID(p)
	if !idForm.MatchString(id) || p.Node < 0 || p.Node >= len(p.Nodes) {
		refuse(w, http.StatusBadRequest, fmt.Errorf("plan %q for node %d of %d: not valid", id, p.Node, len(p.Nodes)))
		return
	}
	choice, err := a.pick(p.Settings)
	if err != nil {
		refuse(w, http.StatusUnprocessableEntity, err)
		return
	}
	p.Nodes[p.Node].Addr = choice.Addr.String()
	f, _ := coordinator.PeerFingerprint(r.TLS)
	name, _ := a.member(f)

	a.mu.Lock()
	defer a.mu.Unlock()
	if a.job != nil && a.job.stopping() {
		a.job.wait(2 * stopPatience) // SIGKILL comes after stopPatience
	}
	switch {
	case a.closing:
		refuse(w, http.StatusServiceUnavailable, errors.New("the worker is stopping"))
		return
	case a.job != nil && !a.job.finished():
		j := a.job
		refuse(w, http.StatusConflict, fmt.Errorf("busy with job %s of %s since %s (%s)", j.id, j.ownerName, j.since.Format(time.TimeOnly), time.Since(j.since).Round(time.Second)))
		return
	}
	j, err := startJob(id, a.opts.Runner, p)
	if err != nil {
		refuse(w, http.StatusInternalServerError, err)
		return
	}
	j.owner, j.ownerName = f, name
	a.job = j
	reply(w, coordinator.Accepted{Job: id, Data: choice.DataAddr, Why: choice.Why})
}

// pick is the node's data address under a plan's settings: the one that
// gossip tells, unless the settings name interfaces or a family.
func (a *agent) pick(settings map[string]string) (coordinator.Choice, error) {
	w := coordinator.Want{Names: settings["NCCL_SOCKET_IFNAME"], Family: settings["NCCL_SOCKET_FAMILY"], Toward: a.self.Toward}
	if w.Names == "" && w.Family == "" {
		return a.self.Choice, nil
	}
	ifs, err := coordinator.Interfaces()
	if err != nil {
		return coordinator.Choice{}, err
	}
	return coordinator.Pick(ifs, w)
}

// owned finds the job of the path and lets only its owner through.
func (a *agent) owned(do func(http.ResponseWriter, *http.Request, *job)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		j := a.job
		a.mu.Unlock()
		f, _ := coordinator.PeerFingerprint(r.TLS)
		switch {
		case j == nil || j.id != r.PathValue("id"):
			refuse(w, http.StatusNotFound, errors.New("no such job here (was it stopped?)"))
		case j.owner != f:
			refuse(w, http.StatusForbidden, fmt.Errorf("job %s belongs to %s", j.id, j.ownerName))
		default:
			j.heardOwner()
			do(w, r, j)
		}
	}
}

// command passes a command to the runner.
func (a *agent) command(w http.ResponseWriter, r *http.Request, j *job) {
	var c coordinator.Command
	if err := read(w, r, &c); err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	if c.Kind != coordinator.KindPing {
		if err := j.send(c); err != nil {
			refuse(w, http.StatusGone, err)
			return
		}
	}
	w.WriteHeader(http.StatusNoContent)
}

// remove stops the job and answers when its runner is gone.
func (a *agent) remove(w http.ResponseWriter, _ *http.Request, j *job) {
	j.stop("its coordinator ended it")
	w.WriteHeader(http.StatusNoContent)
}

// events relays the job's events. The reader is the owner's life line: when
// it goes, the runner is stopped.
func (a *agent) events(w http.ResponseWriter, r *http.Request, j *job) {
	if !j.take() {
		refuse(w, http.StatusConflict, fmt.Errorf("the events of job %s are being read already", j.id))
		return
	}
	rc := http.NewResponseController(w)
	w.Header().Set("Content-Type", "application/x-ndjson")
	enc := json.NewEncoder(w)
	write := func(e coordinator.Event) bool {
		rc.SetWriteDeadline(time.Now().Add(coordinator.OwnerGone))
		return enc.Encode(e) == nil && rc.Flush() == nil
	}
	alive := time.NewTicker(coordinator.AliveEvery)
	defer alive.Stop()
	ok := write(coordinator.Event{Kind: coordinator.EventAlive})
	for ok {
		select {
		case e := <-j.events:
			ok = write(e)
		case <-j.done:
			for len(j.events) > 0 && write(<-j.events) {
			}
			return
		case <-alive.C:
			ok = write(coordinator.Event{Kind: coordinator.EventAlive})
		case <-r.Context().Done():
			ok = false
		}
	}
	j.stop("its coordinator's connection ended")
}

func (a *agent) stopAll(why string) {
	a.mu.Lock()
	a.closing = true
	j := a.job
	a.mu.Unlock()
	if j != nil {
		j.stop(why)
	}
}

// read decodes a bounded body that must come soon.
func read(w http.ResponseWriter, r *http.Request, into any) error {
	http.NewResponseController(w).SetReadDeadline(time.Now().Add(10 * time.Second))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, coordinator.MaxBody))
	if err != nil {
		return fmt.Errorf("body: %w", err)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("body: %w", err)
	}
	return nil
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(v) // a client that is gone needs no answer
}

// begin tells the client that an answer will come, however long it takes: one
// that hears nothing takes the worker for stopped.
func begin(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	http.NewResponseController(w).Flush() // a client that is gone needs no answer
}

func refuse(w http.ResponseWriter, status int, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(coordinator.Refusal{Error: err.Error()})
}
