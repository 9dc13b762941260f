#!/bin/bash
# check_words.sh [--write]: reports phrases that a native writer avoids (config/words.txt) in comments, messages and pages.
# config/old_words.txt holds how many lines of each file have one already: no file may have more. --write stores the
# counts of today, after lines have been mended or files have moved.
set -u
cd "${HETCOLL_SRCDIR:-$(dirname "$0")/..}" || exit 1
known=config/old_words.txt
if [ -z "$(git ls-files config/check_words.sh 2>/dev/null)" ]; then
    echo "skipped: the list of files comes from git, and this is no clone"
    exit 77
fi
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

# Prints FILE:LINE: TEXT (ADVICE) for each line that has a phrase. In sources only comments and strings count.
git ls-files '*.c' '*.cc' '*.cu' '*.h' '*.sh' '*.md' ':!bench/results' | xargs awk '
    FILENAME == "config/words.txt" {
        if ($0 !~ /^#/ && split($0, part, "\t") == 2) { pattern[++patterns] = part[1]; advice[patterns] = part[2] }
        next
    }
    FNR == 1 { pages = FILENAME ~ /\.md$/; script = FILENAME ~ /\.sh$/; code = 0 }
    pages && /^```/ { code = !code; next }
    {
        text = $0
        if (pages) {
            if (code) next
        } else if (script) {
            if (!match(text, /(^|[ \t])# /)) next
            text = substr(text, RSTART + RLENGTH)
        } else {
            line = text
            text = ""
            while (match(line, /"([^"\\]|\\.)*"/)) {
                text = text " " substr(line, RSTART + 1, RLENGTH - 2)
                line = substr(line, 1, RSTART - 1) substr(line, RSTART + RLENGTH)
            }
            if (match(line, /\/\/ ?|\/\* ?|^ \* ?/)) text = substr(line, RSTART + RLENGTH) text
            if (text == "") next
        }
        for (p = 1; p <= patterns; ++p) {
            if (text ~ pattern[p]) { print FILENAME ":" FNR ": " $0 " (" advice[p] ")"; break }
        }
    }' config/words.txt >"$work/found"

cut -d: -f1 "$work/found" | sort | uniq -c | awk '{ print $2, $1 }' >"$work/counts"
if [ "${1-}" = --write ]; then
    cp "$work/counts" $known
    echo "ok    $(wc -l <"$work/found") lines of $(wc -l <$known) files are in $known"
    exit 0
fi
status=0
while read -r file count; do
    before=$(awk -v file="$file" '$1 == file { print $2 }' $known)
    [ "$count" -gt "${before:-0}" ] || continue
    status=1
    echo "FAIL  $file has $count lines with a phrase of config/words.txt, ${before:-0} are known. Rewrite the new ones:" >&2
    grep -F "$file:" "$work/found" | sed 's/^/      /' >&2
done <"$work/counts"
[ $status -ne 0 ] || echo "ok    no file has more of the phrases in config/words.txt than before"
exit $status
