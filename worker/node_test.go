package worker

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestReadNodeStaysInItsCopy(t *testing.T) {
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "secret")
	for file, text := range map[string]string{outside: "no", filepath.Join(dir, "inside"): "yes"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"out": outside, "in": "inside"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	n, err := ReadNode("a", dir)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := fs.ReadFile(n.Root, "in"); string(b) != "yes" {
		t.Errorf("a link inside: %q, %v", b, err)
	}
	if b, err := fs.ReadFile(n.Root, "out"); err == nil {
		t.Errorf("a link that leads out gave %q", b)
	}
	if n.NoGPUs == "" {
		t.Error("it does not say why the GPUs are unknown")
	}
	if _, err := ReadNode("a", filepath.Join(dir, "none")); err == nil {
		t.Error("no error for a folder that does not exist")
	}
}
