#!/bin/bash
# mpi4py.sh: mpi4py's own tests, from its source package on PyPI, under the Open MPI that hetcoll was built
# for. From make check-clients; by hand: HETCOLL_BUILDDIR=BUILD test/clients/mpi4py.sh [RANKS...] (1 2 3 5).
#
# Host memory: every test that passes without hetcoll passes with it. Device memory, on the emulated GPU: the
# tests of collectives pass, in which every array is in device memory. A rank's results are in
# BUILD/clients/RUN.RANK.
set -u
build=${HETCOLL_BUILDDIR:-$PWD}
here=$(cd "$(dirname "$0")" && pwd)
configured() { sed -n "s/^$1 = //p" "$build/Makefile"; }
mpirun=${MPIRUN:-$(configured MPIRUN)}
mpicc=${MPICC:-$(configured MPICC)}
components=${OMPI_COMPONENTS:-$(configured OMPI_COMPONENTS)}
python=${PYTHON:-/usr/bin/python3}
version=4.1.2
limit=${HETCOLL_CLIENT_SECONDS:-400} # of one run
clients=$build/clients
venv=$clients/mpi4py
tests=$clients/mpi4py-$version/test
ranks=("$@")
[ ${#ranks[@]} -gt 0 ] || ranks=(1 2 3 5)

skip()
{
    echo "skipped mpi4py: $1"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
}

# make_mpi4py: builds it once, without optimisation: of its minutes the compiler takes the most.
make_mpi4py()
{
    [ "$(cat "$clients/mpi4py.made" 2>/dev/null)" = "$version $mpicc $("$python" -V)" ] && return
    mkdir -p "$clients" && rm -rf "$venv" "$clients/mpi4py-$version" "$clients/mpi4py.made"
    local log=$clients/mpi4py.log
    "$python" -m venv "$venv" >"$log" 2>&1 || skip "no virtual environment ($(tail -n 1 "$log"))"
    (
        cd "$clients" && timeout 300 "$venv/bin/pip" download -q --disable-pip-version-check --no-deps \
            --no-binary mpi4py "mpi4py==$version"
    ) >"$log" 2>&1 || skip "PyPI does not give its source ($(tail -n 1 "$log"))"
    tar -C "$clients" -xf "$clients/mpi4py-$version.tar.gz" || skip "its source is no archive"
    MPICC=$mpicc CFLAGS=-O0 timeout 900 "$venv/bin/pip" install -q --disable-pip-version-check --no-deps \
        "$clients/mpi4py-$version" >"$log" 2>&1 || skip "it does not build, see $log (Debian package python3-dev?)"
    echo "$version $mpicc $("$python" -V)" >"$clients/mpi4py.made"
}

# run NAME RANKS "MPIRUN OPTIONS" OPTION...: the tests, with their results in files. Says no more than that a
# process died; the results say in which test.
run()
{
    local name=$1 n=$2 options=$3 status=0
    shift 3
    rm -f "$clients/$name".*
    # shellcheck disable=SC2086
    timeout -k 10 "$limit" "$mpirun" --mca pml ob1 $options -n "$n" "$venv/bin/python" \
        "$here/mpi4py_tests.py" "$tests" "$clients/$name" "$@" >"$clients/$name.out" 2>&1 </dev/null || status=$?
    [ "$status" -ne 124 ] && [ "$status" -ne 137 ] || echo "        | $name: no end within $limit s" >&2
}

# passed NAME: the tests that passed on all ranks.
passed()
{
    local n
    n=$(find "$clients" -name "$1.[0-9]*" | wc -l)
    sed -n 's/^passed //p' "$clients/$1".[0-9]* | sort | uniq -c | awk -v n="$n" '$1 == n { print $2 }'
}

# started NAME: the tests that began on some rank, and were not skipped.
started()
{
    {
        sed -n 's/^started //p' "$clients/$1".[0-9]* | sort -u
        sed -n 's/^skipped //p' "$clients/$1".[0-9]* | sort -u
    } | sort | uniq -u
}

# differ LINE WANTED GOT: a result line. All of file WANTED must be in GOT.
differ()
{
    local lost total
    lost=$(comm -23 "$2" "$3")
    total=$(wc -l <"$2")
    if [ -z "$lost" ] && [ "$total" -gt 0 ]; then
        passed=$((passed + 1))
        echo "passed  mpi4py, $1: $total tests ($SECONDS s)"
    else
        failed=$((failed + 1))
        echo "FAILED  mpi4py, $1: of $total tests these do not pass:"
        # shellcheck disable=SC2001
        echo "$lost" | sed 's/^/        | /'
    fi
}

make_mpi4py
export OMPI_MCA_mca_base_component_path="$build/component:$components"
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_btl_vader_single_copy_mechanism=none
if [ "$(id -u)" = 0 ]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi
export EMU_NODE=$$ EMU_KERNELS=$build/emulated_gpu/lib/libhetcoll_emulated_kernels.so
export LD_LIBRARY_PATH="$build/emulated_gpu/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"

passed=0 failed=0
# Tests that start processes need slots and minutes, and hetcoll does not see them.
host=(-e spawn -e dynproc)
device=(--device -i 'cco_(nb_|pr_)?(ngh_)?(buf|vec)[.]py')
for n in "${ranks[@]}"; do
    run "host_without.$n" "$n" '--mca coll ^hetcoll' "${host[@]}"
    run "host_with.$n" "$n" '--mca coll hetcoll' "${host[@]}"
    passed "host_without.$n" >"$clients/wanted"
    passed "host_with.$n" >"$clients/got"
    differ "host memory, $n ranks" "$clients/wanted" "$clients/got"
    run "device.$n" "$n" '--mca coll hetcoll' "${device[@]}"
    started "device.$n" >"$clients/wanted"
    passed "device.$n" >"$clients/got"
    differ "device memory, $n ranks" "$clients/wanted" "$clients/got"
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
