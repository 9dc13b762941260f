#!/bin/bash
# build_times.sh COMMIT...: the time that a newcomer's builds take, commit by commit, each in a fresh clone: what
# `./bootstrap.sh demo` compiles, then all else that `./bootstrap.sh check` compiles, so that the sum is a check in a
# fresh clone. Processor seconds are those of all processes, user and system. Writes a results file to stdout. Needs
# what ./bootstrap.sh deps installs, and a configured build/ for the head of the file.
set -u
[ $# -gt 0 ] || { sed -n '2,5s/^# //p' "$0" >&2; exit 2; }
here=$(cd "$(dirname "$0")/.." && pwd)
build=$here/build # for job.sh
. "$here/bench/job.sh"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
TIMEFORMAT='%R %U %S'

# seconds COMMAND...: prints wall and processor seconds of it, in build/ of the clone.
seconds()
{
    { time "$@" >"$work/log" 2>&1 || { tail "$work/log" >&2; exit 1; }; } 2>"$work/time" || { cat "$work/time" >&2; exit 1; }
    tail -n 1 "$work/time" | awk '{ printf "%9.0f %9.0f", $1, $2 + $3 }'
}

header
echo "#"
printf '# %-12s %9s %9s %9s %9s\n' commit "demo (s)" "CPU (s)" "rest (s)" "CPU (s)"
for commit; do
    git clone -q "$here" "$work/clone" && cd "$work/clone" && git checkout -q "$commit" || exit 1
    # Without tests and without a run: the demo's own run takes seconds.
    sed -i 's/^\( *\)exec sh bench\/demo.sh build/\1exit 0/' bootstrap.sh
    demo=$(seconds ./bootstrap.sh demo) || exit 1
    check=$(seconds sh -c 'make -s -C build -j2 && make -s -C build -j2 check TESTS=') || exit 1
    printf '  %-12s %s %s\n' "$commit" "$demo" "$check"
    cd / && rm -rf "$work/clone"
done
