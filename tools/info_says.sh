# What the tests of hetcoll_info share; sourced.
# shellcheck shell=sh
info=$HETCOLL_BUILDDIR/hetcoll_info
machines=$HETCOLL_SRCDIR/topology/machines
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failures=0

# says STATUS TEXT ARGUMENT...: hetcoll_info ends with the status, TEXT is part of all it prints.
says()
{
    status=$1
    text=$2
    shift 2
    "$info" "$@" >"$work/out" 2>&1
    got=$?
    if [ "$got" -eq "$status" ] && grep -qF -- "$text" "$work/out"; then
        echo "ok    hetcoll_info $*"
    else
        echo "FAIL  hetcoll_info $*: status $got, not $status with '$text':"
        cat "$work/out"
        failures=$((failures + 1))
    fi
}

# writes FILE ARGUMENT...: hetcoll_info succeeds, prints nothing, and FILE is there.
writes()
{
    file=$1
    shift
    if "$info" "$@" >"$work/out" 2>&1 && [ ! -s "$work/out" ] && [ -s "$file" ]; then
        echo "ok    hetcoll_info $*"
    else
        echo "FAIL  hetcoll_info $* does not write $file:"
        cat "$work/out"
        failures=$((failures + 1))
    fi
}
