#!/bin/bash
# ucx.sh: UCX with CUDA support, from the package that NVIDIA has on PyPI, on the emulated GPU. From make
# check-clients; by hand: HETCOLL_BUILDDIR=BUILD test/clients/ucx.sh.
#
# Its libucm reports the emulated driver's allocations, so the hooked pointer cache answers without the driver:
# the cache's own tests, and MPI programs. Its messages carry device memory, so hetcoll hands device pointers
# to pml ucx. Its ucx_perftest runs on host and on device memory, the latter by the emulated CUDA runtime.
set -u
build=${HETCOLL_BUILDDIR:-$PWD}
configured() { sed -n "s/^$1 = //p" "$build/Makefile"; }
mpirun=${MPIRUN:-$(configured MPIRUN)}
components=${OMPI_COMPONENTS:-$(configured OMPI_COMPONENTS)}
clients=$build/clients
port=$((20000 + $$ % 20000))
passed=0 failed=0

skip()
{
    echo "skipped UCX: $1"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
}

# result STATUS NAME: a line; of a failure with the output, which is in $clients/ucx.out.
result()
{
    if [ "$1" -eq 0 ]; then
        passed=$((passed + 1))
        echo "passed  UCX, $2 ($SECONDS s)"
    else
        failed=$((failed + 1))
        echo "FAILED  UCX, $2: status $1"
        tail -n 30 "$clients/ucx.out" | sed 's/^/        | /'
    fi
}

mkdir -p "$clients"
ucx=$("$(dirname "$0")/get_ucx.sh" "$build" 2>"$clients/ucx.why") || skip "$(cat "$clients/ucx.why")"
export LD_LIBRARY_PATH="$build/emulated_gpu/lib:$ucx/libucx/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export EMU_NODE=$$ EMU_KERNELS=$build/emulated_gpu/lib/libhetcoll_emulated_kernels.so
export UCX_TLS=self,tcp,posix,sysv,cuda_copy,cuda_ipc UCX_NET_DEVICES=lo

# Not those of what the tests' own libucm can do alone.
HETCOLL_TEST_LIBUCS=$ucx/libucx/lib/libucs.so.0 timeout 280 "$build/test/unit/pointer_cache_test" \
    --gtest_filter='*Hooked*-*HostMemoryMappedOver*:*WhereNoEventsCome:*HooksAreRefused' >"$clients/ucx.out" 2>&1
result $? 'the hooked pointer cache'

export OMPI_MCA_mca_base_component_path="$build/component:$components"
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_btl_vader_single_copy_mechanism=none
if [ "$(id -u)" = 0 ]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
# job NAME RANKS "MPIRUN OPTIONS" PROGRAM
job()
{
    local status=0
    # shellcheck disable=SC2086
    timeout -k 5 100 "$mpirun" --mca coll hetcoll --mca coll_hetcoll_verbose 1 $3 -n "$2" \
        "$build/test/mpi/$4" >"$clients/ucx.out" 2>&1 </dev/null || status=$?
    case $1 in
    hooked) ! grep -q 'memory events are not available' "$clients/ucx.out" || status=-1 ;;
    direct) grep -q "messages carry device memory" "$clients/ucx.out" || status=-1 ;;
    esac
    result $status "$4 $1, $2 ranks"
}
direct='--mca pml ucx --mca opal_common_ucx_tls any --mca opal_common_ucx_devices any'
direct="$direct --mca coll_hetcoll_pml_device always --mca coll_hetcoll_ipc never"
for ranks in 2 3; do
    job hooked $ranks '--mca pml ob1 --mca coll_hetcoll_pointer_cache hooked' other_memory
    job direct $ranks "$direct" device_allreduce
    job direct $ranks "$direct" point_to_point
done
job direct 2 "$direct" other_memory

# The package has a CUDA runtime of its own, by a name of its own. The real one asks the driver for tables that
# the emulated one has not.
ln -sf "$build/emulated_gpu/lib/libcudart.so.13" "$(echo "$ucx"/libucx_cu13.libs/libcudart-*)"

# perftest MEMORY TEST: between two processes.
perftest()
{
    local server status
    port=$((port + 1))
    timeout 60 "$ucx/libucx/bin/ucx_perftest" -p $port -m "$1" >"$clients/ucx.server" 2>&1 &
    server=$!
    sleep 1
    timeout 50 "$ucx/libucx/bin/ucx_perftest" -p $port -m "$1" -t "$2" \
        -s 65536 -n 20 -w 2 127.0.0.1 >"$clients/ucx.out" 2>&1
    status=$?
    [ $status -eq 0 ] || kill $server 2>/dev/null
    wait $server
    result $status "ucx_perftest $2, $1 memory"
}
for memory in host cuda cuda-managed; do
    perftest $memory tag_lat
    perftest $memory tag_bw
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
