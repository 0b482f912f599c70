package reports

import (
	"slices"
	"strconv"
	"strings"
)

// Differ is one thing that is not the same on all sides.
type Differ struct {
	What    string   `json:"what"`
	Values  []string `json:"values"`            // by side; several of one side with commas
	Follows bool     `json:"follows,omitempty"` // an outcome, not something that was set
}

// given are the dimensions that somebody chose; settings of Config are such
// too. They tell rows apart where they differ within one side.
var given = []string{"algorithm", "engine", "memory", "mode", "aggregate", "ranks", "nodes", "groups", "hosts"}

// shape are those that say which nodes took part: one thing, not four.
var shape = []string{"ranks", "nodes", "groups", "hosts"}

// outcomes are the dimensions that follow from others, and the version.
var outcomes = []string{"version", "link", "chosen algorithm"}

// heading is what somebody wrote over a log: a name, not a setting.
const heading = "heading"

// unset stands for a setting that a record does not have.
const unset = "(unset)"

// dimension is a record's value of one: of a setting where it has no other
// meaning.
func dimension(r *Result, what string) string {
	switch what {
	case "algorithm":
		return r.wanted()
	case "engine":
		return r.Engine
	case "memory":
		return r.Memory
	case "mode":
		return r.Mode
	case "aggregate":
		return strconv.Itoa(r.Aggregate)
	case "ranks":
		return strconv.Itoa(r.Ranks)
	case "nodes":
		return strconv.Itoa(r.Nodes)
	case "groups":
		return strconv.Itoa(r.Groups)
	case "hosts":
		return strings.Join(r.Hosts, " ")
	case "version":
		return r.Source
	case "link":
		return r.Link
	case "chosen algorithm":
		if r.Auto {
			return r.Algorithm
		}
		return ""
	}
	if v, ok := r.Config[what]; ok {
		if secret(what) {
			return redacted
		}
		return v
	}
	return unset
}

// configured lists the settings of all records.
func configured(sides []Side) []string {
	names := map[string]string{}
	for _, s := range sides {
		for i := range s.Results {
			for k := range s.Results[i].Config {
				if k != heading {
					names[k] = ""
				}
			}
		}
	}
	return sortedKeys(names)
}

// within lists the dimensions that differ within one case of one side.
func within(sides []Side) (apart []string) {
	var first [][]int // by side and record: the first record of its case
	for _, s := range sides {
		at := map[string]int{}
		of := make([]int, len(s.Results))
		for i := range s.Results {
			k := s.Results[i].caseKey()
			if _, ok := at[k]; !ok {
				at[k] = i
			}
			of[i] = at[k]
		}
		first = append(first, of)
	}
	for _, d := range slices.Concat(given, configured(sides)) {
		for i, s := range sides {
			if varies(s.Results, first[i], d) {
				apart = append(apart, d)
				break
			}
		}
	}
	return apart
}

func varies(results []Result, first []int, d string) bool {
	for i := range results {
		if dimension(&results[i], d) != dimension(&results[first[i]], d) {
			return true
		}
	}
	return false
}

// differences names what is not the same on all sides of the rows, and warns
// where a difference cannot be put down to one thing.
func (c *Comparison) differences(sides []Side, cases map[string][][]Result, order, apart []string) {
	for _, d := range slices.Concat(given, configured(sides), outcomes) {
		if slices.Contains(apart, d) {
			continue
		}
		values := make([][]string, len(sides))
		differ := false
		for _, k := range order {
			var first *string
			for i, rs := range cases[k] {
				for j := range rs {
					v := dimension(&rs[j], d)
					values[i] = appendNew(values[i], v)
					if first == nil {
						first = &v
					}
					differ = differ || *first != v
				}
			}
		}
		if !differ {
			continue
		}
		one := Differ{What: d, Follows: slices.Contains(outcomes[1:], d)}
		for _, v := range values {
			one.Values = append(one.Values, strings.Join(v, ", "))
		}
		c.Differ = append(c.Differ, one)
	}
	c.warn(sides)
}

// foreign says why sides have no case in common.
func foreign(sides []Side, cases map[string][][]Result, order, apart []string) string {
	var why []string
	for _, d := range slices.Concat([]string{"op", "scope", "dtype", "size"}, apart) {
		values := make([][]string, len(sides))
		for _, k := range order {
			for i, rs := range cases[k] {
				for j := range rs {
					values[i] = appendNew(values[i], told(fact(&rs[j], d)))
				}
			}
		}
		if slices.ContainsFunc(values[0], func(v string) bool {
			return slices.ContainsFunc(values[1:], func(w []string) bool { return slices.Contains(w, v) })
		}) {
			continue
		}
		text := d + " is "
		for i, v := range values {
			if i > 0 {
				text += " and "
			}
			if len(v) > 5 {
				v = append(v[:5:5], "…")
			}
			text += strings.Join(v, ", ") + " in " + sides[i].Label
		}
		why = append(why, text)
	}
	if why == nil {
		return "no size was measured by the same operation in the same scope on both sides"
	}
	return strings.Join(why, "; ")
}

// told is a value for a sentence, which an unknown one must not leave a hole in.
func told(v string) string {
	if v = name(v); v == "" {
		return "unknown"
	}
	return v
}

func fact(r *Result, d string) string {
	switch d {
	case "op":
		return r.Op
	case "scope":
		return r.Scope
	case "dtype":
		return r.Dtype
	case "size":
		if !r.sized() {
			return ""
		}
		return sizeText(r.asked())
	}
	return dimension(r, d)
}
