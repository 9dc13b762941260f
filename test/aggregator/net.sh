# Functions for tests and benches of aggregators: servers, workers, and network namespaces with links
# of a limited rate. To be sourced, by bash. Callers set `builddir` and call begin first.

# Makes the folder $work with a key; at the end everything that was started or made here is ended.
begin()
{
    work=$(mktemp -d) || exit 1
    trap end EXIT
    trap 'exit 1' INT TERM
    pids=() namespaces=()
    (umask 077 && head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$work/key")
}

end()
{
    local pid name
    for pid in "${pids[@]}"; do
        kill -9 "$pid" 2>/dev/null
    done
    wait
    for name in "${namespaces[@]}"; do
        ip netns del "$name" 2>/dev/null
    done
    rm -rf "$work"
}

# serve NAME NAMESPACE|- HOST:PORT ARGUMENT...: starts a server and waits until it listens. Its pid is
# in $served, where it listens in $served_at, its output in $work/NAME.out and NAME.err.
serve()
{
    local name=$1 inside=()
    [ "$2" = - ] || inside=(ip netns exec "$2")
    rm -f "$work/$name.out" "$work/$name.err"
    "${inside[@]}" "$builddir/hetcoll_aggregator" --listen "$3" --key "$work/key" "${@:4}" \
        >"$work/$name.out" 2>"$work/$name.err" &
    served=$!
    pids+=("$served")
    while kill -0 "$served" 2>/dev/null; do
        served_at=$(sed -n 's/.*listening at \([^ ,]*\).*/\1/p' "$work/$name.err" 2>/dev/null)
        [ -z "$served_at" ] || return 0
        sleep 0.1
    done
    echo "      no server: $(cat "$work/$name.err")"
    return 1
}

# worker NAME NAMESPACE|- ARGUMENT...: starts one; its line is in $work/NAME.out, its pid in $started.
worker()
{
    local name=$1 inside=()
    [ "$2" = - ] || inside=(ip netns exec "$2")
    rm -f "$work/$name.out" "$work/$name.err"
    timeout -k 5 "${worker_seconds:-300}" "${inside[@]}" "$builddir/test/aggregator/worker" "${@:3}" \
        >"$work/$name.out" 2>"$work/$name.err" &
    started=$!
    pids+=("$started")
}

# field FILE NAME: the number behind "NAME" in a line of JSON.
field() { sed -n "s/.*\"$2\": \([-0-9.]*\).*/\1/p" "$1" | tail -n 1; }

# Whether namespaces, links between them and limited rates can be had here.
may_have_namespaces()
{
    local probe=hc$$probe ok=1
    command -v ip >/dev/null && command -v tc >/dev/null || return 1
    ip netns add "$probe" 2>/dev/null || return 1
    ip -n "$probe" link add hcp0 type veth peer name hcp1 2>/dev/null &&
        tc -n "$probe" qdisc add dev hcp0 root tbf rate 100mbit burst 64kb latency 20ms 2>/dev/null && ok=0
    ip netns del "$probe"
    return $ok
}

# network WORKERS RATE LIMIT: a switch, and a namespace for each worker on a link of its own, RATE each
# way. LIMIT: most bytes that wait at a link; what comes then is lost. Workers' namespaces are
# ${net}wI at 10.77.0.(10+I); servers run in ${net}sw, which is the switch, at 10.77.0.1.
network()
{
    local i limit=$3
    net=hc$$
    namespaces+=("${net}sw")
    ip netns add "${net}sw" && ip -n "${net}sw" link set lo up &&
        ip -n "${net}sw" link add br0 type bridge && ip -n "${net}sw" link set br0 up &&
        ip -n "${net}sw" addr add 10.77.0.1/24 dev br0 || return 1
    for i in $(seq 0 $(($1 - 1))); do
        namespaces+=("${net}w$i")
        ip netns add "${net}w$i" && ip -n "${net}w$i" link set lo up &&
            ip -n "${net}sw" link add "p$i" type veth peer name eth0 netns "${net}w$i" &&
            ip -n "${net}sw" link set "p$i" master br0 up &&
            ip -n "${net}w$i" addr add "10.77.0.$((10 + i))/24" dev eth0 &&
            ip -n "${net}w$i" link set eth0 up &&
            tc -n "${net}sw" qdisc add dev "p$i" root tbf rate "$2" burst 64kb limit "$limit" &&
            tc -n "${net}w$i" qdisc add dev eth0 root tbf rate "$2" burst 64kb limit "$limit" || return 1
    done
}

no_network()
{
    local name
    for name in "${namespaces[@]}"; do
        ip netns del "$name" 2>/dev/null
    done
    namespaces=()
}

# Packets that the links of the network have lost.
lost_packets()
{
    local name
    for name in "${namespaces[@]}"; do
        tc -n "$name" -s qdisc show 2>/dev/null
    done | awk '/dropped/ { gsub(",", "", $7); lost += $7 } END { print lost + 0 }'
}
