#!/bin/bash
# check_words.sh: reports phrases that a native writer avoids (config/words.txt) in comments, messages and pages. Lines
# that may keep theirs, such as names that results have, are in config/words_kept.txt: FILE, a colon, a part of the line.
set -u
cd "${HETCOLL_SRCDIR:-$(dirname "$0")/..}" || exit 1
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

awk '
    FILENAME == ARGV[1] { if (!/^#/) { cut = index($0, ":"); kept[substr($0, 1, cut - 1)] = kept[substr($0, 1, cut - 1)] "\n" substr($0, cut + 1) } next }
    {
        file = substr($0, 1, index($0, ":") - 1)
        parts = split(kept[file], part, "\n")
        for (i = 1; i <= parts; ++i) if (part[i] != "" && index($0, part[i])) next
        print
    }' config/words_kept.txt "$work/found" >"$work/wrong"
if [ -s "$work/wrong" ]; then
    sed 's/^/FAIL  /' "$work/wrong" >&2
    exit 1
fi
echo "ok    no comment, message or page has a phrase of config/words.txt"
