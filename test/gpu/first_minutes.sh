#!/bin/bash
# first_minutes.sh [OPTION...] [first | second | STEP...]: what to ask of a GPU that is there for minutes only. `first`
# (the default) takes at most 500 s; `second` is for what is left of the machine's time; --list names the steps of both.
# On a machine without a GPU all of it runs on the emulated one.
#
#   --archive FILE   where the archive of all results goes; default first-minutes/first_minutes_GPU.tgz
#   --seconds N      the time for all steps together; default 500
#
# Steps run in their order, each under a limit of its own. A step is left out if those behind it that matter more would
# lack time: the third column below, where 1 is the last to go. Each leaves first-minutes/STEP_GPU.txt in the build
# folder, with the GPU, driver, machine and commit in its head, as bench/results has them. The archive is written again
# after each step, so that a machine that goes away takes one step along at most.
#
#   HETCOLL_BUILDDIR  the build folder, if it is not this one
#   HETCOLL_HOROVOD   the folder that horovod_extension.sh made
#   PYTHON            the Python with PyTorch; default python3
set -u
here=$(cd "$(dirname "$0")" && pwd)
cd "${HETCOLL_BUILDDIR:-.}" || exit 1
build=$PWD
export HETCOLL_SRCDIR=${HETCOLL_SRCDIR:-$(dirname "$(dirname "$here")")} HETCOLL_BUILDDIR=$build
# shellcheck source=test/gpu/parts.sh
. "$here/parts.sh"
emulated=${HETCOLL_CHECK_GPU_EMULATED:-0}

# Step, most seconds, order of sacrifice.
first='latency 30 1
tools 30 2
tune 62 4
small_calls 60 1
own_kernels 20 2
blocks 40 3
two_nodes 25 3
horovod_checks 45 1
horovod 60 2
mps_small_calls 35 2
mps_horovod 120 2
arrays 60 4'
second='mps_own_kernels 30 1
mps_horovod_more 120 1
ranks_bench 120 2
ptx 90 3'

# Sets mpirun, or leaves the step out.
needs_mpi()
{
    # shellcheck source=test/gpu/mpi_settings.sh
    . "$here/mpi_settings.sh"
    [ $# -eq 0 ] || needs "$1"
}

# bench RANKS [OPTION...] -- [ARGUMENT...]: hetcoll_bench on device memory. Ranks are bound and do not yield where each
# has a core to itself.
bench()
{
    local ranks=$1 options=() place=(--bind-to core --mca mpi_yield_when_idle 0) iterations=2000 run
    shift
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    shift
    if [ "$emulated" = 1 ] || [ "$ranks" -gt "$(nproc)" ]; then
        place=(--bind-to none --mca mpi_yield_when_idle 1)
    fi
    [ "$emulated" = 0 ] || iterations=10
    run="$ranks ranks ${options[*]} ${wrapper+on two nodes }$*"
    echo "## $run"
    timeout -k 5 50 "$mpirun" --mca coll hetcoll "${place[@]}" "${options[@]}" -n "$ranks" ${wrapper+"${wrapper[@]}"} \
        "$build/hetcoll_bench" --memory device --warmup 20 --iterations $iterations "$@" </dev/null |
        awk -v run="$run" '{ print } $1 == "auto" { $1 = ""; $0 = $0 } $1 == 8 && $(NF - 2) == "|" {
            printf "# headline    %s: 8 B %s us, p99 %s, a kernel of as many bytes %s\n", run, $6, $7, $NF }'
    [ "${PIPESTATUS[0]}" -eq 0 ]
}

# all COMMAND: on 2, 4 and 8 ranks. Tries all of them, and fails if one does.
all()
{
    local status=0 ranks counts='2 4 8'
    [ "$emulated" = 0 ] || counts='2 4'
    for ranks in $counts; do
        "$@" "$ranks" || status=1
    done
    return $status
}

# The median, p99, the first call and the floor of the same run: docs/internals/latency.md.
small_calls()
{
    local streams status=0
    needs_mpi ./hetcoll_bench
    for streams in legacy independent; do
        all small_call $streams || status=1
    done
    return $status
}
small_call() { bench "$2" --mca coll_hetcoll_streams "$1" -- --sizes 8,1K,64K --algorithms auto,persistent; }

# Every rank has work of its own on the GPU when it calls, as real programs have.
own_kernels()
{
    needs_mpi ./hetcoll_bench
    all own_kernel
}
own_kernel() { bench "$1" -- --own-kernel 16M --sizes 8,1M; }

two_nodes()
{
    local wrapper=(bash "$HETCOLL_SRCDIR/test/mpi/on_nodes.sh" 0,0,1,1)
    needs_mpi ./hetcoll_bench
    bench 4 -- --sizes 8,1K,8K,32K,1M
}

# The programs that make install runs first, and those that a user in trouble runs.
tools()
{
    local status=0
    needs ./hetcoll_info
    ./hetcoll_info doctor gpus || status=$? # says what is wrong here, which is no failure
    echo "# doctor      exit status $status"
    ./hetcoll_info topology && ./hetcoll_info topology --measure
}

tune()
{
    needs_mpi ./hetcoll_tune
    ./hetcoll_tune --quick --ranks 2,4 --mpirun "$mpirun" --output first-minutes/table.json
}

# Parts of check_gpu.sh.
latency() { bash "$here/check_gpu.sh" --part latency; }
blocks() { bash "$here/check_gpu.sh" --part blocks; }
arrays() { bash "$here/check_gpu.sh" --part arrays; }

# needs_horovod: sets python.
needs_horovod()
{
    needs_mpi
    python=$(command -v "${PYTHON:-python3}") || omit 'there is no python3'
    [ -d "${HETCOLL_HOROVOD:-none}/a" ] || omit 'Horovod was not carried along: make carry FOLDER=... PYTHON=...'
    "$python" -c 'import torch; raise SystemExit(not torch.cuda.is_available())' 2>&1 | tail -n 1
    [ "${PIPESTATUS[0]}" -eq 0 ] || omit "the PyTorch of $python is missing or sees no GPU"
}

# horovod_job VARIANT RANKS [OPTION...] -- [ARGUMENT...]: launched as Horovod launches. Variant a hands device pointers
# to MPI, b copies to the host itself and needs no hetcoll.
horovod_job()
{
    local variant=$1 ranks=$2 options=() run
    shift 2
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    shift
    run="Horovod $variant, $ranks ranks ${options[*]} $*"
    echo "## $run"
    PYTHONPATH=$HETCOLL_HOROVOD/$variant${PYTHONPATH:+:$PYTHONPATH} timeout -k 5 60 "$mpirun" --mca coll hetcoll \
        --bind-to none "${options[@]}" -n "$ranks" "$python" "$here/horovod_gpu.py" "$@" </dev/null |
        awk -v run="$run" '{ print } / images\/s / { print "# headline    " run ": " $0 }'
    [ "${PIPESTATUS[0]}" -eq 0 ]
}

horovod_checks()
{
    needs_horovod
    horovod_job a 2 -- && horovod_job a 4 --
}

train() { horovod_job "$@" --train resnet50 --steps 20; }
independent='--mca coll_hetcoll_streams independent'

# shellcheck disable=SC2086
horovod()
{
    needs_horovod
    train a 2 $independent -- && train b 2 --
}

# shellcheck disable=SC2086
train_all_ways()
{
    needs_horovod
    train a 2 $independent -- && train a 2 -- && train a 2 --mca coll_hetcoll_ipc never -- && train b 2 --
}

# shellcheck disable=SC2086
train_more()
{
    needs_horovod
    train a 4 $independent -- && train b 4 -- && train a 2 $independent -- --fp16 && train b 2 -- --fp16
}

# under_mps COMMAND...: with a control daemon of its own, so that the kernels of several processes run at the same time.
under_mps()
{
    local control
    control=$(PATH=$PATH:/usr/local/nvidia/bin command -v nvidia-cuda-mps-control) ||
        omit 'there is no nvidia-cuda-mps-control'
    mps=$(mktemp -d) || return
    export CUDA_MPS_PIPE_DIRECTORY=$mps CUDA_MPS_LOG_DIRECTORY=$mps
    "$control" -d || omit 'nvidia-cuda-mps-control did not start, its message is above'
    # shellcheck disable=SC2064 # as they are now
    trap "echo quit | timeout 10 '$control' >/dev/null; rm -rf '$mps'" EXIT
    "$@"
}
mps_small_calls() { under_mps small_calls; }
mps_own_kernels() { under_mps own_kernels; }
mps_horovod() { under_mps train_all_ways; }
mps_horovod_more() { under_mps train_more; }

# The core's ranks without MPI, as docs/internals/latency.md has them too.
ranks_bench()
{
    needs bench/gpu_ranks_bench
    if [ "$emulated" = 1 ]; then
        bench/gpu_ranks_bench --emulated --seconds 0.02 --bytes 64K --ways auto,leader
    else
        bench/gpu_ranks_bench --ways auto,leader
    fi
}

# Kernels by the driver's compiler, as on a GPU that is newer than the build.
ptx()
{
    needs test/gpu/kernels_gpu_test 'GoogleTest was missing'
    CUDA_FORCE_PTX_JIT=1 test/gpu/kernels_gpu_test --gtest_brief=1
}

die()
{
    echo "first_minutes.sh: $1" >&2
    exit 2
}

archive= seconds=500
while [[ ${1:-} == --* ]]; do
    case $1 in
    --list)
        printf '%s\n' "$first" "$second" | awk '{ printf "%-18s at most %3d s\n", $1, $2 }'
        exit
        ;;
    --step)
        "$2"
        exit
        ;;
    --archive | --seconds)
        [ $# -ge 2 ] || die "$1 needs a value"
        declare "${1#--}=$2"
        shift 2
        ;;
    *) die "$1 is no option: see the head of $0" ;;
    esac
done
[[ $seconds =~ ^[0-9]+$ ]] || die "--seconds $seconds is no number of seconds"

# The steps to run, as the lists above have them.
steps=
for name in "${@:-first}"; do
    case $name in
    first) found=$first ;;
    second) found=$second ;;
    *) found=$(printf '%s\n' "$first" "$second" | grep "^$name ") || die "there is no step $name, see --list" ;;
    esac
    steps+=$found$'\n'
done

find_gpu || exit 1
mkdir -p first-minutes
archive=${archive:-first-minutes/first_minutes_$gpu.tgz}
names=$(awk '{ print $1 }' <<<"$steps")
rm -f first-minutes/*"_$gpu.txt"
start=$SECONDS
left_for_later=
while read -r name most matters; do
    [ -n "$name" ] || continue
    left=$((seconds - (SECONDS - start)))
    kept=$(awk -v name="$name" -v matters="$matters" 'behind && $3 < matters { sum += $2 }
        $1 == name { behind = 1 } END { print sum + 0 }' <<<"$steps")
    if [ $((left - kept)) -lt "$most" ]; then
        left_for_later+=" $name"
        echo "== $name is left for later: $left s are left, of which steps that matter more may take $kept"
        continue
    fi
    echo "== $name, at most $most s, after $((SECONDS - start)) s"
    run_part "$name" "$most" "first-minutes/${name}_$gpu.txt" bash "$here/first_minutes.sh" --step "$name" </dev/null
    tar -C first-minutes -czf "$archive" --exclude='*.tgz' .
done <<<"$steps"

echo
[ "$emulated" = 0 ] || echo 'There is no GPU here: this was the emulated one.'
failed=0
for name in $names; do
    [ ! -e "first-minutes/${name}_$gpu.txt" ] || sum_up_part "$name" "first-minutes/${name}_$gpu.txt" || failed=1
done
[ -z "$left_for_later" ] || echo "left for later: first_minutes.sh$left_for_later"
echo "$((SECONDS - start)) s; all results: $archive"
exit $failed
