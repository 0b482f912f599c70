# busbw: make run and make test do everything on a fresh machine with Go and gcc.
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
# The NVML binding leaves its functions to be found when they are first called; linkers that bind them at start make a binary that does not start.
LAZY := -extldflags=-Wl,-z,lazy
LDFLAGS := -X main.version=$(VERSION) $(LAZY)
export GOFLAGS := -ldflags=$(LAZY)
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: build run test race lint nocgo arm64 ptx test-gpu test-rdma bench-rdma bench-peers plan-proof page echarts clean

build:
	go build -trimpath -ldflags '$(LDFLAGS)' -o bin/busbw ./cmd/busbw

# The main job: two nodes with two ranks each on this machine.
run: build
	./bin/busbw run --local 2x2 --op all_reduce,broadcast --algo ring,tree --sizes 8,1K,64K,1M,16M --time 100ms

test:
	go test -timeout 25m ./...

# Packages with goroutines of their own, locks or atomics.
race:
	go test -race -short -timeout 25m $$(grep -rlE --include='*.go' '^\s*go (func|[a-zA-Z.]+)\(|"sync(/atomic)?"' . | xargs -n1 dirname | sort -u)

lint:
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo 'gofmt: the files above need formatting'; exit 1; }
	go vet ./...
	GOARCH=arm64 CGO_ENABLED=0 go vet ./...
	go run $(STATICCHECK) ./...
	go mod tidy -diff
	go mod verify

nocgo:
	CGO_ENABLED=0 go build -o /dev/null ./cmd/busbw
	CGO_ENABLED=0 go test -short -timeout 25m ./...

# RDMA on real kernel verbs: emulated machines with Soft-RoCE devices, some minutes.
test-rdma:
	BUSBW_LAB=1 go test -count=1 -timeout 40m -run '$(LAB)' ./rdma/lab
LAB := .

# The device kernels for GPUs; the results are in the repository (Debian's clang-19).
# .maxntid: without it a driver's compiler may give a thread more registers than blocks of that size can have.
ptx:
	for sm in 70 80 90; do clang-19 --target=nvptx64-nvidia-cuda -march=sm_$$sm -nocudalib -ffreestanding -fno-math-errno -ffp-contract=off -O2 -Wall -Werror \
	  -S -o - worker/gpu/kernels/kernels.c | sed -E 's,[ \t]*//.*,,;/^$$/d;s,^\)$$,)\n.maxntid 512,' >worker/gpu/kernels/sm_$$sm.ptx || exit 1; done

# Link tests and a ring beside perftest, in the same emulated machines (docs/performance.md).
bench-rdma:
	./rdma/lab/bench.sh $(BENCH)

# What no stand-in can show, on this machine's GPUs; without one it says so.
test-gpu: build
	BUSBW_GPU=1 go test -count=1 -timeout 30m -v -p 1 -run '^TestHardware$$' ./worker/gpu ./worker/nccl
	./bin/busbw topo

# The reduction kernels of arm64, in emulation.
arm64:
	GOARCH=arm64 CGO_ENABLED=0 go test -short -exec qemu-aarch64-static ./collectives/reduce

# Side by side with Open MPI, MPICH and gloo (docs/performance.md); Debian's
# packages: gcc g++ openmpi-bin libopenmpi-dev mpich libmpich-dev libgloo-dev.
bench-peers: build
	./collectives/peers/bench.sh bin/busbw $(BENCH)

# How far predictions are off on this machine: the table in docs/plan.md.
plan-proof: build
	./coordinator/plan/proof.sh bin/busbw

# The HTML report in headless Chromium (Debian: chromium, and node with npm):
# no console errors, no requests, axe-core clean, under 2 MB; pictures in
# reports/pagetest/out. Also that the bundled chart library is what its
# sources give.
page:
	cd reports/pagetest && npm ci --ignore-scripts --no-audit --no-fund
	rm -rf reports/pagetest/out && mkdir reports/pagetest/out
	$(MAKE) --no-print-directory echarts ECHARTS=pagetest/out/echarts.min.js
	cmp reports/pagetest/out/echarts.min.js reports/page/echarts.min.js
	BUSBW_PAGES=$(CURDIR)/reports/pagetest/out go test -count=1 -run TestHTML ./reports
	cd reports/pagetest && node check.mjs out out/*.html

ECHARTS := page/echarts.min.js
echarts:
	cd reports/pagetest && npx esbuild echarts.js --bundle --minify --format=iife --legal-comments=none --log-level=warning --outfile=../$(ECHARTS) \
	  --banner:js='/* Apache ECharts 6.1.0 (Apache-2.0, https://echarts.apache.org), with zrender (BSD-3-Clause) and tslib (0BSD); made by make echarts */'

clean:
	rm -rf bin results reports/pagetest/out
