#!/bin/sh
# closed_forms.sh [HETCOLL_SIM] [FOLDER] >bench/results/sim_closed_forms.txt: compares simulated times with the
# closed forms where these are exact, at 64, 256 and 1,024 ranks, and with 512 servers on switches that reduce.
# FOLDER has the topology files. Takes some minutes of a processor. The unit tests do part of it.
set -eu
sim=${1:-hetcoll_sim}
machines=${2:-$(dirname "$0")/../topology/machines}
echo "# result simulated times against closed forms, no machine was measured"
echo "# form recursive_doubling  messages of m bytes in chunks of c: L (a + m/B + 3m/M) if m <= c, else L m/B + a + 3c/M; L = log2 n"
echo "# form rabenseifner        the same of halves, while m/2 <= c"
echo "# form ring                (n-1) (max(p/B, a + c/B + 3c/M) + max(p/B, a + c/B)) and the last chunks, p = m/n, c <= p"
echo "# form hierarchical        2 (a' + 7 s/B') + log2(nodes) (A + s/C + 3s/M), s = m/8 <= c, in one segment"
echo "# form in_network          l + m/C + (2h - 1) c/C, messages of c = 170 KiB, h levels of switches; l = 11 us and 2 h hops of 1 us"
echo "# constants a = A = 13 us, B = 12 GB/s, M = 500 GB/s; a' = 10 us, B' = 450 GB/s, C = 48 GB/s"
$sim --topology "$machines/p100.topology" --nodes 2 --describe | grep -E 'commit|simulated on|date'
printf '#%-18s %6s %11s %12s %12s %8s\n' algorithm ranks bytes "simulated us" "closed us" "error %"

# point TOPOLOGY ALGORITHM RANKS_PER_NODE RANKS BYTES [OPTION...]
point()
{
    topology=$1 algorithm=$2 each=$3 ranks=$4 bytes=$5
    shift 5
    json=$(mktemp)
    file=$machines/$topology.topology
    [ -e "$file" ] || file=$machines/$topology.cluster
    $sim --topology "$file" --nodes $((ranks / each)) --bytes "$bytes" --algorithm "$algorithm" \
        --no-meetings --json "$json" "$@" >/dev/null
    python3 - "$json" <<'P'
import json, math, sys
r = json.load(open(sys.argv[1]))["results"][0]
n, m, c, us, name = r["ranks"], r["bytes"], r["chunk_bytes"], r["median_us"], r["algorithm"]
a, B, M = 13, 12e3, 500e3
L = int(math.log2(n))
if name == "recursive_doubling":
    closed = L * (a + m / B + 3 * m / M) if m <= c else L * m / B + a + 3 * c / M
elif name == "rabenseifner":
    closed, share = 0, m
    for _ in range(L):
        share = max(share / 2, 4)
        closed += 2 * (a + share / B) + 3 * share / M
elif name == "ring":
    p = 4 * math.ceil(m / 4 / n)
    c = min(c, p)
    first, second = a + c / B + 3 * c / M, a + c / B  # of a chunk, in each half
    closed = (n - 1) * (max(p / B, first) + max(p / B, second)) + (a if p / B > first else (p - c) / B)
elif name == "in_network":
    levels = 1 if n <= 16 else 2
    latency, message = 2 * (a - 2) / 2 + 2 * levels, 170 * 1024
    closed = latency + m / 11.8e3 + (2 * levels - 1) * message / 11.8e3
else:
    s = m / 8
    closed = 2 * (10 + 7 * s / 450e3) + math.log2(r["nodes"]) * (a + s / 48e3 + 3 * s / M)
print(f" {name:18} {n:6} {m:11} {us:12.2f} {closed:12.2f} {100 * (us / closed - 1):8.3f}")
P
    rm -f "$json"
}

for ranks in 64 256 1024; do
    for bytes in 8 1024 32768 1048576 33554432 268435456; do
        point p100 recursive_doubling 1 $ranks $bytes
        if [ "$bytes" -lt 200000 ]; then
            point p100 rabenseifner 1 $ranks $bytes
        fi
        if [ "$ranks" = 1024 ] && [ "$bytes" -gt 200000000 ]; then # a part is one message, or it would be four
            point p100 ring 1 $ranks $bytes --chunk 256K
        else
            point p100 ring 1 $ranks $bytes
        fi
    done
    for bytes in 1024 8192; do # larger vectors in several segments, of which one is at work while another waits
        point dgxh100 hierarchical 8 $ranks $bytes --between-nodes recursive_doubling --chunk 512K
    done
done
for ranks in 6 64 512; do
    point netreduce in_network 1 $ranks 100000000 --window 8
done
