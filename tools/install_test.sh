#!/bin/bash
# make install into a folder of its own: everything is there, nothing is measured on the emulated GPU, and
# make uninstall takes all of it away.
set -u
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
passed=0 failures=0
verdict()
{
    if [ "$1" -eq 0 ]; then
        echo "ok    $2"
        passed=$((passed + 1))
    else
        echo "FAIL  $2"
        tail -n 20 "$work/out"
        failures=$((failures + 1))
    fi
}
run_make()
{
    local target=$1
    shift
    env -u MAKEFLAGS -u MFLAGS make -C "$HETCOLL_BUILDDIR" "$target" prefix="$work/prefix" \
        componentdir="$work/prefix/lib/openmpi" "$@" >"$work/out" 2>&1 </dev/null
}

run_make install
verdict $? 'make install'
for file in bin/hetcoll_tune bin/hetcoll_bench bin/hetcoll_info bin/hetcoll_place lib/openmpi/mca_coll_hetcoll.so \
    lib/libhetcoll_wsp.so include/hetcoll_wsp.h lib/pkgconfig/hetcoll_wsp.pc \
    share/hetcoll/hetcoll_tuning.schema.json share/hetcoll/hetcoll_info.schema.json \
    share/hetcoll/hetcoll_bench.schema.json share/hetcoll/hetcoll_place.schema.json share/hetcoll/hetcoll_sim.schema.json share/hetcoll/topology/dgx1v.topology \
    share/hetcoll/topology/netreduce.cluster; do
    [ -s "$work/prefix/$file" ]
    verdict $? "$file is there"
done
if grep -q '^tune_this_machine =' "$HETCOLL_BUILDDIR/Makefile"; then
    [ "$(grep -c '^hetcoll_tune: .*emulated' "$work/out")" -eq 1 ]
else
    ! grep -q '^hetcoll_tune: ' "$work/out"
fi
verdict $? 'one line says why there is no table'
[ ! -e "$work/prefix/share/hetcoll/tuning_table.json" ]
verdict $? 'and there is none'
for program in hetcoll_aggregator hetcoll_sim; do # what was configured
    if grep -qE "^am__append_[0-9]+ = $program\$" "$HETCOLL_BUILDDIR/Makefile"; then
        "$work/prefix/bin/$program" --help >"$work/out" 2>&1
        verdict $? "$program is there, and runs"
    else
        [ ! -e "$work/prefix/bin/$program" ]
        verdict $? "$program is not there, as it is not built"
    fi
done

touch "$work/prefix/share/hetcoll/tuning_table.json" "$work/prefix/share/hetcoll/tuning_table.x.measurements"
run_make uninstall
verdict $? 'make uninstall'
[ -z "$(find "$work/prefix" -type f)" ]
verdict $? 'nothing is left'

run_make install DESTDIR="$work/staging"
verdict $? 'make install DESTDIR'
! grep -q 'emulated' "$work/out" && [ -s "$work/staging$work/prefix/bin/hetcoll_tune" ]
verdict $? 'measures nothing'

echo "$passed passed, $failures failed"
[ "$failures" -eq 0 ]
