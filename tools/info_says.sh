# Shared by the tests of hetcoll_info; sourced.
# shellcheck shell=sh
info=$HETCOLL_BUILDDIR/hetcoll_info
machines=$HETCOLL_SRCDIR/topology/machines
. "$HETCOLL_SRCDIR/test/verdict.sh"

# says STATUS TEXT ARGUMENT...: hetcoll_info ends with the status, TEXT is part of all it prints.
says()
{
    status=$1
    text=$2
    shift 2
    "$info" "$@" >"$work/out" 2>&1
    got=$?
    if [ "$got" -eq "$status" ] && grep -qF -- "$text" "$work/out"; then
        verdict 0 "hetcoll_info $*"
    else
        verdict 1 "hetcoll_info $*: status $got, not $status with '$text'"
    fi
}

# writes FILE ARGUMENT...: hetcoll_info succeeds, prints nothing, and FILE is there.
writes()
{
    file=$1
    shift
    "$info" "$@" >"$work/out" 2>&1 && [ ! -s "$work/out" ] && [ -s "$file" ]
    verdict $? "hetcoll_info $* writes $file"
}
