// Package nccltest builds an NCCL library that is none, from
// worker/nccl/testdata/fakenccl: only tests find it.
package nccltest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"busbw/worker/gpu/gputest"
)

// built are the folders of this process, by what is in them.
var built sync.Map

// Library is a folder that holds the fake libnccl.so.2. ncclDir is the folder
// worker/nccl as seen from the test. Without a C compiler the test is skipped.
func Library(t *testing.T, ncclDir string, flags ...string) string {
	t.Helper()
	return As(t, ncclDir, "libnccl.so.2", flags...)
}

// As is Library by another name; flags are of the compiler (-DWITHOUT_SEND).
func As(t *testing.T, ncclDir, name string, flags ...string) string {
	t.Helper()
	if gputest.Child() {
		return "" // it has what it needs
	}
	key := fmt.Sprint(name, flags)
	if dir, ok := built.Load(key); ok {
		return dir.(string)
	}
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no C compiler to build the fake library with")
	}
	sources, err := filepath.Glob(filepath.Join(ncclDir, "testdata/fakenccl/*.c"))
	if err != nil || len(sources) == 0 {
		t.Fatalf("no sources of the fake library in %s: %v", ncclDir, err)
	}
	dir, err := os.MkdirTemp("", "fakenccl") // left to the system: tests end at different times
	if err != nil {
		t.Fatal(err)
	}
	args := slices.Concat([]string{"-O0", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-Wl,-soname," + name, "-Wl,-z,defs",
		"-o", filepath.Join(dir, name)}, flags, sources, []string{"-lpthread", "-ldl"})
	if out, err := exec.Command(gcc, args...).CombinedOutput(); err != nil {
		t.Fatalf("build the fake library: %v\n%s", err, out)
	}
	built.Store(key, dir)
	return dir
}
