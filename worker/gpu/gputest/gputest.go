// Package gputest runs tests on a CUDA driver that is none: a library in
// worker/gpu/testdata/fakecuda that the tests build and that only they find.
package gputest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// child names, in a process of OnFake, the test that it is for.
const child = "BUSBW_GPUTEST"

// Libraries is what stands before a folder of further libraries in OnFake's env.
const Libraries = "GPUTEST_LIBRARIES="

// Child says that this process is one of OnFake.
func Child() bool { return os.Getenv(child) != "" }

// OnFake runs the test that calls it once more, in a process of its own that
// finds the fake driver and has the variables of env (FAKECUDA_…). It is true
// there; where it is false the caller has nothing left to do. gpuDir is the
// folder worker/gpu as seen from the test. A folder of further libraries goes
// into env behind Libraries. Without a C compiler the test is skipped.
func OnFake(t *testing.T, gpuDir string, env ...string) bool {
	t.Helper()
	if os.Getenv(child) == t.Name() {
		return true
	}
	lib := t.TempDir()
	if err := os.Symlink(filepath.Join(Library(t, gpuDir), "libcuda.so.1"), filepath.Join(lib, "libcuda.so.1")); err != nil {
		t.Fatal(err)
	}
	// Processes that the test starts may have an environment of their own.
	if err := os.WriteFile(filepath.Join(lib, "fakecuda.conf"), []byte(strings.Join(env, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	var run []string
	for part := range strings.SplitSeq(t.Name(), "/") {
		run = append(run, "^"+regexp.QuoteMeta(part)+"$")
	}
	args := []string{"-test.run=" + strings.Join(run, "/"), "-test.count=1", fmt.Sprintf("-test.short=%t", testing.Short())}
	cmd := exec.Command(os.Args[0], args...)
	for _, kv := range env {
		if more, ok := strings.CutPrefix(kv, Libraries); ok {
			lib += ":" + more
		}
	}
	cmd.Env = append(os.Environ(), child+"="+t.Name(), "LD_LIBRARY_PATH="+lib)
	cmd.Env = append(cmd.Env, env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("with the fake driver: %v\n%s", err, out)
	} else if strings.Contains(string(out), "no tests to run") {
		t.Fatalf("%s runs nothing on its own", run)
	}
	return false
}

// built is the folder of the library, made at most once in a process.
var built struct {
	once sync.Once
	dir  string
	err  error
}

// Library is the folder that holds the fake libcuda.so.1.
func Library(t *testing.T, gpuDir string) string {
	t.Helper()
	built.once.Do(func() { built.dir, built.err = build(gpuDir) })
	if errors.Is(built.err, exec.ErrNotFound) {
		t.Skip("no C compiler to build the fake driver with")
	}
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.dir
}

func build(gpuDir string) (string, error) {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		return "", err
	}
	sources, err := filepath.Glob(filepath.Join(gpuDir, "testdata", "fakecuda", "*.c"))
	if err != nil || len(sources) == 0 {
		return "", fmt.Errorf("no sources of the fake driver in %s: %v", gpuDir, err)
	}
	dir, err := os.MkdirTemp("", "fakecuda") // left to the system: tests of several packages end at different times
	if err != nil {
		return "", err
	}
	args := []string{"-O1", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-Wl,-soname,libcuda.so.1", "-Wl,-z,defs", "-o", filepath.Join(dir, "libcuda.so.1")}
	if out, err := exec.Command(gcc, append(append(args, sources...), "-lpthread", "-ldl")...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the fake driver: %v\n%s", err, out)
	}
	return dir, nil
}
