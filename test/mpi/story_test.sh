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
# once NUMBER PATTERN: NUMBER lines match.
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
once 1 'communicator of 4 ranks: allreduce of 100000 bytes by [a-z_0-9]+, path mapped'
host=$(hostname | cut -d. -f1)
[ "$(grep -cE "(^|\] )$host:[0-3] hetcoll: " "$work/lines")" -eq "$(grep -c . "$work/lines")" ]
verdict $? 'every line begins with host and rank'
[ "$(sed 's/^\[[^]]*\] //' "$work/lines" | sort | uniq -d | grep -c .)" -eq 0 ]
verdict $? 'no line is there twice'

# shellcheck disable=SC2086
job -n 1 --mca coll_hetcoll_verbose 1 $bench 1M
once 1 'communicator of 1 rank: Allreduce on device memory: hetcoll'
once 1 'communicator of 1 rank: allreduce of 1048576 bytes by [a-z_0-9]+, path'

# A small call, too, says which GPU each rank has, and who served it.
# shellcheck disable=SC2086
job -n 2 --mca coll_hetcoll_verbose 1 $bench 8
once 2 'hetcoll: GPU [^ ]+ [0-9a-f:.]+'
once 1 'communicator of 2 ranks: allreduce of 8 bytes by host, path small'

# The story in files, one a rank; a file that cannot be written leaves it on stderr.
# shellcheck disable=SC2086
job -n 2 --mca coll_hetcoll_verbose 1 --mca coll_hetcoll_verbose_file "$work/story.%r" $bench 8
once 0 'hetcoll: (GPU|version|communicator)'
[ "$(grep -cE "^$host:[01] hetcoll: GPU " "$work/story.0" "$work/story.1" | grep -c ':1$')" -eq 2 ]
verdict $? 'each file has its rank and GPU'
# shellcheck disable=SC2086
job -n 2 --mca coll_hetcoll_verbose 1 --mca coll_hetcoll_verbose_file /no/folder/story $bench 8
once 1 'coll_hetcoll_verbose_file: /no/folder/story.0 cannot be written \(.*\), so its lines go to stderr'
once 2 'hetcoll: GPU '

# A thousand communicators have these facts in common.
job -n 2 --mca coll_hetcoll_verbose 1 "$build/test/mpi/churn" communicators
once 2 'communicator of 2 ranks: Allreduce on device memory: hetcoll' # each rank is the first of some of them
once 2 'hetcoll: GPU '
[ "$(sed 's/^\[[^]]*\] //' "$work/lines" | sort | uniq -d | grep -c .)" -eq 0 ]
verdict $? 'no line is there twice for many communicators'

# shellcheck disable=SC2086
job -n 2 --mca coll_hetcoll_verbose 2 --mca coll_hetcoll_algorithm ring $bench 8192,100000,1M
once 1 'set: .*coll_hetcoll_algorithm \(.*\) = ring'
once 1 'allreduce of 100000 bytes by ring'
once 1 'allreduce of 1048576 bytes by ring'

# shellcheck disable=SC2086
job -n 1 --mca coll_hetcoll_verbose 1 $bench 100000 : -n 1 -x OMPI_MCA_coll_hetcoll_small_limit=4096 $bench 100000
once 1 'coll_hetcoll_small_limit of rank 1 is not that of rank 0: that of rank 1 counts'

# table_for GPU: a job with a tuning table for machines with that GPU.
table_for()
{
    cat >"$work/table.json" <<END
{"rule_file_version": 3, "module": "hetcoll", "machines": [{"name": "here", "fingerprint": {"gpu": "$1"}}],
 "collectives": {"allreduce": [{"machine": "here", "rules": [{"msg_size_min": 0, "msg_size_max": "inf", "alg": "ring"}]}]}}
END
    # shellcheck disable=SC2086
    job -n 2 --mca coll_hetcoll_verbose 1 --mca coll_hetcoll_tuning_table "$work/table.json" $bench 100000
}
table_for Emulated-GPU
once 1 "algorithms go by the tuning table $work/table.json, which is for this machine: here, then by price"
once 1 'allreduce of 100000 bytes by ring'
table_for 'Nobody-has-this'
once 1 'algorithms go by the price of the links, as the tuning table is for other machines'

# Two nodes, and ranks that are told different things: at most one line a fact a node.
# shellcheck disable=SC2086
job -n 2 --mca coll_hetcoll_verbose 1 --mca coll_hetcoll_ipc never "$source/test/mpi/on_nodes.sh" 0,0,1,1 $bench 100000 : \
    -n 2 -x OMPI_MCA_coll_hetcoll_reproducible=1 -x OMPI_MCA_coll_hetcoll_shares=2,1,1,1 "$source/test/mpi/on_nodes.sh" 0,0,1,1 $bench 100000
once 1 'communicator of 4 ranks: Allreduce on device memory: hetcoll'
once 4 'hetcoll: GPU '
once 1 'ranks 0, 1 of this node: '
once 1 'ranks 2, 3 of this node: '
once 2 'algorithms go by the price of the links'
once 1 'coll_hetcoll_reproducible of rank 2 is not that of rank 0: that of rank 2 counts'
once 1 'coll_hetcoll_shares of rank 2 is not that of rank 0: it counts as not set'
once 1 'allreduce of 100000 bytes by '
[ "$(grep -c . "$work/lines")" -le 16 ]
verdict $? 'in all at most 16 lines'

# shellcheck disable=SC2086
job -n 2 $bench 8,1M
[ ! -s "$work/lines" ]
verdict $? 'without it there is no line'

# Which of two truths counts needs no level.
# shellcheck disable=SC2086
job -n 1 $bench 100000 : -n 1 -x OMPI_MCA_coll_hetcoll_algorithm=ring $bench 100000
once 1 'coll_hetcoll_algorithm of rank 1 is not that of rank 0: that of rank 0 counts'
# shellcheck disable=SC2086
job -n 2 --mca coll_hetcoll_topology_file "$source/topology/machines/dgxa100.topology" $bench 100000
once 1 'coll_hetcoll_topology_file \(DGX A100\) has no GPU with the bus id 0000:06:00.0'
# shellcheck disable=SC2086
job -n 2 --mca coll_hetcoll_topology_file "$source/topology/machines/dgx1v.topology" $bench 100000
once 0 'coll_hetcoll_topology_file'

# shellcheck disable=SC2086
job -n 3 --mca coll_hetcoll_algorithm leader --mca coll_hetcoll_trace "$work/trace" $bench 1M
grep -q '"algorithm":"leader","path":"mapped"' "$work/trace.2" && ! grep '"path":"bounce"' "$work"/trace.[012]
verdict $? "all ranks of a leader's call are mapped"

sum_up
