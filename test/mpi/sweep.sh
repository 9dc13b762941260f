#!/bin/bash
# sweep.sh WORD...: driver calls that fail, drawn at random from those that a call makes, in every algorithm, in other
# collectives and on two nodes: make check-faults. HETCOLL_FAULTS of each case (default 400), a tenth as many errors
# that ruin their context, each in a job of its own, HETCOLL_FAULT_SEED (default: the day). With words, only cases whose
# line has one. Prints the seed, with which a failure comes back.
# shellcheck disable=SC2154,SC2034
. "$(dirname "$0")/case.sh"
count=${HETCOLL_FAULTS:-400} seed=${HETCOLL_FAULT_SEED:-$(date +%Y%m%d)}
echo "seed $seed, $count faults a case"

also_expected='.' # every failure has a message of hetcoll's
other_algorithm=any
for algorithm in auto one_shot two_shot leader copy_in ring rabenseifner recursive_doubling tree weighted; do
    EMU_NUM_DEVICES=3 case_ 3 ob1 "$(with $algorithm)" faults random "$seed" "$count"
    seed=$((seed + 1))
done
case_ 3 ob1 "$(with ring) --mca coll_hetcoll_ipc never" faults random "$seed" "$count"
case_ 2 ucx "$forced --mca coll_hetcoll_fixed_point 8" faults random "$seed" "$count"
case_ 3 ob1 "$forced --mca coll_hetcoll_reproducible 1" faults random "$seed" "$count"
nodes_ 0,1,1 ob1 "$(with hierarchical)" faults random "$seed" "$count"
nodes_ 0,1 ob1 "$(with ring)" faults random "$seed" "$count"
case_ 3 ob1 "$forced" staged_collectives random "$seed" "$count"
nodes_ 0,0,1 ob1 "$forced" staged_collectives random "$seed" "$count"
# A free in a ruined context fails, which the program's buffers say.
also_expected="$also_expected|cannot free a"
algorithms=(auto one_shot two_shot leader ring tree)
for ((i = 0; i < count / 10; ++i)); do
    EMU_HOSTILE=1 case_ 3 ob1 "$(with "${algorithms[i % 6]}")" faults ruined $((seed + i))
done
# Nonblocking, and persistent twice, every call.
case_ 2 ob1 "$(with ring) --mca coll_hetcoll_progress_thread 1" nonblocking_faults every
case_ 3 ob1 "$(with two_shot)" nonblocking_faults every
end_cases
