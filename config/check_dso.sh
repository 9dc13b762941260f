#!/bin/sh
# check_dso.sh [COMPONENT.so]: what Open MPI loads into every process must be harmless there: two
# exported symbols, no CUDA library, nothing that runs at load, no handlers, no relocated code, no code
# that only programs call or only ranks with aggregators, and no more of it than there must be. The file
# with the code of these ranks likewise.
set -u
build=${HETCOLL_BUILDDIR:-.}
dso=${1:-$build/component/hetcoll_component.so}
with_cuda=false
! grep -q "WITH_CUDA 1" "$build/hetcoll_config.h" || with_cuda=true
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

# An empty shared library has the compiler's own start-up entry; ours may have no more.
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
echo 'int hetcoll_nothing;' >"$work/empty.cc"
${CXX:-g++} -shared -fPIC -o "$work/empty.so" "$work/empty.cc" || exit 1

exported() { nm -D --defined-only "$1" | awk '{ print $NF }' | sort | tr '\n' ' ' | sed 's/ $//'; }

# harmless FILE LIBRARIES: it needs no others than these.
harmless()
{
    needed=$(readelf -dW "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
    report "needed libraries beyond Open MPI's and the compiler's" "" \
        "$(echo "$needed" | grep -vE "^($2|libstdc\+\+|libm|libgcc_s|libc|libdl|libpthread|lib[atu]*san|ld-linux.*)\.so" | tr '\n' ' ')"
    echo "      needed: $(echo $needed)"
    report "bytes of start-up code pointers (global constructors)" "$(init_bytes "$work/empty.so")" "$(init_bytes "$1")"
    # R20: programs have their own handlers, and unload what has them (Python, dlclose).
    report "signal, fork and exit handlers" "" "$(nm -D --undefined-only "$1" | awk '{ print $NF }' | sed 's/@.*//' |
        grep -E '^(sigaction|signal|sysv_signal|bsd_signal|setitimer|__register_atfork|atexit|__cxa_atexit|on_exit)$' | tr '\n' ' ')"
    report "relocations of code" "" "$(readelf -dW "$1" | grep -o TEXTREL | head -n 1)"
}

[ -f "$dso" ] || { echo "FAIL  $dso does not exist"; exit 1; }
report "exported symbols" "hetcoll_stream_functions_1 mca_coll_hetcoll_component" "$(exported "$dso")"
harmless "$dso" 'libmpi|libopen-pal|libopen_mpi|libpmix|libhwloc'

# The host's code and data, which each process has, without debug information and without the GPU's kernels. Other
# compilers and flags make other sizes.
if $with_cuda && grep -qE '^CXXFLAGS = -O2( -g[0-9]?)?$' "$build/Makefile" &&
    ${CXX:-g++} --version | head -n 1 | grep -qE '^g\+\+.* 12\.[0-9.]+$'; then
    most_bytes=2000000
    strip -o "$work/stripped.so" "$dso" || exit 1
    bytes=$(($(wc -c <"$work/stripped.so") - $(cat "$build"/cuda_kernels/*.fatbin | wc -c)))
    report "of $most_bytes bytes for the host's code, too many" "" "$([ "$bytes" -le $most_bytes ] || echo "$bytes")"
    echo "      bytes: $bytes"
fi

# The file that loads it has nothing that another Open MPI's might not have.
if [ $# -eq 0 ]; then
    loader=$build/component/mca_coll_hetcoll.so
    [ -f "$loader" ] || { echo "FAIL  $loader does not exist"; exit 1; }
    report "exported symbols of $(basename "$loader")" "mca_coll_hetcoll_component" \
        "$(exported "$loader")"
    report "what it needs beyond the C library" "" "$(readelf -dW "$loader" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
        grep -vE '^(libc|libdl|libpthread|ld-linux.*)\.so' | tr '\n' ' ')$(nm -D --undefined-only "$loader" |
        awk '$1 == "U" { print $2 }' | grep -v '@GLIBC_' | tr '\n' ' ')"
fi

# The component has no symbol of these libraries: pictures, measurements, proofs, servers; the ranks' side of
# aggregators.
symbols()
{
    nm --defined-only "$1" 2>/dev/null | awk "\$2 ~ /^[$2]\$/ { print \$3 }" | sort -u
}
symbols "$dso" TDBRtdbr >"$work/component"
for library in libhetcoll_tools libhetcoll_aggregators; do
    symbols "$build/.libs/$library.a" TDBR >"$work/library"
    if [ -s "$work/library" ] && [ -s "$work/component" ]; then
        report "code of $library" "" "$(comm -12 "$work/library" "$work/component" | head -n 8 | c++filt | tr '\n' ' ')"
    elif [ $library = libhetcoll_tools ] || $with_cuda; then
        report "symbols to look at in $dso and $build/.libs/$library.a" "some" "none"
    fi
done

# The file that has that side, and nothing of Open MPI's.
if [ $# -eq 0 ] && $with_cuda; then
    aggregators=$build/component/hetcoll_aggregators.so
    [ -f "$aggregators" ] || { echo "FAIL  $aggregators does not exist"; exit 1; }
    report "exported symbols of $(basename "$aggregators")" "$(sed -n 's/^#define HETCOLL_VERSION "\(.*\)"/hetcoll_aggregator_clients_\1/p' "$build/include/hetcoll_version.h" | tr . _)" \
        "$(exported "$aggregators")"
    harmless "$aggregators" ''
fi

# And whatever is in the core is reached from the component's own functions: the linker takes from an
# archive only what it needs. Without CUDA no call is served, and the core is there for the tools.
if $with_cuda; then
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
