package rdma

import (
	"testing"
	"time"
)

func TestOrder(t *testing.T) {
	b := make([]byte, orderSize)
	for _, o := range []order{
		{orderTest, Test{Write, false, true, 65536, 1000}, 0}, {orderTest, Test{SendRecv, true, false, 1, 1}, 0}, {kind: orderReady}, {kind: orderDone, took: 3 * time.Second}, {kind: orderEnd},
	} {
		o.encode(b)
		if got, err := parseOrder(b, 65536); err != nil || got != o {
			t.Errorf("%+v, %v; want %+v", got, err, o)
		}
	}
	for name, o := range map[string]order{
		"longer than the buffer": {kind: orderTest, test: Test{Write, false, false, 65537, 1}}, "no size": {kind: orderTest, test: Test{Write, false, false, 0, 1}},
		"no messages": {kind: orderTest, test: Test{Write, false, false, 8, 0}}, "absurdly many": {kind: orderTest, test: Test{Write, false, false, 8, mostCount + 1}},
		"unknown verb": {kind: orderTest, test: Test{7, false, false, 8, 1}}, "unknown kind": {kind: 9}, "latency both ways": {kind: orderTest, test: Test{Write, true, true, 8, 1}},
	} {
		o.encode(b)
		if got, err := parseOrder(b, 65536); err == nil {
			t.Errorf("%s: taken as %+v", name, got)
		}
	}
	if _, err := parseOrder(b[:31], 65536); err == nil {
		t.Error("31 bytes were taken")
	}
}

func FuzzParseOrder(f *testing.F) {
	b := make([]byte, orderSize)
	order{orderTest, Test{Write, false, true, 65536, 1000}, 0}.encode(b)
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		o, err := parseOrder(b, 4096)
		if err == nil && o.kind == orderTest && (o.test.Size < 1 || o.test.Size > 4096 || o.test.Count < 1) {
			t.Fatalf("%+v", o)
		}
	})
}
