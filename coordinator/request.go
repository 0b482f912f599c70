package coordinator

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"busbw/collectives"
	"busbw/collectives/reduce"
	"busbw/reports"
)

// Request is what a user asks to be measured.
type Request struct {
	Verb       string // busbw command that asks
	Planned    int    // records that the whole run is to have; 0: not known
	Ops        []collectives.Op
	Algorithms []string // names, or "auto"
	Scopes     []string
	Sizes      []int64 // bytes of S, rising
	Dtype      reduce.Dtype
	Redop      reduce.Op
	Root       int
	InPlace    []bool // false: out of place
	Iterations int    // timed, of each size; 0: as many as fit Time
	Time       time.Duration
	Warmup     int // iterations; −1: until two windows agree
	Aggregate  int // collectives in one timed iteration
	Checks     int // rounds of data check of each size; 0: none
	Mode       string
	Rotate     bool              // move through a larger region, so that caches do not flatter
	Huge       bool              // ask for transparent huge pages
	NoGraph    bool              // queue small sizes on GPUs anew each time
	Memory     string            // one of Memories; "": host
	Engines    []string          // of Engines; none: native
	NCCL       map[string]string // environment of the nccl engine
	Timeout    time.Duration
	Rails      []string // RDMA ports that the ranks of a node use in turn; none: each the nearest
	Settings   map[string]string
	Notes      []string // what the environment asked for and cannot apply
}

// Valid finds what is wrong with a request before anything is started.
func (r *Request) Valid() error {
	for _, a := range r.Algorithms {
		if a != "auto" && !known(a) {
			return fmt.Errorf("unknown algorithm %q; the algorithms are auto, %s", a, strings.Join(Algorithms(), ", "))
		}
	}
	for _, s := range r.Scopes {
		if !slices.Contains(Scopes(), s) {
			return fmt.Errorf("unknown scope %q; the scopes are %s", s, strings.Join(Scopes(), ", "))
		}
	}
	for _, e := range r.Engines {
		if !slices.Contains(Engines(), e) {
			return fmt.Errorf("unknown engine %q; the engines are %s", e, strings.Join(Engines(), ", "))
		}
	}
	if r.OnNCCL() && r.Memory == "host" {
		return fmt.Errorf("--engine nccl needs GPU memory: leave out --memory host")
	}
	if r.Memory != "" && !slices.Contains(Memories(), r.Memory) {
		return fmt.Errorf("unknown memory %q; want %s", r.Memory, strings.Join(Memories(), ", "))
	}
	for _, op := range r.Ops {
		if _, err := Allowed(r.Settings["NCCL_ALGO"], op); err != nil {
			return err
		}
	}
	switch {
	case len(r.Ops) == 0 || len(r.Algorithms) == 0 || len(r.Scopes) == 0:
		return fmt.Errorf("give at least one operation, one algorithm and one scope")
	case r.Iterations < 0 || r.Iterations > 1_000_000:
		return fmt.Errorf("-n %d: want 0 to 1000000 iterations", r.Iterations)
	case r.Warmup < -1 || r.Warmup > 1_000_000:
		return fmt.Errorf("-w %d: want -1 to 1000000 iterations", r.Warmup)
	case r.Aggregate < 1 || r.Aggregate > 100_000:
		return fmt.Errorf("-m %d: want 1 to 100000 collectives", r.Aggregate)
	case r.Checks < 0 || r.Checks > 1000:
		return fmt.Errorf("-c %d: want 0 to 1000 rounds", r.Checks)
	case r.Root < 0:
		return fmt.Errorf("-r %d: want a rank, 0 or more", r.Root)
	case r.Time <= 0 || r.Timeout < 0:
		return fmt.Errorf("--time must be above 0 and --timeout not negative")
	}
	return nil
}

// RailsKey is where Settings keep the rails that were asked for, for the record.
const RailsKey = "rails"

// Case is one line of the results to be: everything but the measurement.
type Case struct {
	scope   string
	op      collectives.Op
	algo    string // as run
	nccl    bool   // on NCCL, which chooses its own
	auto    bool
	bytes   int64 // asked for; count decides
	count   int64
	inPlace bool
	groups  [][]int
	apart   bool           // the groups are the case's own, not those of the scope
	pairs   []reports.Pair // of scope "pairs": what each group is
	params  collectives.Params
	pieces  int
}

// String names a case in messages.
func (c Case) String() string {
	return fmt.Sprintf("%s %s %s of %d B", c.scope, c.op, c.algo, c.bytes)
}

// Key tells the cases of a run apart, so that an interrupted one can go on
// where it stopped, even if it is asked for something else the second time.
func Key(r reports.Result) string {
	root := -1
	if r.Root != nil {
		root = *r.Root
	}
	return fmt.Sprintf("%d %s %s %s %s %t %s %s %d %d %d %d %t %s %d", r.Launch, r.Memory, r.Scope, r.Op, r.Algorithm, r.Auto, r.Dtype, r.Redop, root, r.Ranks, r.Nodes, r.Bytes, r.InPlace, r.Mode, r.Aggregate)
}

// Resumable says why busbw run cannot go on from a file's records: another
// command wrote them, or several runs did.
func Resumable(kept []reports.Result) error {
	for _, r := range kept {
		switch {
		case r.Verb == "" && r.Source != "":
			return fmt.Errorf("no busbw run says that it wrote it (source: %.60q)", r.Source)
		case r.Verb != "run":
			return fmt.Errorf("busbw %.20s wrote it, not busbw run", r.Verb)
		case r.Run != kept[0].Run:
			return fmt.Errorf("it holds several runs (%.20q and %.20q)", kept[0].Run, r.Run)
		}
	}
	return nil
}

// Resumes says why a run cannot go on from a result that it kept: what is
// measured on other machines or under other settings is another run, and one
// table of both would lie.
func Resumes(kept reports.Result, nodes []PlanNode, values map[string]string) error {
	var hosts []string
	for _, n := range nodes {
		hosts = append(hosts, n.Host)
	}
	if !slices.Equal(kept.Hosts, hosts) {
		return fmt.Errorf("it was measured on %s, and this cluster is %s", strings.Join(kept.Hosts, ", "), strings.Join(hosts, ", "))
	}
	if had, have := kept.Ranks*kept.Groups, total(nodes); had != have {
		return fmt.Errorf("it was measured with %d ranks, and this cluster has %d", had, have)
	}
	for _, s := range append(settings(), setting{name: RailsKey}) {
		if a, b := kept.Config[s.name], values[s.name]; a != b {
			return fmt.Errorf("it was measured with %s=%q, and now it is %q", s.name, a, b)
		}
	}
	return nil
}

// Cases lists what the request means on these nodes, in the order in which it
// is measured; notes tell what is left out and why. An error means that
// nothing of the request can run as asked.
func (r *Request) Cases(nodes []PlanNode) (cases []Case, notes []string, err error) {
	for _, scope := range r.Scopes {
		groups, err := Groups(scope, nodes)
		if err != nil {
			return nil, nil, err
		}
		if why := pointless(scope, nodes); why != "" {
			if len(r.Scopes) > 1 {
				notes = append(notes, why)
				continue
			}
			notes = append(notes, why+"; one rank alone has no bandwidth")
		}
		for _, op := range r.Ops {
			if op.Rooted() && r.Root >= len(groups[0]) {
				return nil, nil, fmt.Errorf("root %d: scope %s has ranks 0 to %d", r.Root, scope, len(groups[0])-1)
			}
			cs, ns, err := r.ofOp(scope, op, groups, nodes)
			if err != nil {
				return nil, nil, err
			}
			cases = append(cases, r.onEngines(cs)...)
			for _, n := range ns {
				if !slices.Contains(notes, n) {
					notes = append(notes, n)
				}
			}
		}
	}
	if len(cases) == 0 {
		return nil, notes, fmt.Errorf("nothing to measure: %s", strings.Join(notes, "; "))
	}
	return cases, notes, nil
}

// pointless says why a scope has no pair of ranks that could talk.
func pointless(scope string, nodes []PlanNode) string {
	switch {
	case scope == "intra" && nodes[0].Ranks < 2:
		return "scope intra needs two ranks on a node, and each node has one"
	case scope == "cross" && len(nodes) < 2:
		return "scope cross needs two nodes, and there is one"
	}
	return ""
}

func (r *Request) ofOp(scope string, op collectives.Op, groups [][]int, nodes []PlanNode) (cases []Case, notes []string, err error) {
	n := len(groups[0])
	p := collectives.Params{Ranks: n, Root: r.Root, Nodes: make([]int, n), Channels: number(r.Settings, "NCCL_MIN_CTAS")}
	for i, g := range groups[0] {
		p.Nodes[i] = NodeOf(nodes, g)
	}
	shm := r.Settings["NCCL_SHM_DISABLE"] != "1"
	local := shm && !slices.ContainsFunc(p.Nodes, func(x int) bool { return x != p.Nodes[0] })
	allowed, err := Allowed(r.Settings["NCCL_ALGO"], op)
	if err != nil {
		return nil, nil, err
	}
	ran := 0
	for _, name := range r.Algorithms {
		algo := name
		if name != "auto" {
			if algo, err = collectives.Resolve(op, name); err != nil {
				notes = append(notes, err.Error())
				continue
			}
			if algo != name {
				notes = append(notes, fmt.Sprintf("%s of %s is called %s here", name, op, algo))
			}
		}
		ran++
		for _, bytes := range r.Sizes {
			c := Case{scope: scope, op: op, algo: algo, auto: name == "auto", bytes: bytes, groups: groups, params: p}
			c.count = count(op, bytes, int64(r.Dtype.Size()), int64(n))
			if c.count == 0 && bytes > 0 {
				notes = append(notes, fmt.Sprintf("%s of %d B is left out: %d ranks need at least %d B", op, bytes, n, smallest(op, r.Dtype, n)))
				continue
			}
			size := c.count * int64(r.Dtype.Size())
			if c.auto {
				c.algo = pick(op, p, size, local, allowed)
			}
			c.pieces = collectives.Pieces(op, c.algo, p, size, int64(number(r.Settings, "NCCL_BUFFSIZE"))/8)
			c.pieces = max(c.pieces, p.Channels)
			for _, in := range r.InPlace {
				if in && !op.HasInPlace() {
					continue
				}
				c.inPlace = in
				cases = append(cases, c)
			}
		}
	}
	if ran == 0 {
		return nil, nil, fmt.Errorf("%s", strings.Join(notes, "; "))
	}
	return cases, notes, nil
}

// pick is auto's choice, held to what NCCL_ALGO allows.
func pick(op collectives.Op, p collectives.Params, size int64, local bool, allowed []string) string {
	a := collectives.Auto(op, p, size, local)
	if allowed == nil || slices.Contains(allowed, a) {
		return a
	}
	return allowed[0]
}

// count is the elements of S for a size in bytes. Blocked operations get equal
// blocks of a multiple of 16 bytes, as nccl-tests has rounded since 2.13.12.
func count(op collectives.Op, bytes, elem, n int64) int64 {
	if !op.Blocked() {
		return bytes / elem
	}
	block := bytes / n
	if block >= 16 {
		block -= block % 16
	}
	return block / elem * n
}

func smallest(op collectives.Op, d reduce.Dtype, n int) int {
	if op.Blocked() {
		return n * d.Size()
	}
	return d.Size()
}

func known(name string) bool { return slices.Contains(Algorithms(), name) }

// Algorithms lists the name of every algorithm of every operation once.
func Algorithms() []string {
	var all []string
	for _, op := range collectives.Ops() {
		for _, a := range collectives.Algorithms(op) {
			if !slices.Contains(all, a) {
				all = append(all, a)
			}
		}
	}
	return all
}
