//go:build linux && cgo

package rdma

import (
	"errors"
	"testing"

	"busbw/collectives"
	"busbw/collectives/linktest"
)

// owned is a link that closes its device too.
type owned struct {
	*Link
	d *Device
}

func (o owned) Close() error { return errors.Join(o.Link.Close(), o.d.Close()) }

// The conformance suite of all links, every operation by every algorithm, over
// queue pairs: its buffers are not registered, so that every long message goes
// through the outbox; TestLinkExchange has the ways without a copy.
func TestConformance(t *testing.T) {
	rail(t, nil)
	linktest.Run(t, func(t testing.TB, ranks int, abort *collectives.Abort) []collectives.Link {
		var out []collectives.Link
		for _, l := range open(t, ranks, map[string]string{"NCCL_IB_QPS_PER_CONNECTION": "2"}, LinkConfig{Abort: abort, Ring: 256 << 10}) {
			out = append(out, owned{l, l.q.dev})
		}
		return out
	})
}
