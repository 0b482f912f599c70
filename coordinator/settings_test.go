package coordinator

import (
	"slices"
	"strings"
	"testing"

	"busbw/collectives"
)

func TestSettings(t *testing.T) {
	v, notes, err := Settings([]string{"HOME=/root", "NCCL_BUFFSIZE=1048576", "NCCL_MIN_NCHANNELS=2", "NCCL_NVLS_ENABLE=1", "NCCL_SHM_DISABLE=1"})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"NCCL_BUFFSIZE": "1048576", "NCCL_MIN_CTAS": "2", "NCCL_MAX_CTAS": "64", "NCCL_SHM_DISABLE": "1", "NCCL_SOCKET_NTHREADS": "1"} {
		if v[name] != want {
			t.Errorf("%s = %q, want %q", name, v[name], want)
		}
	}
	if len(notes) != 1 || !strings.Contains(notes[0], "NCCL_NVLS_ENABLE is set but not applicable") {
		t.Errorf("notes %q: want the one variable that cannot apply", notes)
	}
	if _, ok := v["HOME"]; ok {
		t.Error("a variable that is not NCCL's is in the settings")
	}
}

func TestSettingsRefuse(t *testing.T) {
	for _, env := range [][]string{
		{"NCCL_BUFFSIZE=4MB"},
		{"NCCL_MIN_CTAS=0"},
		{"NCCL_MIN_CTAS=8", "NCCL_MAX_CTAS=4"},
		{"NCCL_SOCKET_NTHREADS=16", "NCCL_NSOCKS_PERTHREAD=5"},
		{"NCCL_SOCKET_FAMILY=IPv4"},
	} {
		if _, _, err := Settings(env); err == nil {
			t.Errorf("%v: accepted", env)
		} else if name, _, _ := strings.Cut(env[0], "="); !strings.Contains(err.Error(), name) {
			t.Errorf("%v: %v does not name the variable", env, err)
		}
	}
}

func TestSettingsBothNames(t *testing.T) {
	v, notes, err := Settings([]string{"NCCL_MIN_NCHANNELS=2", "NCCL_MIN_CTAS=3"})
	if err != nil || v["NCCL_MIN_CTAS"] != "3" || len(notes) != 1 {
		t.Errorf("got %q, %q, %v; want 3 and a note about the older name", v["NCCL_MIN_CTAS"], notes, err)
	}
}

func TestAllowed(t *testing.T) {
	for _, c := range []struct {
		value string
		want  string // "" is all, "!" is an error
	}{
		{"", ""}, {"Ring", "ring"}, {"Ring,Tree", "ring,tree"}, {"tree", "tree"},
		{"allreduce:Tree;broadcast:Ring", "tree"}, {"broadcast:Ring;", ""},
		{"NVLS", "!"}, {"Ringg", "!"}, {"NVLS,Ring", "ring"}, {"Tree;Ring", "!"},
	} {
		got, err := Allowed(c.value, collectives.AllReduce)
		if c.want == "!" {
			if err == nil {
				t.Errorf("NCCL_ALGO=%q gave %v, want an error", c.value, got)
			}
			continue
		}
		if err != nil || strings.Join(got, ",") != c.want {
			t.Errorf("NCCL_ALGO=%q gave %v, %v; want %q", c.value, got, err, c.want)
		}
	}
	got, err := Allowed("^Ring", collectives.AllReduce)
	if err != nil || slices.Contains(got, "ring") || !slices.Contains(got, "tree") {
		t.Errorf("^Ring gave %v, %v", got, err)
	}
}

// What is set for GPUs says of itself, where buffers are host memory, that it does
// not apply; what is not set says nothing.
func TestSettingsOnHost(t *testing.T) {
	values, notes, err := Settings([]string{"NCCL_P2P_LEVEL=NVB", "NCCL_IB_GDR_LEVEL=3", "NCCL_NET_GDR_READ=0", "NCCL_SHM_DISABLE=1"})
	if err != nil || notes != nil || values["NCCL_NET_GDR_LEVEL"] != "3" {
		t.Fatal(values, notes, err)
	}
	got := onHost(values)
	for _, name := range []string{"NCCL_P2P_LEVEL", "NCCL_NET_GDR_LEVEL", "NCCL_NET_GDR_READ"} {
		if got[name] != "does not apply: buffers are in host memory" {
			t.Errorf("%s: %q", name, got[name])
		}
	}
	if len(got) != 3 {
		t.Errorf("%v", got)
	}
	if _, _, err := Settings([]string{"NCCL_P2P_LEVEL=NV"}); err == nil {
		t.Error("a level that there is not")
	}
}
