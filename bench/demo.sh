#!/bin/sh
# demo.sh [BUILD_DIR]: runs the main job. 4 ranks reduce device buffers: a sweep of sizes, then the gradients of
# ResNet-50. Uses a real GPU if there is one, else the emulated one.
set -u
build=$(cd "${1:-.}" && pwd) || exit 1
ranks=${HETCOLL_DEMO_RANKS:-4}

. "$(dirname "$0")/job.sh"
use_component

real_gpu()
{
    [ -e /dev/nvidiactl ] && ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1'
}
real_gpu || use_emulated_gpu
yield=
if [ "$(nproc 2>/dev/null || echo 1)" -lt "$ranks" ]; then
    yield="--oversubscribe --bind-to none --mca mpi_yield_when_idle 1"
fi
# shellcheck disable=SC2086
exec "$(configured MPIRUN)" --mca coll hetcoll -n "$ranks" $yield "$build/hetcoll_bench" --demo
