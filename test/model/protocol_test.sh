#!/bin/bash
# protocol_test.sh [mutant NUMBER]: what ranks tell each other, by protocol.pml in Spin. Also whether the model has the
# meetings that the code has. With HETCOLL_MODEL_HEAVY what takes minutes too.
set -u
source=$(cd "${HETCOLL_SRCDIR:-.}" && pwd) || exit 1
if ! command -v spin >/dev/null; then
    echo "skipped: no spin: install the Debian package spin"
    exit 77
fi
for host in ${CC:-gcc}; do
    case $host in *ccache | *distcc) ;; *) break ;; esac
done
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
. "$source/test/model/verdict.sh"

# explore DEFINE...: prints right, wrong and why, or what went wrong with Spin.
explore()
{
    if ! spin "$@" -a "$source/test/model/protocol.pml" >spin.txt 2>&1 ||
        ! "$host" -O1 -w -DSAFETY -DCOLLAPSE -o pan pan.c >>spin.txt 2>&1; then
        cat spin.txt
        return
    fi
    ./pan -m100000 -w24 >pan.txt 2>&1
    local states
    states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' pan.txt)
    if grep -q 'max search depth too small\|out of memory\|aborting' pan.txt; then
        echo "not all was seen: $states states"
    elif grep -q 'errors: 0' pan.txt; then
        echo "right, $states states"
    else
        sed -n 's/^pan:1: \(.*\) (at depth.*/wrong: \1/p' pan.txt
        spin "$@" -k protocol.pml.trail -t -T -B "$source/test/model/protocol.pml" 2>&1 | grep '^ *rank'
    fi
}

check() # NAME EXPECTED DEFINE...
{
    local name=$1 expected=$2 found
    shift 2
    found=$(explore "$@")
    case $found in "$expected"*) verdict 0 "$name" "$found" ;; *) verdict 1 "$name" "$found" ;; esac
}

if [ "${1:-}" = mutant ]; then
    case ${2:?} in
    7) found=$(explore -DN=3 -DLATE -DPROTOCOL=wLarge "-DMUTANT=$2") ;;
    14) found=$(explore -DFAULTS=0 -DLEAVES) ;; # and nobody notices
    *) found=$(explore -DFAULTS=2 "-DMUTANT=$2") ;;
    esac
    echo "${found%%$'\n'*}"
    case $found in wrong*) exit 0 ;; *) exit 1 ;; esac
fi

# meetings FILE...: where the code has them, as FILE FUNCTION. Finding peers, pages and aggregators are not modelled.
meetings()
{
    awk '/^[A-Za-z].*\(/ && !/;$/ { match($0, /[a-z_A-Z:]+\(/); name = substr($0, RSTART, RLENGTH - 1); sub(/.*::/, "", name) }
        /co_await (call\.agree|[a-z]+\.all_met|call\.all_met|close)\(/ { file = FILENAME; sub(/.*\//, "", file); print file, name }' "$@" |
        sort -u
}
modelled()
{
    sed -n '/meet(\|arrive(/s/.*\/\* = \(.*\) \*\/.*/\1/p' "$1" | tr ',' '\n' | sed 's/^ *//' | sort -u
}
meetings "$source"/engine/call/*.cc >code.txt
modelled "$source/test/model/protocol.pml" >model.txt
different=$(diff code.txt model.txt)
verdict $? "$(wc -l <code.txt) functions meet the other ranks, in the code and in the model" "${different:-the same}"

check "two ranks, any way, one fault" right -DFAULTS=1
check "three ranks, of which one comes late" right -DN=3 -DLATE -DPROTOCOL=wLarge
check "three ranks, any way, one fault" right -DN=3
check "a rank leaves, the other notices" right -DFAULTS=0 -DLEAVES -DWATCHED
check "one of three ranks leaves, the others notice" right -DN=3 -DFAULTS=0 -DLEAVES -DWATCHED
if [ -n "${HETCOLL_MODEL_HEAVY:-}" ]; then
    check "two ranks, two calls, two faults" right -DCALLS=2 -DFAULTS=2
    check "three ranks, fixed point, of which one comes late" right -DN=3 -DLATE -DPROTOCOL=wFixed
    check "a rank leaves in the first of two calls, the others notice" right -DCALLS=2 -DLEAVES -DWATCHED
fi
summary
