#!/bin/sh
# check_dso.sh [COMPONENT.so]: what Open MPI loads into every process must be harmless there: two
# exported symbols, no CUDA library, nothing that runs at load, no handlers, no relocated code, and no
# code that only programs call.
set -u
build=${HETCOLL_BUILDDIR:-.}
dso=${1:-$build/component/hetcoll_component.so}
failures=0

if [ -n "${HETCOLL_SANITIZER:-}" ]; then
    echo "skipped: sanitizers add start-up code of their own"
    exit 77
fi

# report WHAT WANTED FOUND
report()
{
    if [ "$2" = "$3" ]; then
        echo "ok    $1: ${3:-none}"
    else
        echo "FAIL  $1: found '$3', wanted '$2'"
        failures=$((failures + 1))
    fi
}

init_bytes()
{
    readelf -SW "$1" | sed 's/\[ *\([0-9]*\)\]/\1/' |
        awk '$2 ~ /^\.(init_array|ctors)/ { print $6 }' | tr '\n' ' '
}

[ -f "$dso" ] || { echo "FAIL  $dso does not exist"; exit 1; }
report "exported symbols" "hetcoll_stream_functions_1 mca_coll_hetcoll_component" \
    "$(nm -D --defined-only "$dso" | awk '{ print $NF }' | sort | tr '\n' ' ' | sed 's/ $//')"

# The file that loads it has nothing that another Open MPI's might not have.
if [ $# -eq 0 ]; then
    loader=$build/component/mca_coll_hetcoll.so
    [ -f "$loader" ] || { echo "FAIL  $loader does not exist"; exit 1; }
    report "exported symbols of $(basename "$loader")" "mca_coll_hetcoll_component" \
        "$(nm -D --defined-only "$loader" | awk '{ print $NF }' | tr '\n' ' ' | sed 's/ $//')"
    report "what it needs beyond the C library" "" "$(readelf -dW "$loader" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
        grep -vE '^(libc|libdl|libpthread|ld-linux.*)\.so' | tr '\n' ' ')$(nm -D --undefined-only "$loader" |
        awk '$1 == "U" { print $2 }' | grep -v '@GLIBC_' | tr '\n' ' ')"
fi

needed=$(readelf -dW "$dso" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
unexpected=$(echo "$needed" | grep -vE '^(libmpi|libopen-pal|libopen_mpi|libpmix|libstdc\+\+|libm|libgcc_s|libc|libdl|libpthread|libhwloc|lib[atu]*san|ld-linux.*)\.so' | tr '\n' ' ')
report "needed libraries beyond Open MPI's and the compiler's" "" "$unexpected"
echo "      needed: $(echo $needed)"

# An empty shared library has the compiler's own start-up entry; ours may have no more.
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
echo 'int hetcoll_nothing;' >"$work/empty.cc"
${CXX:-g++} -shared -fPIC -o "$work/empty.so" "$work/empty.cc" || exit 1
report "bytes of start-up code pointers (global constructors)" \
    "$(init_bytes "$work/empty.so")" "$(init_bytes "$dso")"

# R20: programs have their own handlers, and unload what has them (Python, dlclose).
report "signal, fork and exit handlers" "" "$(nm -D --undefined-only "$dso" | awk '{ print $NF }' | sed 's/@.*//' |
    grep -E '^(sigaction|signal|sysv_signal|bsd_signal|setitimer|__register_atfork|atexit|__cxa_atexit|on_exit)$' | tr '\n' ' ')"

report "relocations of code" "" "$(readelf -dW "$dso" | grep -o TEXTREL | head -n 1)"

# What the tools' library defines is not in the component: pictures, measurements, proofs, servers.
symbols()
{
    nm --defined-only "$1" 2>/dev/null | awk "\$2 ~ /^[$2]\$/ { print \$3 }" | sort -u
}
symbols "$build/.libs/libhetcoll_tools.a" TDBR >"$work/tools"
symbols "$dso" TDBRtdbr >"$work/component"
if [ -s "$work/tools" ] && [ -s "$work/component" ]; then
    report "code of libhetcoll_tools" "" "$(comm -12 "$work/tools" "$work/component" | head -n 8 | c++filt | tr '\n' ' ')"
else
    report "symbols to look at in $dso and $build/.libs/libhetcoll_tools.a" "some" "none"
fi

# And whatever is in the core is reached from the component's own functions: the linker takes from an
# archive only what it needs. Without CUDA no call is served, and the core is there for the tools.
if grep -q "WITH_CUDA 1" "$build/hetcoll_config.h"; then
    core=$build/.libs/libhetcoll.a
    ${CXX:-g++} -shared -nostdlib -Wl,-t,-t -o "$work/reached.so" "$build"/ompi/mca/coll/hetcoll/.libs/hetcoll_component_la-*.o "$core" |
        sed -n 's/^(.*libhetcoll\.a)//p' | sort -u >"$work/reached"
    if [ -s "$work/reached" ]; then
        report "objects of the core that no call needs" "" "$(ar t "$core" | sort -u | comm -23 - "$work/reached" | tr '\n' ' ')"
    else
        report "objects of the core that the linker names" "some" "none"
    fi
fi

[ "$failures" -eq 0 ] || echo "$failures of the checks of $dso failed"
[ "$failures" -eq 0 ]
