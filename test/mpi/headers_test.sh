#!/bin/bash
# headers_test.sh: a component of headers that do not describe the library that runs says so in one line, and the job
# runs without it: of another release, of --enable-debug, of another CUDA support (4.1), and of structures whose fields
# have changed places. The whole component is compiled with such headers. And one of another series, by its libraries.
# shellcheck disable=SC2154
. "$(dirname "$0")/jobs.sh"
[ -z "${HETCOLL_SANITIZER:-}" ] || exit 77 # the same as without
unset OMPI_MCA_coll                        # a list that names a component which steps aside is an error
components=${OMPI_MCA_mca_base_component_path#*:}
export EMU_NODE=headers$$
devel=
for word in $(configured OMPI_CPPFLAGS); do
    [ ! -f "$word/ompi/mca/coll/coll.h" ] || devel=$word
done
[ -n "$devel" ] || { echo "FAIL  no folder of OMPI_CPPFLAGS has Open MPI's internal headers"; exit 1; }
mpi_h=$(for word in $(configured OMPI_CPPFLAGS); do [ ! -f "$word/mpi.h" ] || echo "$word/mpi.h"; done | head -n 1)

# compile NAME: the component, of the headers in $work/NAME.
compile()
{
    local flags="-I$work/$1/first -I$source -I$build -I$build/include -std=gnu11 -fPIC -fvisibility=hidden -pthread" word
    for word in $(configured HETCOLL_CX16_FLAGS) $(configured OMPI_CPPFLAGS); do
        [ "$word" != "$devel" ] || word=$work/$1/headers
        flags="$flags $word"
    done
    mkdir -p "$work/$1/objects"
    # shellcheck disable=SC2046,SC2086
    find "$source/ompi/mca/coll/hetcoll" -name '*.c' ! -name coll_hetcoll_loader.c | (cd "$work/$1/objects" && xargs -n 1 -P 2 $(configured CC) $flags -c) &&
        $(configured CXX) -shared -pthread -o "$work/$1/mca_coll_hetcoll.so" "$work/$1"/objects/*.o \
            "$build/.libs/libhetcoll.a" $(configured OMPI_LIBS) $(configured HWLOC_LIBS) -ldl \
            -Wl,--version-script="$source/config/component.map"
}
# job NAME ARGUMENT...: two ranks with that component.
job()
{
    local name=$1
    shift
    OMPI_MCA_mca_base_component_path="$work/$name:$components" timeout -k 5 300 "${MPIRUN:-$(configured MPIRUN)}" -n 2 \
        --mca pml ob1 "$@" >"$work/out" 2>"$work/err" </dev/null
}
# copied NAME: Open MPI's headers, to be altered.
copied()
{
    mkdir -p "$work/$1/first" && cp -r "$devel" "$work/$1/headers"
}
# flip NAME MACRO: 0 becomes 1, and 1 becomes 0.
flip()
{
    sed -i "s/^\(#define $2\) 0\$/\1 1/; t; s/^\(#define $2\) 1\$/\1 0/" "$work/$1/headers/opal_config.h"
}
# exchange NAME FILE FIELD FIELD: of the same size.
exchange()
{
    sed -i "s/^\( *[a-z0-9_]* *\)$3;/\1exchanged;/; s/^\( *[a-z0-9_]* *\)$4;/\1$3;/; s/^\( *\S* *\)exchanged;/\1$4;/" \
        "$work/$1/headers/$2"
}
# refused NAME PATTERN: that component steps aside with this line.
refused()
{
    if diff -rq "$devel" "$work/$1/headers" >/dev/null && [ -z "$(ls "$work/$1/first")" ]; then
        echo "note  $1: this Open MPI's headers have nothing to alter"
        return
    fi
    compile "$1" >"$work/out" 2>"$work/err"
    verdict $? "$1: compiles without an error"
    job "$1" "$build/test/mpi/all_collectives"
    verdict $? "$1: the job runs"
    [ "$(grep -c 'hetcoll was built' "$work/err")" -eq 1 ] && grep -qE "hetcoll was built $2: hetcoll steps aside, rebuild it" "$work/err"
    verdict $? "$1: one line, $(grep -o -m 1 'hetcoll was built.*' "$work/err")"
    rm -r "${work:?}/$1"
}

# compile makes a component, if the headers are right.
copied unaltered
compile unaltered >"$work/out" 2>"$work/err" && job unaltered --mca coll hetcoll "$build/test/mpi/device_allreduce"
verdict $? 'of a copy of the headers: hetcoll serves'
if grep 'hetcoll was built' "$work/err"; then
    verdict 1 'and says nothing'
fi

copied release
next() { awk '/^#define OMPI_RELEASE_VERSION / { $3 += 1 } { print }' "$1"; }
next "$mpi_h" >"$work/release/first/mpi.h"
next "$devel/opal_config.h" >"$work/release/headers/opal_config.h"
refused release 'for Open MPI [0-9.]+ and this is Open MPI v[0-9.]+'
other='with other headers than this Open MPI'\''s'
copied debug
flip debug OPAL_ENABLE_DEBUG
refused debug "$other: [a-z_]+_t has [0-9]+ bytes in them and [0-9]+ in the library"
copied cuda
flip cuda OPAL_CUDA_SUPPORT
refused cuda "$other: opal_convertor_t has [0-9]+ bytes in them and [0-9]+ in the library"
copied operation
exchange operation ompi/op/op.h o_flags o_f_to_c_index
refused operation "$other: read by them, MPI_SUM is not what the library made it"
copied communicator
exchange communicator ompi/communicator/communicator.h c_my_rank c_flags
refused communicator "$other: read by them, MPI_COMM_NULL is not what the library made it"

# Another series: the component needs libraries that are not there. The file that Open MPI opens does not.
mkdir "$work/series" "$work/alone"
(cd "$work/series" && echo 'int hetcoll_nothing;' >empty.c && $(configured CC) -shared -fPIC -Wl,-soname,libopen-pal.so.999 \
    -o libopen-pal.so.999 empty.c && $(configured CC) -shared -fPIC -Wl,--no-as-needed -o hetcoll_component.so empty.c libopen-pal.so.999)
rm "$work/series/libopen-pal.so.999"
cp "$work/series/hetcoll_component.so" "$work/alone/mca_coll_hetcoll.so"
cp -L "$build/component/mca_coll_hetcoll.so" "$work/series"
job alone "$build/test/mpi/all_collectives"
[ "$(grep -c 'libopen-pal.so.999: cannot open' "$work/err")" -eq 2 ]
verdict $? 'without that file Open MPI has a line a rank'
job series "$build/test/mpi/all_collectives"
verdict $? 'series: the job runs'
[ "$(grep -c . "$work/err")" -eq 1 ] &&
    grep -qE 'hetcoll was built for Open MPI [0-9]+\.[0-9]+\.[0-9]+ and cannot be loaded here \(libopen-pal.so.999: .*\): hetcoll steps aside, rebuild it' "$work/err"
verdict $? "series: one line, $(head -n 1 "$work/err")"

sum_up
