# Cases of run.sh: kinds of memory, types, calls and threads, what they cost, and what is seen of them.
# shellcheck shell=bash disable=SC2154,SC2034

# What calls cost.
case_ 2 ob1 "$(with leader)" counts leader leader
case_ 5 ob1 "$(with leader)" counts leader leader
for ranks in 2 4 7; do
    EMU_NUM_DEVICES=$ranks case_ $ranks ob1 "$(with two_shot)" counts two_shot two_shot
done
EMU_NUM_DEVICES=4 case_ 4 ob1 "$(with two_shot)" counts halves two_shot
EMU_NUM_DEVICES=4 case_ 4 ob1 "$(with ring)" counts halves ring
EMU_LINKS=$machines/dgx1v.topology:0,1,2,4 case_ 4 ob1 "$(with tree)" counts halves tree
for algorithm in host leader copy_in; do
    case_ 3 ob1 "$(with $algorithm)" counts driver_calls $algorithm
done
EMU_NUM_DEVICES=2 case_ 2 ob1 "$(with copy_in)" counts driver_calls copy_in

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

# User-defined operations on two bytes, as Horovod's half.
known="$forced --mca coll_hetcoll_user_ops project_bfloat16_max=bfloat16:max"
for ranks in 1 2 4; do
    case_ $ranks ob1 "$known" user_ops known
done
case_ 3 ucx "$known" user_ops known
EMU_NUM_DEVICES=4 case_ 4 ob1 "$known --mca coll_hetcoll_reproducible 1" user_ops known
nodes_ 0,1,1 ob1 "$known" user_ops known
nodes_ 0,1 ob1 "$known --mca coll_hetcoll_algorithm ring" user_ops known
case_ 3 ob1 "$forced --mca coll_hetcoll_recognize_ops 0" user_ops off
message='the reduction function project_half_prod is not prod of float16'
case_ 2 ob1 "$forced --mca coll_hetcoll_user_ops project_half_prod=half:prod" user_ops wrong
message="coll_hetcoll_user_ops: 'nothing' is left out"
case_ 2 ob1 "$known,nothing" user_ops known
message='the ranks of a communicator have different coll_hetcoll_user_ops'
case_ 3 ob1 "$forced" user_ops differ
message=

case_ 2 ob1 "$forced" types
case_ 3 ob1 "--mca coll ^hetcoll" types

for ranks in 1 2 3 5; do
    case_ $ranks ob1 "$forced" own_collectives
done
case_ 4 ucx "$forced" own_collectives
EMU_NUM_DEVICES=4 case_ 4 ob1 "$forced" own_collectives
EMU_NUM_DEVICES=3 EMU_DELAY_US=30 case_ 3 ob1 "$forced" own_collectives
EMU_LINKS=$machines/dgx1v.topology:0,1,4 case_ 3 ob1 "$forced" own_collectives
case_ 3 ob1 "$forced --mca coll_hetcoll_ipc never" own_collectives
EMU_NUM_DEVICES=2 nodes_ 0,0,1,1 ob1 "$forced" own_collectives
for ranks in 1 2 3 5; do
    case_ $ranks ob1 "$forced" nonblocking
done
case_ 4 ucx "$forced" nonblocking
case_ 3 ob1 "$forced --mca coll_hetcoll_progress_thread 1" nonblocking
EMU_NUM_DEVICES=3 EMU_DELAY_US=30 case_ 3 ob1 "$forced" nonblocking
EMU_NUM_DEVICES=2 nodes_ 0,0,1,1 ob1 "$forced" nonblocking
EMU_NUM_DEVICES=3 EMU_NO_PEER=all also_expected='hetcoll: some GPUs of this node' \
    case_ 3 ob1 "$forced" nonblocking

# Other collectives on device memory.
for ranks in 1 2 3 5; do
    case_ $ranks ob1 "$forced" staged_collectives
done
case_ 4 ucx "$forced" staged_collectives
EMU_NUM_DEVICES=3 EMU_DELAY_US=30 case_ 3 ob1 "$forced" staged_collectives more
case_ 2 ob1 "$forced --mca coll_hetcoll_stage_pinned 1M" staged_collectives more
case_ 2 ob1 "$forced --mca coll_hetcoll_pre_sync context" staged_collectives more
case_ 3 ob1 "$forced" staged_collectives threads
HETCOLL_TEST_CUDA_AWARE=1 case_ 3 ob1 "$forced --mca coll_hetcoll_pml_device never" \
    staged_collectives aware
also_expected='hetcoll: (MPI_[A-Za-z_]* failed on this rank|stages through pageable memory)'
case_ 1 ob1 "$forced" staged_collectives faults
case_ 3 ob1 "$forced" staged_collectives faults
also_expected=

# Wave-synchronous training: host memory under any MPI, device memory under hetcoll.
for ranks in 1 2 4; do
    case_ $ranks ob1 "--mca coll ^hetcoll" wsp host
done
case_ 3 ucx "$forced" wsp host
case_ 1 ob1 "$forced" wsp device
case_ 3 ob1 "$forced" wsp device
EMU_NUM_DEVICES=2 case_ 2 ob1 "$forced --mca coll_hetcoll_progress_thread 1" wsp device
EMU_NUM_DEVICES=2 nodes_ 0,0,1 ob1 "$forced" wsp device
case_ 2 ob1 "$forced" wsp device_fails
case_ 2 ob1 "--mca coll ^hetcoll" wsp no_device
case_ 3 ob1 "--mca coll ^hetcoll" wsp no_threads
case_ 2 ob1 "--mca coll ^hetcoll" wsp forget

case_ 2 ob1 "$forced" threads
case_ 4 ob1 "$forced" threads
case_ 3 ucx "$forced" threads
case_ 2 ob1 "$forced" threads many
EMU_NUM_DEVICES=2 case_ 2 ob1 "$forced" threads many
case_ 2 ob1 "$forced --mca coll_hetcoll_progress_thread 1" threads many

case_ 2 ob1 "$forced" host_path
case_ 4 ob1 "$forced" host_path
case_ 2 ucx "$forced" host_path
LD_LIBRARY_PATH='' case_ 2 ob1 "$forced" host_path no_gpu
LD_LIBRARY_PATH='' case_ 4 ob1 "$forced" host_path no_gpu
CUDA_VISIBLE_DEVICES='' case_ 2 ob1 "$forced" host_path no_gpu

case_ 2 ob1 "$forced" steady_state
case_ 3 ob1 "$forced" steady_state
case_ 4 ucx "$forced" steady_state
for algorithm in two_shot one_shot copy_in ring; do
    EMU_NUM_DEVICES=3 case_ 3 ob1 "$(with $algorithm)" steady_state
done
EMU_NUM_DEVICES=2 case_ 4 ob1 "$(with hierarchical)" steady_state
EMU_LINKS=$machines/dgx1v.topology:0,1,4 case_ 3 ob1 "$(with tree)" steady_state
EMU_NUM_DEVICES=2 nodes_ 0,0,1,1,1 ob1 "$(with hierarchical)" steady_state

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

# What can be seen from outside.
case_ 2 ob1 "$(with ring)" observed variables
case_ 3 ucx "$(with ring)" observed variables
for ranks in 1 2 3; do
    case_ $ranks ob1 "$(with ring) --mca coll_hetcoll_trace $work/trace.%r" observed trace "$work/trace"
done
LD_LIBRARY_PATH='' case_ 2 ob1 "$forced --mca coll_hetcoll_trace $work/trace.%r" observed host "$work/trace"
EMU_FAIL='cuMemHostAlloc:*:2' EMU_FAIL_RANK=1 case_ 3 ob1 "$forced" observed reasons
case_ 2 ob1 "$forced --mca coll_hetcoll_max_memory 1M" observed bound 1048576
case_ 3 ob1 "$(with two_shot) --mca coll_hetcoll_max_memory 262144" observed bound 262144
EMU_NUM_DEVICES=2 nodes_ 0,0,1,1 ob1 "$forced --mca coll_hetcoll_max_memory 512K" observed bound 524288
message='hetcoll: no trace of rank 0: coll_hetcoll_trace: /proc/none/trace.0 cannot be written'
case_ 2 ob1 "$forced --mca coll_hetcoll_trace /proc/none/trace" settings
message='hetcoll is off.*coll_hetcoll_max_memory 5 is too small, write at least 262144, or 0'
LD_LIBRARY_PATH='' case_ 2 ob1 "$forced --mca coll_hetcoll_max_memory 5" all_collectives
message=
