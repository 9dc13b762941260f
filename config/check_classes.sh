#!/bin/sh
# check_classes.sh: no class of the component has more than 20 data members or 40 functions, and no source of it more
# than 500 lines. A larger one has more than one task: give one of its tasks a class, or a file, of its own.
cd "${HETCOLL_SRCDIR:-$(dirname "$0")/..}" || exit 1

# The sources of the component and of its ranks' side of aggregators.
sources=$(sed -e ':a' -e '/\\$/{N;s/\\\n//;ba' -e '}' ./*/local.mk |
    sed -n 's/^hetcoll_\(aggregators_\)\{0,1\}sources *+=//p' | tr -s '\t ' '\n' | grep -E '\.(h|cc)$' | sort -u)

# By the layout that clang-format gives: a class begins and ends at the margin, and a member with four blanks. Data
# members end with "_".
# shellcheck disable=SC2086
large=$(awk '
    FNR == 1 { name = "" }
    FNR == 501 { print FILENAME, "has more than 500 lines" }
    /^(class|struct) [A-Za-z:]+/ && !/;$/ {
        name = $2; data = functions = 0
        next
    }
    /^\};/ && name != "" {
        if (data > 20) print name, "of", FILENAME, "has", data, "data members"
        if (functions > 40)
            print name, "of", FILENAME, "has", functions, "functions"
        name = ""
    }
    name == "" || !/^    [A-Za-z~\[]/ || /^    (static constexpr|static_assert|using|enum|friend|struct|class|template) / { next }
    { line = $0; sub(/\/\/.*/, "", line) }
    line ~ /^    ([^={]*[ *&~])?[a-z~A-Z][A-Za-z0-9_]*\(/ && line !~ /_\(/ { ++functions; next }
    line ~ /operator/ { ++functions; next }
    { gsub(/\{[^}]*\}/, "{", line)
      while (match(line, /[a-z0-9]_( = |\{|;|,|\[|$)/)) { ++data; line = substr(line, RSTART + RLENGTH) } }
' $sources)
if [ -n "$large" ]; then
    echo "$large" | sed 's/^/FAIL  /'
    exit 1
fi
echo "ok    $(echo "$sources" | wc -l) sources of at most 500 lines, no class with more than 20 data members or 40 functions"
