#!/bin/bash
# check_words_test.sh: config/check_words.sh finds a phrase in comments, strings and pages, there alone, and not in lines
# that may keep it.
set -u
script=${HETCOLL_SRCDIR:-.}/config/check_words.sh
git --version >/dev/null 2>&1 || exit 77
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
mkdir "$work/config"
cp "$script" "$work/config/"
printf '# comment\n(^|[^a-z])anew([^a-z]|$)\t"again"\n' >"$work/config/words.txt"
: >"$work/config/words_kept.txt"
git -C "$work" init -q
failed=0

# finds YES FILE TEXT: whether the check complains of a repository whose FILE has that text.
finds()
{
    local found=no
    printf '%b\n' "$3" >"$work/$2"
    git -C "$work" add .
    HETCOLL_SRCDIR=$work bash "$work/config/check_words.sh" >"$work/out" 2>&1 || found=yes
    [ "$found" = yes ] && ! grep -q "^FAIL  $2:[12]: " "$work/out" && found='yes, but does not say where'
    if [ "$found" != "$1" ]; then
        failed=1
        echo "FAILED  $2, '$3': $found, not $1"
        cat "$work/out"
    fi
    git -C "$work" rm -qf --cached "$2"
    rm "$work/$2"
}

finds yes a.cc '// Starts anew.'
finds yes a.h '/* Starts\n * anew. */'
finds yes a.c 'puts("starts anew");'
finds yes a.sh 'run # anew'
finds yes a.md 'It starts anew.'
finds no a.cc 'int anew = 0; // a new one'
finds no a.sh 'anew=1'
finds no a.md '```\nanew\n```'
printf '# kept\na.md:starts anew\n' >"$work/config/words_kept.txt"
finds no a.md 'It starts anew.'
finds yes b.md 'It starts anew.'
finds yes a.md 'It begins anew.'

exit $failed
