#!/bin/sh
# hooks_test.sh: which messages config/hooks/commit-msg takes, and what it says about others; and check_messages.sh.
set -u
hook=${HETCOLL_SRCDIR:-.}/config/hooks/commit-msg
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
passed=0 failed=0

# says TEXT MESSAGE: what the hook prints has the text; an empty one, it takes the message.
says()
{
    printf "$2" >"$work/message"
    if sh "$hook" "$work/message" >"$work/out" 2>&1; then taken=yes; else taken=no; fi
    if { [ -z "$1" ] && [ $taken = yes ] && [ ! -s "$work/out" ]; } ||
        { [ -n "$1" ] && [ $taken = no ] && grep -qF -- "$1" "$work/out"; }; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED  '$2': taken: $taken, not '$1':"
        cat "$work/out"
    fi
}

signed='\n\nWhy, and how.\n\nSigned-off-by: A Name <a.name@example.org>\n'
seventy_two='base: 789012345678901234567890123456789012345678901234567890123456789012'
says '' "base: Say what is wrong$signed"
says '' "test/mpi, .ci: Run 7 areas$signed# A comment of git's\n"
says '' "base: Subject alone\n\nSigned-off-by: A <a@b>\n"
says '' "$seventy_two$signed"
says '73 characters' "${seventy_two}3$signed"
says "is not 'area: Imperative sentence'" "Say what is wrong$signed"
says "is not 'area: Imperative sentence'" "base: Say what is wrong.$signed"
says "is not 'area: Imperative sentence'" "base:Say what is wrong$signed"
says "is not 'area: Imperative sentence'" "\nbase: Say what is wrong$signed"
says 'second line' 'base: Say\nwhat is wrong\n\nSigned-off-by: A <a@b>\n'
says 'not signed off' 'base: Say what is wrong\n\nWhy, and how.\n'
says 'not signed off' 'base: Say what is wrong\n\n# Signed-off-by: A <a@b>\n'
says 'not signed off' 'base: Say what is wrong\n\n# ------------------------ >8 ------------------------\nSigned-off-by: A <a@b>\n'
says 'not signed off' 'base: Say what is wrong\n\nSigned-off-by: A Name\n'
says '' 'fixup! base: Say what is wrong\n'
says '' "Merge branch 'one' into two\n"

# checks TEXT NUMBER: what check_messages.sh prints of the newest NUMBER commits has the text; an empty one, all are right.
git=$work/repository
commit() { git -C "$git" -c user.name=A -c user.email=a@b commit -q --allow-empty -m "$1"; }
checks()
{
    if (cd "$git" && sh "$checker" "$2") >"$work/out" 2>&1; then right=yes; else right=no; fi
    if { [ -z "$1" ] && [ $right = yes ]; } ||
        { [ -n "$1" ] && [ $right = no ] && grep -qF -- "$1" "$work/out"; }; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED  the newest $2 commits: right: $right, not '$1':"
        cat "$work/out"
    fi
}

checker=$(cd "$(dirname "$hook")/.." && pwd)/check_messages.sh
if git init -q "$git"; then
    commit 'An older one'
    wrong=$(git -C "$git" rev-parse --short HEAD)
    commit "$(printf "base: Say what is wrong$signed")"
    commit "$(printf "base: Say what is right$signed")"
    checks '' 2
    checks "commit $wrong: commit-msg: the subject is not 'area: Imperative sentence'" 3
    checks "commit $wrong: commit-msg: not signed off" 30
else
    failed=$((failed + 1))
fi

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
