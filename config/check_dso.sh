#!/bin/sh
# check_dso.sh [COMPONENT.so]: what Open MPI loads into every process must be harmless there: one
# exported symbol, no CUDA library, nothing that runs at load, no handlers, no relocated code.
set -u
dso=${1:-${HETCOLL_BUILDDIR:-.}/component/mca_coll_hetcoll.so}
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
report "exported symbols" mca_coll_hetcoll_component \
    "$(nm -D --defined-only "$dso" | awk '{ print $NF }' | sort | tr '\n' ' ' | sed 's/ $//')"

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

[ "$failures" -eq 0 ] || echo "$failures of the checks of $dso failed"
[ "$failures" -eq 0 ]
