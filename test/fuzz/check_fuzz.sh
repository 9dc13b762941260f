#!/bin/sh
# check_fuzz.sh [SECONDS]: libFuzzer on the decoder of aggregators' messages, from the corpus beside this
# file. Needs clang++ with its libFuzzer (Debian packages clang and libclang-rt-14-dev).
set -u
source=${HETCOLL_SRCDIR:-.}
clang=${CLANGXX:-clang++}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

cp -r "$source/test/fuzz/decode_corpus" "$work/corpus" || exit 1
chmod -R u+w "$work/corpus"
"$clang" -std=c++20 -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -I"$source" \
    -o "$work/decode_fuzz" "$source/test/fuzz/decode_fuzz.cc" "$source/aggregator/protocol.cc" \
    "$source/base/element.cc" 2>"$work/log" || {
    cat "$work/log" >&2
    echo "check_fuzz.sh: $clang does not build with -fsanitize=fuzzer: install the Debian packages clang and" \
        "libclang-rt-14-dev, or name another one in CLANGXX" >&2
    exit 1
}
cd "$work" || exit 1
./decode_fuzz -max_total_time="${1:-20}" -max_len=400 -print_final_stats=1 corpus >log 2>&1 || {
    cat log >&2
    echo "check_fuzz.sh: the input that does it:" >&2
    od -An -tx1 crash-* leak-* timeout-* oom-* 2>/dev/null >&2
    exit 1
}
grep -E 'number_of_executed_units|new_units_added|cov:' log | tail -n 3
echo "check_fuzz.sh: nothing found in ${1:-20} s"
