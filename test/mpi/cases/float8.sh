#!/bin/bash
# float8.sh: sums, minima and maxima of 8-bit floats.
# shellcheck disable=SC2154,SC2034
. "$(dirname "$0")/../case.sh"

case_ 2 ob1 "$forced" float8
case_ 3 ucx "$forced" float8
for algorithm in one_shot two_shot leader ring recursive_doubling radix4; do
    EMU_NUM_DEVICES=4 case_ 4 ob1 "$(with $algorithm)" float8
done
case_ 3 ob1 "$forced --mca coll_hetcoll_reproducible 1" float8
case_ 3 ob1 "$forced --mca coll_hetcoll_accumulate element" float8
case_ 3 ob1 "$forced --mca coll_hetcoll_ipc never" float8
EMU_NUM_DEVICES=2 nodes_ 0,0,1,1 ob1 "$(with hierarchical)" float8
nodes_ 0,1,1 ob1 "$forced" float8
case_ 3 ob1 "--mca coll ^hetcoll" float8 foreign

end_cases
