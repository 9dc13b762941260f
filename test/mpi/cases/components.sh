#!/bin/bash
# components.sh: who serves a call: hetcoll as users name it or not, with a GPU and without.
# shellcheck disable=SC2154,SC2034
. "$(dirname "$0")/../case.sh"

# The literal list that users type, and the other ways to name or not to name hetcoll.
case_ 1 ob1 "$forced" all_collectives
case_ 2 ob1 "$forced" all_collectives
case_ 3 ob1 "$forced" all_collectives
case_ 4 ucx "$forced" all_collectives
case_ 5 ob1 "$forced" all_collectives
case_ 4 ob1 "--mca coll ^hetcoll" all_collectives
case_ 4 ob1 "--mca coll hetcoll,basic,libnbc,inter,self,tuned" all_collectives
# Without tuned the module before hetcoll is basic: an allreduce of its own calls our reduce and broadcast.
case_ 2 ob1 "--mca coll hetcoll,basic,libnbc,inter,self" mixed_memory
case_ 3 ucx "--mca coll hetcoll,basic,libnbc,inter,self" not_accelerated
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
case_ 4 ob1 "$forced --mca coll_hetcoll_chunk_bytes 4096" device_allreduce
EMU_NUM_DEVICES=3 case_ 4 ob1 "$forced" device_allreduce
EMU_DELAY_US=30 case_ 3 ob1 "$forced" device_allreduce
EMU_VA=same case_ 2 ob1 "" device_allreduce

case_ 1 ob1 "$forced" not_accelerated
case_ 2 ob1 "$forced" not_accelerated
case_ 5 ob1 "$forced" not_accelerated
case_ 3 ucx "$forced" not_accelerated

case_ 2 ob1 "$forced" host_path
case_ 4 ob1 "$forced" host_path
case_ 2 ucx "$forced" host_path
LD_LIBRARY_PATH='' case_ 2 ob1 "$forced" host_path no_gpu
LD_LIBRARY_PATH='' case_ 4 ob1 "$forced" host_path no_gpu

# Making communicators is Open MPI's alone. Several in flight can deadlock, see idups.cc.
for ranks in 2 3 4 6; do
    case_ $ranks ob1 "$forced" idups
done
case_ 3 ucx "$forced" idups
case_ 2 ob1 "$forced --mca coll_hetcoll_stage never" idups

end_cases
