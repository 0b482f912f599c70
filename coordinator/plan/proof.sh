#!/bin/bash
# How far predictions are off on this machine: measures shared memory, TCP and,
# as root, nodes behind links of 400 Mbit/s, fits half of the sizes and numbers of
# ranks, predicts the rest and prints the lines of the table in docs/plan.md:
# proof.sh BUSBW [OUTDIR]. Some minutes; nothing else should run.
set -euo pipefail
busbw=$(realpath "$1") out=${2:-$(mktemp -d)} here=$(dirname "$(realpath "$0")")
mkdir -p "$out"
ranks="2 3 4 6 8"
row() { # what, files…: a line of the table
  local what=$1
  shift
  "$busbw" plan --check --like "$(IFS=,; echo "$*")" >"$out/check.txt"
  awk -v what="$what" '
    /^fitted/ { fitted = $2; predicted = $NF }
    $1 == "all" { median = $3 " " $4; within = $5 " " $6 }
    /known to/ { known = $8 " " $9 }
    /lie in the predicted/ { inside = $1 " of " $3 }
    END { printf "| %s | %s | %s | %s | %s | %s | %s |\n", what, fitted, predicted, median, within, known, inside }' "$out/check.txt"
}
measure() { # name, the rest of the arguments of busbw run
  local name=$1
  shift
  echo "measuring $name" >&2
  rm -f "$out/$name.jsonl.zst"
  "$busbw" run "$@" --output "$out/$name.jsonl.zst" >/dev/null 2>"$out/$name.log" || { cat "$out/$name.log" >&2; exit 1; }
}
for n in $ranks; do
  measure "memory-$n" --local "1x$n" --scope intra --op all_reduce,broadcast,all_gather --algo ring,direct,tree,chain,halving -b 8 -e 16M -f 4 --time 40ms
  measure "tcp-$n" --local "${n}x1" --scope cross --op all_reduce,broadcast,all_gather --algo ring,direct,tree,chain,halving -b 8 -e 4M -f 4 --time 40ms
done
if [ "$(id -u)" = 0 ]; then
  echo "measuring shaped links" >&2
  # shellcheck disable=SC2086
  "$here/shaped.sh" "$busbw" "$out" 400mbit $ranks 2>"$out/shaped.log" || { tail "$out/shaped.log" >&2; exit 1; }
fi
echo "$(nproc) cores, $(uname -m), Linux $(uname -r)"
echo "| results | fitted | predicted | median error | 90 % within | measured times known to | in their interval |"
echo "|---|---|---|---|---|---|---|"
row "shared memory, 2 to 8 ranks, 8 B to 8 MiB" "$out"/memory-*.jsonl.zst
row "TCP on loopback, 2 to 8 nodes, 8 B to 2 MiB" "$out"/tcp-*.jsonl.zst
if [ "$(id -u)" = 0 ]; then
  row "namespaces behind 400 Mbit/s, 2 to 8 nodes, 1 KiB to 1 MiB" "$out"/shaped-*.jsonl.zst
else
  echo "namespaces behind shaped links need root: left out"
fi
