package capture

import (
	"iter"
	"regexp"
	"slices"
	"strings"
)

// maxLine is how much of a line is looked at; outputs have no longer ones.
const maxLine = 16 << 10

// section is what belongs to one node, or to one heading.
type section struct {
	node  string
	head  string // the heading as it stands
	lines []string
}

func (s section) text() string { return strings.Join(s.lines, "\n") }

// lines are a text's lines without their ends, each cut to a bounded length.
func lines(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for l := range strings.Lines(text) {
			l = strings.TrimRight(l, "\r\n")
			if len(l) > maxLine {
				l = l[:maxLine]
			}
			if !yield(l) {
				return
			}
		}
	}
}

var (
	colour  = regexp.MustCompile("\x1b\\[[0-9;?]*[a-zA-Z]")
	heading = regexp.MustCompile(`^(?:#{2,}\s*(\S.*?)\s*#*|={3,}\s*([^\s=].*?)\s*=*|\*{3,}\s*([^\s*].*?)\s*\**|-{3,}\s+([^\s-].*?)\s+-{3,})$`)
	ruler   = regexp.MustCompile(`^-{5,}$`)
	// a heading that names a program or file and not a node
	program = regexp.MustCompile(`(?i)^(\$|/|ib|nvidia|lspci|dmesg|lsmod|ulimit|show_gids|mlx|ethtool|perfquery|cat |sys|proc|rdma|numactl|uname|cpu|memory|host |hosts|network|gpu[ :]|pci|kernel|log)`)
	// "node1: text", as pdsh and clush print
	prefixed = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9._-]{0,62}):[ \t](.*)$`)
)

// sections splits a text by its headings and by names in front of its lines.
func sections(text string) []section {
	all := slices.Collect(lines(colour.ReplaceAllString(text, "")))
	if split := byPrefix(all); split != nil {
		return split
	}
	out := []section{{}}
	for i, l := range all {
		cur := &out[len(out)-1]
		name := ""
		if l == "" || !strings.ContainsRune("#=*- \t", rune(l[0])) && (i == 0 || !ruler.MatchString(all[i-1])) {
			cur.lines = append(cur.lines, l)
			continue
		}
		if m := heading.FindStringSubmatch(strings.TrimRight(l, " \t")); m != nil && !slices.Contains([]string{"node", "nodes"}, m[1]) {
			name = m[1] + m[2] + m[3] + m[4]
		} else if i > 0 && i+1 < len(all) && ruler.MatchString(all[i-1]) && ruler.MatchString(all[i+1]) && len(strings.Fields(l)) == 1 {
			name = strings.TrimSpace(l) // dshbak
		}
		if name == "" || program.MatchString(name) {
			cur.lines = append(cur.lines, l)
			continue
		}
		out = append(out, section{node: nodeName(name), head: name})
	}
	return out
}

// nodeName is a heading's beginning: "node A   (ibv_devinfo)" → "node A".
func nodeName(s string) string {
	for _, cut := range []string{"  ", "\t", " (", ","} {
		s, _, _ = strings.Cut(s, cut)
	}
	s = strings.TrimSpace(s)
	if f := strings.Fields(s); len(f) > 4 {
		s = f[0]
	}
	return s[:min(len(s), 64)]
}

// byPrefix groups lines by the node's name in front, where nearly all have
// one; nil otherwise.
func byPrefix(all []string) []section {
	var names []string
	by := map[string]*section{}
	hit, full := 0, 0
	for _, l := range all {
		if strings.TrimSpace(l) == "" {
			continue
		}
		full++
		if full == 200 && hit < 100 {
			return nil
		}
		m := prefixed.FindStringSubmatch(l)
		if m == nil {
			continue
		}
		hit++
		if by[m[1]] == nil {
			by[m[1]] = &section{node: m[1]}
			names = append(names, m[1])
		}
		by[m[1]].lines = append(by[m[1]].lines, m[2])
	}
	if hit < 4 || hit*10 < full*9 || hit < 4*len(names) {
		return nil
	}
	var out []section
	for _, n := range names {
		out = append(out, *by[n])
	}
	return out
}

// shorten cuts a line for evidence.
func shorten(s string) string {
	s = strings.TrimSpace(s)
	if len(s) > 300 {
		return strings.ToValidUTF8(s[:300], "") + " …"
	}
	return s
}

// grep is the first line that a pattern matches, and its groups.
func (s section) grep(re *regexp.Regexp) (line string, groups []string) {
	for _, l := range s.lines {
		if m := re.FindStringSubmatch(l); m != nil {
			return l, m
		}
	}
	return "", nil
}
