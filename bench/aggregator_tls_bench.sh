#!/bin/bash
# aggregator_tls_bench.sh [BUILD_DIR] [PAIRS] [MIB] [ITERATIONS]: what TLS costs an aggregator: two workers on the
# loopback device, their vectors over TLS, and as plain bytes by UCX's TCP (--rdma tcp/lo). Writes a results file to
# stdout.
#
# Runs come in pairs, in changing order. A run's time is the slower worker's median; the server's processor time is that
# of the whole run, by the bytes that it received and sent.
set -u
build=$(cd "${1:-.}" && pwd) || exit 1
here=$(cd "$(dirname "$0")" && pwd)
pairs=${2:-8} mib=${3:-16} iterations=${4:-10}
. "$here/job.sh"
. "$here/../test/aggregator/net.sh"
builddir=$build
begin

# run OPTION...: "seconds of a call, the server's nanoseconds a byte".
run()
{
    local rank ticks
    serve s - 127.0.0.1:0 "$@" || exit 1
    group=()
    for rank in 0 1; do
        worker "w$rank" - --aggregator "$served_at" --key "$work/key" --rank "$rank" --ranks 2 \
            --count $((mib * 262144)) --iterations "$iterations" --warmup 1 --float "$@"
        group+=("$started")
    done
    for rank in 0 1; do
        wait "${group[rank]}" || { cat "$work/w$rank.out" "$work/w$rank.err" >&2; exit 1; }
    done
    ticks=$(awk '{ print $14 + $15 }' "/proc/$served/stat")
    kill "$served"
    wait "$served"
    if [ $# -gt 0 ] && [ "$(field "$work/s.out" by_rdma)" = 0 ]; then
        echo "aggregator_tls_bench.sh: no UCX, so no plain bytes: $(cat "$work/s.err")" >&2
        exit 1
    fi
    awk -v ticks="$ticks" -v hz="$(getconf CLK_TCK)" -v bytes=$((4 * mib * 1048576 * (iterations + 1))) \
        -v a="$(field "$work/w0.out" median_s)" -v b="$(field "$work/w1.out" median_s)" \
        'BEGIN { print (a > b ? a : b), ticks / hz * 1e9 / bytes }'
}

header
cat <<END
# tls           $(openssl version 2>/dev/null | cut -d ' ' -f 1,2), TLS_AES_128_GCM_SHA256, records of 16 KiB
# plain         UCX's TCP, packets of 8 KiB
# pairs         $pairs of runs, in changing order, of $iterations calls after one; 2 ranks, $mib MiB of floats, messages
#               of 256 KiB, window 8; server and ranks share the processors
#
# OpenSSL alone, one core, AES-128-GCM in blocks of 16 KiB: $(openssl speed -evp aes-128-gcm -bytes 16384 -seconds 3 2>/dev/null |
    awk '/^AES-128-GCM/ { printf "%.2f GB/s, %.3f ns a byte", $2 / 1e6, 1e6 / $2 }')
# made by: bench/aggregator_tls_bench.sh BUILD $pairs $mib $iterations
# way     call (s)   GB/s a rank, each way   server's processor time (ns a byte in or out)
END
: >"$work/times"
for pair in $(seq "$pairs"); do
    if [ $((pair % 2)) -eq 0 ]; then
        plain=$(run --rdma tcp/lo) && tls=$(run) || exit 1
    else
        tls=$(run) && plain=$(run --rdma tcp/lo) || exit 1
    fi
    echo "$tls $plain" >>"$work/times"
done
python3 - "$work/times" "$mib" <<'PYTHON'
import statistics, sys
times = [tuple(map(float, line.split())) for line in open(sys.argv[1])]
for name, column in (("tls", 0), ("plain", 2)):
    seconds, cost = (statistics.median(row[column + i] for row in times) for i in (0, 1))
    print(f"{name:5} {seconds:12.4f} {int(sys.argv[2]) * 1048576 / seconds / 1e9:12.2f} {cost:27.2f}")
for name, column in (("time", 0), ("processor time", 1)):
    ratio = sorted(row[column] / row[column + 2] for row in times)
    print(f"# {name} of tls over plain, of each pair: {statistics.median(ratio):.2f}, {ratio[0]:.2f} to {ratio[-1]:.2f}")
PYTHON
