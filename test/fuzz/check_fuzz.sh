#!/bin/sh
# check_fuzz.sh DIR SECONDS [TARGET...]: from a configured build folder, builds the fuzzer in DIR with clang,
# libFuzzer, AddressSanitizer and UBSan, and runs each target (test/fuzz/targets.cc), or those named, for SECONDS
# seconds from its corpus. Needs clang++ with libFuzzer (Debian packages clang and libclang-rt-14-dev); CLANG and
# CLANGXX name others.
set -eu
dir=$1 seconds=$2
shift 2
targets=$*
clang=${CLANG:-clang} clangxx=${CLANGXX:-clang++}
eval "set -- $(./config.status --config)"
srcdir=$(sed -n 's/^abs_srcdir = //p' Makefile)
jobs=$(nproc 2>/dev/null || echo 1)

mkdir -p "$dir"
cd "$dir"
echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char *, unsigned long) { return 0; }' >try.cc
"$clangxx" -fsanitize=fuzzer,address,undefined -o try try.cc 2>try.log || {
    cat try.log >&2
    echo "check_fuzz.sh: $clangxx does not build with -fsanitize=fuzzer: install the Debian packages clang and" \
        "libclang-rt-14-dev, or name others in CLANG and CLANGXX" >&2
    exit 1
}
[ -f Makefile ] || "$srcdir/configure" -q "$@" CC="$clang" CXX="$clangxx" CFLAGS='-O1 -g' CXXFLAGS='-O1 -g' \
    --disable-werror --with-cuda-arch=80 --enable-sanitizer=fuzzer-no-link,address,undefined
# clang 14 cannot instrument coroutines, and no target runs any.
coroutines=$(cd "$srcdir" && grep -l co_await engine/call/*.cc | sed 's/cc$/lo/')
# shellcheck disable=SC2086
make -s -j"$jobs" $coroutines HETCOLL_SANITIZER_FLAGS=
make -s -j"$jobs" test/fuzz/hetcoll_fuzz
fuzz=$PWD/test/fuzz/hetcoll_fuzz
export HETCOLL_SRCDIR="$srcdir" UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1

passed=0 failed=0
"$fuzz" >list
while read -r target most_bytes seeds; do
    case " $targets " in
    '  ' | *" $target "*) ;;
    *) continue ;;
    esac
    rm -rf "$target"
    mkdir -p "$target/corpus" "$target/found"
    folders=$srcdir/test/fuzz/corpus/$target
    [ "$seeds" = - ] || folders="$folders $srcdir/$seeds"
    # The target's own output is dropped; libFuzzer's own lines come through.
    # shellcheck disable=SC2086
    if HETCOLL_FUZZ_TARGET=$target "$fuzz" -max_total_time="$seconds" -max_len="$most_bytes" -timeout=20 \
        -rss_limit_mb=2048 -close_fd_mask=3 -print_final_stats=1 -artifact_prefix="$target/found/" \
        "$target/corpus" $folders >"$target/log" 2>&1 </dev/null; then
        passed=$((passed + 1))
        echo "passed  $target: $(sed -n 's/^stat::number_of_executed_units: *//p' "$target/log") inputs," \
            "$(find "$target/corpus" -type f | wc -l) kept"
    else
        failed=$((failed + 1))
        echo "FAILED  $target: the input is in $PWD/$target/found, what it did in $PWD/$target/log"
        grep -E 'ERROR|SUMMARY|does not hold|runtime error' "$target/log" | head -n 5
    fi
done <list
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
