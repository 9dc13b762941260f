#!/bin/bash
# docs_test.sh [FILE...]: the samples of the documentation are true. A fenced block that begins with "$ COMMAND" has
# below each command what it prints: each runs here, in a folder that has the files of which the page speaks, and
# must print that. "..." stands for anything, a line of it for some lines: what is left out, times, names of hosts.
# In a block that begins with "```text times" any number with a point stands for any other.
set -u
source=$(cd "${HETCOLL_SRCDIR:-.}" && pwd) && build=$(cd "${HETCOLL_BUILDDIR:-.}" && pwd) || exit 1
work=$(mktemp -d) || exit 1
export EMU_NODE=docs$$
trap 'rm -rf "$work" /dev/shm/emulated_gpu."$(id -u)"."$EMU_NODE".*' EXIT
cd "$source" || exit 1
[ $# -gt 0 ] || set -- README.md docs/*.md docs/internals/*.md emulated_gpu/README.md examples/README.md examples/*/README.md
passed=0 failed=0 skipped=0

# samples FILE: writes NUMBER.where, .command and .output for each command; commands may go on after a backslash.
samples()
{
    awk -v folder="$work/samples" -v page="$1" -v count="$(find "$work/samples" -name '*.where' | wc -l)" '
        function part(name) { return folder "/" sprintf("%03d", count) "." name }
        /^```/ { fenced = !fenced; sample = 0; times = / times$/; first = NR + 1; next }
        !fenced { next }
        NR == first && /^\$ / { sample = 1 }
        !sample { next }
        /^\$ / && !more {
            count++
            print page ":" NR >part("where")
            printf "" >part("output")
            if (times) {
                printf "" >part("times")
            }
            print substr($0, 3) >part("command")
            more = /\\$/
            next
        }
        more { print >part("command"); more = /\\$/; next }
        { print >part("output") }' "$1"
}

# fence FILE KIND PATTERN: the first block of this kind in the file with such a line.
fence()
{
    awk -v kind="$2" -v pattern="$3" '
        /^```/ { if (inside && found) { printf "%s", text; exit } inside = ($0 == "```" kind) && !inside; text = ""; found = 0; next }
        inside { text = text $0 "\n"; if ($0 ~ pattern) found = 1 }' "$1"
}

# The files of which the pages speak: shipped topologies by name, examples, tables and what is wrong with them.
mkdir "$work/samples" "$work/here" "$work/bin"
for folder in examples bench docs test; do
    ln -s "$source/$folder" "$work/here/$folder"
done
for file in topology/machines/*; do
    [ -f "$file" ] || continue
    name=${file##*/}
    cp "$file" "$work/here/$name" && ln -s "$name" "$work/here/${name%.*}"
done
fence docs/tuning.md json rule_file_version >"$work/here/table.json"
sed 's/"two_shot"/"twoshot"/' "$work/here/table.json" >"$work/here/broken.json"
printf 'hetcoll topology 1\ngpu gpu0 -\nlink gpu0 gpu1 nvlink 2 25\n' >"$work/here/broken.topology"
fence README.md c 'MPI_Init' >"$work/here/sum.c"

configured() { sed -n "s/^$1 = //p" "$build/Makefile"; }
ln -s "$(command -v "${MPIRUN:-$(configured MPIRUN)}")" "$work/bin/mpirun"
export PATH="$work/bin:$build:$build/bench:$PATH"
export LD_LIBRARY_PATH="$build/emulated_gpu/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export EMU_KERNELS=${EMU_KERNELS:-$build/emulated_gpu/lib/libhetcoll_emulated_kernels.so}
export OMPI_MCA_mca_base_component_path="$build/component:${OMPI_COMPONENTS:-$(configured OMPI_COMPONENTS)}"
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_btl_vader_single_copy_mechanism=none
if [ "$(id -u)" = 0 ]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi

# README.md's program, as it is, prints what the page says; other pages run it too.
has_gpu=$([ -z "${HETCOLL_SANITIZER:-}" ] && [ -f "$build/emulated_gpu/lib/libcuda.so.1" ] && echo yes)
if [ -n "$has_gpu" ]; then
    # shellcheck disable=SC2046
    "$(configured MPICC)" -Werror "$work/here/sum.c" $(configured CUDA_CPPFLAGS) \
        "$build/emulated_gpu/lib/libcuda.so.1" -o "$work/here/sum" || exit 1
fi
for page in "$@"; do
    samples "$page"
done
if [[ " $* " == *" README.md "* ]]; then
    echo "README.md: sum.c" >"$work/samples/000.where"
    echo "mpirun --mca coll hetcoll -n 4 ./sum" >"$work/samples/000.command"
    sed -n 's/.*\.\/sum  *# *//p' README.md >"$work/samples/000.output"
    grep -q . "$work/samples/000.output" || exit 1
fi

without_times() { sed -E 's/[0-9]+\.[0-9]+/#/g; s/ +/ /g'; }

# compare WHERE COMMAND-FILE OUTPUT-FILE
compare()
{
    local wanted got program
    program=$(tr ' ' '\n' <"$2" | grep -v = | head -n 1) # after variables of its environment
    if ! command -v "$program" >/dev/null; then
        skipped=$((skipped + 1))
        echo "skipped $1: this build has no $program"
        return
    fi
    if [ -z "$has_gpu" ] && grep -qE 'mpirun|\.trace' "$2"; then
        skipped=$((skipped + 1))
        echo "skipped $1: a job needs the emulated GPU, without sanitizers"
        return
    fi
    got=$(cd "$work/here" && timeout -k 5 900 bash "$2" 2>&1 </dev/null | grep -v 'runs on the emulated GPU' | sed 's/ *$//')
    # Everything is meant literally, but for three points.
    wanted=$(cat "$3")
    if [ -f "${3%.output}.times" ]; then
        wanted=$(without_times <<<"$wanted") got=$(without_times <<<"$got")
    fi
    wanted=$(sed -e 's/ *$//' -e 's/[][\\*?]/\\&/g' -e 's/ *\.\.\. */*/g' <<<"$wanted")
    # shellcheck disable=SC2053
    if [[ $got == $wanted ]]; then
        passed=$((passed + 1))
        echo "passed  $1: $(head -n 1 "$2")"
    else
        failed=$((failed + 1))
        echo "FAILED  $1: $(head -n 1 "$2")"
        diff "$3" <(echo "$got") | sed 's/^/        | /'
    fi
}

for where in "$work"/samples/*.where; do
    [ -f "$where" ] || continue
    compare "$(cat "$where")" "${where%.where}.command" "${where%.where}.output"
done

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ $((passed + skipped)) -gt 0 ]
