#!/bin/bash
# aggregator_bench.sh [BUILD_DIR] [PAIRS] [RATE] [MIB]: compares an allreduce through an aggregator with a ring of
# the same program over the same links. Needs root. Writes a results file to stdout.
#
# Every worker is in a network namespace of its own, on a link of RATE in each direction (50mbit). The aggregator is
# in the namespace of the switch. Runs come in pairs, in changing order, and a run's time is the slowest rank's median.
# Then MPI_Allreduce of device memory on the emulated GPU does the same: every namespace is a node to mpirun, and the
# algorithms take turns in one job. That is done with two ranks on every node, too.
set -u
build=$(cd "${1:-.}" && pwd) || exit 1
here=$(cd "$(dirname "$0")" && pwd)
pairs=${2:-5} rate=${3:-50mbit} mib=${4:-16}
iterations=3
. "$here/job.sh"
. "$here/../test/aggregator/net.sh"
use_component
use_emulated_gpu
builddir=$build
begin
may_have_namespaces || { echo "aggregator_bench.sh: no network namespaces with limited links here" >&2; exit 1; }
worker_seconds=300

# slowest PREFIX RANKS: the largest median of the workers, in $seconds. Ends the script if a worker failed.
slowest()
{
    local pid rank
    for pid in "${group[@]}"; do
        wait "$pid" || { cat "$work"/"$1"*.out "$work"/"$1"*.err >&2; exit 1; }
    done
    seconds=$(for rank in $(seq 0 $(($2 - 1))); do field "$work/$1$rank.out" median_s; done | sort -n | tail -n 1)
}

# aggregated RANKS, ringed RANKS: the slowest rank's time, in $seconds.
aggregated()
{
    local rank
    serve s "${net}sw" 10.77.0.1:0 || exit 1
    group=()
    for rank in $(seq 0 $(($1 - 1))); do
        worker "a$rank" "${net}w$rank" --aggregator "$served_at" --key "$work/key" --rank "$rank" \
            --ranks "$1" --count $((mib * 262144)) --iterations $iterations --warmup 1 --float
        group+=("$started")
    done
    slowest a "$1"
    kill "$served"
    wait "$served"
}

ringed()
{
    local rank at
    at=$(for rank in $(seq 0 $(($1 - 1))); do printf '10.77.0.%d:7471,' $((10 + rank)); done)
    group=()
    for rank in $(seq 0 $(($1 - 1))); do
        worker "r$rank" "${net}w$rank" --ring "${at%,}" --rank "$rank" --count $((mib * 262144)) \
            --iterations $iterations --warmup 1 --float
        group+=("$started")
    done
    slowest r "$1"
}

# mpi NODES RANKS: a line of MPI_Allreduce, with RANKS ranks on each node.
mpi()
{
    local node hosts ranks=$(($1 * $2))
    cat >"$work/agent" <<'AGENT'
#!/bin/bash
while [[ "$1" == -* ]]; do shift; done
exec ip netns exec "$1" unshare --uts --mount --ipc /bin/bash -c '
    hostname "$1"
    mount -t tmpfs tmpfs /dev/shm
    shift
    exec /bin/bash -c "$*"' - "$@"
AGENT
    chmod +x "$work/agent"
    hosts=$(for node in $(seq 0 $(($1 - 1))); do printf '%sw%d:%d,' "$net" "$node" "$2"; done)
    serve s "${net}sw" 10.77.0.1:0 || exit 1
    timeout 600 ip netns exec "${net}sw" "$mpirun" --mca plm_rsh_agent "$work/agent" --mca plm_rsh_no_tree_spawn 1 \
        --mca routed direct --mca oob_tcp_if_include 10.77.0.0/24 --mca btl_tcp_if_include 10.77.0.0/24 \
        --mca btl self,vader,tcp --mca btl_vader_single_copy_mechanism none --mca pml ob1 \
        -H "${hosts%,}" --map-by "ppr:$2:node" --mca mpi_yield_when_idle 1 --mca rmaps_base_oversubscribe 1 \
        --mca hwloc_base_binding_policy none \
        -x LD_LIBRARY_PATH -x EMU_KERNELS -x OMPI_MCA_mca_base_component_path \
        --mca coll_hetcoll_aggregators "$served_at" --mca coll_hetcoll_aggregator_key "$work/key" \
        "$builddir/hetcoll_bench" --memory device --sizes "${mib}M" --iterations "$iterations" --warmup 1 \
        --algorithms in_network,ring,hierarchical >"$work/mpi" 2>&1 || { cat "$work/mpi" >&2; exit 1; }
    kill "$served"
    wait "$served"
    awk -v ranks="$ranks" -v each="$2" -v mib="$mib" '$1 == $4 { us[$1] = $7 }
        END { printf "%7d %8d %17.3f %11.3f %9.2f   MPI_Allreduce", ranks, mib, us["in_network"] / 1e6, us["ring"] / 1e6,
              us["ring"] / us["in_network"]
              if (each > 1) printf ", %d ranks a node; hierarchical %.3f s", each, us["hierarchical"] / 1e6
              print "" }' "$work/mpi"
}

mpirun=$(configured MPIRUN)
header
cat <<END
# network       TCP and TLS 1.3, $(openssl version 2>/dev/null | cut -d ' ' -f 1,2)
# links         $rate each way for every worker (tbf), none for the aggregator, which is where the switch is
# messages      256 KiB, window 8
# pairs         $pairs of runs, in changing order, of $iterations calls after one; slowest rank's median
#
# speedup: the ring's time over the aggregator's, of each pair; its median and spread. By the bytes alone it
# is 2 (ranks - 1) / ranks: 1.50 and 1.75.
# made by: bench/aggregator_bench.sh BUILD $pairs $rate $mib
# ranks      MiB    aggregator (s)    ring (s)   speedup   all pairs
END
for ranks in 4 8; do
    network "$ranks" "$rate" 1000000 || exit 1
    : >"$work/times"
    for pair in $(seq "$pairs"); do
        if [ $((pair % 2)) -eq 0 ]; then
            ringed "$ranks" && ring=$seconds && aggregated "$ranks" && direct=$seconds
        else
            aggregated "$ranks" && direct=$seconds && ringed "$ranks" && ring=$seconds
        fi
        echo "$direct $ring" >>"$work/times"
    done
    python3 - "$work/times" "$ranks" "$mib" <<'PYTHON'
import statistics, sys
times = [tuple(map(float, line.split())) for line in open(sys.argv[1])]
ratio = sorted(ring / direct for direct, ring in times)
print(f"{sys.argv[2]:>7} {sys.argv[3]:>8} {statistics.median(d for d, _ in times):17.3f} "
      f"{statistics.median(r for _, r in times):11.3f} {statistics.median(ratio):9.2f}   "
      f"{ratio[0]:.2f} to {ratio[-1]:.2f}")
PYTHON
    mpi "$ranks" 1
    no_network
done
for nodes in 2 4; do
    network "$nodes" "$rate" 1000000 || exit 1
    mpi "$nodes" 2
    no_network
done
