#!/bin/bash
# emulated_choice.sh [BUILD]: what hetcoll chooses without a table, over the fastest algorithm, both run by the component
# on the emulated GPU, on one and two nodes. Links carry the list speeds of a shipped topology times one scale, and the
# first byte of a launch or copy moves LATENCY over the scale after its call, as by the price of a launch and a handshake.
# The network between two nodes is this machine's memory: only the PCIe on both sides has a rate, and so hetcoll is told a
# topology whose adapters are at the processors, with links that are never full. It says nothing about a GPU.
#
# A run counts only if the processors were less than half busy. Otherwise they were the limit, not the links.
# An algorithm that took more than 2.5 times as long as the fastest, and lost no ground between the last two sizes, is
# left out of larger ones: one that waits for latencies gains ground as vectors grow, one that moves too many bytes does not.
# Environment: SCALE, LATENCY (us, at list speed), SIZES (from small to large), ITERATIONS, and MACHINES: names of
# topologies, ranks and nodes.
set -eu
here=$(dirname "$(readlink -f "$0")")
cd "${1:-build}" 2>/dev/null && [ -x hetcoll_bench ] || {
    echo "emulated_choice.sh: ${1:-build} has no hetcoll_bench: give the folder in which hetcoll was built" >&2
    exit 1
}
scale=${SCALE:-0.002} latency=${LATENCY:-8} sizes=${SIZES:-64K,128K,256K,512K,1M,2M,4M,8M,16M}
iterations=${ITERATIONS:-3}
told=$(mktemp) || exit 1
trap 'rm -f "$told"' EXIT
read -r -d '' -a machines <<<"${MACHINES:-pcie8 8 1  dgx1v 8 1  dgxa100 8 1  dgx1v:0-3 4 2  pcie8:0-3 4 2}" || true
build=$PWD
. "$here/job.sh"
use_emulated_links
emulated_latency=$(awk -v us="$latency" -v scale="$scale" 'BEGIN { printf "%d", us / scale }')

echo "# what          allreduce of float on device memory: the choice over the fastest; link model, not GPU speed"
header
echo "# links         list speeds of topology/machines, times $scale; $emulated_latency us from a launch or copy to its first byte"
echo "# times         median of $iterations, slowest rank, algorithms in turns in one run, every element checked, us"
echo "# fastest       of all algorithms, but those that had fallen behind at smaller sizes: they are left out"
echo "# busy          share of all processors while it ran; 0.50 and more does not count"
echo "#"
echo "#topology        ranks nodes       size   chosen        us  fastest                    us   ratio busy"

# tell FILE: that machine to $told, without a rate of its network.
tell()
{
    awk '{
            for (i = 3; i < NF; ++i)
                if ($i == "numa")
                    numa[$2] = $(i + 1)
        }
        $1 == "cpu" { cpu[numa[$2]] = $2 }
        $1 == "nic" { nics[$2] }
        $1 == "network" { network = $2 }
        $1 != "link" || !($2 in nics || $3 in nics)
        END {
            for (nic in nics)
                printf "link %s %s pcie 1 1000\nlink %s %s network 1 1000\n", nic, cpu[numa[nic]], nic, network
        }' "$1" >"$told"
}

# times ALGORITHMS BYTES: runs `ranks` on each of `nodes` of `topology`, and prints "algorithm us".
times()
{
    local output
    output=$(EMU_LINKS=$machine$gpus OMPI_MCA_coll_hetcoll_topology_file=$given \
        EMU_LINK_SCALE=$scale EMU_LINK_LATENCY_US=$emulated_latency EMU_NODE=choice$$ timeout -k 5 600 \
        "$(configured MPIRUN)" --mca coll hetcoll -n $((ranks * nodes)) "$here/../test/mpi/on_nodes.sh" "$places" \
        ./hetcoll_bench --memory device --algorithms "$1" --sizes "$2" --iterations "$iterations" --warmup 1 \
        2>&1 </dev/null) || {
        echo "emulated_choice.sh: $topology with $ranks ranks on each of $nodes nodes failed: $output" >&2
        exit 1
    }
    awk '$11 == "ok" && $2 ~ /^[0-9]+$/ && $1 != "host_copy" { print $1, $7 }' <<<"$output"
}

for ((i = 0; i < ${#machines[@]}; i += 3)); do
    topology=${machines[i]} ranks=${machines[i + 1]} nodes=${machines[i + 2]}
    machine=$here/../topology/machines/${topology%%:*}.topology gpus=$(expr "$topology" : '[^:]*\(:.*\)' || true) given=
    [ "$nodes" = 1 ] || { tell "$machine" && given=$told$gpus; }
    places=$(for ((node = 0; node < nodes; ++node)); do yes $node | head -n "$ranks"; done | paste -sd,)
    algorithms=all before=
    for size in ${sizes//,/ }; do
        start=$(processor_time)
        now=$(times "$algorithms" "$size")
        busy=$(busy_since "$start")
        awk -v name="$topology" -v ranks=$((ranks * nodes)) -v nodes="$nodes" -v size="$size" -v busy="$busy" \
            -v note="$(counts "$busy")" '
            $1 == "auto" { chosen = $2; next }
            !best || $2 < best { best = $2; by = $1 }
            END {
                printf "%-16s %5d %5d %10s %17.0f  %-18s %10.0f %7.2f %4.2f%s\n", name, ranks, nodes, size, chosen,
                    by, best, chosen / best, busy, note
            }' <<<"$now"
        algorithms=$(awk '
            FNR == 1 { ++file }
            $1 != "auto" && (!best[file] || $2 < best[file]) { best[file] = $2 }
            file == 1 { before[$1] = $2 }
            file == 2 { now[$1] = $2 }
            END {
                for (name in now) {
                    loss = now[name] / best[2]
                    if (name == "auto" || loss <= 2.5 || !(name in before) || loss < before[name] / best[1])
                        names = names separator name
                    separator = names ? "," : ""
                }
                print names
            }' <(echo "${before:-none 0}") <(echo "$now"))
        before=$now
    done
done
