package imports

import (
	"strings"
	"testing"
	"time"
)

const jsonV3 = `{"version":3,"start_time":"2026-11-30 10:15:00","args":["./all_reduce_perf","-b","32M","-e","32M","-J","out.json"],
"env":["PATH=/usr/bin","AWS_SECRET_ACCESS_KEY=do-not-keep","NCCL_IB_HCA=mlx5","NCCL_P2P_LEVEL=LOC"],"nccl_version":22809,
"config":{"nthreads":1,"ngpus":1,"minimum_bytes":33554432,"maximum_bytes":33554432,"step_bytes":1048576,"warmup_iters":1,"iterations":20,"aggregated_iterations":1,"validation":1,"graph":0,"blocking_collectives":0,"per_iter_timing":1,"per_iter_skip":1,"parallel_init":"false",
"devices":[{"rank":0,"group":0,"pid":11,"hostname":"gpu-a","device":0,"device_hex":"0000:1b:00","device_info":"NVIDIA H100 80GB HBM3"},{"rank":1,"group":0,"pid":12,"hostname":"gpu-b","device":0,"device_hex":"0000:1b:00","device_info":"NVIDIA H100 80GB HBM3"}]},
"results":[{"size":33554432,"count":8388608,"type":"float","redop":"sum","root":"    -1",
"out_of_place":{"time":812.500000,"alg_bw":41.297762,"bus_bw":41.297762,"nwrong":0.000000},
"out_of_place_per_iter":{"skipped_iterations":1,"min_us":800.0,"max_us":830.0,"avg_us":812.5,"p50_us":810.0,"p95_us":830.0,"p99_us":830.0,"stdev_us":9.0,"cv_pct":1.1,"times_us":[990.0,800.0,810.0,830.0],"per_process_max_times_us":[[990.0,800.0,811.0,830.0],[980.0,805.0,810.0,820.0]]},
"in_place":{"time":"nan","alg_bw":"nan","bus_bw":"nan","nwrong":null},"actual_iterations":4,"experiment_name":"all_reduce_perf"}],
"out_of_bounds":{"count":0,"okay":"true"},"average_bus_bandwidth":{"bandwidth":41.297762,"okay":"unchecked"},"errors":[],"end_time":"2026-11-30 10:15:09"}`

func TestNcclJSON(t *testing.T) {
	text, all := importText(t, jsonV3)
	if len(text.Worlds) != 1 || len(all) != 1 {
		t.Fatalf("%+v, %d records", text, len(all))
	}
	w, r := text.Worlds[0], all[0]
	if w.Op != "all_reduce" || w.State != Complete || *w.Average != 41.297762 || *w.Wrong != 0 || w.Ranks != [2]int{2, 2} || strings.Join(w.Hosts, " ") != "gpu-a gpu-b" {
		t.Errorf("%+v", w)
	}
	if len(r.Seconds) != 3 || r.Seconds[0] != 805e-6 || r.Seconds[1] != 811e-6 || *r.Wrong != 0 || r.Stated.Iterations != 4 || r.Config["nccl_version"] != "2.28.9" || r.Config["NCCL_IB_HCA"] != "mlx5" || !r.Time.Equal(time.Date(2026, 11, 30, 10, 15, 0, 0, time.UTC)) {
		t.Errorf("%+v", r)
	}
	for k, v := range r.Config {
		if strings.Contains(k+v, "AWS") || strings.Contains(v, "do-not-keep") || k == "PATH" {
			t.Errorf("%s=%s is kept", k, v)
		}
	}
	if len(text.Findings) != 1 || text.Findings[0].Subject != "NCCL_P2P_LEVEL" {
		t.Errorf("%+v", text.Findings)
	}
	// Version 1 as 2.17.3 to 2.17.8 spell it, with nwrong and no iterations' times.
	v1 := strings.NewReplacer(`"version":3`, `"version":1`, "average_bus_bandwidth", "average_bus_bandwidith", `{"bandwidth"`, `{"bandwidith"`, `"okay":"true"`, `"okay":"false"`, `"count":0,"okay"`, `"count":7,"okay"`, `"nwrong":0.0`, `"nwrong":7.0`).Replace(jsonV3)
	a, b := strings.Index(v1, `"out_of_place_per_iter"`), strings.Index(v1, `"in_place"`)
	text, all = importText(t, v1[:a]+v1[b:])
	if w := text.Worlds[0]; *w.Average != 41.297762 || !w.Failed || !text.Bad() || *all[0].Wrong != 7 || len(all[0].Seconds) != 1 || all[0].Seconds[0] != 812.5e-6 {
		t.Errorf("version 1: %+v, %+v", w, all[0])
	}
	// Cut off: what is whole is read.
	text, all = importText(t, jsonV3[:strings.Index(jsonV3, `"out_of_bounds"`)])
	if len(all) != 1 || text.Worlds[0].State != NoSummary || len(text.Warnings) == 0 {
		t.Errorf("cut off: %+v, %d records", text, len(all))
	}
	// Two reports in one file.
	if text, all = importText(t, jsonV3+"\n"+jsonV3); len(text.Worlds) != 2 || len(all) != 2 || all[0].Run == all[1].Run {
		t.Errorf("two reports: %+v", text)
	}
}

func TestOtherJSON(t *testing.T) {
	text, all := importText(t, `[{"numCycle":0,"name":"AllReduce","nodes":1,"ranks":8,"ranksPerNode":8,"gpusPerRank":1,"size":1048576,"type":"float","redop":"sum","inPlace":0,"time":55.1,"algBw":19.03,"busBw":33.3,"wrong":"0"},
{"name":"all_reduce","nodes":1,"ranks":8,"size":1048576,"type":"float","redop":"sum","inPlace":1,"time":54.9,"algBw":19.1,"busBw":33.42,"wrong":"2"}]`)
	if len(all) != 2 || len(text.Worlds) != 1 || !text.Bad() || all[0].InPlace || !all[1].InPlace || all[1].Op != "all_reduce" || *all[1].Wrong != 2 || all[0].Ranks != 8 || !near(all[0].Seconds[0], 55.1e-6) {
		t.Errorf("%+v, %+v", text, all)
	}
	text, all = importText(t, `{
"test_info": {
"test": "RDMA_Write_BW_Test",
"Device": "mlx5_0",
"Mtu": 4096
},
"results": {
"MsgSize": 65536,
"n_iterations": 5000,
"BW_peak": 392.38,
"BW_average": 392.34,
"MsgRate": 0.748336
}
}`)
	if len(all) != 1 || all[0].Op != "write_bw" || !near(*all[0].Stated.Algbw, 49.0425) || !near(*all[0].Stated.Peak, 49.0475) {
		t.Errorf("perftest in Gb/s: %+v %+v", text, all)
	}
	if _, all = importText(t, `{"test_info":{"test":"Send_BW_Test"},"results":{"MsgSize":65536,"n_iterations":1000,"BW_peak":0.00,"BW_average":44756.50,"MsgRate":0.716104}}`); len(all) != 1 || !near(*all[0].Stated.Algbw, 46.930592) || all[0].Stated.Peak != nil {
		t.Errorf("perftest in MiB/s: %+v", all)
	}
	for _, nothing := range []string{`{}`, `[]`, `[{}]`, `{"a":[1,2,{"size":"x"}]}`, `{"results":`, `{"results":[{"size":1`} {
		if text, all := importText(t, nothing); len(all) != 0 || len(text.Worlds) > 1 {
			t.Errorf("%s: %+v", nothing, text)
		}
	}
}
