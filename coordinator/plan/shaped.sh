#!/bin/bash
# Measures on nodes that are network namespaces of this machine, each behind a
# link of RATE: shaped.sh BUSBW OUTDIR [RATE] [NODES…]. Needs root. The results
# are for busbw plan --like … --check (docs/plan.md).
set -euo pipefail
busbw=$(realpath "$1") out=$2 rate=${3:-400mbit}
shift $(($# < 3 ? $# : 3))
nodes=("${@:-2 3 4 6 8}")
read -ra nodes <<<"${nodes[*]}"
mkdir -p "$out"
most=$(printf '%s\n' "${nodes[@]}" | sort -n | tail -1)
tag=bw$$
pids=()
clean() {
  for p in "${pids[@]}"; do kill "$p" 2>/dev/null || true; done
  for i in $(seq 0 "$most"); do ip netns del "$tag-$i" 2>/dev/null || true; done
  ip link del "$tag" 2>/dev/null || true
}
trap clean EXIT
ip link add "$tag" type bridge
ip link set "$tag" up
for i in $(seq 0 "$most"); do # 0 is the one who asks
  ip netns add "$tag-$i"
  ip link add "$tag.$i" type veth peer name eth0 netns "$tag-$i"
  ip link set "$tag.$i" master "$tag" up
  ip -n "$tag-$i" addr add "10.99.0.$((i + 1))/24" dev eth0
  ip -n "$tag-$i" link set eth0 up
  ip -n "$tag-$i" link set lo up
  ip netns exec "$tag-$i" tc qdisc add dev eth0 root tbf rate "$rate" burst 8kb latency 200ms # what the node sends; a larger burst would let small messages pass for nothing
  tc qdisc add dev "$tag.$i" root tbf rate "$rate" burst 8kb latency 200ms                     # what it receives
done
head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$out/key"
chmod 600 "$out/key"
started=0
for n in "${nodes[@]}"; do
  while [ "$started" -lt "$n" ]; do
    started=$((started + 1))
    ip netns exec "$tag-$started" "$busbw" worker --secret-file "$out/key" --ranks 1 --name "n$started" \
      --bind "10.99.0.$((started + 1)):7946" ${join:-} 2>"$out/worker-$started.log" &
    pids+=($!)
    join="--join 10.99.0.2:7946"
    sleep 1
  done
  ip netns exec "$tag-0" "$busbw" run --secret-file "$out/key" --bind 10.99.0.1:0 --join 10.99.0.2:7946 --nodes "$n" \
    --scope cross --op all_reduce --algo ring,tree,halving -b 1K -e 1M -f 4 -n 25 -w 4 --output "$out/shaped-$n.jsonl.zst" >/dev/null
done
rm -f "$out/key"
