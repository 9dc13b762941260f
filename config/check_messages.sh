#!/bin/sh
# check_messages.sh NUMBER: are the messages of the newest NUMBER commits as config/hooks/commit-msg wants them?
set -u
number=${1:?check_messages.sh NUMBER}
hook=$(cd "$(dirname "$0")" && pwd)/hooks/commit-msg
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
git log --max-count="$number" --format=%H >"$work/commits" || exit 1
status=0
while read -r commit; do
    git log --max-count=1 --format=%B "$commit" >"$work/message"
    if ! sh "$hook" "$work/message" 2>"$work/problems"; then
        sed "/nothing is committed/d; s/^/commit $(git rev-parse --short "$commit"): /" "$work/problems" >&2
        status=1
    fi
done <"$work/commits"
[ "$status" -ne 0 ] || echo "messages of $(wc -l <"$work/commits") commits: right"
exit "$status"
