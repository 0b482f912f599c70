#!/bin/bash
# Link tests and a ring all-reduce beside perftest, in interleaved rounds, on one emulated machine with two processors and on two
# machines with one each. Prints medians, the spread (emulation is noisy: look at it) and ratios.
#   bench.sh [ROUNDS]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
rounds=${1:-5}
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
(cd "$here" && go build -o "$dir/node" ./node)
export TIMEOUT=${TIMEOUT:-300}
echo "one machine"
"$here/run.sh" 1 "$dir" "./node -id 2 -nodes 2 -hub 127.0.0.1:7000 -rounds $rounds bench & ./node -id 1 -nodes 2 -hub 127.0.0.1:7000 -rounds $rounds bench; wait" | grep -E 'BENCH|FAILED|run.sh:'
echo "two machines"
"$here/run.sh" 2 "$dir" "./node -id \$LAB_id -nodes 2 -rounds $rounds bench" | grep -E 'BENCH|FAILED|run.sh:'
