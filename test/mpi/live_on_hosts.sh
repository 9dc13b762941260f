#!/bin/bash
# live_on_hosts.sh COMMAND...: starts a job on nodea and nodeb. Once a rank says that it waits, mpirun runs hetcoll_info
# --live on both, and what it collects has to show that rank 1 on nodea is missing and that rank 2 on nodeb waits. Then
# the late rank may come.
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
"$@" &
job=$!
until grep -q 'waits for' "$HETCOLL_TEST_OUTPUT"; do
    kill -0 "$job" || exit
    sleep 0.1
done
shown=$("$1" --mca plm_rsh_agent "$here/into_host.sh" --mca routed direct -H nodea:1,nodeb:1 --map-by ppr:1:node \
    "$HETCOLL_BUILDDIR/hetcoll_info" --live --json 2>&1)
has() { grep -qE "$1" <<<"$shown" || echo "WRONG   no line of hetcoll_info --live has $1: $shown"; }
has '^\{"schema":1,"host":"nodea","communicator":[0-9]+,"ranks":3,"meeting":[0-9]+,"missing":\[1\],"here":\[\{"rank":0,.*\{"rank":1,'
has '^\{"schema":1,"host":"nodeb","communicator":[0-9]+,"ranks":3,"meeting":[0-9]+,"missing":\[\],"here":\[\{"rank":2,.*"call":3,"looked_s"'
[ "$(wc -l <<<"$shown")" = 2 ] || echo "WRONG   not one line for each host: $shown"
for line in 1 2 3 4 5 6 7; do # one more than the job itself can say
    echo "note $line s in call number 3 on hosts that were shown" >&2
done
wait "$job"
