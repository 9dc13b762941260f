# The cases of run.sh: which program, at how many ranks, over which PML, with which options. Every
# number of ranks and both PMLs meet every path; not every product of them.
# shellcheck shell=bash disable=SC2154
forced="--mca coll hetcoll"

# The literal list that users type, and the other ways to name or not to name hetcoll.
case_ 1 ob1 "$forced" all_collectives
case_ 2 ob1 "$forced" all_collectives
case_ 3 ob1 "$forced" all_collectives
case_ 4 ucx "$forced" all_collectives
case_ 5 ob1 "$forced" all_collectives
case_ 4 ob1 "--mca coll ^hetcoll" all_collectives
case_ 4 ob1 "--mca coll hetcoll,basic,libnbc,inter,self,tuned" all_collectives
case_ 4 ob1 "" all_collectives
case_ 3 ucx "" all_collectives
case_ 4 ob1 "$forced --mca coll_hetcoll_enable 0" all_collectives
LD_LIBRARY_PATH='' case_ 4 ob1 "$forced" all_collectives

for ranks in 1 2 3 4 5 7 8; do
    case_ $ranks ob1 "$forced" device_allreduce
done
case_ 2 ucx "$forced" device_allreduce
case_ 4 ucx "$forced" device_allreduce
case_ 7 ucx "$forced" device_allreduce
case_ 3 ob1 "$forced --mca coll_hetcoll_algorithm ring" device_allreduce
case_ 5 ob1 "$forced --mca coll_hetcoll_algorithm rabenseifner" device_allreduce
case_ 5 ob1 "$forced --mca coll_hetcoll_algorithm recursive_doubling" device_allreduce
case_ 4 ob1 "$forced --mca coll_hetcoll_chunk_bytes 4096" device_allreduce
EMU_NUM_DEVICES=3 case_ 4 ob1 "$forced" device_allreduce
EMU_DELAY_US=30 case_ 3 ob1 "$forced" device_allreduce
EMU_VA=same case_ 2 ob1 "" device_allreduce

for ranks in 2 3 4 7; do
    case_ $ranks ob1 "$forced" mixed_memory
done
case_ 4 ucx "$forced" mixed_memory

case_ 1 ob1 "$forced" not_accelerated
case_ 2 ob1 "$forced" not_accelerated
case_ 5 ob1 "$forced" not_accelerated
case_ 3 ucx "$forced" not_accelerated

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
fi

case_ 2 ob1 "$forced" streams
case_ 4 ob1 "$forced" streams
case_ 3 ucx "$forced" streams
EMU_NUM_DEVICES=3 case_ 2 ob1 "$forced" streams
case_ 2 ob1 "$forced --mca coll_hetcoll_pre_sync context" streams context
case_ 4 ob1 "$forced --mca coll_hetcoll_pre_sync context" streams context
EMU_NUM_DEVICES=3 case_ 2 ob1 "$forced --mca coll_hetcoll_pre_sync context" streams

case_ 2 ob1 "$forced" types
case_ 3 ob1 "--mca coll ^hetcoll" types

case_ 2 ob1 "$forced" threads
case_ 4 ob1 "$forced" threads
case_ 3 ucx "$forced" threads

case_ 2 ob1 "$forced" host_path
case_ 4 ob1 "$forced" host_path
case_ 2 ucx "$forced" host_path
LD_LIBRARY_PATH='' case_ 2 ob1 "$forced" host_path no_gpu
LD_LIBRARY_PATH='' case_ 4 ob1 "$forced" host_path no_gpu
CUDA_VISIBLE_DEVICES='' case_ 2 ob1 "$forced" host_path no_gpu

case_ 2 ob1 "$forced" steady_state
case_ 3 ob1 "$forced" steady_state
case_ 4 ucx "$forced" steady_state

# Parameters set while the program runs.
for ranks in 1 2 4; do
    case_ $ranks ob1 "$forced" settings
done
case_ 3 ucx "$forced" settings
also_expected='to different values while the program ran'
case_ 2 ob1 "$forced" settings differ
case_ 3 ob1 "$forced" settings differ
also_expected='ignores what the program set'
case_ 2 ob1 "$forced" settings unknown
also_expected=

# Every failure has a message of hetcoll's.
also_expected='hetcoll|^-+$'
case_ 2 ob1 "$forced" faults
case_ 4 ob1 "$forced" faults
case_ 3 ucx "$forced" faults
also_expected=

# Failures end the job, none waits for ever.
for ranks in 2 4; do
    for pml in ob1 ucx; do
        must_fail='MPI_ERR_TRUNCATE|show_help.c' # in whose place Open MPI 4.1.4 may lose its own words
        case_ $ranks $pml "$forced" aborts small_message
        case_ $ranks $pml "$forced" aborts large_message
        must_fail='MPI_ERR_OTHER|show_help.c'
        case_ $ranks $pml "$forced" aborts driver
        must_fail='signal 9'
        case_ $ranks $pml "$forced" aborts killed
    done
done
must_fail=

for test in many leaked reset anew after side before; do
    case_ 3 ob1 "$forced" lifecycle $test
done
case_ 2 ucx "$forced" lifecycle many
