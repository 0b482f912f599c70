#!/bin/bash
# bench.sh BUSBW [run_peers.sh options]: busbw and the peers take turns on this machine; prints each one's
# time and, last, the table of ratios: time of the best peer of a kind / time of busbw. Medians (p50 of each
# run's iterations, then the median over the runs). See docs/performance.md.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
busbw=$(realpath "$1"); shift
tmp=$(mktemp -d); trap 'rm -rf "$tmp"' EXIT
for kind in sm tcp; do
  printf '%s\tbusbw\t%s-auto\t%s/busbw.sh %s %s @N@ @SIZES@ @COLL@ @T@\n' $kind $kind "$here" "$busbw" $kind
  [ $kind = sm ] && printf '%s\tbusbw\t%s-named\t%s/busbw.sh %s %s @N@ @SIZES@ @COLL@ @T@ ring,tree\n' $kind $kind "$here" "$busbw" $kind
done >"$tmp/ours.tab"
"$here/run_peers.sh" -m p50 -s -c "$tmp/ours.tab" "$@" | tee "$tmp/all.csv" || true
echo
awk -F, '
  NR == 1 { next }
  { kind = $2 ~ /^sm/ ? "memory" : "tcp"; k = kind "," $4 "," $3; b = $5 + 0; if (!((k, b) in seen)) { seen[k, b] = 1; sizes[b] = 1 } }
  $1 == "busbw" { n = split($2, w, "-"); row = k "," w[n]; ours[row, b] = $6; rows[row] = k; next }
  !((k, b) in best) || $6 < best[k, b] { best[k, b] = $6; who[k, b] = $1 " " $2 }
  END {
    m = 0; for (s in sizes) order[++m] = s + 0
    for (i = 2; i <= m; i++) { t = order[i]; for (j = i - 1; j > 0 && order[j] > t; j--) order[j + 1] = order[j]; order[j + 1] = t }
    printf "%-8s %5s %-10s %-7s", "link", "ranks", "op", "busbw"
    for (i = 1; i <= m; i++) printf " %26s", order[i] " B"
    printf "\n"
    for (r in rows) {
      split(r, f, ","); line = sprintf("%-8s %5d %-10s %-7s", f[1], f[2], f[3], f[4])
      for (i = 1; i <= m; i++) { b = order[i]; k = rows[r]
        line = line ((r, b) in ours && (k, b) in best ? sprintf(" %5.2f (%8.1f / %8.1f µs)", best[k, b] / ours[r, b], best[k, b], ours[r, b]) : sprintf(" %26s", "-")) }
      print line | "sort"
    }
  }' "$tmp/all.csv"
