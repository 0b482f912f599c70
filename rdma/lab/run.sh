#!/bin/bash
# Real RC queue pairs without RDMA hardware: boots NODES emulated machines (QEMU's TCG: no KVM, no root, no network set-up), each with
# a Soft-RoCE device rxe0 at 10.77.0.<id>, runs a command on each, and prints what each console said.
#
#   run.sh NODES DIR CMD1 [CMD2 ...]     node i runs CMDi (the last one serves the rest) in a copy of DIR at /lab
#   run.sh --install                     installs the Debian packages that it needs (root)
#   run.sh --missing                     names the programs that are missing; silent when there are none
#
# Processes on one node reach each other over its rxe0 too: the fastest laboratory, and enough for most tests.
# Environment: SMP=2 for one node, 1 for several   MTU=4200   CPU=qemu64   MEM=512 (MiB)   TIMEOUT=120 (s)   APPEND="kernel words"
#              NICE=19   OUT=dir, mounted at /out on every node   WORK=<repository>/.cache/rdma-lab, which keeps kernel and base image
# Exit status 0 when every node's command exited 0.
#
# Why it is set up so (measured on 2 cores): -cpu max makes the kernel copy by `rep movsb`, a byte loop under TCG: half the bandwidth of
# qemu64. A socket netdev over TCP costs 22 ms a message (Nagle and delayed acknowledgements): stream netdevs over unix sockets. One
# node wants two CPUs, so that a polling process and the softirq that serves it do not share one (4 ms -> 30 us a message).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
packages=(qemu-system-x86 busybox-static libibverbs-dev ibverbs-providers ibverbs-utils perftest iproute2 kmod cpio xz-utils)
programs=(qemu-system-x86_64 busybox ib_write_bw ibv_devinfo ip modprobe cpio xz apt-get)
case ${1:-} in
--install) export DEBIAN_FRONTEND=noninteractive; apt-get update -q && apt-get install -qy --no-install-recommends "${packages[@]}"; exit ;;
--missing) for p in "${programs[@]}"; do command -v "$p" >/dev/null || [ -x "/sbin/$p" ] || echo "$p"; done; exit ;;
esac
[ $# -ge 3 ] || { sed -n '2,14p' "$0"; exit 2; }
nodes=$1 dir=$2; shift 2
[ "$nodes" -ge 1 ] && [ "$nodes" -le 9 ] || { echo "run.sh: 1 to 9 nodes, not $nodes" >&2; exit 2; }
[ "$nodes" = 1 ] && smp=2 || smp=1
SMP=${SMP:-$smp} MTU=${MTU:-4200} CPU=${CPU:-qemu64} APPEND=${APPEND:-} TIMEOUT=${TIMEOUT:-120} MEM=${MEM:-512} OUT=${OUT:-} NICE=${NICE:-19}
WORK=${WORK:-$here/../../.cache/rdma-lab}
mkdir -p "$WORK"; WORK=$(cd "$WORK" && pwd)
PATH=$PATH:/sbin:/usr/sbin

# The kernel package is downloaded and unpacked, never installed.
kernel() {
  [ "$WORK/kernel" -nt "$here/run.sh" ] && return
  local name want; name=$(apt-cache depends linux-image-amd64 | awk '/Depends:/{print $2; exit}')
  rm -rf "$WORK/k"; mkdir -p "$WORK/k"; chmod 777 "$WORK/k"
  want=('./boot/vmlinuz-*' '*/modules.*'); for m in rdma_rxe ib_\* rdma_\* iw_cm virtio\* \*failover udp_tunnel ip6_udp_tunnel crc32\* 9p\* netfs fscache configfs libcrc32c sch_netem macvlan; do want+=("*/$m.ko"); done
  (cd "$WORK/k"; apt-get download -q "$name" >/dev/null; dpkg-deb --fsys-tarfile "$name"_*.deb | tar -x --wildcards "${want[@]}" 2>/dev/null || true; rm -f ./*.deb; depmod -b . "$(ls lib/modules)")
  # Take vmlinux out of the bzImage here: unpacking it inside the emulated CPU costs 5 s a boot. QEMU boots the ELF by its PVH note.
  local z off len; z=$(echo "$WORK"/k/boot/vmlinuz-*)
  le32() { od -An -tu4 -j$(($1)) -N4 "$z" | tr -d ' '; }
  off=$((($(od -An -tu1 -j$((0x1f1)) -N1 "$z") + 1) * 512 + $(le32 0x248))); len=$(le32 0x24c)
  tail -c +$((off + 1)) "$z" | head -c "$len" | xz -dc --single-stream > "$WORK/vmlinux" 2>/dev/null || true
  if [ "$(head -c4 "$WORK/vmlinux" | tail -c3)" = ELF ]; then mv "$WORK/vmlinux" "$WORK/kernel"; else cp "$z" "$WORK/kernel"; fi
}
# What the emulated CPU's time stamp counter runs at, which is this machine's, kHz. A guest finds out by counting against an emulated timer;
# when this machine is busy meanwhile it comes out wrong by up to ten times, and so do all its clocks.
khz() {
  [ -x "$WORK/khz" ] || cc -O1 -x c -o "$WORK/khz" - <<'C' || return 0
#include <stdio.h>
#include <time.h>
#include <x86intrin.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1e3 + t.tv_nsec / 1e6; }
static void both(double *ms, unsigned long long *tsc) { // read at one moment: the closest of many tries
  double best = 1e9;
  for (int i = 0; i < 1000; i++) {
    double a = now(); unsigned long long c = __rdtsc(); double b = now();
    if (b - a < best) best = b - a, *ms = (a + b) / 2, *tsc = c;
  }
}
int main(void) {
  double a, b; unsigned long long x, y;
  both(&a, &x);
  nanosleep(&(struct timespec){0, 200000000}, 0);
  both(&b, &y);
  printf("tsc_early_khz=%.0f", (y - x) / (b - a));
}
C
  "$WORK/khz"
}
modules() { # module files, in the order in which they load; without crc32_generic `rdma link add` fails with ENOENT
  local m v; v=$(ls "$WORK/k/lib/modules")
  for m in virtio_pci virtio_net crc32_generic rdma_rxe ib_uverbs rdma_ucm 9pnet_virtio 9p sch_netem macvlan; do
    modprobe -d "$WORK/k" -S "$v" --show-depends "$m" | awk '$1 == "insmod" {print $2}'
  done | awk '!seen[$0]++' | sed "s#^$WORK/k##"
}
libraries() { # of program $1, into root $2
  local l; for l in $(ldd "$1" 2>/dev/null | grep -o '/[^ ]*'); do [ -e "$2$l" ] || { mkdir -p "$2$(dirname "$l")"; cp -L "$l" "$2$l"; }; done
}
program() { local p; p=$(command -v "$1") || return 0; rm -f "$2/bin/$1"; cp -L "$p" "$2/bin/"; libraries "$p" "$2"; }
base() { # the part of the initramfs that does not change between runs
  [ "$WORK/base.cpio" -nt "$here/init" ] && [ "$WORK/base.cpio" -nt "$here/run.sh" ] && return
  local r=$WORK/root a m usr=/usr/lib/x86_64-linux-gnu lib=/lib/x86_64-linux-gnu
  rm -rf "$r"; mkdir -p "$r"/{bin,etc/libibverbs.d,proc,sys,dev,tmp,run,lab,out} "$r$lib" "$r$usr/libibverbs"
  cp "$(command -v busybox)" "$r/bin/busybox"
  for a in $("$r/bin/busybox" --list); do [ "$a" = busybox ] || ln -sf busybox "$r/bin/$a"; done
  for a in ip rdma tc ibv_devinfo ib_write_bw ib_write_lat ib_send_bw ib_send_lat ib_read_bw ib_read_lat; do program $a "$r"; done
  cp -L $usr/libibverbs.so.1 "$r$lib/"; libraries $usr/libibverbs.so.1 "$r"
  for a in libdl.so.2 libpthread.so.0 librt.so.1 libresolv.so.2 libm.so.6; do cp -L $usr/$a "$r$lib/"; done
  cp $usr/libibverbs/librxe-rdmav*.so "$r$usr/libibverbs/"; libraries "$(ls $usr/libibverbs/librxe-rdmav*.so)" "$r"
  cp /etc/libibverbs.d/rxe.driver "$r/etc/libibverbs.d/"
  modules > "$r/lab/.modules"
  while read -r m; do mkdir -p "$r$(dirname "$m")"; cp "$WORK/k$m" "$r$m"; done < "$r/lab/.modules"
  install -m 755 "$here/init" "$r/init"
  (cd "$r" && find . | cpio -o -H newc --quiet) > "$WORK/base.tmp"; mv "$WORK/base.tmp" "$WORK/base.cpio"; rm -rf "$r"
}
exec 9>"$WORK/lock"; flock 9; kernel; base; clock=$(khz); flock -u 9

run=$WORK/run.$$; mkdir -p "$run/lab"; cp -a "$dir/." "$run/lab/"
for i in $(seq "$nodes"); do printf '%s\n' "${!i:-${!#}}" > "$run/lab/.cmd.$i"; done
(cd "$run" && find lab | cpio -o -H newc --quiet) | cat "$WORK/base.cpio" - > "$run/initrd" # an initramfs may be several archives

pids=(); trap 'for p in "${pids[@]}"; do kill "$p" 2>/dev/null || true; done; rm -rf "$run"' EXIT
start=$EPOCHREALTIME
for i in $(seq "$nodes"); do
  net=() # node 1 is the hub of a star of unix sockets
  if [ "$nodes" = 1 ]; then net=(-netdev user,id=n,restrict=on)
  elif [ "$i" != 1 ]; then
    for _ in $(seq 250); do [ -S "$run/net$i" ] && break; sleep 0.02; done
    net=(-netdev "stream,id=n,server=off,addr.type=unix,addr.path=$run/net$i")
  elif [ "$nodes" = 2 ]; then net=(-netdev "stream,id=n,server=on,addr.type=unix,addr.path=$run/net2")
  else
    net=(-netdev hubport,id=n,hubid=0)
    for j in $(seq 2 "$nodes"); do net+=(-netdev "stream,id=s$j,server=on,addr.type=unix,addr.path=$run/net$j" -netdev "hubport,id=h$j,hubid=0,netdev=s$j"); done
  fi
  out=0; share=(); if [ -n "$OUT" ]; then mkdir -p "$OUT"; out=1; share=(-virtfs "local,path=$OUT,mount_tag=out,security_model=none"); fi
  nice -n "$NICE" qemu-system-x86_64 -accel tcg,thread=multi -machine pc,hpet=off -cpu "$CPU" -smp "$SMP" -m "$MEM" -nodefaults -no-user-config -display none -no-reboot \
    -kernel "$WORK/kernel" -initrd "$run/initrd" -serial "file:$run/node$i.log" \
    -append "console=ttyS0 quiet panic=-1 mitigations=off tsc=reliable no_timer_check random.trust_cpu=on nokaslr $clock lab.id=$i lab.nodes=$nodes lab.mtu=$MTU lab.out=$out $APPEND" \
    "${net[@]}" -device "virtio-net-pci,netdev=n,romfile=,mac=02:00:0a:4d:00:0$i" "${share[@]}" 2>"$run/qemu$i.err" &
  pids+=($!)
done
end=$((SECONDS + TIMEOUT)) late=0
for p in "${pids[@]}"; do while kill -0 "$p" 2>/dev/null; do if [ $SECONDS -ge $end ]; then late=1; kill "$p" 2>/dev/null || true; break; fi; sleep 0.05; done; done
rc=0
for i in $(seq "$nodes"); do
  echo "--- node $i"; tr -d '\r' < "$run/node$i.log" || true; cat "$run/qemu$i.err"
  grep -q '^LAB-RC 0' "$run/node$i.log" || rc=1
done
[ $late = 0 ] || { echo "run.sh: time was up after $TIMEOUT s"; rc=1; }
echo "run.sh: $nodes node(s), $(((${EPOCHREALTIME/[.,]/} - ${start/[.,]/}) / 1000)) ms, rc $rc"
exit $rc
