#!/bin/bash
# memory.sh: kinds of memory, sizes up to what counts can say, and streams.
# shellcheck disable=SC2154,SC2034
. "$(dirname "$0")/../case.sh"

for ranks in 2 3 4 7; do
    case_ $ranks ob1 "$forced" mixed_memory
done
case_ 4 ucx "$forced" mixed_memory

case_ 2 ob1 "$forced" other_memory
case_ 3 ucx "$forced" other_memory
EMU_ID_STAYS=1 case_ 2 ob1 "$forced --mca coll_hetcoll_pointer_cache validated" other_memory
case_ 2 ob1 "$forced --mca coll_hetcoll_pointer_cache off" other_memory
also_expected='coll_hetcoll_pointer_cache hooked: CUDA memory events are not available'
case_ 2 ob1 "$forced --mca coll_hetcoll_pointer_cache hooked" other_memory
case_ 3 ucx "$forced --mca coll_hetcoll_pointer_cache hooked" other_memory
also_expected=

case_ 1 ob1 "$forced" limits
case_ 4 ob1 "$forced" limits
case_ 3 ucx "$forced" limits
if [ "$(awk '/^MemAvailable/ { print int($2 / 1048576) }' /proc/meminfo)" -ge 14 ]; then
    EMU_MEM_MB=6144 case_ 2 ob1 "$forced" limits large # more than 2^31 bytes
else
    skip_ 'limits large: it needs 14 GiB of memory'
fi

# The first call of a thread, on a stack that may be a runtime's small one. Half of it on device memory is what
# Open MPI takes for a line of its log, and hwloc to look at the machine.
case_ 2 ob1 "$forced" small_stack host 3 16384
case_ 2 ob1 "$forced" small_stack host 100000 16384
case_ 3 ob1 "$forced" small_stack device 3 20480
case_ 2 ob1 "$forced" small_stack device 100000 20480

case_ 2 ob1 "$forced" streams
case_ 4 ob1 "$forced" streams
case_ 3 ucx "$forced" streams
EMU_NUM_DEVICES=3 case_ 2 ob1 "$forced" streams
case_ 2 ob1 "$forced --mca coll_hetcoll_pre_sync context" streams context
case_ 4 ob1 "$forced --mca coll_hetcoll_pre_sync context" streams context
EMU_NUM_DEVICES=3 case_ 2 ob1 "$forced --mca coll_hetcoll_pre_sync context" streams

# Beside a kernel of another library that waits for the peers, on a driver whose calls wait for the device.
export EMU_HOSTILE=1
for stream in blocking nonblocking; do
    for ranks in 2 4; do
        case_ $ranks ob1 "$forced" foreign_kernel $stream
    done
done
case_ 2 ob1 "$forced --mca coll_hetcoll_fixed_point 8" foreign_kernel blocking contexts
case_ 2 ob1 "$forced --mca coll_hetcoll_streams independent" foreign_kernel legacy
case_ 3 ob1 "$forced --mca coll_hetcoll_ipc never" foreign_kernel nonblocking new

# Memory that is freed while peers have it mapped.
for EMU_HOSTILE in 0 1; do
    EMU_NUM_DEVICES=1 EMU_MEM_MB=512 case_ 4 ob1 "$forced" freed_memory rounds plain 30
    EMU_NUM_DEVICES=1 EMU_MEM_MB=512 case_ 4 ob1 "$forced" freed_memory rounds vmm 30
    EMU_NUM_DEVICES=1 EMU_MEM_MB=1024 EMU_POISON=0 case_ 4 ob1 "$forced" freed_memory random 10000
done

# A rank without host memory: once, until hetcoll gives up its reserve, and at all.
also_expected='hetcoll: (MPI_|the ranks of communicator|a rank cannot|stages|small calls|shares no)'
for way in once short none; do
    case_ 2 ob1 "$forced" no_memory 1 $way
    case_ 3 ob1 "$forced" no_memory 0 $way
done
for nth in 1 3 10 30 100 300 1000; do
    case_ 2 ob1 "$forced" no_memory 1 process $nth Allreduce
done
# Between nodes that compare no calls a rank that cannot begin one cannot say so.
unchecked="$forced --mca coll_hetcoll_check off"
nodes_ 0,1 ob1 "$unchecked" no_memory 1 once Allreduce
must_fail='hetcoll ends the job: rank 1 of communicator [0-9]+ has no host memory to begin a call'
nodes_ 0,1 ob1 "$unchecked" no_memory 1 none "nonblocking Allreduce of 12 ints on devices"
must_fail=
also_expected=

end_cases
