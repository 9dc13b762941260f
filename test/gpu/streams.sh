#!/bin/bash
# streams.sh: calls in the order of a CUDA stream: right on every kind of stream, and what one costs. A part of
# check_gpu.sh.
set -u
# shellcheck source=test/gpu/mpi_settings.sh
. "$(dirname "$0")/mpi_settings.sh"
programs=$build/test/mpi
for stream in nonblocking blocking legacy perthread; do
    job 2 "$programs/stream_order" $stream
    job 2 "$programs/stream_order" $stream delays 3000 # a meeting sums these,
    export OMPI_MCA_coll_hetcoll_algorithm=two_shot    # and kernels those, where the ranks would choose a schedule too
    job 2 "$programs/stream_order" $stream meanwhile
    job 2 "$programs/stream_order" $stream holding
    job 2 "$programs/stream_order" $stream delays 3000
    unset OMPI_MCA_coll_hetcoll_algorithm
    job 2 "$programs/stream_order" $stream holding
done
job 2 "$programs/named_stream"
for stream in nonblocking legacy perthread; do
    job 4 --mca coll_hetcoll_algorithm two_shot "$programs/stream_order" $stream holding
done
# CuPy compiles and loads its kernels while calls are pending, where its cache is empty.
export STREAM_CALLS=$build/examples/stream/libstream_calls.so
python=$(command -v "${PYTHON:-python3}")
if [ -e "$STREAM_CALLS" ] && "$python" -c 'import cupy, mpi4py' 2>/dev/null; then
    for algorithm in auto two_shot; do
        CUPY_CACHE_DIR=$(mktemp -d)
        export CUPY_CACHE_DIR
        job 2 --mca coll_hetcoll_algorithm $algorithm "$python" "$HETCOLL_SRCDIR/examples/stream/sum_cupy.py"
        rm -rf "$CUPY_CACHE_DIR"
    done
else
    echo 'skipped sum_cupy.py: python3 lacks cupy or mpi4py, or libstream_calls.so is not built'
fi
# Calls that are not prepared may deadlock with these driver calls (docs/streams.md): shown, and no failure.
hung=0
for _ in 1 2; do
    OMPI_MCA_coll_hetcoll_queued_calls=all OMPI_MCA_coll_hetcoll_algorithm=ring timeout -k 2 8 \
        "$mpirun" --mca coll hetcoll -n 2 "$programs/stream_order" nonblocking holding </dev/null >/dev/null 2>&1
    [ $? -ne 124 ] || hung=$((hung + 1))
done
echo "queued calls that are not prepared, with driver calls that hold them: $hung of 2 jobs hang"
if [ -x "$build/bench/stream_bench" ]; then
    cost=$(timeout -k 5 60 "$mpirun" --mca coll hetcoll -n 2 "$build/bench/stream_bench" cost 100 2>/dev/null </dev/null)
    echo "$cost"
    if [ "${emulated:-1}" = 0 ]; then
        echo "$cost" | awk '/ own / { us = $NF; print "# target      at most 5 us a call of ours: " (us <= 5 ? "met" : "missed, " us) }'
    fi
fi
end_jobs
