package topo

// The words of nvidia-smi topo -m for how a path runs, from near to far.
// Unknown is ours: what has no place in the PCI tree has no distance.
const (
	Self    = "X"
	PIX     = "PIX"
	PXB     = "PXB"
	PHB     = "PHB"
	NODE    = "NODE"
	SYS     = "SYS"
	XGMI    = "XGMI" // AMD's Infinity Fabric, where NVIDIA has NV#
	Unknown = "?"
)

// legend explains them as an operator needs them.
var legend = []struct{ word, means string }{
	{Self, "itself"},
	{"NV#", "# NVLinks bonded"},
	{XGMI, "Infinity Fabric (AMD)"},
	{PIX, "at most one PCIe bridge (one switch)"},
	{PXB, "several PCIe bridges, without the host bridge"},
	{PHB, "a PCIe host bridge (the CPU)"},
	{NODE, "several host bridges of one NUMA node"},
	{SYS, "the link between sockets"},
	{Unknown, "not known"},
}

// rank orders the words: the smaller, the nearer; unknown is farthest.
func rank(word string) int {
	for i, w := range []string{Self, XGMI, PIX, PXB, PHB, NODE, SYS} {
		if w == word {
			return i
		}
	}
	if links(word) > 0 {
		return 1
	}
	return 100
}

// Nearer says whether one of these words stands for a shorter way than another.
func Nearer(a, b string) bool { return rank(a) < rank(b) }

// Distance is the word for the path through PCIe between two devices. A
// switch shows as one bridge above and one for each port below, so that two
// devices of one switch have one bridge each between them and what they share.
func Distance(a, b Device) string {
	if len(a.Path) == 0 || len(b.Path) == 0 {
		return Unknown
	}
	if a.Address == b.Address {
		return Self
	}
	if a.Path[0] != b.Path[0] {
		if a.NUMA == b.NUMA || a.NUMA != nil && b.NUMA != nil && *a.NUMA == *b.NUMA {
			return NODE // also where neither has a NUMA node: the machine has one, or none is told
		}
		return SYS
	}
	up, down := a.above(), b.above()
	k := 0
	for k < len(up) && k < len(down) && up[k] == down[k] {
		k++
	}
	switch {
	case k <= 1:
		return PHB
	case len(up)-k <= 1 && len(down)-k <= 1:
		return PIX
	}
	return PXB
}
