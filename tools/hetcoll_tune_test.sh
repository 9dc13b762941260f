#!/bin/bash
# The tables of hetcoll_tune; each error is one line and leaves no table behind.
set -u
tune=$HETCOLL_BUILDDIR/hetcoll_tune
here=$HETCOLL_SRCDIR/tools
. "$HETCOLL_SRCDIR/test/verdict.sh"
export OMPI_MCA_mca_base_component_path="$HETCOLL_BUILDDIR/component:$OMPI_COMPONENTS"
export OMPI_MCA_btl_vader_single_copy_mechanism=none

# says STATUS TEXT ARGUMENT...: one line, with TEXT in it, and that exit status.
says()
{
    local status=$1 text=$2 got=0
    shift 2
    timeout -k 5 900 "$tune" "$@" >"$work/all" 2>&1 </dev/null || got=$?
    grep -v '^hetcoll_tune: job ' "$work/all" >"$work/out" # how far it is
    [ "$got" -eq "$status" ] && grep -qF -- "$text" "$work/out" && [ "$(wc -l <"$work/out")" -eq 1 ]
    verdict $? "$text"
}

# The same measurements give the same table, byte for byte, also where there is one already.
cp "$here/hetcoll_tune_test.dgx.measurements" "$work/hetcoll_tune_test.dgx.measurements"
for round in new again; do
    "$tune" --from-measurements "$work/hetcoll_tune_test.dgx.measurements" \
        --output "$work/table.json" >"$work/out" 2>&1 &&
        cmp "$here/hetcoll_tune_test.json" "$work/table.json" >>"$work/out" 2>&1
    verdict $? "the saved measurements give the saved table, $round"
done
says 0 'wrote' --from-measurements "$work/hetcoll_tune_test.dgx.measurements" --output "$work/table.json" \
    --html "$work/page.html"
grep -q '"machine":"dgx"' "$work/page.html" && grep -q '</html>' "$work/page.html"
verdict $? 'a page for a browser shows them beside it'
says 1 'no new table: /no/page.html cannot be written' --output "$work/other.json" --html /no/page.html \
    --from-measurements "$work/hetcoll_tune_test.dgx.measurements"
"$tune" --from-measurements "$work/hetcoll_tune_test.dgx.measurements" --output "$work/table.json" --html - 2>"$work/err" |
    head -n 1 >"$work/out"
[ "$(cat "$work/out")" = '<!DOCTYPE html>' ] && grep -q '^hetcoll_tune: wrote ' "$work/err"
verdict $? 'a page on stdout has nothing before it'
"$tune" --from-measurements "$work/hetcoll_tune_test.dgx.measurements" --output "$work/full.json" --html /dev/full \
    >"$work/out" 2>&1
[ $? -eq 1 ] && [ -s "$work/full.json" ] && ! grep -q 'no new table' "$work/out" &&
    grep -q 'no page about the new table: /dev/full cannot be written' "$work/out"
verdict $? 'a page that cannot be written is not said to be a table'
sed 's/^machine dgx/machine twin/' "$here/hetcoll_tune_test.dgx.measurements" >"$work/twin.measurements"
"$tune" --from-measurements "$work/twin.measurements" --output "$work/table.json" 2>&1 |
    grep -q 'note: twin has the fingerprint of dgx: hosts take'
verdict $? 'two machines with one fingerprint are noted'
says 1 'no new table' --from-measurements "$work/hetcoll_tune_test.dgx.measurements" "$work/none" --output "$work/half.json"
[ ! -e "$work/half.json" ]
verdict $? 'and then there is none of the other files either'
says 1 'cannot be read' --from-measurements "$work/none" --output "$work/other.json"
echo 'hetcoll measurements 1
machine x
ring' >"$work/broken"
says 1 'broken:3: 1 words, not 15 or 16' --from-measurements "$work/broken" --output "$work/other.json"

# It replaces no file that it does not understand: every kind stays, byte for byte.
own=(--from-measurements "$work/hetcoll_tune_test.dgx.measurements" --output)
keeps() # TEXT: $work/kept is refused with TEXT, and stays
{
    cp "$work/kept" "$work/before"
    says 1 "no new table: $work/kept is kept, " "${own[@]}" "$work/kept"
    grep -qF -- "$1" "$work/out" && cmp "$work/before" "$work/kept" >>"$work/out" 2>&1
    verdict $? "and says '$1'"
}
printf 'What I have measured:\nmuch\n' >"$work/kept"
keeps 'kept:1: '
head -c 700 "$here/hetcoll_tune_test.json" >"$work/kept"
keeps 'kept:'
sed 's/"rule_file_version": 3/"rule_file_version": 4/' "$here/hetcoll_tune_test.json" >"$work/kept"
keeps 'kept:3: '
sed 's/"module": "hetcoll"/"module": "hetcoll", "more": 1/' "$here/hetcoll_tune_test.json" >"$work/kept"
keeps "unknown key 'more'"
head -c 2000000 /dev/zero >"$work/kept"
keeps 'it has 2000000 bytes'
cp "$work/hetcoll_tune_test.dgx.measurements" "$work/kept"
keeps 'kept:1: '
: >"$work/kept"
says 0 "wrote $work/kept" "${own[@]}" "$work/kept"

# Rules of other machines stay, up to what a job reads of a table.
others=
for ((i = 0; i < 64; i++)); do
    others+="${others:+,}{\"name\": \"m$i\", \"fingerprint\": {\"gpu\": \"G$i\"}}"
done
full()
{
    printf '{"rule_file_version": 3, "module": "hetcoll", "machines": [%s], "collectives": {"allreduce": [{"machine": "m%d", "rules": [
        {"msg_size_min": 0, "msg_size_max": "inf", "alg": "ring"}]}]}}' "$1" "$2" >"$work/full"
}
full "${others#*\},}" 63
says 0 "wrote $work/full" "${own[@]}" "$work/full"
grep -q '"m63"' "$work/full" && grep -q '"alg": "ring"' "$work/full" && grep -q '"dgx"' "$work/full"
verdict $? 'the rules of 63 other machines are kept'
full "$others" 0
cp "$work/full" "$work/before"
says 1 'no job could read the table, so ' "${own[@]}" "$work/full"
grep -q 'more than 64 machines' "$work/out" && cmp "$work/before" "$work/full" >>"$work/out" 2>&1
verdict $? 'those of 64 have no place for more, and stay'

# The picture of it, where there is matplotlib; else what to do.
if command -v python3 >/dev/null; then
    python3 "$HETCOLL_SRCDIR/bench/plot.py" "$here/hetcoll_tune_test.dgx.measurements" --nodes 1 \
        --table "$here/hetcoll_tune_test.json" --topology "$HETCOLL_SRCDIR/topology/machines/dgxa100.topology:0-3" \
        --hetcoll-info "$HETCOLL_BUILDDIR/hetcoll_info" --output "$work/picture" >"$work/out" 2>&1
    if python3 -c 'import matplotlib' 2>/dev/null; then
        [ -s "$work/picture.png" ] && grep -q "the table's choice" "$work/picture.svg"
    else
        grep -q '^plot.py: matplotlib is not installed' "$work/out"
    fi
    verdict $? 'bench/plot.py draws it, or says what is missing'
    # A name without a style of its own, there or on hetcoll_info's page, would look like another one.
    python3 - "$HETCOLL_SRCDIR" >"$work/out" 2>&1 <<'END'
import re, runpy, sys
names = re.findall(r"X\(\w+,\s*\w+,\s*(\w+),", open(sys.argv[1] + "/base/algorithm_list.h").read())
styles = runpy.run_path(sys.argv[1] + "/bench/plot.py")["STYLES"]
page = re.search(r"colours = \{(.*?)\n\};", open(sys.argv[1] + "/tools/report/charts.js").read(), re.S)[1]
colours = dict(re.findall(r'(\w+): \["(#\w+)"', page))
assert len(names) >= 17 and set(names) == set(styles) == set(colours), (names, set(names) ^ set(styles), set(names) ^ set(colours))
assert len(set(styles.values())) == len(styles) == len(set(colours.values()))
assert all(styles[name][0] == colours[name] for name in names)
END
    verdict $? 'plot.py and the page have a colour for every algorithm of base/algorithm_list.h'
fi

# A whole run. Twelve sizes on a slow machine are fewer, but the limit holds.
few=
case ${HETCOLL_SANITIZER:-} in ?*) few='--sizes 8,8K,64K' ;; esac
# shellcheck disable=SC2086
timeout -k 5 900 "$tune" --quick $few --output "$work/quick.json" >"$work/out" 2>&1 </dev/null &&
    [ "$(grep -vc "^hetcoll_tune: job " "$work/out")" -eq 1 ] && ls "$work"/quick.*.measurements >>"$work/files"
verdict $? 'hetcoll_tune --quick ends with a table, the measurements and one line'
"$HETCOLL_BUILDDIR/hetcoll_info" --explain --bytes 1M --ranks 2 --ranks-per-gpu 2 --table "$work/quick.json" >"$work/out" 2>&1
verdict $? 'hetcoll_info reads the table'
timeout -k 5 900 "$tune" --output "$work/nodes.json" --ranks 4 --nodes 1,2 --fake-nodes --sizes 8,64K \
    --limit 800 --repetitions 2 --most-repetitions 2 >"$work/out" 2>&1 </dev/null &&
    grep -q '^ring - 4 2 2 2 ' "$work"/nodes.*.measurements && grep -q '"nodes_min": 2' "$work/nodes.json"
verdict $? 'two nodes on one machine have rules of their own'

# The measurements of a job, by hand.
root=
[ "$(id -u)" = 0 ] && root=--allow-run-as-root
# shellcheck disable=SC2086
timeout -k 5 900 "$MPIRUN" $root --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 -n 2 \
    "$HETCOLL_BUILDDIR/hetcoll_bench" --memory device --sizes 64,64K --iterations 3 --algorithms all,ring/4096 \
    >"$work/out" 2>&1 </dev/null
status=$?
for line in 'host  *64 .*small' 'ring  *65536 .* ok' 'ring/4096  *65536' 'leader  *65536 .*mapped' 'host_copy  *65536'; do
    grep -q "^$line" "$work/out" || status=1
done
verdict $status 'hetcoll_bench --algorithms measures them side by side'

# Nothing of the emulated GPU is installed.
says 0 'the GPU here is emulated' --quick
CUDA_VISIBLE_DEVICES='' says 0 'no GPU on this machine: hetcoll goes by its prices' --quick
CUDA_VISIBLE_DEVICES='' says 1 'no GPU on this machine: hetcoll goes by its prices' --output "$work/t.json"

# More jobs for what three leave undecided: the leader's 64 bytes, faster than the ring in every third one.
script()
{
    printf '#!/bin/bash\n%s\n' "$1" >"$work/mpirun"
    chmod +x "$work/mpirun"
}
# shellcheck disable=SC2016
script 'line() { echo "@sample $1 - 2 1 2 2 1 4 sum device $2 0 $3 $3 $3 0;"; }
    echo "$*" >>'"$work/jobs"'; leader=$(($(wc -l <'"$work/jobs"') % 3 ? 130 : 90))
    [[ $* == *,one_shot* ]] && line one_shot 64 300 && line ring 4096 100 && line leader 4096 200
    line ring 64 100; line leader 64 $leader'
timeout -k 5 900 "$tune" --output "$work/more.json" --mpirun "$work/mpirun" --ranks 2 --sizes 64,4K \
    --algorithms ring,leader,one_shot >"$work/out" 2>&1 </dev/null &&
    [ "$(wc -l <"$work/jobs")" -eq 9 ] && [ "$(grep -c -- '--sizes 64 --algorithms ring,leader ' "$work/jobs")" -eq 6 ] &&
    [ "$(grep -c '^leader .* 64 0 ' "$work"/more.*.measurements)" -eq 9 ] &&
    [ "$(grep -c '^leader .* 4096 0 ' "$work"/more.*.measurements)" -eq 3 ] && grep -q '^ring .* 8$' "$work"/more.*.measurements
verdict $? 'what three jobs leave undecided is measured in six more'

# Errors.
says 1 'cannot be started (No such file or directory)' --quick --output "$work/t.json" --mpirun "$work/none"
says 1 'cannot be written' --quick --output /proc/none/t.json
says 1 'hetcoll is not in this Open MPI' --quick --output "$work/t.json" -- --mca coll ^hetcoll
script 'echo before; dashes=$(printf "%40s" | tr " " -); echo "$dashes"; echo "There are not enough slots"; echo "for 9 ranks:"
    echo; echo "  a program"; echo "$dashes"; exit 1'
says 1 'ended with status 1: There are not enough slots for 9 ranks:' --quick --output "$work/t.json" --mpirun "$work/mpirun"
# shellcheck disable=SC2016
script 'kill -9 $$'
says 1 'ended with signal 9' --quick --output "$work/t.json" --mpirun "$work/mpirun"
script 'exit 0'
says 1 'ended with status 0' --quick --output "$work/t.json" --mpirun "$work/mpirun"
script 'trap "" TERM; sleep 1000 & echo $! >'"$work/left"'; wait; wait'
says 1 'not done within the limit' --quick --limit 8 --output "$work/t.json" --mpirun "$work/mpirun"
left=$(ps -o stat= -p "$(cat "$work/left")")
case $left in '' | Z*) true ;; *) false ;; esac # a zombie is nobody's child any more
verdict $? 'and nothing of it is left'
# shellcheck disable=SC2016
script "$MPIRUN"' "$@" & m=$!; until pgrep -P $m >'"$work/ranks"'; do
    sleep 0.3; done; sleep 1
    kill -9 $(pgrep -P $m | tail -n 1); wait $m'
says 1 'ended with status' --quick --output "$work/t.json" --mpirun "$work/mpirun"
[ ! -e "$work/t.json" ] && [ ! -e "$work/other.json" ]
verdict $? 'and none of these left a table'

sum_up
