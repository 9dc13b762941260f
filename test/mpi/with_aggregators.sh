#!/bin/bash
# with_aggregators.sh WHAT MPIRUN ARGUMENT...: runs mpirun together with hetcoll_aggregator on the loopback device,
# and tells the component of it.
#   one        one aggregator
#   leaves     two, and a spine above them
#   rdma       one, to which vectors go by RDMA: UCX's TCP on the loopback device stands for it
#   other_key  one with another key than the ranks have
#   nobody     nobody listens there
#   open_key   others may read the key
#   no_file    the component without hetcoll_aggregators.so
# The test kills what HETCOLL_TEST_AGGREGATOR says, the process id of the one with number HETCOLL_TEST_KILL:
# 0 is the spine. HETCOLL_TEST_PAYLOAD: the bytes of vectors that the first one must have received in all.
# HETCOLL_TEST_GROUPS: the communicators that one must have had when the program asked it for its statistics, and
# it must be there still.
set -u
what=$1
shift
work=$(mktemp -d) || exit 1
servers=()
# shellcheck disable=SC2317,SC2329
end()
{
    [ ${#servers[@]} -eq 0 ] || kill "${servers[@]}" 2>/dev/null
    rm -rf "$work"
}
trap end EXIT
umask 077
od -An -N 32 -tx1 /dev/urandom | tr -d ' \n' >"$work/key"
cp "$work/key" "$work/servers_key"
[ "$what" != other_key ] || echo 'this is not what the ranks have' >"$work/servers_key"

# serve NAME OPTION...: starts one at a port that is free. Where it listens is in $NAME.
serve()
{
    local name=$1 output=$work/$1 at
    shift
    : >"$output" # it is there before the server is
    "$HETCOLL_AGGREGATOR" --listen 127.0.0.1:0 --key "$work/servers_key" "$@" >"$output" 2>&1 &
    servers+=($!)
    disown # so that bash does not tell of the one that is killed
    until at=$(sed -n 's/.*listening at \([^ ,]*\).*/\1/p' "$output") && [ -n "$at" ]; do
        kill -0 "${servers[-1]}" 2>/dev/null || { cat "$output" && exit 1; }
        sleep 0.05
    done
    eval "$name=$at"
}

spine='' first='' second=''
case $what in
nobody) list=127.0.0.1:1 ;;
open_key)
    serve first
    chmod 644 "$work/key"
    list=$first
    ;;
no_file)
    serve first
    list=$first
    components=$OMPI_MCA_mca_base_component_path
    mkdir "$work/component"
    cp -L "${components%%:*}"/{mca_coll_hetcoll,hetcoll_component}.so "$work/component" || exit 1
    export OMPI_MCA_mca_base_component_path=$work/component:${components#*:}
    ;;
rdma)
    serve first --rdma tcp/lo
    list=$first
    export OMPI_MCA_coll_hetcoll_aggregator_rdma=tcp/lo
    ;;
leaves)
    serve spine
    serve first --spine "$spine"
    serve second --spine "$spine"
    list=$first,$second
    ;;
*)
    serve first
    list=$first
    ;;
esac
export HETCOLL_TEST_AGGREGATOR=${servers[${HETCOLL_TEST_KILL:-0}]:-0}
export OMPI_MCA_coll_hetcoll_aggregators=$list OMPI_MCA_coll_hetcoll_aggregator_key=$work/key
"$@"
status=$?
if [ -n "${HETCOLL_TEST_PAYLOAD:-}" ] && [ $status -eq 0 ]; then
    kill -USR1 "${servers[0]}"
    until received=$(sed -n 's/.*"payload_bytes_in": \([0-9]*\).*/\1/p' "$work/first") && [ -n "$received" ]; do
        kill -0 "${servers[0]}" || break
        sleep 0.05
    done
    [ "$received" = "$HETCOLL_TEST_PAYLOAD" ] ||
        { echo "WRONG: the aggregator has received $received bytes, not $HETCOLL_TEST_PAYLOAD" && status=1; }
fi
if [ -n "${HETCOLL_TEST_GROUPS:-}" ]; then
    now=$(cat "$work/spine" "$work/first" 2>/dev/null | sed -n 's/.*"groups_now": \([0-9]*\).*/\1/p' | head -n 1)
    [ "$now" = "$HETCOLL_TEST_GROUPS" ] ||
        { echo "WRONG: the aggregator had ${now:-no statistics for} groups, not $HETCOLL_TEST_GROUPS" && status=1; }
    kill -0 "$HETCOLL_TEST_AGGREGATOR" || { echo "WRONG: the aggregator has ended" && status=1; }
fi
if [ "$what" = rdma ] && [ $status -eq 0 ] && kill "${servers[0]}" 2>/dev/null; then
    until grep -q '"by_rdma": ' "$work/first"; do sleep 0.05; done
    grep -q '"by_rdma": 0,' "$work/first" && echo "WRONG: no vectors went by RDMA" && status=1
fi
exit $status
