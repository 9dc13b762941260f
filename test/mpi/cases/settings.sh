#!/bin/bash
# settings.sh: parameters set while the program runs, and what can be seen from outside.
# shellcheck disable=SC2154,SC2034
. "$(dirname "$0")/../case.sh"

# Parameters set while the program runs.
for ranks in 1 2 4; do
    case_ $ranks ob1 "$forced" settings
done
case_ 3 ucx "$forced" settings
case_ 1 ob1 "$forced" settings keys
case_ 3 ob1 "$forced" settings keys
also_expected="to different values while the program ran|info key hetcoll_[a-z]* '.*' is ignored"
case_ 3 ob1 "$forced" settings bad_keys
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

end_cases
