package worker

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"busbw/reports"
)

// Node is a machine as a value: what checks and the topology look at, whether
// it is this machine, a copy of another one's files, or a test's archive.
type Node struct {
	Name   string        // display name
	Root   fs.FS         // its files, from / on
	GPUs   []reports.GPU // in the order of their indices
	NoGPUs string        // why GPUs are not known, or not fully; "" when they are (none is an answer)
}

// ReadNode reads the machine whose files lie under dir: "/" is this one. A
// link in a copy that leads out of it is not followed.
func ReadNode(name, dir string) (*Node, error) {
	if dir = filepath.Clean(dir); dir == "/" {
		return &Node{Name: name, Root: os.DirFS("/"), NoGPUs: "this build does not ask GPU drivers"}, nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", name, err)
	}
	return &Node{Name: name, Root: root.FS(), NoGPUs: "no GPU driver to ask: these are the files of another machine"}, nil
}
