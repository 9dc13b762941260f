#!/bin/bash
# The tables in bench/results are what their measurements give, and bench/table_check.sh still makes such files.
set -u
build=$HETCOLL_BUILDDIR results=$HETCOLL_SRCDIR/bench/results
[ -x "$build/hetcoll_tune" ] || exit 77
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failures=0

# check WHAT COMMAND...: the command succeeds.
check()
{
    local what=$1
    shift
    if "$@" >"$work/out" 2>&1; then
        echo "ok    $what"
    else
        echo "FAIL  $what"
        sed 's/^/        | /' "$work/out"
        failures=$((failures + 1))
    fi
}

# same_table TABLE: made again from its measurements, in the order in which they came.
same_table()
{
    local name=${1##*/} files
    mapfile -t files < <(sed -n 's/.*"measurements": "\([^"]*\)".*/\1/p' "$1")
    cp "${files[@]/#/$results/}" "$work" || return 1
    (cd "$work" && "$build/hetcoll_tune" --from-measurements "${files[@]}" --output "$name") && cmp "$1" "$work/$name"
}
for table in "$results"/table*.json; do
    check "${table##*/} is what its measurements give" same_table "$table"
done

mkdir "$work/small"
check 'bench/table_check.sh makes two tables' bash "$HETCOLL_SRCDIR/bench/table_check.sh" --small "$build" "$work/small"
cd "$work/small" || exit 1
for table in a b; do
    check "rules of table $table" grep -qE "^  $table  1 node : [a-z_0-9]+( to [0-9]+, [a-z_0-9]+)*$" table_check.txt
    check "table $table is checked" grep -qE "^table_check-$table.json against .*: [1-9][0-9]* choices, [0-9]+ exc" table_check.txt
done
check 'of both numbers of nodes' grep -q '"nodes_min": 2' table_check-a.json
exit $((failures > 0))
