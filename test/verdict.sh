# verdict.sh: what shell tests share; sourced by them. Makes $work, which is gone at the end, and counts.
# shellcheck shell=sh
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
passed=0 failed=0

# verdict STATUS WHAT: a line; what $work/out and $work/err say, if it failed.
verdict()
{
    if [ "$1" -eq 0 ]; then
        echo "ok    $2"
        passed=$((passed + 1))
    else
        echo "FAIL  $2"
        cat "$work/out" "$work/err" 2>/dev/null | tail -n 40 | sed 's/^/        | /'
        failed=$((failed + 1))
    fi
}

# The last line, and the test's exit status.
sum_up()
{
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ]
}
