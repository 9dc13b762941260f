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

# Effects that are visible from outside.
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

# A wrong value of a parameter that changes speed alone gives way to its default, once a node, whichever rank has it.
message="hetcoll: coll_hetcoll_algorithm 'rings' is unknown, write auto, .*: its default, auto, is used"
case_ 2 ob1 "$(with rings)" all_collectives
one_rank() { echo "$here/on_rank.sh $1 OMPI_MCA_coll_hetcoll_$2"; }
wrapper=$(one_rank 1 algorithm=rings) case_ 3 ob1 "$forced" all_collectives
message='coll_hetcoll_max_memory 5 is too small, write at least 262144, or 0 for no bound: its default, 1G, is used'
LD_LIBRARY_PATH='' case_ 2 ob1 "$forced --mca coll_hetcoll_max_memory 5" all_collectives
message='aggregators: aggregator .nowhere. has no port.*: its default, none, is used'
case_ 2 ob1 "$forced --mca coll_hetcoll_aggregators nowhere" all_collectives
message=

# A bad value of a parameter that changes results ends MPI_Init, on every rank, also if one rank alone has it.
must_fail="hetcoll: coll_hetcoll_accumulate 'flaot' is unknown, write float or element: MPI_Init fails"
message=$must_fail
case_ 2 ob1 "$forced --mca coll_hetcoll_accumulate flaot" all_collectives
wrapper=$(one_rank 1 accumulate=flaot) case_ 3 ob1 "$forced" all_collectives
must_fail="hetcoll: coll_hetcoll_fixed_point '8x' is no whole number: MPI_Init fails" message=$must_fail
case_ 1 ob1 "$forced --mca coll_hetcoll_fixed_point 8x" all_collectives
must_fail='' message=''

# Values of a feature that is off are not checked.
LD_LIBRARY_PATH='' case_ 2 ob1 "$forced --mca coll_hetcoll_enable 0 --mca coll_hetcoll_accumulate flaot" all_collectives

end_cases
