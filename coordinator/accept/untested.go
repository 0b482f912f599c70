package accept

import "busbw/reports"

// Untested says of the tests that this program's acceptance does not make
// whether a node has what they would test.
func Untested(t reports.Topology) []reports.Finding {
	of := func(id, subject string, has bool, unknown string) reports.Finding {
		f := reports.Finding{ID: id, Node: t.Node, Subject: subject, Verdict: reports.NA, Got: "no such device"}
		switch {
		case has:
			f.Verdict, f.Got = reports.Unknown, "not measured by busbw accept"
		case unknown != "":
			f.Verdict, f.Got = reports.Unknown, unknown
		}
		return f
	}
	rdma := false
	for _, n := range t.NICs {
		rdma = rdma || n.RDMA
	}
	return []reports.Finding{
		of("nic-loopback", "NIC loopback", rdma, t.NoNICs),
		of("gpu-copy", "copies between host and GPU", len(t.GPUs) > 0, t.NoGPUs),
	}
}
