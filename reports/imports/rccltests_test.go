package imports

import (
	"fmt"
	"strings"
	"testing"
)

// What rccl-tests writes with -Z csv and -Z json, by version: of January 2025
// (blanks, one object a line, "#wrong"), of August 2025 (numCycle, a list, no
// column for the nodes although rows have it), of May 2026 (names as in JSON),
// and without MPI.
func TestRcclFiles(t *testing.T) {
	for what, text := range map[string]string{
		"csv of January 2025": "collective, ranks, rankspernode, gpusperrank, size, type, redop, inplace, time, algbw, busbw, #wrong\n" +
			"\"AllReduce\", 2, 16, 8, 1, 1048576, \"float\", \"sum\", 0, 55.660000, 18.839000, 35.323000, \"0\"\n\"AllReduce\", 2, 16, 8, 1, 1048576, \"float\", \"sum\", 1, 55.660000, 18.839000, 35.323000, \"N/A\"\n",
		"csv of August 2025": "numCycle,collective,ranks,rankspernode,gpusperrank,size,type,redop,inplace,time,algbw,busbw,#wrong\n" +
			"0,\"AllReduce\",2,16,8,1,1048576,\"float\",\"sum\",0,55.66,18.839,35.323,\"0\"\n0,\"AllReduce\",2,16,8,1,1048576,\"float\",\"sum\",1,55.66,18.839,35.323,\"N/A\"\n",
		"csv of May 2026": "numCycle,name,nodes,ranks,ranksPerNode,gpusPerRank,size,type,redop,inPlace,time,algBw,busBw,wrong\n" +
			"0,\"AllReduce\",2,16,8,1,1048576,\"float\",\"sum\",0,55.66,18.839,35.323,\"0\"\n0,\"AllReduce\",2,16,8,1,1048576,\"float\",\"sum\",1,55.66,18.839,35.323,\"N/A\"\n",
		"four processes of four GPUs": "numCycle,name,nodes,ranks,ranksPerNode,gpusPerRank,size,type,redop,inPlace,time,algBw,busBw,wrong\r\n" +
			"0,\"AllReduce\",2,4,2,4,1048576,\"float\",\"sum\",0,55.66,18.839,35.323,\"0\"\r\n0,\"AllReduce\",2,4,2,4,1048576,\"float\",\"sum\",1,55.66,18.839,35.323,\"N/A\"\r\n",
		"json of January 2025": `{"#wrong":"0","algBw":18.839,"busBw":35.323,"gpusPerRank":1,"inPlace":0,"name":"AllReduce","nodes":2,"ranks":16,"ranksPerNode":8,"redop":"sum","size":1048576,"time":55.66,"type":"float"}
{"#wrong":"N/A","algBw":18.839,"busBw":35.323,"gpusPerRank":1,"inPlace":1,"name":"AllReduce","nodes":2,"ranks":16,"ranksPerNode":8,"redop":"sum","size":1048576,"time":55.66,"type":"float"}`,
		"json of August 2025": `[{"numCycle":0, "name":"AllReduce", "nodes":2, "ranks":16, "ranksPerNode":8, "gpusPerRank":1, "size":1048576, "type":"float", "redop":"sum", "inPlace":0, "time":55.660000, "algBw":18.839000, "busBw":35.323000, "wrong":"0"},
{"numCycle":0, "name":"AllReduce", "nodes":2, "ranks":16, "ranksPerNode":8, "gpusPerRank":1, "size":1048576, "type":"float", "redop":"sum", "inPlace":1, "time":55.660000, "algBw":18.839000, "busBw":35.323000, "wrong":"N/A"}]`,
		"in an object of another tool": `{"host":"a","results":[{"name":"AllReduce","nodes":2,"ranks":16,"size":1048576,"type":"float","redop":"sum","inPlace":0,"time":55.66,"algBw":18.839,"busBw":35.323,"wrong":0},
{"name":"AllReduce","nodes":2,"ranks":16,"size":1048576,"type":"float","redop":"sum","inPlace":1,"time":55.66,"algBw":18.839,"busBw":35.323}]}`,
	} {
		got, all := importText(t, text)
		if len(got.Worlds) != 1 || len(all) != 2 || len(got.Warnings) > 0 || got.Worlds[0].Rows != 2 {
			t.Errorf("%s: %+v, %d records", what, got, len(all))
			continue
		}
		for i, r := range all {
			if r.Op != "all_reduce" || r.Ranks != 16 || r.Nodes != 2 || r.Bytes != 1<<20 || r.Dtype != "float" || r.Redop != "sum" || r.InPlace != (i == 1) ||
				r.Seconds[0] != 55.66e-6 || *r.Stated.Algbw != 18.839 || *r.Stated.Busbw != 35.323 || (r.Wrong == nil) != (i == 1) || r.Engine != "rccl" || r.Launch != 0 {
				t.Errorf("%s: %+v", what, r)
			}
		}
	}
}

// Each operation and number of ranks of a file is a world of its own, each
// cycle a launch, and wrong data counts.
func TestRcclWorlds(t *testing.T) {
	text := "numCycle,name,nodes,ranks,ranksPerNode,gpusPerRank,size,type,redop,inPlace,time,algBw,busBw,wrong\n"
	for _, name := range []string{"AllReduce", "AllGather"} {
		for cycle := range 2 {
			for size := range 3 {
				text += fmt.Sprintf("%d,%q,1,8,8,1,%d,\"float\",\"sum\",0,55.66,18.839,35.323,\"%d\"\n", cycle, name, 1024<<size, size*cycle)
			}
		}
	}
	got, all := importText(t, text)
	if len(got.Worlds) != 2 || len(all) != 12 || !got.Bad() || got.Worlds[0].Op != "all_reduce" || got.Worlds[1].Op != "all_gather" || !got.Worlds[0].Failed || all[3].Launch != 1 || *all[5].Wrong != 2 || all[0].Run == all[6].Run || got.Worlds[1].Rows != 6 {
		t.Errorf("%+v, %+v", got, all)
	}
}

// Reports of nccl-tests: rows alone, and of a second version that has no
// single times.
func TestNcclJSONParts(t *testing.T) {
	a := strings.Index(jsonV3, `{"size":33554432`)
	_, all := importText(t, jsonV3[a:strings.Index(jsonV3, `],`+"\n"+`"out_of_bounds"`)])
	if len(all) != 1 || all[0].Bytes != 33554432 || all[0].Op != "all_reduce" || len(all[0].Seconds) != 3 {
		t.Errorf("a row alone: %+v", all)
	}
	a, b := strings.Index(jsonV3, `,"times_us"`), strings.Index(jsonV3, `},`+"\n"+`"in_place"`)
	_, all = importText(t, jsonV3[:a]+jsonV3[b:])
	if len(all) != 1 || len(all[0].Seconds) != 1 || all[0].Seconds[0] != 812.5e-6 || *all[0].Stated.Min != 800e-6 || *all[0].Stated.Max != 830e-6 || *all[0].Stated.P99 != 830e-6 {
		t.Errorf("without single times: %+v", all)
	}
}

// A sweep that was run several times is that, whatever its first rows are.
func TestCyclesFromZero(t *testing.T) {
	row := "%12d  %12d     float     sum      -1    12.00  %6.2f  %6.2f       0    12.00  %6.2f  %6.2f       0\n"
	text := "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n"
	for range 3 {
		for _, n := range []int64{0, 0, 0, 1 << 20, 2 << 20} {
			r := float64(n) / 12e3
			text += fmt.Sprintf(row, n, n/32, r, r*7/8, r, r*7/8)
		}
	}
	got, all := importText(t, text)
	if len(got.Worlds) != 1 || len(all) != 30 || all[29].Launch != 2 || all[0].Launch != 0 {
		t.Errorf("%+v, %d records", got, len(all))
	}
}
