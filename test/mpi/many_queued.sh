#!/bin/bash
# many_queued.sh [CALLS]: queued calls by the hundred thousand with random delays, on every kind of stream, and
# streams that do not wait, which has to be seen. make check-streams.
# shellcheck disable=SC2154,SC2034
calls=${1:-100000}
set --
. "$(dirname "$0")/case.sh"
limit=3600
export OMPI_MCA_coll_hetcoll_queued_calls=all
EMU_HOSTILE=0 EMU_DELAY_US=20 case_ 2 ob1 "$forced" stream_order nonblocking delays "$calls"
for stream in blocking legacy perthread; do
    EMU_HOSTILE=0 EMU_DELAY_US=20 case_ 2 ob1 "$forced" stream_order $stream delays $((calls / 10))
done
EMU_HOSTILE=1 case_ 3 ob1 "$forced" stream_order nonblocking delays $((calls / 10))
EMU_KERNELS="$EMU_KERNELS:$programs/no_wait_kernel.so" EMU_FAIL=cuStreamWaitValue32:*:801 EMU_DELAY_US=20 \
    case_ 2 ob1 "$forced" stream_order nonblocking mutant $((calls / 100))
end_cases
