#!/bin/sh
# The output of hetcoll_info trace, and its errors about lines that are not a trace's.
set -u
. "$HETCOLL_SRCDIR/tools/info_says.sh"

# line RANK TIME BYTES ALGORITHM PATH NS [MORE]
line()
{
    printf '{"time":%s,"rank":%s,"comm":0,"ranks":2,"call":"allreduce","bytes":%s,"kind":"float32",' "$2" "$1" "$3"
    printf '"op":"sum","memory":"device","algorithm":"%s","path":"%s","chunk_bytes":0,"ns":%s%s}\n' "$4" "$5" "$6" "${7:-}"
}

# Two ranks: nine small calls and a large one each, 10 s from the first start to the last end, half of it
# in calls.
for rank in 0 1; do
    for i in 1 2 3 4 5 6 7 8 9; do
        line $rank "100.$i" 4000 ring mapped "${i}000"
    done
    line $rank 105.000045 4194305 open_mpi staged 4999955000 ',"staged":"type"'
done >"$work/both"
grep '"rank":0' "$work/both" >"$work/trace.0"
grep '"rank":1' "$work/both" >"$work/trace.1"

says 0 '20 calls of 2 ranks in 9.900 s; a rank was in them for 5.000 s (50.5 %)' --trace "$work/trace.0" "$work/trace.1"
says 0 '10 calls of 1 rank in 9.900 s' --trace "$work/trace.0"
says 0 '2 staged: type' --trace "$work/both"
# Size class, calls, bytes, median, the ninth of ten, the slowest, the share of the time.
says 0 'allreduce     4K      18  72.0 KB device ring      mapped    5.00    9.00    9.00   0.0%' \
    --trace "$work/both"
says 0 'allreduce     8M       2   8.4 MB device open_mpi  staged 4999955 4999955 4999955 100.0%' \
    --trace "$work/both"
# A long name moves all rows.
sed 's/allreduce/neighbor_alltoallv/' "$work/trace.0" | cat - "$work/trace.1" >"$work/long"
says 0 'allreduce              4K       9  36.0 KB device' --trace "$work/long"
says 0 'neighbor_alltoallv     4K       9  36.0 KB device' --trace "$work/long"

line 0 100 1000000000 recursive_multiplying mapped 1234567000 >"$work/wide"
says 0 'recursive_multiplying' --trace "$work/wide"
[ "$(wc -L <"$work/out")" -le 100 ]
verdict $? 'the longest name of an algorithm fits 100 columns'

# Files of two jobs, clocks that differ by more than a call takes, and control characters: no nonsense, and a note.
! grep -q '^note: ' "$work/out"
verdict $? 'there is no note about one job with one clock'
line 0 900 4000 ring mapped 1000 >"$work/other.0"
says 0 'note: the files are of more than one MPI_COMM_WORLD' --trace "$work/trace.0" "$work/trace.1" "$work/other.0"
says 0 '"the files are of more than one MPI_COMM_WORLD' --trace "$work/trace.0" "$work/other.0" --json
for i in 1 2 3 4 5; do
    line 0 "100.00$i" 4000 ring mapped 900000
    line 1 "107.00$i" 4000 ring mapped 900000
done >"$work/apart"
says 0 'note: in 5 of 5 calls a rank has left before another one came' --trace "$work/apart"
says 0 'a rank was in them for 0.005 s (91.8 %)' --trace "$work/apart"
sed 's/allreduce/bcast/' "$work/apart" >"$work/rooted"
"$info" --trace "$work/rooted" >"$work/out" && ! grep -q '^note: ' "$work/out"
verdict $? 'the root of a bcast may leave early'
for i in 1 2 3 4; do # all at the same time
    line 0 100.000000 4000 ring mapped 1000000
done >"$work/nonblocking"
says 0 'for 0.001 s (100.0 %)' --trace "$work/nonblocking"
line 0 100 4000 ring mapped 1000 ',"tag":"\u001b[31mred"' >"$work/escape"
says 0 '?[31mred' --trace "$work/escape"

# Calls of a communicator with a tag have rows of their own, everywhere.
{
    line 0 100 4000 ring mapped 1000
    line 0 101 4000 ring mapped 3000 ',"tag":"data <parallel>"'
} >"$work/tagged"
says 0 'allreduce     4K       1   4.0 KB device ring      mapped    3.00    3.00    3.00  75.0%  data <parallel>' \
    --trace "$work/tagged"
sed -i 1d "$work/tagged"
says 0 'communicator 0 of 2 ranks, data <parallel>' --trace "$work/tagged" --perfetto -
says 0 '"tag": "data <parallel>"' --trace "$work/tagged" --json

# Lines that are none are named and skipped; what a process that was killed has reserved is no line.
{
    line 0 100 8 host small 200
    echo 'no JSON'
    echo '{"rank":0}'
    line 0 100 -8 host small 200
    line 0 101 8 host small 400 ',"failed":true'
    head -c 5000 /dev/zero
} >"$work/bad"
says 0 "$work/bad:2 is skipped: it is not a JSON object" --trace "$work/bad"
says 0 "$work/bad:3 is skipped: 'bytes' is not a count" --trace "$work/bad"
says 0 "$work/bad:4 is skipped: 'bytes' is not a count" --trace "$work/bad"
says 0 '2 calls of 1 rank' --trace "$work/bad"
says 0 '1 failed' --trace "$work/bad"
! grep -q ':6 is skipped' "$work/out"
verdict $? 'bytes that are zero are not a line'

# The time line: two ranks, of which the second one came 3 ms late to its second call, and two concurrent calls.
{
    line 0 100.000000 4096 ring mapped 1000000
    line 0 100.010000 4096 two_shot mapped 5000000
    line 0 100.020000 4096 ring mapped 2000000
    line 0 100.021000 4096 ring mapped 2000000
    line 0 100.023000 4096 ring mapped 1000 ',"failed":true'
} >"$work/line.0"
{
    line 1 100.000000 4096 ring mapped 1000000
    line 1 100.013000 4096 two_shot mapped 2000000
} >"$work/line.1"
writes "$work/line.json" --trace "$work/line.0" "$work/line.1" --perfetto "$work/line.json"
holds()
{
    python3 "$HETCOLL_SRCDIR/tools/perfetto_check.py" "$work/line.json" >"$work/out" 2>&1 &&
        grep -qx "$1" "$work/out"
    verdict $? "the time line holds $1"
}
holds '2 processes, 3 threads, 7 calls, 1 waits, 1 works'
grep -q '"name":"wait","cat":"wait","pid":0,"tid":1,"ts":10000.0,"dur":3000.0' "$work/line.json"
verdict $? 'rank 0 waits for 3 ms'
says 0 '"traceEvents"' --trace "$work/both" --perfetto -
"$info" --trace "$work/both" --perfetto - >"$work/line.json"
holds '2 processes, 2 threads, 20 calls, 0 waits, 0 works'
says 1 'cannot be written (Is a directory)' --trace "$work/both" --perfetto "$work"
if [ -c /dev/full ]; then
    says 1 '/dev/full cannot be written (No space left on device)' --trace "$work/both" --perfetto /dev/full
fi

writes "$work/trace.json" --trace "$work/line.0" "$work/line.1" --json "$work/trace.json"
python3 - "$work/trace.json" >"$work/out" 2>&1 <<'END'
import json, sys
trace = json.load(open(sys.argv[1]))["trace"]
assert trace["calls"] == 7 and trace["failed"] == 1 and trace["gatherings"] == 2
assert [row["name"] for row in trace["by_algorithm"]] == ["two_shot", "ring"]
assert trace["slowest"][0]["bytes"] == 4096 and abs(trace["slowest"][0]["wait_us"] - 3000) < 1
assert trace["late"][1]["times"] == 1 and trace["late"][1]["rank"] == 1
END
verdict $? 'the trace as JSON'
says 1 'cannot be read (No such file or directory)' --trace "$work/none"
: >"$work/empty"
says 1 "no call is in $work/empty" --trace "$work/empty"

sum_up
