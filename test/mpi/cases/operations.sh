#!/bin/bash
# operations.sh: user-defined operations, and the types of hetcoll_types.h.
# shellcheck disable=SC2154,SC2034
. "$(dirname "$0")/../case.sh"

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
message="coll_hetcoll_user_ops: 'nothing' is not SYMBOL=TYPE:OP .*: such entries are left out"
case_ 2 ob1 "$known,nothing" user_ops known
message="coll_hetcoll_user_ops: 'nothing', 'f=half' are not SYMBOL=TYPE:OP .*: such entries are left out"
case_ 2 ob1 "$known,nothing,f=half" user_ops known
message="coll_hetcoll_user_ops: 'nothing' is not SYMBOL=TYPE:OP .*: such entries are left out"
wrapper="$here/on_rank.sh 1 OMPI_MCA_coll_hetcoll_user_ops=nothing,project_bfloat16_max=bfloat16:max" \
    case_ 3 ob1 "$known" user_ops known
message='the ranks of a communicator have different coll_hetcoll_user_ops'
case_ 3 ob1 "$forced" user_ops differ
message=

case_ 2 ob1 "$forced" types
case_ 3 ob1 "--mca coll ^hetcoll" types

end_cases
