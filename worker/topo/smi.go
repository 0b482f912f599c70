package topo

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"busbw/reports"
)

// Bounds of a captured matrix.
const (
	maxCapture = 1 << 20 // bytes
	maxColumns = 256
)

// ErrNoMatrix: the text holds no output of nvidia-smi topo -m.
var ErrNoMatrix = errors.New("there is no topology matrix in it (the output of nvidia-smi topo -m begins with a line of GPU0 GPU1 …)")

var (
	escapes    = regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]") // newer versions underline the header
	pathWord   = regexp.MustCompile(`^(X|NV[0-9]{1,3}|PIX|PXB|PHB|NODE|SYS|SOC)$`)
	deviceName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]{0,63}$`)
	kernelList = regexp.MustCompile(`^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$`)
)

// ParseSMI reads the output of nvidia-smi topo -m. What stands around it is
// passed over.
func ParseSMI(name string, r io.Reader) (reports.Topology, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxCapture+1))
	if err != nil {
		return reports.Topology{}, err
	}
	if len(b) > maxCapture {
		return reports.Topology{}, fmt.Errorf("longer than %d bytes: too long for a topology matrix", maxCapture)
	}
	var columns []string
	rows := map[string][]string{}
	call := map[string]string{} // NIC0 → mlx5_0
	for line := range strings.Lines(escapes.ReplaceAllString(string(b), "")) {
		f := strings.Fields(line)
		switch {
		case columns == nil:
			columns = header(f)
		case len(f) == 2 && strings.HasSuffix(f[0], ":") && strings.HasPrefix(f[0], "NIC") && deviceName.MatchString(f[1]):
			call[strings.TrimSuffix(f[0], ":")] = f[1]
		case len(f) > len(columns) && slices.Contains(columns, f[0]):
			if rows[f[0]] == nil {
				rows[f[0]] = f[1:]
			}
		}
	}
	if len(columns) == 0 {
		return reports.Topology{}, ErrNoMatrix
	}
	return fromMatrix(name, columns, rows, call)
}

// header is the devices of a header line, nil where it is none: that of
// nvidia-smi topo -p2p, for one, has no column for CPU affinity.
func header(f []string) (columns []string) {
	end := slices.Index(f, "CPU")
	if end < 1 {
		return nil
	}
	for _, s := range f[:end] {
		if !deviceName.MatchString(s) {
			return nil
		}
		columns = append(columns, s)
	}
	if columns[0] != "GPU0" || len(columns) > maxColumns {
		return nil
	}
	return columns
}

func fromMatrix(name string, columns []string, rows map[string][]string, call map[string]string) (reports.Topology, error) {
	t := reports.Topology{Node: name}
	var order []string // GPUs first
	for _, gpus := range []bool{true, false} {
		for _, c := range columns {
			if strings.HasPrefix(c, "GPU") != gpus {
				continue
			}
			order = append(order, c)
			if !gpus {
				n := reports.NIC{Name: c, RDMA: true}
				if s := call[c]; s != "" {
					n.Name = s
				}
				t.NICs = append(t.NICs, n)
				continue
			}
			g := reports.GPU{Index: len(t.GPUs), Vendor: "nvidia"}
			if row := rows[c]; len(row) > len(columns) && kernelList.MatchString(row[len(columns)]) {
				g.CPUs = row[len(columns)]
				if len(row) > len(columns)+1 {
					if n, err := strconv.Atoi(row[len(columns)+1]); err == nil && n >= 0 {
						g.NUMA = &n
					}
				}
			}
			t.GPUs = append(t.GPUs, g)
		}
	}
	at := map[string]int{}
	for i, c := range columns {
		if _, twice := at[c]; twice {
			return reports.Topology{}, fmt.Errorf("the matrix names %s twice", c)
		}
		at[c] = i
	}
	for i, a := range order {
		row := make([]string, len(order))
		for j, b := range order {
			w := Unknown
			if r := rows[a]; r != nil {
				w = r[at[b]]
			}
			if w == "SOC" { // what SYS was called before 2018
				w = SYS
			}
			if w != Unknown && !pathWord.MatchString(w) {
				return reports.Topology{}, fmt.Errorf("from %s to %s the matrix says %.20q: want one of X, NV#, PIX, PXB, PHB, NODE, SYS", a, b, w)
			}
			if (w == Self) != (i == j) && w != Unknown {
				return reports.Topology{}, fmt.Errorf("from %s to %s the matrix says %s", a, b, w)
			}
			row[j] = w
			if n := links(w); n > 0 && i < j && j < len(t.GPUs) {
				t.Bonds = append(t.Bonds, reports.Bond{A: i, B: j, Links: n})
			}
		}
		t.Paths = append(t.Paths, row)
	}
	for i := range order {
		for j := range order {
			if a, b := t.Paths[i][j], t.Paths[j][i]; a != b && a != Unknown && b != Unknown {
				return reports.Topology{}, fmt.Errorf("the matrix contradicts itself: %s from %s to %s, %s back", a, order[i], order[j], b)
			}
		}
	}
	t.Use = near(t)
	t.Odd = odd(t)
	return t, nil
}
