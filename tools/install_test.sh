#!/bin/bash
# make install into a folder of its own: everything is there and of use, nothing is measured on the emulated GPU, and
# make uninstall takes all of it away.
set -u
. "$HETCOLL_SRCDIR/test/verdict.sh"
run_make()
{
    local target=$1
    shift
    env -u MAKEFLAGS -u MFLAGS make -C "$HETCOLL_BUILDDIR" "$target" prefix="$work/prefix" \
        componentdir="$work/prefix/lib/openmpi" "$@" >"$work/out" 2>&1 </dev/null
}

prefix=$work/prefix
configured() { sed -n "s/^$1 = //p" "$HETCOLL_BUILDDIR/Makefile"; }
run_make install
verdict $? 'make install'
for file in bin/hetcoll_tune bin/hetcoll_bench bin/hetcoll_info bin/hetcoll_place lib/openmpi/mca_coll_hetcoll.so \
    lib/openmpi/hetcoll_component.so lib/openmpi/hetcoll_aggregators.so lib/libhetcoll_wsp.so include/hetcoll_types.h include/hetcoll_stream.h include/hetcoll_wsp.h include/hetcoll_version.h share/man/man7/hetcoll.7 \
    share/hetcoll/hetcoll_tuning.schema.json share/hetcoll/hetcoll_info.schema.json \
    share/hetcoll/hetcoll_bench.schema.json share/hetcoll/hetcoll_place.schema.json \
    share/hetcoll/hetcoll_sim.schema.json share/hetcoll/topology/dgx1v.topology \
    share/hetcoll/topology/netreduce.cluster share/hetcoll/plot.py share/hetcoll/regenerate_table.sh \
    share/doc/hetcoll/LICENSE share/doc/hetcoll/docs/usage.md share/doc/hetcoll/docs/pictures/waves.svg \
    share/doc/hetcoll/examples/device_allreduce.c share/doc/hetcoll/examples/wsp/train.py; do
    [ -s "$prefix/$file" ]
    verdict $? "$file is there"
done
! find "$prefix" -name '*_test.sh' -o -name local.mk -o -name '*.pyc' -o -path "$prefix/lib/openmpi/*.la" | grep .
verdict $? 'and nothing that is for the source tree'
grep -q "^ *export OMPI_MCA_mca_base_component_path=$prefix/lib/openmpi:$OMPI_COMPONENTS" "$work/out"
verdict $? 'it says that jobs do not find a component there, and how they do'
if grep -q '^tune_this_machine =' "$HETCOLL_BUILDDIR/Makefile"; then
    [ "$(grep -c '^hetcoll_tune: .*emulated' "$work/out")" -eq 1 ]
else
    ! grep -q '^hetcoll_tune: ' "$work/out"
fi
verdict $? 'one line says why there is no table'
! find "$prefix" -name 'tuning_table*' | grep .
verdict $? 'and there is none'
for program in hetcoll_aggregator hetcoll_sim; do # what was configured
    if grep -qE "^am__append_[0-9]+ = $program\$" "$HETCOLL_BUILDDIR/Makefile"; then
        "$prefix/bin/$program" --help >"$work/out" 2>&1
        verdict $? "$program is there, and runs"
    else
        [ ! -e "$prefix/bin/$program" ]
        verdict $? "$program is not there, as it is not built"
    fi
done

version=$(configured PACKAGE_VERSION)
for program in "$prefix"/bin/*; do
    name=${program##*/}
    case $("$program" --version 2>&1) in "$name (hetcoll) $version, commit "*) ;; *) false ;; esac
    verdict $? "$name says its version"
    "$program" --help >"$work/out" 2>&1 && ! grep -v '^  ' "$work/out" | grep -qE '.{200}' &&
        ! grep -qE '^  .*(Needs:|Excludes:|INT in \[)' "$work/out"
    verdict $? "and its help fits a terminal"
    if [ -n "$(configured HELP2MAN)" ]; then
        [ "$name" = hetcoll_info ] && all=--help-all || all=--help # the subcommands' too
        options=$("$program" $all | sed -n 's/^  \(-h,\)*\(--[a-z-]*\).*/\2/p')
        page=$(sed 's/\\-/-/g; s/\\f[BIR]//g' "$prefix/share/man/man1/$name.1" 2>"$work/out")
        for option in $options; do
            grep -q -- "$option" <<<"$page" || echo "$option is missing" >>"$work/out"
        done
        grep -q "hetcoll $version" <<<"$page" && grep -q '^\.SH "\{0,1\}SEE ALSO' <<<"$page" && [ ! -s "$work/out" ]
        verdict $? "its page of the manual has all options"
    fi
done
for page in "$prefix"/share/man/man*/*; do
    ! command -v man >/dev/null || { LC_ALL=C.UTF-8 MANWIDTH=80 man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null | grep -v "cannot adjust line" >"$work/out"
        [ ! -s "$work/out" ]; }
    verdict $? "${page##*/} is well formed"
done

# One version everywhere.
for header in stream types wsp version; do
    # shellcheck disable=SC2046
    said=$(printf '#include <hetcoll_%s.h>\n%s\n' $header \
        'HETCOLL_VERSION HETCOLL_VERSION_MAJOR HETCOLL_VERSION_MINOR HETCOLL_VERSION_PATCH' |
        gcc -E -P -x c - -I"$prefix/include" $(configured MPI_CPPFLAGS) 2>"$work/out" | tail -n 1)
    [ "$said" = "\"$version\" ${version//./ }" ]
    verdict $? "hetcoll_$header.h has the version: $said"
done
if command -v pkg-config >/dev/null; then
    [ "$(PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config --modversion hetcoll_types hetcoll_stream hetcoll_wsp | sort -u)" = "$version" ]
    verdict $? 'so does pkg-config'
fi
grep -q "^set(PACKAGE_VERSION \"$version\")" "$prefix/lib/cmake/hetcoll/hetcoll-config-version.cmake"
verdict $? 'CMake'
if [ -z "${HETCOLL_SANITIZER:-}" ]; then # ompi_info does not load what is built for a sanitizer
    OMPI_MCA_mca_base_component_path=$prefix/lib/openmpi:$OMPI_COMPONENTS "$(configured OMPI_INFO)" \
        --param coll hetcoll --level 4 --parsable >"$work/out" 2>&1
    grep -qx "mca:coll:hetcoll:param:coll_hetcoll_version:value:\"*$version\"*" "$work/out" &&
        grep -qx 'mca:coll:hetcoll:param:coll_hetcoll_version:status:read-only' "$work/out"
    verdict $? 'ompi_info, where nobody can set it'
fi
MPIRUN='' "$prefix/bin/hetcoll_bench" --memory host --sizes 8 --iterations 1 >"$work/out" 2>&1 && grep -qE "^# version +$version$" "$work/out"
verdict $? 'and what was measured'

# complete LINE: the words that bash offers at its end.
complete_line()
{
    PATH=$prefix/bin:$PATH bash -c '
        for file in "$0"/*; do . "$file"; break; done
        COMP_WORDS=($1) COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        [[ $1 != *" " ]] || { COMP_WORDS+=("") && COMP_CWORD=$((COMP_CWORD + 1)); }
        _hetcoll "${COMP_WORDS[0]}" && echo "${COMPREPLY[@]}"' "$prefix/share/bash-completion/completions" "$1" 2>&1
}
[ "$(cd "$prefix/bin" && echo *)" = "$(cd "$prefix/share/bash-completion/completions" && echo *)" ]
verdict $? 'there is completion for each program'
[ "$(complete_line 'hetcoll_info --sv')" = --svg ] && [ "$(complete_line 'hetcoll_info --collective bc')" = bcast ] &&
    [ "$(complete_line 'hetcoll_info --topology dgx2')" = dgx2 ] && [ "$(complete_line 'hetcoll_info --op ')" = 'sum other' ]
verdict $? 'of options, of words that they take, and of machines'
[ "$(complete_line 'hetcoll_info expl')" = explain ] && [ "$(complete_line 'hetcoll_info schedule --ra')" = '--rank --ranks --ranks-per-node --ranks-per-gpu --rack-nodes --rack-gbps' ] &&
    [ "$(complete_line 'hetcoll_info topology dgx2')" = dgx2 ] && [ "$(complete_line 'hetcoll_info topology --ra')" = '' ]
verdict $? 'of subcommands and their own options'

if [ -n "$(configured systemdsystemunitdir)" ] && [ -e "$prefix/bin/hetcoll_aggregator" ]; then
    unit=$prefix/lib/systemd/system/hetcoll_aggregator.service
    grep -q "^ExecStart=$prefix/bin/hetcoll_aggregator " "$unit" &&
        [ -s "$prefix/lib/sysusers.d/hetcoll_aggregator.conf" ]
    verdict $? 'the service is there'
    if command -v systemd-analyze >/dev/null; then
        systemd-analyze verify --man=no "$unit" >"$work/out" 2>&1 && ! grep -q hetcoll_agg "$work/out"
        verdict $? 'and systemd takes it'
    fi
    (umask 077 && openssl rand -hex 32 >"$work/key") 2>"$work/out"
    LISTEN=127.0.0.1:0 KEY=$work/key OPTIONS='--window 8' timeout -s TERM 2 \
        sh -c "exec $(sed -n 's/^ExecStart=//p' "$unit")" >"$work/out" 2>&1
    grep -q '^hetcoll_aggregator: listening at 127.0.0.1:' "$work/out"
    verdict $? 'its command starts a server'
fi

# Programs that are built against it, where it was installed and moved elsewhere, below a folder with a blank.
mkdir -p "$work/source" "$work/moved to"
cat >"$work/source/sum.c" <<'END'
#include <hetcoll_stream.h>
#include <hetcoll_types.h>
#include <hetcoll_wsp.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    struct hetcoll_types types;
    MPI_Init(&argc, &argv);
    if (hetcoll_types_create(&types) != MPI_SUCCESS) return 1;
    hetcoll_types_free(&types);
    printf("%s\n", hetcoll_wsp_error_string(0));
    if (hetcoll_stream_check(MPI_COMM_WORLD, NULL) != MPI_SUCCESS) return 1;
    return MPI_Finalize();
}
END
cat >"$work/source/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.18)
project(sum C)
find_package(hetcoll WANTED REQUIRED)
add_executable(sum sum.c)
target_link_libraries(sum hetcoll::types hetcoll::stream hetcoll::wsp)
END
sed -i "s/WANTED/$version/" "$work/source/CMakeLists.txt"
# usable FOLDER: by pkg-config and by CMake.
usable()
{
    if command -v pkg-config >/dev/null; then
        flags=$(PKG_CONFIG_PATH=$1/lib/pkgconfig pkg-config --cflags --libs hetcoll_wsp hetcoll_types hetcoll_stream 2>"$work/out") &&
            eval "gcc -Wall -Werror \"$work/source/sum.c\" -o \"$work/sum\" $flags" >>"$work/out" 2>&1 &&
            LD_LIBRARY_PATH=$1/lib:$LD_LIBRARY_PATH "$work/sum" >>"$work/out" 2>&1
        verdict $? "pkg-config, in $1"
    fi
    if command -v cmake >/dev/null; then
        rm -rf "$work/build"
        cmake -S "$work/source" -B "$work/build" -DCMAKE_PREFIX_PATH="$1" -DMPI_C_COMPILER="$(configured MPICC)" >"$work/out" 2>&1 &&
            make -C "$work/build" >>"$work/out" 2>&1 && "$work/build/sum" >>"$work/out" 2>&1
        verdict $? "CMake, in $1"
    fi
}
usable "$prefix"
mv "$prefix" "$work/moved to/prefix"
usable "$work/moved to/prefix"

# The component and the tools are as well: they find what moved with them, and what was made there.
moved=$work/moved\ to/prefix
(cd "$work" && "$moved/bin/hetcoll_info" --topology dgx1v) >"$work/out" 2>&1 && grep -q 'DGX-1 V100: 8 gpu' "$work/out"
verdict $? 'the moved hetcoll_info finds topologies'
# job ARGUMENT...: of the moved component, which a link names, because a path has no blank.
ln -s "$moved" "$work/link"
job()
{
    local root=
    [ "$(id -u)" != 0 ] || root=--allow-run-as-root
    # shellcheck disable=SC2086
    OMPI_MCA_mca_base_component_path="$work/link/lib/openmpi:$OMPI_COMPONENTS" EMU_NODE="install$$" \
        timeout -k 5 300 "$MPIRUN" $root --oversubscribe --bind-to none --mca mpi_yield_when_idle 1 -n 2 "$@" \
        "$moved/bin/hetcoll_bench" --memory device --sizes 64K --iterations 1 >"$work/out" 2>&1 </dev/null
}
job --mca coll_hetcoll_topology_file dgx1v && ! grep -q 'cannot be read' "$work/out"
verdict $? 'the moved component finds topologies'
job --mca coll_hetcoll_topology_file none_such && grep -q "one of those in $moved/share/hetcoll/topology" "$work/out"
verdict $? 'where they have moved to'
if [ "$(configured sysconfdir)" = "\${prefix}/etc" ] || [ "$(configured sysconfdir)" = "$(configured prefix)/etc" ]; then
    mkdir -p "$moved/etc/hetcoll"
    echo broken >"$moved/share/hetcoll/tuning_table.json"
    job && grep -q "ignores its tuning table.* $moved/share/hetcoll/tuning_table.json:1" "$work/out"
    verdict $? 'and the table that is shipped'
    echo broken >"$moved/etc/hetcoll/tuning_table.json"
    job && grep -q "ignores its tuning table.* $moved/etc/hetcoll/tuning_table.json:1" "$work/out" &&
        ! grep -q "$moved/share" "$work/out"
    verdict $? 'or the one that was made there, which comes first'
    cp "$HETCOLL_SRCDIR/tools/hetcoll_tune_test.json" "$moved/share/hetcoll/tuning_table.json"
    rm -f "$moved/etc/hetcoll/tuning_table.json"
    sed 's/^machine dgx/machine other/; s/^fact gpu .*/fact gpu Other/' \
        "$HETCOLL_SRCDIR/tools/hetcoll_tune_test.dgx.measurements" >"$work/other.measurements"
    "$moved/bin/hetcoll_tune" --from-measurements "$work/other.measurements" >"$work/out" 2>&1 &&
        grep -q "wrote $moved/etc/hetcoll/tuning_table.json" "$work/out" &&
        grep -q '"other"' "$moved/etc/hetcoll/tuning_table.json" && grep -q '"dgx"' "$moved/etc/hetcoll/tuning_table.json" &&
        grep -q '"../../share/hetcoll/hetcoll_tune_test.dgx.measurements"' "$moved/etc/hetcoll/tuning_table.json" &&
        cmp -s "$HETCOLL_SRCDIR/tools/hetcoll_tune_test.json" "$moved/share/hetcoll/tuning_table.json"
    verdict $? 'hetcoll_tune makes the latter, and takes over what the shipped one has'
    rm -f "$moved"/*/hetcoll/tuning_table.json
fi
rm "$work/link"
sed -i "s/find_package(hetcoll [0-9.]*/find_package(hetcoll 99.0/" "$work/source/CMakeLists.txt"
! command -v cmake >/dev/null ||
    ! cmake -S "$work/source" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/moved to/prefix" >"$work/out" 2>&1
verdict $? 'CMake takes no other version'
mv "$work/moved to/prefix" "$prefix"

mkdir -p "$prefix/etc/hetcoll"
touch "$prefix"/{etc,share}/hetcoll/tuning_table.{json,x.measurements}
run_make uninstall
verdict $? 'make uninstall'
[ -z "$(find "$prefix" -type f)" ]
verdict $? 'nothing is left'

run_make install DESTDIR="$work/staging"
verdict $? 'make install DESTDIR'
! grep -q 'emulated' "$work/out" && [ -s "$work/staging$work/prefix/bin/hetcoll_tune" ]
verdict $? 'measures nothing'

! run_make install DESTDIR="$work/a blank" && [ ! -e "$work/a blank" ] && grep -q "a blank' has a blank" "$work/out"
verdict $? 'a folder with a blank is refused before anything is installed'

sum_up
