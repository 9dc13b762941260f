#!/bin/bash
# programs.sh: communicators, contexts and processes that come and go, and what programs bring.
# shellcheck disable=SC2154,SC2034
. "$(dirname "$0")/../case.sh"

for test in many leaked reset requests destroyed ended reused after side before forked untouched; do
    case_ 3 ob1 "$forced" lifecycle $test
done
case_ 2 ucx "$forced" lifecycle many
EMU_NUM_DEVICES=3 case_ 3 ob1 "$(with two_shot)" lifecycle requests
EMU_NUM_DEVICES=3 case_ 3 ob1 "$(with two_shot)" lifecycle destroyed
case_ 2 ucx "$forced" lifecycle forked
case_ 3 ob1 "$forced" sessions
case_ 3 ob1 "$forced" point_to_point host
case_ 4 ucx "$forced" point_to_point host
case_ 2 ob1 "$forced" spawned
case_ 1 ob1 "$forced" spawned
EMU_NUM_DEVICES=3 case_ 2 ob1 "$forced" spawned
for test in communicators splits buffers handles; do
    case_ 3 ob1 "$forced" churn $test
done
EMU_NUM_DEVICES=2 case_ 2 ob1 "$forced" churn communicators
EMU_NUM_DEVICES=3 case_ 3 ob1 "$(with two_shot)" churn buffers
EMU_NUM_DEVICES=2 case_ 4 ob1 "$forced" churn splits
case_ 1 ob1 "$forced" churn buffers
case_ 4 ucx "$forced" churn splits

# Arguments of real programs.
case_ 2 ob1 "$forced" callers contexts
EMU_NUM_DEVICES=3 case_ 3 ob1 "$forced" callers contexts
EMU_NUM_DEVICES=3 case_ 3 ob1 "$(with ring)" callers contexts
case_ 3 ob1 "$forced" callers padding
EMU_NUM_DEVICES=2 case_ 4 ob1 "$forced" callers padding
case_ 3 ob1 "$(with ring) --mca coll_hetcoll_ipc never" callers padding
for level in single funneled serialized multiple; do
    case_ 2 ob1 "$forced" callers level $level
done
message='hetcoll ignores its tuning table and chooses algorithms by price'
case_ 3 ob1 "$forced" callers tables "$here/../../tools/hetcoll_tune_test.json"
message=

end_cases
