#!/bin/bash
# usage_test.sh [--write]: the tables of parameters and counters in docs/usage.md are what ompi_info says
# of the component: names, defaults and help. Counters of algorithms share a row, and so do the times. With --write
# the tables become that.
set -u
build=${HETCOLL_BUILDDIR:-$PWD}
page=${HETCOLL_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/docs/usage.md
configured() { sed -n "s/^$1 = //p" "$build/Makefile"; }
ompi_info=${OMPI_INFO:-$(configured OMPI_INFO)}
[ -z "${HETCOLL_SANITIZER:-}" ] || exit 77 # ompi_info does not load what is built for a sanitizer
export OMPI_MCA_mca_base_component_path="$build/component:${OMPI_COMPONENTS:-$(configured OMPI_COMPONENTS)}"
for setting in $(env | sed -n 's/^\(OMPI_MCA_coll_hetcoll_[a-z_]*\)=.*/\1/p'); do
    unset "$setting"
done
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

"$ompi_info" --param coll hetcoll --level 9 --parsable >"$work/info" || exit 1

# rows KIND: a row for each variable of ompi_info's kind, param or pvar.
rows()
{
    awk -F: -v kind="$1" '
        function bytes(value)
        {
            for (unit = 3; unit > 0; --unit) {
                if (value > 0 && value % 1024 ^ unit == 0) {
                    return value / 1024 ^ unit substr("KMG", unit, 1)
                }
            }
            return value
        }
        # The row that a counter shares with others, or "": calls_X of an algorithm has a time_X, as two others have.
        function shared_row(counter)
        {
            if (counter ~ /^time_path_/) {
                return "| `time_path_...` | Nanoseconds in calls whose data went by path" paths " |"
            }
            if (counter ~ /^time_/) {
                return "| `time_...` | Nanoseconds in the calls that `calls_...` counts |"
            }
            if (sub(/^calls_/, "", counter) && "coll_hetcoll_time_" counter in seen && \
                counter !~ /^(previous|staged)$/) {
                return "| `calls_ALGORITHM` | MPI_Allreduce calls by this [algorithm](tuning.md): `calls_ring`; " \
                    "`calls_small` for `host` |"
            }
            return ""
        }
        $3 == "hetcoll" && $4 == kind && $5 !~ /stream_functions|_version$/ { # not to be set
            # The value may have colons, and quotes around it if it has.
            said = substr($0, length($1 $2 $3 $4 $5 $6) + 7)
            gsub(/^"|"$/, "", said)
            if (!($5 in seen)) {
                seen[$5] = 1
                names[++count] = $5
            }
            about[$5, $6] = said
        }
        END {
            for (i = 1; i <= count; ++i) {
                if (sub(/^coll_hetcoll_time_path_/, "", names[i])) {
                    paths = paths (paths == "" ? " `" : ", `") names[i] "`"
                    names[i] = "coll_hetcoll_time_path_" names[i]
                }
            }
            for (i = 1; i <= count; ++i) {
                name = names[i]
                value = about[name, "value"]
                value = about[name, "type"] == "unsigned_long" ? bytes(value) : value
                if (kind == "pvar") {
                    row = shared_row(substr(name, length("coll_hetcoll_") + 1))
                    if (row != "") {
                        if (!(row in printed)) {
                            print row
                        }
                        printed[row] = 1
                        continue
                    }
                }
                row = "| `" (kind == "pvar" ? substr(name, length("coll_hetcoll_") + 1) : name) "` |"
                row = row (kind == "pvar" ? "" : " " (value == "" ? "none" : value) " |")
                print row " " about[name, "help"] " |"
            }
        }' "$work/info" | sed -E 's,docs/((internals/)?([a-z-]+))\.md,[\3](\1.md),g'
}

# replace FIRST KIND: the rows below the heading of a table whose first line begins with FIRST.
replace()
{
    rows "$2" >"$work/rows"
    if [ ! -s "$work/rows" ]; then
        echo "ompi_info says nothing of hetcoll's kind $2" >&2
        exit 1
    fi
    awk -v first="$1" -v rows="$work/rows" '
        index($0, first) == 1 { state = 1 }
        state == 3 && /^\|/ { next }
        { print }
        state == 3 { state = 0 }
        state == 2 {
            while ((getline row <rows) > 0) {
                print row
            }
            state = 3
        }
        state == 1 { state = 2 }' "$work/page" >"$work/new" && mv "$work/new" "$work/page"
}

cp "$page" "$work/page"
replace '| parameter |' param
replace '| `coll_hetcoll_...` |' pvar
if [ "${1:-}" = --write ]; then
    cp "$work/page" "$page"
elif ! diff "$page" "$work/page"; then
    echo "docs/usage.md says '<', the component '>': test/mpi/usage_test.sh --write" >&2
    exit 1
fi
