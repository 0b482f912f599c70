package reports

import (
	"encoding/json"
	"testing"
)

// A topology that comes from another machine is only used if it fits itself.
func TestTopologyCheck(t *testing.T) {
	good := Topology{
		GPUs: []GPU{{}, {}}, NICs: []NIC{{}}, Paths: [][]string{{"X", "NV4", "PIX"}, {"NV4", "X", "SYS"}, {"PIX", "SYS", "X"}},
		Bonds: []Bond{{A: 0, B: 1}}, Use: []Near{{GPU: 1, NICs: []int{0}}},
	}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Topology){
		"a row is missing":     func(t *Topology) { t.Paths = t.Paths[:2] },
		"a path is missing":    func(t *Topology) { t.Paths[1] = t.Paths[1][:2] },
		"a bond with itself":   func(t *Topology) { t.Bonds[0].A = 1 },
		"a bond beyond":        func(t *Topology) { t.Bonds[0].B = 2 },
		"a bond below":         func(t *Topology) { t.Bonds[0].A = -1 },
		"a GPU beyond":         func(t *Topology) { t.Use[0].GPU = 2 },
		"an adapter beyond":    func(t *Topology) { t.Use[0].NICs[0] = 1 },
		"an adapter below":     func(t *Topology) { t.Use[0].NICs[0] = -1 },
		"too many of anything": func(t *Topology) { t.NICs = make([]NIC, maxJoined) },
	} {
		b, err := json.Marshal(good)
		if err != nil {
			t.Fatal(err)
		}
		var bad Topology
		if err := json.Unmarshal(b, &bad); err != nil {
			t.Fatal(err)
		}
		spoil(&bad)
		if bad.Check() == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
