#!/bin/bash
# check_tidy.sh BUILD NUMBER FLAG...: clang-tidy 14 with .clang-tidy on NUMBER sources, those first that were
# changed last; on all without a NUMBER. BUILD has the generated headers. A source counts as one test.
set -u
cd "$(dirname "$0")/.." || exit 1
build=$1 number=$2
shift 2
export tidy
tidy=$(command -v clang-tidy-14 || command -v clang-tidy) || { echo "no clang-tidy: ./bootstrap.sh lint"; exit 1; }

# Not committed, by the commits that changed them last, and all others; a shallow clone has one commit of all.
sources()
{
    {
        git status --porcelain | cut -c 4-
        git log --first-parent --pretty=format: --name-only
        git ls-files
    } 2>/dev/null | awk '/\.cc$/ && !seen[$0]++' | while read -r file; do [ ! -f "$file" ] || echo "$file"; done
}

check()
{
    local file=$1 output
    shift
    case $file in # compiled against other headers: test/model/local.mk
    test/model/operation_test.cc) set -- -Itest/model/stand_in -Itest/model "$@" ;;
    esac
    if output=$("$tidy" --quiet --warnings-as-errors='*' "$file" -- "$@" 2>/dev/null); then
        echo "passed  $file"
    else
        echo "FAILED  $file"
        echo "$output"
    fi
}
export -f check

# shellcheck disable=SC2016
sources | head -n "${number:-1000000}" |
    xargs -P "$(nproc)" -I{} bash -c 'check "$@"' check {} -std=c++20 -I. -Itest/unit -I"$build" -I"$build/include" "$@" |
    awk '{ print; fflush() } /^passed  / { passed++ } /^FAILED  / { failed++ }
        END { printf "%d passed, %d failed\n", passed, failed; exit failed > 0 || !passed }'
