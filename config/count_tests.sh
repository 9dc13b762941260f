#!/bin/sh
# count_tests.sh BUILD_DIR: the result of make check as one line of numbers, from automake's .trs files.
# A test program of GoogleTest or a script that prints "N passed, N failed" counts each of its tests.
# DISABLED_ tests are children that a test starts and judges: not counted.
set -u
cd "${1:-.}" || exit 1
results() { grep "^\[$1\].*ms)\$" "$2" | grep -vc '\.DISABLED_'; }
find . -name '*.trs' -not -path './check-*' | {
    passed=0 failed=0 skipped=0
    while read -r trs; do
        log=${trs%.trs}.log
        p=$(results '       OK ' "$log") f=$(results '  FAILED  ' "$log")
        s=$(results '  SKIPPED ' "$log")
        line=$(grep -E '^[0-9]+ passed, [0-9]+ failed' "$log" | tail -n 1)
        if [ -n "$line" ]; then
            p=$(echo "$line" | sed 's/ passed.*//')
            f=$(echo "$line" | sed 's/.*passed, \([0-9]*\) failed.*/\1/')
            s=$(echo "$line" | sed -n 's/.*failed, \([0-9]*\) skipped.*/\1/p')
        fi
        case $(sed -n 's/^:test-result: *//p' "$trs") in
        PASS*) [ "$p" -gt 0 ] || [ "${s:-0}" -gt 0 ] || p=1 ;;
        SKIP*) [ "${s:-0}" -gt 0 ] || s=1 ;;
        *)
            echo "failed: ${trs#./} (its output is in $(pwd)/${log#./})"
            grep -E -A 3 'FAILED|Failure$|WRONG|^        \|' "$log" | head -n 40 | cut -c 1-400 | sed 's/^/    /'
            [ "$f" -gt 0 ] || f=1
            ;;
        esac
        passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + ${s:-0}))
    done
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}
