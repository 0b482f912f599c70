package accept

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"busbw/collectives"
	"busbw/coordinator/pairs"
	"busbw/reports"
)

// band is how close above a limit is a warning (Azure's practice).
const band = 0.05

// PairLimits are a profile's limits for pair tests over a link, of a memory and
// with so many bytes; zero where it has none that fit.
func (p *Profile) PairLimits(link, memory string, bytes int64) pairs.Limits {
	var l pairs.Limits
	if p == nil {
		return l
	}
	for _, x := range p.Limits {
		if (x.Link != "" && x.Link != link) || !memoryIs(x.Memory, memory) || int64(x.Bytes) > bytes {
			continue
		}
		switch x.Test {
		case "pair":
			l.GBps = x.value()
			l.Source = p.Name + ": " + x.Source
		case "pair both ways":
			l.BothGBps = x.value()
			l.Source = cmp.Or(l.Source, p.Name+": "+x.Source)
		}
	}
	return l
}

// limits judges every limit of the profile: pass, warn or fail where it was
// measured, unknown where it was not.
func (in *Input) limits() (out []reports.Finding) {
	for _, l := range in.Profile.Limits {
		op, err := collectives.ParseOp(l.Test)
		if err != nil {
			if f := in.otherLimit(l); f != nil {
				out = append(out, *f)
			}
			continue
		}
		found := false
		for i := range in.Results {
			r := &in.Results[i]
			if !l.fits(r) {
				continue
			}
			found = true
			out = append(out, in.against(l, r, op)...)
		}
		if !found {
			out = append(out, l.unmeasured("not measured"))
		}
	}
	return out
}

// fits says whether a result was measured as the limit was.
func (l *Limit) fits(r *reports.Result) bool {
	return r.Op == l.Test && r.Scope == l.Scope && memoryIs(l.Memory, r.Memory) && (l.Engine == "" || l.Engine == r.Engine) &&
		(l.Link == "" || l.Link == r.Link) && (l.Ranks == 0 || l.Ranks == r.Ranks) && r.Nodes >= l.Nodes && r.Bytes >= int64(l.Bytes) &&
		r.Error == "" && len(r.Seconds) > 0
}

// how says in what way a limit is measured.
func (l *Limit) how() string {
	s := l.Test
	for _, x := range []string{l.Scope, l.Memory, l.Engine, l.Link} {
		if x != "" {
			s += ", " + x
		}
	}
	if l.Ranks > 0 {
		s += fmt.Sprintf(", %d ranks", l.Ranks)
	}
	if l.Nodes > 0 {
		s += fmt.Sprintf(", %d nodes or more", l.Nodes)
	}
	if l.Bytes > 0 {
		s += fmt.Sprintf(", %s or more", l.Bytes)
	}
	return s
}

func (l *Limit) unmeasured(why string) reports.Finding {
	return reports.Finding{ID: "limit", Verdict: reports.Unknown, Subject: l.how(), Got: why, Want: l.want()}
}

func (l *Limit) want() string { return l.Text() + " (" + l.Source + ")" }

// against judges a result by a limit: each node by itself where the groups are
// nodes, else the set.
func (in *Input) against(l Limit, r *reports.Result, op collectives.Op) (out []reports.Finding) {
	if l.Scope != "intra" {
		if v, ok := busbw(op, r.Ranks, r.Bytes, reports.Median(r.Seconds)); ok {
			out = append(out, l.finding("", v))
		}
		return out
	}
	for g, v := range groups(r, op) {
		if g < len(r.Hosts) && v > 0 {
			out = append(out, l.finding(r.Hosts[g], v))
		}
	}
	return out
}

// finding compares GB/s, or seconds, with the limit.
func (l *Limit) finding(node string, v float64) reports.Finding {
	f := reports.Finding{ID: "limit", Verdict: reports.Pass, Node: node, Subject: l.how(), Got: speed(v), Want: l.want()}
	want := l.value()
	switch {
	case l.AtMost > 0:
		f.Got = fmt.Sprintf("%.1f µs", v*1e6)
		if v > want {
			f.Verdict = reports.Fail
		}
	case v < want:
		f.Verdict = reports.Fail
	case v < want*(1+band):
		f.Verdict = reports.Warn
		f.Remedy = "it is within 5 % above the limit: compare with its twins"
	}
	if f.Verdict == reports.Fail {
		f.Remedy = "see the diagnosis; is the profile the right one for this hardware?"
	}
	return f
}

// otherLimit judges limits of tests that are no collective. Pairs have been
// judged by their own report.
func (in *Input) otherLimit(l Limit) *reports.Finding {
	switch l.Test {
	case "pair", "pair both ways":
		if in.Table != nil && (l.Link == "" || l.Link == in.link()) && memoryIs(l.Memory, in.memory()) {
			return nil
		}
		why := "no pair was measured"
		if in.Table != nil {
			why = fmt.Sprintf("pairs were measured over %s in %s memory", in.link(), in.memory())
		}
		f := l.unmeasured(why)
		return &f
	case "pair latency":
		f := l.unmeasured("the limit is that of a bare RDMA write; busbw link measures it")
		return &f
	}
	if slices.ContainsFunc(in.Results, func(r reports.Result) bool { return l.ofDevice(&r) }) {
		return nil // judged with the devices
	}
	f := l.unmeasured("no device was tested so")
	return &f
}

// link and memory of the pair tests.
func (in *Input) link() string {
	for _, r := range in.Results {
		if r.Scope == pairs.Scope && r.Link != "" {
			return r.Link
		}
	}
	return "an unknown link"
}

func (in *Input) memory() string {
	for _, r := range in.Results {
		if r.Scope == pairs.Scope {
			return r.Memory
		}
	}
	return "host"
}

// busbw of n ranks, GB/s; ok is false where it means nothing.
func busbw(op collectives.Op, n int, bytes int64, seconds float64) (float64, bool) {
	factor, ok := op.BusFactor(n)
	if !ok || !(seconds > 0) || bytes == 0 {
		return 0, false
	}
	return factor * float64(bytes) / seconds / 1e9, true
}

// groups is the busbw of each group of a result, by its slowest rank; 0 where
// it is not known.
func groups(r *reports.Result, op collectives.Op) (out []float64) {
	if len(r.RankP50) != r.Ranks*r.Groups || r.Ranks < 2 {
		return nil
	}
	for g := range r.Groups {
		v, _ := busbw(op, r.Ranks, r.Bytes, slices.Max(r.RankP50[g*r.Ranks:(g+1)*r.Ranks]))
		out = append(out, v)
	}
	return out
}

// Peers that are as good as each other scatter by next to nothing: 5 % below
// the median and 3.5 robust standard deviations is odd, among five or more.
const (
	oddShare = 0.05
	oddDev   = 3.5
	fewest   = 5
)

// peers compares nodes that did the same thing at the same time with each other.
func (in *Input) peers() (out []reports.Finding) {
	for i := range in.Results {
		r := &in.Results[i]
		op, err := collectives.ParseOp(r.Op)
		if err != nil || r.Error != "" || r.Scope != "intra" && r.Scope != "blocks" || r.Scope == "intra" && r.Groups != len(r.Hosts) {
			continue
		}
		vs := groups(r, op)
		if len(vs) == 0 {
			continue
		}
		mid := reports.Median(vs)
		var dev []float64
		for _, v := range vs {
			dev = append(dev, max(v-mid, mid-v))
		}
		reach := max(oddShare*mid, oddDev*1.4826*reports.Median(dev))
		if r.Scope == "blocks" {
			out = append(out, oddBlocks(r, vs, mid, reach)...)
			continue
		}
		for g, v := range vs {
			f := reports.Finding{ID: "node-speed", Verdict: reports.Pass, Node: r.Hosts[g], Subject: fmt.Sprintf("%s inside the node, %s", r.Op, Size(r.Bytes)),
				Got: speed(v), Want: fmt.Sprintf("at least %.2f GB/s: the median of %d nodes is %.2f GB/s", mid-reach, len(vs), mid)}
			if reach > 0.25*mid {
				f.Verdict = reports.Unknown
				f.Want = agreeing(vs, reach/mid)
			} else if len(vs) < fewest {
				f.Want = fmt.Sprintf("no limit in the profile, and %d nodes are no measure of each other", len(vs))
			} else if v < mid-reach {
				f.Verdict = reports.Fail
				f.Remedy = "something inside this node is slower than in its twins: NVLink, PCIe, clocks or memory"
			}
			out = append(out, f)
		}
	}
	return out
}

// agreeing is what figures that scatter too much should be; beyond is the share
// below their median from which one would be odd.
func agreeing(vs []float64, beyond float64) string {
	return fmt.Sprintf("figures that agree: these %d are from %.2f to %.2f GB/s, among which only one %.0f %% below their median would be odd", len(vs), slices.Min(vs), slices.Max(vs), 100*beyond)
}

// oddBlocks are blocks of nodes that are slower together than other blocks of
// as many: their nodes passed alone and in pairs, so no single one is blamed.
func oddBlocks(r *reports.Result, vs []float64, mid, reach float64) (out []reports.Finding) {
	if len(vs) < fewest {
		return nil
	}
	k := 1 // nodes of a block: a power of two; some nodes may fill none
	for 2*k*r.Groups <= len(r.Hosts) {
		k *= 2
	}
	for g, v := range vs {
		if reach > 0.25*mid || v >= mid-reach || (g+1)*k > len(r.Hosts) {
			continue
		}
		out = append(out, reports.Finding{ID: "block-speed", Verdict: reports.Warn, Subject: fmt.Sprintf("%s over %s", r.Op, strings.Join(r.Hosts[g*k:(g+1)*k], ", ")), Got: speed(v),
			Want: fmt.Sprintf("at least %.2f GB/s: the median of %d blocks is %.2f GB/s", mid-reach, len(vs), mid), Remedy: "measure these nodes in other blocks; what they share may be slow (a leaf)"})
	}
	return out
}
