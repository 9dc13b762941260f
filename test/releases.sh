#!/bin/bash
# releases.sh SUITE...: builds hetcoll in other releases of Debian, whose Open MPI is another one than this machine's,
# and runs MPI programs there on the emulated GPU: trixie has 5.0.7 and SimGrid 4.0, forky 6.0.0rc2 and 4.1. Then it
# installs hetcoll there and asks hetcoll_info doctor. As root, for mount and chroot; the packages come from where this
# machine's apt gets its own, and a UCX with CUDA from PyPI. Needs mmdebstrap, 3 GB a release and, on two cores, 15 to 30
# minutes a release. Not a part of make check.
#
#   HETCOLL_RELEASES=DIR    where the systems are; one that is there is used again (/var/tmp/hetcoll-releases)
#   HETCOLL_OMPI_SOURCE=1   instead of all that, test/ompi_source.sh there
#   HETCOLL_MOMENTS=N       kill a rank at N random moments too, a second and a half each (0)
#   CUDA_HOME=DIR           the toolkit that they share (/usr/local/cuda)
set -euo pipefail
src=$(cd "$(dirname "$0")/.." && pwd)
folder=${HETCOLL_RELEASES:-/var/tmp/hetcoll-releases}
cuda=$(readlink -f "${CUDA_HOME:-/usr/local/cuda}")
moments=${HETCOLL_MOMENTS:-0}
jobs=$(nproc)
packages=build-essential,automake,autoconf,libtool,pkg-config,libopenmpi-dev,openmpi-bin,libpmix-dev,libucx-dev
packages+=,libssl-dev,libhwloc-dev,libgtest-dev,libbenchmark-dev,nlohmann-json3-dev,libcli11-dev,procps,libsimgrid-dev
programs='device_allreduce all_collectives own_collectives nonblocking types mixed_memory threads staged_collectives
    sessions accumulate float8 fixed_point settings stream_order named_stream zero_counts'
ucx_version=1.22.0
passed=0 failed=0
. "$src/test/system.sh"

# lay_out SUITE FOLDER: the committed sources there.
lay_out()
{
    rm -rf "$folder/$1/$2" && mkdir -p "$folder/$1/$2" && git -C "$src" archive HEAD | tar -x -C "$folder/$1/$2"
}

# In /hetcoll. nvcc refuses compilers newer than itself unless told otherwise. -O2 and -g, the
# default, would take twice as long.
build() # SUITE
{
    lay_out "$1" hetcoll
    inside "$1" "cd /hetcoll && ./autogen.sh >autogen.log 2>&1 && mkdir build && cd build
        export NVCC_PREPEND_FLAGS=-allow-unsupported-compiler
        ../configure CFLAGS=-O1 CXXFLAGS=-O1 --disable-tune --with-cuda-arch=80 >configure.log 2>&1 || { grep -A 3 error: configure.log; exit 1; }
        {
            # all calls make again, which would make the same files while the rest runs
            make -s measure/commit.h && make -s -j$jobs && make -s -j$jobs emulated_gpu/lib/libcuda.so.1 \
                emulated_gpu/lib/libnvidia-ml.so.1 emulated_gpu/lib/libgdrapi.so.2 \
                emulated_gpu/lib/libhetcoll_emulated_kernels.so test/unit/sim_test \
                $(printf 'test/mpi/%s ' $programs reproducible cpu_path events failures point_to_point)
        } >make.log 2>&1 || { tail -n 30 make.log; exit 1; }"
}

# try SUITE RANKS OPTIONS PROGRAM ARGUMENT...: OPTIONS are mpirun's. Variables before it: launcher of mpirun, wrapper of
# the program; dies: the driver call in which a rank dies, as the emulated GPU says; ends: a pattern of where the others'
# calls end, as hetcoll says; says: what else is printed.
# Debian 13 sets mca_base_component_path for PMIx, and Open MPI then takes it for its own: both are named here.
try()
{
    local suite=$1 ranks=$2 options=$3 program=$4
    shift 3
    if { inside "$suite" "cd /hetcoll/build; lib=\$PWD/emulated_gpu/lib
        export LD_LIBRARY_PATH=\$lib EMU_KERNELS=\$lib/libhetcoll_emulated_kernels.so EMU_NODE=releases_$suite HETCOLL_SRCDIR=/hetcoll
        export OMPI_MCA_mca_base_component_path=\$PWD/component:\$(ompi_info --path pkglibdir | sed 's/^[^:]*: *//')
        export PMIX_MCA_mca_base_component_path=\$(pkg-config --variable=libdir pmix)/pmix OMPI_MCA_mpi_yield_when_idle=1
        export HETCOLL_AGGREGATOR=\$PWD/hetcoll_aggregator HETCOLL_TEST_GROUPS=1
        timeout -k 5 120 ${launcher:-} mpirun $options --map-by :OVERSUBSCRIBE --bind-to none -n $ranks ${wrapper:-} test/mpi/$*" \
        >"$output" 2>&1 || [ "$program" = failures ]; } && grep -qa "^ok $program" "$output" &&
        ! grep -qa '^WRONG' "$output" && is_there; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED  $suite: $*, $ranks ranks, $options"
        tail -n 20 "$output"
    fi
}

# The point that the case is about was reached.
is_there()
{
    [ -z "${says:-}" ] || grep -qa "$says" "$output" || return
    [ -z "${dies:-}" ] || grep -qa "dies in call .* of $dies, as EMU_FAIL wants" "$output" || return
    [ -z "${ends:-}" ] || { grep -qaE "ends with an error $ends, because" "$output" &&
        ! grep -a 'ends with an error' "$output" | grep -qvE "ends with an error $ends, because"; }
}

# try_point SUITE RANKS OPTIONS CALL:NTH WHERE WAY: the last rank dies in that driver call, and the others' calls end there.
try_point()
{
    local suite=$1 ranks=$2 options=$3 point=$4 where=$5 way=$6
    options="--with-ft ulfm --mca btl self,sm $options -x EMU_FAIL=$point:dies -x EMU_FAIL_RANK=${victim:-$((ranks - 1))}"
    dies=${point%:*} ends=$where try "$suite" "$ranks" "$options --mca coll_hetcoll_verbose 1" failures driver device 300000 "$way"
}

# In calls of the driver: buffers are offered to peers and mapped, a kernel or a copy begins.
try_points() # SUITE
{
    local by='--mca coll_hetcoll_algorithm' way links=/hetcoll/topology/machines/dgx1v.topology:0,1,4,2
    local finds='while the ranks find out who reaches whose memory' maps="while the ranks map each other's memory"
    for way in two_shot ring; do
        try_point "$1" 3 "$by $way" cuIpcGetMemHandle:1 "$finds" blocking
        try_point "$1" 3 "$by $way" cuIpcOpenMemHandle:1 "$finds" blocking
        try_point "$1" 3 "$by $way" cuIpcCloseMemHandle:1 "$finds" blocking
        try_point "$1" 3 "$by $way" cuLaunchKernel:1 "$finds" blocking
        try_point "$1" 3 "$by $way" cuEventQuery:3 "$finds" blocking
        try_point "$1" 3 "$by $way" cuIpcGetMemHandle:3 'before the ranks have agreed' blocking
        try_point "$1" 3 "$by $way" cuIpcOpenMemHandle:6 "$maps" blocking
        try_point "$1" 3 "$by $way" cuIpcCloseMemHandle:6 "$maps" blocking
    done
    # A kernel that all start together: the others have come to the close.
    for way in one_shot two_shot copy_in; do
        try_point "$1" 3 "$by $way" cuLaunchKernel:9 "in (a meeting of )?$way" blocking
    done
    victim=0 try_point "$1" 3 "$by leader" cuLaunchKernel:9 'in a meeting of leader' blocking
    for way in ring recursive_doubling rabenseifner; do
        try_point "$1" 3 "$by $way" cuLaunchKernel:9 "in (a meeting of )?$way" blocking
    done
    try_point "$1" 4 "$by tree -x EMU_LINKS=$links" cuLaunchKernel:12 'in tree' blocking
    wrapper='../test/mpi/on_nodes.sh 0,0,1,1' \
        try_point "$1" 4 "$by hierarchical" cuMemcpyAsync:16 'in (a meeting of )?hierarchical' blocking
    for way in bcast reduce allgather reduce_scatter_block; do
        try_point "$1" 3 '' cuIpcOpenMemHandle:6 "$maps" $way
    done
}

# With an aggregator, which stays and forgets the communicator that is broken.
try_aggregators() # SUITE
{
    local options='--with-ft ulfm --mca btl self,sm --mca coll_hetcoll_algorithm in_network'
    local launcher='../test/mpi/with_aggregators.sh one' how way
    for how in before first known revoke; do
        for way in blocking nonblocking; do
            try "$1" 3 "$options" failures $how device 3000000 $way
        done
    done
    for how in 5 20 60; do
        try_point "$1" 3 '--mca coll_hetcoll_algorithm in_network' cuMemcpyAsync:$how 'in (a meeting of )?in_network' blocking
    done
    launcher='../test/mpi/with_aggregators.sh leaves' try "$1" 4 "$options" failures before device 3000000 blocking
    launcher='../test/mpi/with_aggregators.sh leaves' try "$1" 4 "$options" failures revoke device 3000000 blocking
}

# Programs, with their defaults and with what else they know.
try_programs() # SUITE
{
    local forced='--mca pml ob1 --mca coll hetcoll' program ranks stream way
    for ranks in 2 4; do
        for program in $programs; do
            try "$1" $ranks "$forced" "$program"
        done
        try "$1" $ranks "$forced --mca coll_hetcoll_reproducible 1" reproducible
        for stream in blocking legacy perthread; do
            try "$1" $ranks "$forced --mca coll_hetcoll_queued_calls all" stream_order $stream
            try "$1" $ranks "$forced --mca coll_hetcoll_queued_calls all" stream_order $stream meanwhile
        done
        try "$1" $ranks "$forced --mca coll_hetcoll_algorithm host -x EMU_GDR=1" cpu_path sizes all
        try "$1" $ranks "$forced --mca coll_hetcoll_algorithm host -x EMU_GDR=1" cpu_path reuse
        try "$1" $ranks "$forced --mca coll_hetcoll_algorithm two_shot --mca coll_hetcoll_accumulate element" accumulate element
    done
    try "$1" 3 "$forced" events
    for way in keys bad_keys differ unknown; do
        try "$1" 3 "$forced" settings $way
    done
    try "$1" 3 "$forced" staged_collectives threads
    try "$1" 3 "$forced" stream_order nonblocking errors
    try "$1" 2 "$forced" stream_order nonblocking plain single
    try "$1" 3 "$forced --mca coll_hetcoll_algorithm host -x EMU_GDR=1 --mca coll_hetcoll_progress_thread 1" cpu_path requests
    try "$1" 3 '--mca pml ob1 --mca coll ^hetcoll' float8 foreign
}

# Messages by pml ucx: over Debian's UCX, which carries host memory, and over one with CUDA, which carries device memory.
try_ucx() # SUITE
{
    local pml='--mca pml ucx --mca opal_common_ucx_tls any --mca opal_common_ucx_devices any --mca coll hetcoll' ranks program
    local libraries="env LD_LIBRARY_PATH=/hetcoll/build/emulated_gpu/lib:/ucx/libucx/lib UCX_NET_DEVICES=lo"
    local direct="$pml --mca coll_hetcoll_pml_device always --mca coll_hetcoll_ipc never --mca coll_hetcoll_verbose 1"
    for ranks in 2 4; do
        for program in device_allreduce all_collectives own_collectives nonblocking mixed_memory staged_collectives; do
            try "$1" $ranks "$pml" $program
        done
        try "$1" $ranks "$pml" point_to_point host
    done
    rm -rf "$folder/$1/ucx"
    if ! get_ucx; then
        fail "$1" "no UCX with CUDA from PyPI, $folder/ucx.log says why"
        return
    fi
    cp -r "$folder/ucx-$ucx_version" "$folder/$1/ucx"
    for ranks in 2 4; do
        launcher="$libraries UCX_TLS=self,tcp,posix,sysv,cuda_copy,cuda_ipc" try "$1" $ranks "$direct" all_collectives # on host memory
        for program in device_allreduce nonblocking point_to_point; do
            launcher="$libraries UCX_TLS=self,tcp,posix,sysv,cuda_copy,cuda_ipc" says='messages carry device memory' \
                try "$1" $ranks "$direct" $program
        done
    done
}

get_ucx()
{
    [ ! -d "$folder/ucx-$ucx_version/libucx" ] || return 0
    python3 -m venv "$folder/pip" >"$folder/ucx.log" 2>&1 || return
    "$folder/pip/bin/pip" install -q --disable-pip-version-check --no-deps --target "$folder/ucx-$ucx_version" \
        "libucx-cu13==$ucx_version" >"$folder/ucx.log" 2>&1
}

# hetcoll_sim by this release's SimGrid.
try_simulation() # SUITE
{
    if inside "$1" 'cd /hetcoll/build && test/unit/sim_test --gtest_brief=1 && HETCOLL_SRCDIR=/hetcoll HETCOLL_BUILDDIR=$PWD \
        sh /hetcoll/tools/hetcoll_sim_test.sh' >"$output" 2>&1; then
        passed=$((passed + 1))
    else
        fail "$1" 'hetcoll_sim'
        tail -n 20 "$output"
    fi
}

# Installed, hetcoll_info doctor finds it, or prints the lines with which it is found.
try_installed() # SUITE
{
    if inside "$1" 'cd /hetcoll/build && make -s install >install.log 2>&1 || { tail install.log; exit 1; }
        lib=$PWD/emulated_gpu/lib
        export LD_LIBRARY_PATH=$lib EMU_KERNELS=$lib/libhetcoll_emulated_kernels.so EMU_NODE=installed$$ PATH=/usr/local/bin:$PATH
        cd / && hetcoll_info doctor >/tmp/doctor || :
        cat /tmp/doctor
        grep "^ *export [A-Z_]*_mca_base_component_path=" /tmp/doctor >/tmp/lines || :
        . /tmp/lines
        echo "with $(wc -l </tmp/lines) lines of these:"
        hetcoll_info doctor
        mpirun --mca coll hetcoll --map-by :OVERSUBSCRIBE -n 2 hetcoll_bench --memory device --sizes 1M >/tmp/bench
        grep "every element right" /tmp/bench
        make -s -C /hetcoll/build uninstall >/dev/null
        [ ! -e /usr/local/bin/hetcoll_info ]' >"$output" 2>&1; then
        passed=$((passed + 1))
    else
        fail "$1" 'installed'
    fi
    sed "s/^/$1: | /" "$output"
}

# hetcoll for this release's Open MPI without internal headers.
try_ompi_source() # SUITE
{
    lay_out "$1" ompi-source
    inside "$1" "HETCOLL_NAMESPACE=own HETCOLL_RELEASES=/var/tmp HETCOLL_COMMIT=$(git -C "$src" rev-parse --short=12 HEAD) \
        /ompi-source/test/ompi_source.sh" 2>&1 | tee "$output"
    local sum
    sum=$(grep -E '^[0-9]+ passed, [0-9]+ failed$' "$output") || sum='0 passed, 1 failed'
    passed=$((passed + ${sum%% *})) sum=${sum#*, } failed=$((failed + ${sum%% *}))
}

# After a death Open MPI may hang in MPI_Finalize: what counts is what the program says.
try_failures() # SUITE
{
    local options='--with-ft ulfm --mca btl self,sm'
    for how in before first between revoke; do
        for memory in host device; do
            for count in 2 300000; do
                for way in blocking nonblocking persistent; do
                    try "$1" 3 "$options" failures $how $memory $count $way
                done
            done
        done
    done
    for way in one_shot two_shot leader ring recursive_doubling; do
        try "$1" 3 "$options --mca coll_hetcoll_algorithm $way" failures before device 300000 blocking
    done
    try "$1" 3 "$options --mca coll_hetcoll_algorithm two_shot" failures known device 300000 blocking
    ends="in the communicator's first call" try "$1" 3 "$options --mca coll_hetcoll_verbose 1" failures first device 300000 blocking
    for how in before between revoke; do
        for way in bcast reduce allgather reduce_scatter_block ibcast alltoall; do
            try "$1" 3 "$options" failures $how device 300000 $way
        done
    done
    for how in before first between revoke; do
        for count in 2 300000; do
            try "$1" 3 "$options" failures $how device $count queued
        done
        try "$1" 3 "$options --mca coll_hetcoll_algorithm ring --mca coll_hetcoll_queued_calls all" \
            failures $how device 300000 queued
    done
    try_points "$1"
    try_aggregators "$1"
    for after in 5 100 200; do
        try "$1" 3 "$options --mca coll_hetcoll_algorithm two_shot" failures slow device 300000 blocking $after
    done
    for memory in host device; do
        try "$1" 8 "$options" failures series $memory 300000 blocking
        sed -n "s/^note rank 0: after/$1, $memory memory: after/p" "$output"
    done
}

# A rank is killed some time after the first call on a new communicator has begun, in half of the jobs early.
try_moments() # SUITE
{
    local all_algorithms=(auto one_shot two_shot leader ring recursive_doubling tree) all_ways=(blocking nonblocking persistent)
    local counts=(2 300000) memories=(device device host) moment slowest='' options way
    local links=/hetcoll/topology/machines/dgx1v.topology:0,1,4,2 ranks
    RANDOM=1
    for ((k = 0; k < moments; ++k)); do
        moment=$((RANDOM % (k % 2 == 0 ? 40 : 400)))
        way=${all_algorithms[k % 7]}
        options="--with-ft ulfm --mca btl self,sm --mca coll_hetcoll_algorithm $way"
        ranks=3
        [ "$way" != tree ] || { ranks=4 options+=" -x EMU_LINKS=$links"; } # two ranks have no trees
        try "$1" $ranks "$options" failures random "${memories[RANDOM % 3]}" "${counts[RANDOM % 2]}" "${all_ways[RANDOM % 3]}" $moment
        slowest=$({ echo "$slowest"; sed -n 's/.* calls, \([0-9.]*\) s after the failure.*/\1/p' "$output"; } | sort -n | tail -n 1)
    done
    echo "$1: a rank killed at $moments random moments: the last call of a survivor returned after $slowest s at most"
}

fail() # SUITE WHAT
{
    failed=$((failed + 1))
    echo "FAILED  $1: $2"
}

[ $# -gt 0 ] || { echo "releases.sh: name releases of Debian: trixie, forky" >&2; exit 2; }
need mmdebstrap unshare git python3
mkdir -p "$folder"
echo "# date          $(date -u '+%F %T UTC')"
echo "# machine       $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1), $jobs cores"
echo "# commit        $(git -C "$src" rev-parse --short=12 HEAD)"
echo "# made by: test/releases.sh $*, $moments random moments"
for suite in "$@"; do
    start=$SECONDS output=$folder/$suite.output
    make_system "$suite" "$suite" "$packages" >"$folder/$suite.log" 2>&1 || { fail "$suite" "no system, $folder/$suite.log says why"; continue; }
    echo "$suite: $(inside "$suite" 'ompi_info --version' 2>/dev/null | head -n 1), there after $((SECONDS - start)) s"
    if [ -n "${HETCOLL_OMPI_SOURCE:-}" ]; then
        try_ompi_source "$suite" || :
        continue
    fi
    build "$suite" || { fail "$suite" "build"; continue; }
    echo "$suite: built after $((SECONDS - start)) s"
    try_programs "$suite"
    try_ucx "$suite"
    try_simulation "$suite"
    try_installed "$suite"
    echo "$suite: programs done after $((SECONDS - start)) s: $passed passed, $failed failed"
    try_failures "$suite"
    [ "$moments" = 0 ] || try_moments "$suite"
    echo "$suite: done after $((SECONDS - start)) s"
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
