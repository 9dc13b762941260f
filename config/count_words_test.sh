#!/bin/bash
# count_words_test.sh: config/count_words.sh takes what is within its bounds, and names page, count and bound of what is
# not.
set -u
script=$(cd "${HETCOLL_SRCDIR:-.}" && pwd)/config/count_words.sh
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failed=0

# words FILE COUNT and lines FILE COUNT make a file of that length.
words() { yes word | head -n "$2" >"$work/$1"; }
lines() { words "$@"; }

# says RESULT TEXT...: whether the check passes, and says so.
says()
{
    local wanted=$1 found=passes text
    shift
    HETCOLL_SRCDIR=$work bash "$script" >"$work/out" 2>&1 || found=fails
    for text in "$@"; do
        grep -qE "$text" "$work/out" || found="$found without '$text'"
    done
    if [ "$found" != "$wanted" ]; then
        failed=1
        echo "FAILED  $wanted was expected, $found:"
        sed 's/^/        | /' "$work/out"
    fi
}

mkdir -p "$work/docs/internals"
for page in {1..14}; do
    words "docs/$page.md" 1428
done
words docs/internals/one.md 25000
lines README.md 130
says passes 'docs: 14 pages of 14' 'docs: 19992 words of 20000' 'docs/internals: 25000 words of 25000' 'README.md: 130 lines of 130'

words docs/14.md 1437
says fails 'FAIL  docs: 20001 words, at most 20000' ' 1437 docs/14.md'
words docs/14.md 1
words docs/15.md 1
says fails 'FAIL  docs: 15 pages, at most 14' ' 1 docs/15.md'
rm "$work/docs/15.md"
words docs/internals/two.md 1
says fails 'FAIL  docs/internals: 25001 words, at most 25000' ' 25000 docs/internals/one.md'
rm "$work/docs/internals/two.md"
lines README.md 131
says fails 'FAIL  README.md: 131 lines, at most 130'
lines README.md 1
rm "$work"/docs/*.md
says fails 'FAIL  docs has no pages'

exit $failed
