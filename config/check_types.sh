#!/bin/sh
# check_types.sh: no type of a namespace is defined twice, in headers or in sources outside of a namespace without a
# name. No compiler sees that, if no source includes both; but std::vector of one is then std::vector of the other, in
# any program that links both.
cd "${HETCOLL_SRCDIR:-$(dirname "$0")/..}" || exit 1
folders='base cuda_kernels schedule topology device pointer_cache topology_probe transport machine plan tuning price choice aggregator
    engine ompi sim measure tools bench wsp include'

# Prints "namespace::Type file" of each definition. clang-format writes the ends of namespaces, and types begin a line.
# shellcheck disable=SC2086
types=$(find $folders -name '*.h' -o -name '*.cc' | sort | xargs awk '
    FNR == 1 { depth = 0; hidden = 0 }
    /^namespace \{/ { hidden = 1 }
    /^\} \/\/ namespace$/ { hidden = 0 }
    /^namespace [a-z_:]+ \{/ { name[++depth] = $2 }
    /^\} \/\/ namespace ./ { --depth }
    depth > 0 && !hidden && /^(struct|class|union|enum class) / && (/\{/ || !/;/) {
        line = $0
        sub(/^enum class /, "", line)
        sub(/^(struct|class|union) /, "", line)
        sub(/^alignas\([^)]*\) /, "", line)
        if (match(line, /^[A-Za-z0-9_]+/) && substr(line, RLENGTH + 1, 1) !~ /[<:]/)
            print name[depth] "::" substr(line, 1, RLENGTH), FILENAME
    }')
twice=$(echo "$types" | cut -d ' ' -f 1 | sort | uniq -d)
if [ -n "$twice" ]; then
    echo "$twice" | while read -r type; do
        echo "FAIL  $type is defined in $(echo "$types" | grep -F "$type " | cut -d ' ' -f 2 | tr '\n' ' ')"
    done
    exit 1
fi
echo "ok    each of $(echo "$types" | wc -l) types has a name of its own"
