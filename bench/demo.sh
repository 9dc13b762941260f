#!/bin/sh
# demo.sh [BUILD_DIR]: the main job, 4 ranks reducing device buffers: a sweep of sizes, then the
# gradients of ResNet-50. On a real GPU where there is one, else on the emulated one.
set -u
build=$(cd "${1:-.}" && pwd) || exit 1
ranks=${HETCOLL_DEMO_RANKS:-4}

# What configure found.
configured()
{
    sed -n "s/^$1 = //p" "$build/Makefile"
}
export OMPI_MCA_mca_base_component_path="$build/component:$(configured OMPI_COMPONENTS)"

real_gpu()
{
    [ -e /dev/nvidiactl ] && ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1'
}
if ! real_gpu; then
    export LD_LIBRARY_PATH="$build/emulated_gpu/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
    export EMU_KERNELS="$build/emulated_gpu/lib/libhetcoll_emulated_kernels.so"
fi
if [ "$(id -u)" = 0 ]; then # containers often have no other user
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
yield=
if [ "$(nproc 2>/dev/null || echo 1)" -lt "$ranks" ]; then
    yield="--oversubscribe --bind-to none --mca mpi_yield_when_idle 1"
fi
# shellcheck disable=SC2086
exec "$(configured MPIRUN)" --mca coll hetcoll -n "$ranks" $yield "$build/hetcoll_bench" --demo
