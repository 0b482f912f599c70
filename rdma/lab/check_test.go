package lab

import (
	"strings"
	"testing"
)

// busbw check on a machine with an RDMA device: all is well, and memory
// registers; then its interface is taken down, and the port is what fails.
func TestCheck(t *testing.T) {
	need(t)
	said, ok := boot(t, 1, program(t), nil, "./busbw check --all && echo WELL $?; ip link set eth0 down; sleep 1; ./busbw check; echo DOWN $?")
	if !ok || !strings.Contains(said[0], "WELL 0") || !strings.Contains(said[0], "16 MiB of host memory register") || strings.Contains(said[0], "unknown │ rdma") {
		t.Errorf("a machine in order said:\n%s", said[0])
	}
	if !strings.Contains(said[0], "DOWN 3") || !strings.Contains(said[0], "fail: rxe0 port 1") {
		t.Errorf("with its interface down it said:\n%s", said[0])
	}
}
