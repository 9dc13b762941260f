#!/bin/bash
# count_words.sh: checks that the documentation stays within these bounds. Words are those of wc -w.
#
#   docs/            at most 14 pages and 20,000 words, for people who use hetcoll
#   docs/internals/  at most 25,000 words, for people who work on it
#   README.md        at most 130 lines
set -u
cd "${HETCOLL_SRCDIR:-$(dirname "$0")/..}" || exit 1
failures=0

# bound WHAT COUNT MOST UNIT [FILE...]: with the words of each file if the count is too large.
bound()
{
    local what=$1 count=$2 most=$3 unit=$4
    shift 4
    if [ "$count" -le "$most" ]; then
        echo "ok    $what: $count $unit of $most"
        return
    fi
    failures=$((failures + 1))
    echo "FAIL  $what: $count $unit, at most $most" >&2
    [ $# -eq 0 ] || wc -w "$@" | sort -rn | sed 's/^/      /' >&2
}

# shelf FOLDER WORDS [PAGES]
shelf()
{
    local pages=("$1"/*.md)
    if [ ! -f "${pages[0]}" ]; then
        failures=$((failures + 1))
        echo "FAIL  $1 has no pages" >&2
        return
    fi
    [ $# -lt 3 ] || bound "$1" "${#pages[@]}" "$3" pages "${pages[@]}"
    bound "$1" "$(cat "${pages[@]}" | wc -w)" "$2" words "${pages[@]}"
}

shelf docs 20000 14
shelf docs/internals 25000
bound README.md "$(wc -l <README.md)" 130 lines
[ "$failures" -eq 0 ]
