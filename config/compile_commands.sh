#!/bin/bash
# compile_commands.sh BUILD FLAG...: prints compile_commands.json for all sources, by which clangd and others find out
# how one is compiled. BUILD has the generated headers.
set -eu
cd "$(dirname "$0")/.."
build=$1
shift

# Words as JSON's, each with a comma behind it.
quoted() { printf '%s\n' "$@" | sed 's/[\\"]/\\&/g; s/.*/"&", /' | tr -d '\n'; }

folder=$(quoted "$PWD") flags=$(quoted -I. -Itest/unit -I"$build" -I"$build/include" "$@")
separator='['
git ls-files '*.c' '*.cc' | while read -r file; do
    case $file in
    *.c) compiler='cc -std=gnu11 -idirafter config/compat' ;;
    test/model/operation_test.cc) compiler='c++ -std=c++20 -Itest/model/stand_in -Itest/model' ;;
    *) compiler='c++ -std=c++20' ;;
    esac
    # shellcheck disable=SC2086
    printf '%s\n{"directory": %s"file": "%s", "arguments": [%s%s"-c", "%s"]}' "$separator" "$folder" "$file" \
        "$(quoted $compiler)" "$flags" "$file"
    separator=,
done
printf '\n]\n'
