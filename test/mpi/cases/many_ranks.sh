#!/bin/bash
# many_ranks.sh: more ranks on a node than a kernel has arguments for, several of each GPU, or each with its own.
# shellcheck disable=SC2154,SC2034
. "$(dirname "$0")/../case.sh"

# Communicators of some of the ranks may lack what it needs, which one message says.
also_expected='hetcoll: (coll_hetcoll_algorithm [a-z_]* cannot run on a communicator of|a call on a CUDA stream is not queued)|hetcoll: a call cannot be queued, nothing was: a graph|.* rank 0 captures a graph'
for algorithm in one_shot two_shot leader copy_in; do
    EMU_NUM_DEVICES=6 case_ 18 ob1 "$(with $algorithm)" algorithms $algorithm
done
EMU_NUM_DEVICES=6 case_ 24 ob1 "$(with leader)" algorithms leader
EMU_NUM_DEVICES=6 case_ 18 ob1 "$(with leader)" counts driver_calls leader
EMU_NUM_DEVICES=6 case_ 18 ob1 "$(with two_shot)" stream_order nonblocking

end_cases
