#!/bin/bash
# wsp.sh: wave-synchronous training: host memory under any MPI, device memory under hetcoll.
# shellcheck disable=SC2154,SC2034
. "$(dirname "$0")/../case.sh"

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

end_cases
