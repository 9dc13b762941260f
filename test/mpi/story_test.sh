#!/bin/bash
# story_test.sh: what coll_hetcoll_verbose tells of a job: each fact, once, with host and rank before it. And
# the trace's path of ranks whose memory another rank's kernel reduces.
# shellcheck disable=SC2154
. "$(dirname "$0")/jobs.sh"
export EMU_NODE=story$$ EMU_LINKS=$source/topology/machines/dgx1v.topology:0,1,2,4
bench="$build/hetcoll_bench --memory device --iterations 1 --warmup 0 --sizes"
# job ARGUMENT...: of mpirun.
job()
{
    timeout -k 5 600 "${MPIRUN:-$(configured MPIRUN)}" "$@" >"$work/out" 2>&1 </dev/null ||
        verdict 1 "mpirun $*"
    grep 'hetcoll: ' "$work/out" | grep -v 'runs on the emulated GPU' >"$work/lines"
}
# once NUMBER PATTERN: so many lines.
once()
{
    [ "$(grep -cE "$2" "$work/lines")" -eq "$1" ]
    verdict $? "$1 times: $2"
}

# shellcheck disable=SC2086
job -n 4 --mca coll_hetcoll_verbose 1 $bench 8,100000,1M
once 1 'hetcoll: version [0-9.]+ \(.*\) in Open MPI v.*; set: coll_hetcoll_verbose \(.*\) = 1$'
once 1 'communicator of 4 ranks: Allreduce on device memory: hetcoll'
once 4 'hetcoll: GPU [^ ]+ [0-9a-f:.]+(, NUMA [0-9]+)?, CUDA driver [0-9.]+, emulated$'
once 1 'ranks 0 to 3 of this node: 4 GPUs, links mixed [0-9a-f]+, at least [0-9.]+ GB/s between two of them'
once 1 "ranks 0 to 3 read (and write )?each other's GPU memory"
once 1 'algorithms go by the price of the links, as there is no tuning table'
once 1 'communicator [0-9]+ of 4 ranks: allreduce of 100000 bytes by [a-z_]+, path mapped'
host=$(hostname | cut -d. -f1)
[ "$(grep -cE "(^|\] )$host:[0-3] hetcoll: " "$work/lines")" -eq "$(grep -c . "$work/lines")" ]
verdict $? 'every line begins with host and rank'
[ "$(sed 's/^\[[^]]*\] //' "$work/lines" | sort | uniq -d | grep -c .)" -eq 0 ]
verdict $? 'no line is there twice'

# shellcheck disable=SC2086
job -n 2 --mca coll_hetcoll_verbose 2 --mca coll_hetcoll_algorithm ring $bench 8192,100000,1M
once 1 'set: .*coll_hetcoll_algorithm \(.*\) = ring'
once 1 'allreduce of 100000 bytes by ring'
once 1 'allreduce of 1048576 bytes by ring'

# shellcheck disable=SC2086
job -n 1 --mca coll_hetcoll_verbose 1 $bench 100000 : -n 1 -x OMPI_MCA_coll_hetcoll_small_limit=4096 $bench 100000
once 1 'coll_hetcoll_small_limit of rank 1 is not that of rank 0: the least one counts'

# shellcheck disable=SC2086
job -n 2 $bench 8,1M
[ ! -s "$work/lines" ]
verdict $? 'without it there is no line'

# shellcheck disable=SC2086
job -n 3 --mca coll_hetcoll_algorithm leader --mca coll_hetcoll_trace "$work/trace" $bench 1M
grep -q '"algorithm":"leader","path":"mapped"' "$work/trace.2" && ! grep '"path":"bounce"' "$work"/trace.[012]
verdict $? "all ranks of a leader's call are mapped"

sum_up
