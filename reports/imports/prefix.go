package imports

import (
	"bytes"
	"encoding/json"
	"regexp"
)

// What launchers, container engines and people put before a line. A tag names
// the process; lines of one process stay together by it.

var (
	escapes   = regexp.MustCompile("\x1b(?:\\[[0-9;?]*[A-Za-z]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)|[()][0-9A-B]|[=>78])") // ECMA-48, and xterm's titles
	clock     = regexp.MustCompile(`^\[?(?:\d{4}[-/]\d\d[-/]\d\d[T ]?)?(?:\d\d:\d\d:\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?\]?(?:\s+(?:stdout|stderr)\s+[FP])?\s+`)
	syslog    = regexp.MustCompile(`^[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S+ [\w./-]+(?:\[\d+\])?: `)
	kubectl   = regexp.MustCompile(`^\[(pod/[^\]]{1,250})\] `)
	hydra     = regexp.MustCompile(`^\[((?:rank|default)?\d{1,7})\](?:: ?| )`)
	srunLabel = regexp.MustCompile(`^(\d{1,7}): ?`)
	rayLabel  = regexp.MustCompile(`^\(([^()]{0,100}pid=\d+[^()]{0,100})\) `)
)

// strip takes prefixes off a line and returns the process's tag, "" where none.
func strip(line []byte) (tag string, rest []byte) {
	if i := bytes.IndexByte(line, 0x1b); i >= 0 {
		line = escapes.ReplaceAll(line, nil)
	}
	if bytes.Contains(line, []byte("\u00a0")) { // blanks of a web page
		line = bytes.ReplaceAll(line, []byte("\u00a0"), []byte(" "))
	}
	line = bytes.TrimRight(line, " \t")
	if len(line) > 0 && line[0] == '{' {
		line = unquote(line)
	}
	if len(line) > 3 && line[0] == 'b' && (line[1] == '\'' || line[1] == '"') && line[len(line)-1] == line[1] { // bytes, as Python shows them
		line = bytes.TrimSuffix(line[2:len(line)-1], []byte(`\n`))
	}
	// Open MPI tags every piece that a process writes, so also inside a line.
	if name, start, end := outputTag(line); end > 0 {
		tag = string(name)
		rest := line[end:]
		for {
			_, start, end := outputTag(rest)
			if end == 0 {
				break
			}
			rest = append(bytes.Clone(rest[:start]), rest[end:]...)
		}
		if before := bytes.TrimLeft(line[:start], " \t>"); len(before) > 0 && !clock.Match(append(bytes.Clone(before), ' ')) && looksOurs(before) {
			rest = append(bytes.Clone(before), rest...)
		}
		line = rest
	}
	for range 5 {
		t := bytes.TrimLeft(line, " \t")
		if len(t) == 0 {
			return tag, t
		}
		if t[0] == '"' && len(t) > 1 && (t[len(t)-1] == '"' || bytes.HasSuffix(t, []byte(`",`))) { // a quoted list's line
			line = bytes.TrimRight(bytes.TrimSuffix(bytes.TrimSuffix(t[1:], []byte(",")), []byte(`"`)), " \t")
			continue
		}
		cut, name := prefix(t)
		if cut == 0 {
			return tag, unknownPrefix(t)
		}
		if name != "" {
			tag = name
		}
		line = t[cut:]
	}
	return tag, bytes.TrimLeft(line, " \t")
}

// outputTag finds the first "[name]<stdout>: " or "[name]<stderr>: "; end is 0
// where there is none.
func outputTag(line []byte) (name []byte, start, end int) {
	for from := 0; ; {
		i := bytes.Index(line[from:], []byte("]<std"))
		if i < 0 {
			return nil, 0, 0
		}
		i += from
		from = i + 1
		start = bytes.LastIndexByte(line[:i], '[')
		if start < 0 || i-start < 2 || i-start > 81 || bytes.ContainsAny(line[start+1:i], "]<>") {
			continue
		}
		rest := line[i+5:]
		if !bytes.HasPrefix(rest, []byte("out>:")) && !bytes.HasPrefix(rest, []byte("err>:")) {
			continue
		}
		end = i + 10
		if end < len(line) && line[end] == ' ' {
			end++
		}
		return line[start+1 : i], start, end
	}
}

// prefix is the length of one prefix of a line without leading blanks, and
// the process that it names.
func prefix(t []byte) (cut int, tag string) {
	switch c := t[0]; {
	case c == '>':
		return 1, ""
	case c == '[':
		if m := kubectl.FindSubmatchIndex(t); m != nil {
			return m[1], string(t[m[2]:m[3]])
		}
		if m := hydra.FindSubmatchIndex(t); m != nil {
			return m[1], string(t[m[2]:m[3]])
		}
		if len(t) > 9 && t[1] >= '0' && t[1] <= '9' {
			if m := clock.FindIndex(t); m != nil {
				return m[1], ""
			}
		}
	case c == '(':
		if m := rayLabel.FindSubmatchIndex(t); m != nil {
			return m[1], string(t[m[2]:m[3]])
		}
	case c >= '0' && c <= '9':
		if len(t) > 8 && (t[2] == ':' || t[4] == '-' || t[4] == '/') {
			if m := clock.FindIndex(t); m != nil && m[1] > 8 {
				return m[1], ""
			}
		}
		if i := bytes.IndexByte(t[:min(len(t), 9)], ':'); i > 0 {
			if m := srunLabel.FindSubmatchIndex(t); m != nil && !bytes.HasPrefix(t[m[1]:], []byte("Test ")) && (m[1] == len(t) || t[m[1]-1] == ' ' || t[m[1]] < '0' || t[m[1]] > '9') {
				return m[1], string(t[m[2]:m[3]])
			}
		}
		if host, cut := hostLabel(t); cut > 0 && looksOurs(t[cut:]) { // an address
			return cut, host
		}
	case c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z':
		if i := bytes.IndexAny(t[:min(len(t), 251)], " :|"); i < 0 || t[i] == ' ' && (len(t) < 7 || t[6] != ' ' && t[3] != ' ') && bytes.IndexByte(t[:min(len(t), 120)], '|') < 0 {
			return 0, ""
		}
		if m := syslog.FindIndex(t); m != nil {
			return m[1], ""
		}
		if host, cut := hostLabel(t); cut > 0 && looksOurs(t[cut:]) {
			return cut, host
		}
	}
	return 0, ""
}

// hostLabel is a name before a colon or a bar, as "host: " and "host  | ".
func hostLabel(t []byte) (host string, cut int) {
	i := 0
	for i < len(t) && i < 250 && (t[i] == '.' || t[i] == '-' || t[i] == '_' || t[i] >= '0' && t[i] <= '9' || t[i] >= 'a' && t[i] <= 'z' || t[i] >= 'A' && t[i] <= 'Z') {
		i++
	}
	rest := bytes.TrimLeft(t[i:], " ")
	if i == 0 || len(rest) == 0 || rest[0] != '|' && (len(rest) < len(t[i:]) || rest[0] != ':') {
		return "", 0
	}
	return string(t[:i]), len(t) - len(rest) + 1
}

// looksOurs says that a text begins as a line of a benchmark's output does:
// with a number sign, or with two whole numbers.
func looksOurs(t []byte) bool {
	t = bytes.TrimLeft(t, " \t")
	if len(t) == 0 {
		return false
	}
	if t[0] == '#' || bytes.HasPrefix(t, []byte("NCCL version")) {
		return true
	}
	var buf [maxFields][]byte
	f := fields(t, buf[:])
	if len(f) < 3 {
		return false
	}
	_, a := integer(f[0])
	_, b := integer(f[1])
	return a && b
}

// unknownPrefix cuts what stands before a number sign that begins a line of
// nccl-tests.
func unknownPrefix(t []byte) []byte {
	i := bytes.IndexByte(t[:min(len(t), 200)], '#')
	if i <= 0 {
		return t
	}
	rest := bytes.TrimLeft(t[i+1:], " \t")
	for _, begin := range [...]string{"Out of bounds", "Avg bus", "Rank ", "nThread", "Using devices", "Collective test", "nccl-tests version", "size ", "bytes "} {
		if bytes.HasPrefix(rest, []byte(begin)) {
			return t[i:]
		}
	}
	return t
}

// unquote is the text in a JSON line of a container engine or a log collector.
func unquote(line []byte) []byte {
	var l struct{ Log, Msg, Message, Line, TextPayload string } // the names in any case
	if json.Unmarshal(line, &l) != nil {
		return line
	}
	for _, text := range [...]string{l.Log, l.Msg, l.Message, l.Line, l.TextPayload} {
		if text != "" {
			return bytes.TrimRight([]byte(text), "\r\n \t")
		}
	}
	return line
}

// collected says that a line is an object of a log collector's, with a line of
// a text in it.
func collected(line []byte) bool {
	return len(line) > 0 && line[0] == '{' && !bytes.Equal(unquote(line), line)
}
