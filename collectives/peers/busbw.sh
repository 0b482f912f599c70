#!/bin/sh
# busbw.sh BUSBW KIND RANKS SIZES COLL SECONDS [ALGORITHMS]: one run of busbw as run_peers.sh wants it, one
# line of CSV a size: peer,transport,collective,ranks,bytes,mean_us,algbw,busbw,p50_us,min_us,iterations
#
# KIND sm: all ranks in one process; tcp: one rank a process. As the peers do, the same buffers are used in
# every iteration, no huge pages are asked for, and broadcast, but not allreduce, is in place.
set -eu
busbw=$1 kind=$2 ranks=$3 sizes=$4 coll=$5 secs=$6 algo=${7:-auto}
case $kind in
sm) local=1x$ranks scope=intra ;;
tcp) local=${ranks}x1 scope=cross ;;
esac
case $coll in
allreduce) ops=all_reduce ;;
bcast) ops=broadcast ;;
both) ops="all_reduce broadcast" ;;
esac
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
for op in $ops; do
  case $op in
  all_reduce) place=out ;;
  broadcast) place=in ;;
  esac
  "$busbw" run --local "$local" --scope $scope --op "$op" --algo "$algo" --inplace $place --sizes "$sizes" --time "${secs}s" \
    --no-rotate --huge=false --format csv --output "$tmp/$op.jsonl.zst" 2>/dev/null
done |
  awk -F, -v kind="$kind" -v algo="$algo" '
    $1 == "time" { for (i = 1; i <= NF; i++) col[$i] = i; next }
    {
      c = $col["op"] == "all_reduce" ? "allreduce" : "bcast"
      printf "busbw,%s-%s,%s,%d,%d,%.3f,%.4f,%.4f,%.3f,%.3f,%d\n", kind, algo == "auto" ? "auto" : $col["algorithm"], c,
        $col["ranks"], $col["bytes"], $col["median_s"] * 1e6, $col["algbw_gb_per_s"], $col["busbw_gb_per_s"],
        $col["median_s"] * 1e6, $col["min_s"] * 1e6, $col["iterations"]
    }'
