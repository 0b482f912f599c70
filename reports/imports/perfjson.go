package imports

import (
	"bytes"
	"strings"
)

// perfJSON reads perftest's --out_json, which was not JSON before 2024: keys and
// words without quotes, commas before braces. A reader of "key: value" pairs
// takes both.
func (s *source) perfJSON(text []byte) error {
	st := newLog(s).stream("")
	p := &perftest{line: 1, info: map[string]string{}}
	have := map[string]number{}
	flush := func() {
		size, ok := have["msgsize"]
		if !ok {
			return
		}
		if p.columns == nil {
			p.columns = []string{"#bytes", "#iterations", "BW peak", "BW average", "MsgRate", "t_min", "t_max", "t_typical", "t_avg", "t_stdev", "99%", "99.9%"}
		}
		p.guessUnit(size, have["bwaverage"], have["msgrate"])
		st.keep(&p.rows, []number{size, have["niterations"], have["bwpeak"], have["bwaverage"], have["msgrate"], have["tmin"], have["tmax"],
			have["ttypical"], have["tavg"], have["tstdev"], have["percentile99"], have["percentile999"]})
		clear(have)
	}
	for _, piece := range bytes.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune(",{}[]\n\r", c) }) {
		key, value, ok := strings.Cut(string(piece[:min(len(piece), 300)]), ":")
		if !ok {
			continue
		}
		plain := strings.Map(func(c rune) rune {
			if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
				return c
			}
			return -1
		}, strings.ToLower(key))
		value = strings.Trim(strings.TrimSpace(value), `"`)
		switch plain {
		case "test":
			flush()
			words := strings.ReplaceAll(strings.ReplaceAll(value, "_", " "), "RDMA ", "RDMA_")
			if m := perfTitle.FindStringSubmatch(words); m != nil {
				p.op, p.both = perfOp(m[1], m[3]), m[2] != ""
			}
		case "device", "numberofqps", "mtu", "linktype", "gidindex", "txdepth", "rxdepth", "connectiontype", "transporttype":
			p.info[strings.ToLower(strings.Trim(strings.TrimSpace(key), `"`))] = value
		case "cudadevice", "usecuda":
			p.gpu = "?"
		default:
			if plain == "msgsize" {
				flush()
			}
			if n, ok := parse([]byte(value)); ok && len(have) < maxKept {
				have[plain] = n
			}
		}
	}
	flush()
	if len(p.rows) == 0 {
		s.warn(1, "perftest's report has no result in it")
		return nil
	}
	return p.finish(st)
}

// guessUnit finds out the unit of a report that does not tell it: Gb/s or MiB/s,
// by the message rate.
func (p *perftest) guessUnit(size, average, rate number) {
	if !average.ok || average.v == 0 || p.unitIs != "" {
		return
	}
	p.unit, p.unitIs = perfUnits["Gb"], "Gb/s"
	if by := rate.v * 1e6 * size.v / 1e9; by > 0 && by < 0.5*average.v*p.unit {
		p.unit, p.unitIs = perfUnits["MiB"], "MiB/s"
	}
}
