#!/bin/bash
# Link tests and a ring all-reduce beside perftest, in interleaved rounds. Prints medians, the spread and ratios.
#   bench.sh [ROUNDS]
# First on one machine with one processor whose clock counts instructions (2 ns each), on whatever the host does meanwhile: what busbw
# costs beside perftest, to 1 %. There both ends share the processor, so it knows no latency that needs both awake. Then in
# real time (emulation is noisy: look at the spread), on one machine with two processors and on two machines with one each.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
rounds=${1:-9}
dir=$(mktemp -d) bin=$(mktemp -d); trap 'rm -rf "$dir" "$bin"' EXIT
(cd "$here" && go build -o "$dir/node" ./node)
export TIMEOUT=${TIMEOUT:-300}
qemu=$(command -v qemu-system-x86_64)
printf '#!/bin/bash\nexec %q "${@/thread=multi/thread=single}" -icount shift=1,align=off,sleep=off\n' "$qemu" >"$bin/qemu-system-x86_64"
chmod +x "$bin/qemu-system-x86_64"
both() { local n="./node -nodes 2 -hub 127.0.0.1:7000 -rounds $1 -only=$2"; echo "$n -id 2 bench & $n -id 1 bench; wait"; }
show() { grep -E 'BENCH|FAILED|run.sh:'; }
echo "one machine, in instructions"
PATH=$bin:$PATH SMP=1 APPEND="tsc_early_khz=1000000" TIMEOUT=$((10 * TIMEOUT)) "$here/run.sh" 1 "$dir" "$(both 2 bw); $(both 2 read_lat); $(both 2 ring)" | show
echo "one machine"
"$here/run.sh" 1 "$dir" "$(both "$rounds" "")" | show
echo "two machines"
"$here/run.sh" 2 "$dir" "./node -id \$LAB_id -nodes 2 -rounds $rounds bench" | show
