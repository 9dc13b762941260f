#!/bin/bash
# stream_order.sh: calls in the order of a CUDA stream.
# shellcheck disable=SC2154,SC2034
. "$(dirname "$0")/../case.sh"

captured='hetcoll: (a call cannot be queued, nothing was: a graph is being captured|.* rank 0 captures a graph on its stream)'
not_prepared='hetcoll: a call on a CUDA stream is not queued, it synchronises instead'
also_expected="$captured|$not_prepared"
# On a driver of which calls that wait hold what other threads give to streams: what a stream has been given when the
# call was queued is enough, by a meeting and by kernels.
for stream in nonblocking blocking legacy perthread; do
    EMU_HOSTILE=holds EMU_DELAY_US=2000 case_ 3 ob1 "$forced" stream_order $stream holding
    EMU_HOSTILE=holds EMU_DELAY_US=2000 case_ 3 ob1 "$(with two_shot)" stream_order $stream holding
    EMU_HOSTILE=holds EMU_DELAY_US=2000 case_ 2 ob1 "$(with leader)" stream_order $stream meanwhile
    case_ 2 ob1 "$(with two_shot)" stream_order $stream
done
EMU_HOSTILE=holds EMU_DELAY_US=2000 nodes_ 0,0,1 ob1 "$forced" stream_order legacy holding
EMU_HOSTILE=holds case_ 4 ob1 "$forced" stream_order nonblocking
for how in "--mca coll_hetcoll_ipc never" "--mca coll_hetcoll_reproducible 1" "--mca coll_hetcoll_fixed_point 32"; do
    case_ 3 ob1 "$forced $how" stream_order legacy
done
EMU_FAIL=cuStreamWriteValue32:*:801 EMU_HOSTILE=1 case_ 2 ob1 "$(with two_shot)" stream_order nonblocking
EMU_DELAY_US=100 case_ 2 ob1 "$(with two_shot)" stream_order nonblocking delays 2000
wrapper="$here/on_rank.sh 0 OMPI_MCA_coll_hetcoll_queued_calls=all" case_ 3 ob1 "$forced" stream_order legacy

also_expected=$captured
export OMPI_MCA_coll_hetcoll_queued_calls=all
# On a driver whose calls wait for the device, which waits for the calls.
for stream in nonblocking blocking legacy perthread; do
    EMU_HOSTILE=1 case_ 2 ob1 "$forced" stream_order $stream
    EMU_HOSTILE=1 case_ 3 ob1 "$forced" stream_order $stream meanwhile
    EMU_HOSTILE=0 EMU_DELAY_US=50 case_ 3 ob1 "$forced" stream_order $stream
done
EMU_HOSTILE=1 case_ 1 ob1 "$forced" stream_order nonblocking
EMU_HOSTILE=1 case_ 4 ob1 "$(with ring)" stream_order nonblocking
EMU_HOSTILE=1 case_ 3 ob1 "$forced --mca coll_hetcoll_ipc never" stream_order legacy
case_ 2 ucx "$forced" stream_order nonblocking
EMU_NUM_DEVICES=2 nodes_ 0,0,1,1 ob1 "$forced" stream_order nonblocking
case_ 2 ob1 "$forced --mca coll_hetcoll_streams independent" stream_order blocking
case_ 2 ob1 "$forced --mca coll_hetcoll_reproducible 1" stream_order nonblocking

# Where the driver cannot let a stream wait for memory a kernel does.
EMU_FAIL=cuStreamWaitValue32:*:801 EMU_HOSTILE=1 case_ 2 ob1 "$forced" stream_order nonblocking

for stream in nonblocking legacy; do
    EMU_DELAY_US=100 case_ 2 ob1 "$forced" stream_order $stream delays 2000
done
EMU_KERNELS="$EMU_KERNELS:$programs/no_wait_kernel.so" EMU_FAIL=cuStreamWaitValue32:*:801 \
    case_ 2 ob1 "$forced" stream_order nonblocking mutant 40
also_expected=

also_expected='hetcoll: MPI_Allreduce failed' case_ 2 ob1 "$forced" stream_order nonblocking errors

# Calls that are not queued, because hetcoll may have no thread. Without hetcoll: examples/stream/overlap_test.sh.
also_expected='hetcoll: calls on CUDA streams are not queued'
case_ 2 ob1 "$forced" stream_order nonblocking plain single
unset OMPI_MCA_coll_hetcoll_queued_calls
also_expected=
EMU_HOSTILE=1 case_ 2 ob1 "$(with two_shot)" stream_order nonblocking meanwhile

# A communicator names the stream that is waited for.
also_expected="hetcoll: info key hetcoll_stream 'stream 7' is ignored"
case_ 2 ob1 "$forced" named_stream
case_ 3 ucx "$forced" named_stream
EMU_NUM_DEVICES=2 nodes_ 0,0,1 ob1 "$forced" named_stream
also_expected=

end_cases
