package imports

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// NCCLEffect reads NCCL's own log (NCCL_DEBUG=INFO) for what took effect: its
// network, the ways between ranks with the number of channels on each, whether
// GPUDirect RDMA is off, and every setting that it took from the environment.
// Lines that are too long to be NCCL's are passed over.
func NCCLEffect(r io.Reader) map[string]string {
	var n ncclLog
	n.init()
	at := 0
	ncclLines(r, func(line []byte, i int) {
		at++
		n.line(line, i, at)
	})
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

// ncclLines calls do with every line of NCCL's, and where in it " NCCL " is.
func ncclLines(r io.Reader, do func(line []byte, i int)) {
	lines := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := lines.ReadSlice('\n')
		if i := bytes.Index(line, []byte(" NCCL ")); i >= 0 {
			do(bytes.TrimRight(line, "\r\n"), i)
		}
		if err != nil && err != bufio.ErrBufferFull {
			return
		}
	}
}

// NCCLChoice reads what NCCL chose for its collectives: the first rank of a
// communicator writes a line for each with NCCL_DEBUG_SUBSYS=TUNING. Each value
// is there once, "Ring/Tree" where several were chosen. Before 2.20 NCCL does not
// write it, and before 2.24 without the channels.
//
//	2.20  8192 Bytes -> Algo 1 proto 2 time 12.5
//	2.23  AllReduce: 8192 Bytes -> Algo 1 proto 2 time 12.5
//	2.24  AllReduce: 8192 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..23}
//	2.27  AllReduce [Symmetric]: 8192 Bytes -> Kernel AllReduce_AGxLL_R nchannels 8 nthreads 512 nWorks 1
func NCCLChoice(r io.Reader) map[string]string {
	did := map[string]string{}
	add := func(key, value string) {
		switch had := did[key]; {
		case value == "":
		case had == "":
			did[key] = value
		case !slices.Contains(strings.Split(had, "/"), value) && len(had) < 100:
			did[key] = had + "/" + value
		}
	}
	ncclLines(r, func(line []byte, _ int) {
		_, choice, ok := bytes.Cut(line[:min(len(line), 1024)], []byte(" Bytes -> "))
		if !ok {
			return
		}
		f := strings.Fields(string(choice))
		for i, word := range f {
			next := ""
			if i+1 < len(f) {
				next = f[i+1]
			}
			switch {
			case word == "Algo":
				add("nccl algorithm", numbered(next, algorithms))
			case word == "proto":
				add("nccl protocol", numbered(next, protocols))
			case word == "Kernel":
				add("nccl algorithm", "symmetric "+prose(next))
			case word == "nchannels":
				add("nccl channels in use", prose(next))
			case strings.HasPrefix(word, "channel{Lo..Hi}={"):
				var lo, hi int
				if n, _ := fmt.Sscanf(word, "channel{Lo..Hi}={%d..%d}", &lo, &hi); n == 2 && lo >= 0 && hi >= lo && hi < 1024 {
					add("nccl channels in use", fmt.Sprint(hi-lo+1))
				}
			}
		}
	})
	return did
}

// Algorithms and protocols by their number (NCCL src/include/nccl_tuner.h).
var (
	algorithms = []string{"Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT"}
	protocols  = []string{"LL", "LL128", "Simple"}
)

// numbered is a name as NCCL_ALGO and NCCL_PROTO take it: lines have its number,
// or the name in capitals with "_" between words.
func numbered(word string, names []string) string {
	plain := strings.ReplaceAll(word, "_", "")
	for i, n := range names {
		if word == fmt.Sprint(i) || strings.EqualFold(plain, n) {
			return n
		}
	}
	return prose(word)
}

// prose is a word of a log that is short and can be printed, or nothing.
func prose(word string) string {
	if len(word) > 60 || strings.ContainsFunc(word, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return ""
	}
	return word
}
