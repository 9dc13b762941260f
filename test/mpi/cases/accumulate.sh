#!/bin/bash
# accumulate.sh: sums of half and bfloat16 that are rounded once, and those that are rounded after every addition.
# shellcheck disable=SC2154,SC2034
. "$(dirname "$0")/../case.sh"

element="--mca coll_hetcoll_accumulate element"
for algorithm in one_shot two_shot leader; do
    EMU_NUM_DEVICES=4 case_ 4 ob1 "$(with $algorithm)" accumulate once
    EMU_NUM_DEVICES=4 case_ 4 ob1 "$(with $algorithm) $element" accumulate element
done
case_ 3 ucx "$(with two_shot)" accumulate once
case_ 7 ob1 "$(with two_shot)" accumulate once
EMU_NUM_DEVICES=4 case_ 4 ob1 "$(with copy_in)" accumulate once small
EMU_NUM_DEVICES=4 case_ 4 ob1 "$(with copy_in) $element" accumulate element small
case_ 5 ob1 "$(with host)" accumulate once small
case_ 5 ob1 "$(with host) $element" accumulate element small
case_ 2 ob1 "$forced" accumulate once
message='coll_hetcoll_accumulate of rank 1 is not that of rank 0: that of rank 1 counts'
case_ 4 ob1 "$(with two_shot)" accumulate differ
message=''
case_ 4 ob1 "$forced --mca coll_hetcoll_reproducible 1" accumulate element
EMU_NUM_DEVICES=2 nodes_ 0,0,1,1 ob1 "$(with hierarchical)" accumulate nodes 0,0,1,1
EMU_NUM_DEVICES=3 nodes_ 0,0,0,1,1,1 ob1 "$(with hierarchical)" accumulate nodes 0,0,0,1,1,1
if [ -x "$build/hetcoll_aggregator" ]; then
    export HETCOLL_AGGREGATOR=$build/hetcoll_aggregator
    also_expected='^\{"connections": '
    launcher="$here/with_aggregators.sh one"
    case_ 4 ob1 "$(with in_network)" accumulate once network
    case_ 4 ob1 "$(with in_network) $element" accumulate element network
    launcher=
fi

end_cases
