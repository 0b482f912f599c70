// Package nccltest builds an NCCL library that is none, from
// worker/nccl/testdata/fakenccl: only tests find it.
package nccltest

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// Library is a folder that holds the fake libnccl.so.2. ncclDir is the folder
// worker/nccl as seen from the test. Without a C compiler the test is skipped.
func Library(t *testing.T, ncclDir string) string {
	t.Helper()
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no C compiler to build the fake library with")
	}
	dir := t.TempDir()
	out, err := exec.Command(gcc, "-O1", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-Wl,-soname,libnccl.so.2", "-Wl,-z,defs",
		"-o", filepath.Join(dir, "libnccl.so.2"), filepath.Join(ncclDir, "testdata/fakenccl/fakenccl.c"), "-lpthread", "-ldl").CombinedOutput()
	if err != nil {
		t.Fatalf("build the fake library: %v\n%s", err, out)
	}
	return dir
}
