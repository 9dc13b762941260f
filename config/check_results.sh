#!/bin/sh
# check_results.sh [--write]: bench/results/INDEX.md has every results file once, no other, and the commit that the
# file's head names. --write puts those commits into the page. In a clone with the whole history every commit is there.
# Scripts that the page names can be run as it says.
cd "${HETCOLL_SRCDIR:-$(dirname "$0")/..}/bench/results" || exit 1
page=INDEX.md new=$(mktemp) || exit 1
trap 'rm -f "$new"' EXIT
status=0
fail()
{
    status=1
    echo "FAIL  bench/results/$*" >&2
}

# commit_of FILE: what its first lines say, if they do.
commit_of()
{
    head -c 4000 "$1" | grep -m 1 -oE 'commit"?[: ]+"?[0-9a-f]{7,40}(-dirty)?' | grep -oE '[0-9a-f]{7,40}(-dirty)?$'
}

# A release, or a clone without history, cannot be checked.
whole=no
[ "$(git rev-parse --show-prefix 2>/dev/null)" = bench/results/ ] && git ls-files --error-unmatch $page >/dev/null 2>&1 &&
    [ "$(git rev-parse --is-shallow-repository)" = false ] && whole=yes

# look_up COMMIT FILE: whether the repository has the commit.
look_up()
{
    [ $whole = no ] || git cat-file -e "${1%-dirty}^{commit}" 2>/dev/null ||
        fail "$2 was made at $1, which is not in this repository: make it anew"
}

while IFS= read -r line; do
    case $line in
    '| file |'* | '| --- |'*) ;;
    '| '*)
        names=${line#| }
        names=${names%% |*}
        first=${names%%,*}
        rest=${line#"| $names | "}
        known=${rest%% |*}
        commit=$([ -f "$first" ] && commit_of "$first")
        [ -z "$commit" ] || [ "$commit" = "$known" ] || [ "${1:-}" = --write ] ||
            fail "$page: $first was made at $commit, not $known: config/check_results.sh --write says so there"
        look_up "${commit:-$known}" "$first"
        line="| $names | ${commit:-$known} |${rest#"$known |"}"
        ;;
    esac
    printf '%s\n' "$line"
done <$page >"$new"
[ "${1:-}" != --write ] || cat "$new" >$page

names=$(sed -n 's/^| \([^|]*\) | .*/\1/p' $page | tr -d ' ' | tr , '\n' | grep '\.')
for file in *; do
    [ "$file" = $page ] || [ "$(echo "$names" | grep -cxF "$file")" = 1 ] || fail "$file is not in $page once"
done
for name in $names; do
    [ -f "$name" ] || fail "$page: there is no $name"
done
for script in $(grep -oE '(bench|test)/[a-z_/]+\.(sh|py)' $page | sort -u); do
    [ -x "../../$script" ] || fail "$page: $script is not there, or cannot be run: chmod +x $script"
done
[ $status != 0 ] || echo "ok    $(echo "$names" | wc -l) results are in bench/results/$page"
exit $status
