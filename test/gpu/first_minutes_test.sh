#!/bin/bash
# first_minutes.sh runs its steps where there is no GPU too: what it leaves out, and that nothing it found is lost.
set -u
cd "$HETCOLL_BUILDDIR" || exit 1
. "$HETCOLL_SRCDIR/test/verdict.sh"
unset LD_LIBRARY_PATH # as on a GPU's machine: the emulated driver is taken if there is no other
# minutes STATUS ARGUMENT...
minutes()
{
    local status=$1
    shift
    timeout -k 5 300 bash "$HETCOLL_SRCDIR/test/gpu/first_minutes.sh" "$@" >"$work/out" 2>&1 </dev/null
    [ $? -eq "$status" ]
    verdict $? "first_minutes.sh $*"
}
says()
{
    grep -qE -- "$1" "$work/out"
    verdict $? "says $1"
}

minutes 2 nonsense
says 'there is no step nonsense, see --list'
minutes 2 --seconds many latency
says '--seconds many is no number of seconds'
minutes 0 --list
says '^latency +at most '

# 30 s are too few for two_nodes where own_kernels, which matters more, comes behind it.
minutes 0 --seconds 30 --archive "$work/all.tgz" two_nodes own_kernels
says '^== two_nodes is left for later'
says '^own_kernels: passed'
says '^# first_call    [0-9.]+ us, MPI_Allreduce of 8 bytes'
says '^left for later: first_minutes.sh two_nodes$'
gpu=$(sed -nE 's/^# gpu  *([^:]*).*/\1/p' "$work/out" | head -n 1 | tr -cs 'A-Za-z0-9.\n-' _)
tar -C "$work" -xzf "$work/all.tgz" && grep -q '^# part        own_kernels' "$work/own_kernels_$gpu.txt" &&
    tail -n 1 "$work/own_kernels_$gpu.txt" | grep -q '^# result      passed, ' && [ ! -e "$work/two_nodes_$gpu.txt" ]
verdict $? 'the archive has what ran'

HETCOLL_HOROVOD=$work/none minutes 0 horovod_checks
says '^horovod_checks: left out: Horovod was not carried along'
sum_up
