package imports

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// NCCLEffect reads NCCL's own log (NCCL_DEBUG=INFO) for what took effect: its
// network, the ways between ranks with the number of channels on each, whether
// GPUDirect RDMA is off, and every setting that it took from the environment.
// Lines that are too long to be NCCL's are passed over.
func NCCLEffect(r io.Reader) map[string]string {
	var n ncclLog
	n.init()
	lines := bufio.NewReaderSize(r, 64<<10)
	for at := 1; ; at++ {
		line, err := lines.ReadSlice('\n')
		if i := bytes.Index(line, []byte(" NCCL ")); i >= 0 {
			n.line(bytes.TrimRight(line, "\r\n"), i, at)
		}
		if err != nil && err != bufio.ErrBufferFull {
			break
		}
	}
	did := map[string]string{}
	maps.Copy(did, n.seen)
	put := func(key, value string) {
		if value != "" {
			did[key] = value
		}
	}
	put("nccl network", n.network)
	var ways []string
	for _, via := range slices.Sorted(maps.Keys(n.vias)) {
		ways = append(ways, fmt.Sprintf("%s × %d", via, n.vias[via]))
	}
	put("nccl channels", strings.Join(ways, ", "))
	put("nccl GPUDirect RDMA off", strings.Join(n.gdrOff, ", "))
	put("nccl warnings", strings.Join(n.warns[:min(len(n.warns), 3)], "; "))
	return did
}
