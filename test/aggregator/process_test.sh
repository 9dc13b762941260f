#!/bin/bash
# process_test.sh: aggregators and workers as processes, on loopback and between network namespaces
# with links of limited rate that lose packets.
set -u
builddir=${HETCOLL_BUILDDIR:-.}
. "${HETCOLL_SRCDIR:-.}/test/aggregator/net.sh"
begin
failures=0

check() # WHAT COMMAND...: the command succeeds
{
    if "${@:2}"; then
        echo "ok    $1"
    else
        echo "FAIL  $1"
        failures=$((failures + 1))
    fi
}

# workers FIRST COUNT NAMESPACE|- HOST:PORT ARGUMENT...: ranks; {I} in NAMESPACE is the rank.
workers()
{
    local rank
    group=()
    for rank in $(seq "$1" $(($1 + $2 - 1))); do
        worker "w$rank" "${3//\{I\}/$rank}" --aggregator "$4" --key "$work/key" --rank "$rank" "${@:5}"
        group+=("$started")
    done
}

# until_true COMMAND...: waits for it.
until_true()
{
    until "$@"; do sleep 0.1; done
}

# at_work RANK...: waits until these workers have their first sum, or have ended.
at_work()
{
    local rank
    for rank in "$@"; do
        until_true eval 'grep -qs "is at work" "$work/w$rank.err" || [ -s "$work/w$rank.out" ]'
    done
}

# codes_are CODE...: how the workers ended that were started last. They end with 0 only if every
# element was right.
codes_are()
{
    local pid got=
    for pid in "${group[@]}"; do
        wait "$pid"
        got="$got${got:+ }$?"
    done
    [ "$got" = "$*" ] || { echo "      exit codes $got, wanted $*"; cat "$work"/w*.out "$work"/w*.err; false; }
}

# fields_are FILE NAME VALUE...: numbers in the file's line of JSON.
fields_are()
{
    local file=$1 ok=0
    shift
    while [ $# -gt 0 ]; do
        [ "$(field "$work/$file" "$1")" = "$2" ] || { echo "      $file: $1 is $(field "$work/$file" "$1"), wanted $2"; ok=1; }
        shift 2
    done
    return $ok
}

says() { grep -q "$2" "$work/$1" || { echo "      $1: $(cat "$work/$1")"; false; }; }

# stop NAME PID: by SIGTERM; succeeds if it ended well.
stop()
{
    kill "$2" && wait "$2"
}

zeros="0 0 0 0 0 0 0 0"

loopback_sums()
{
    serve s - 127.0.0.1:0 --window 4
    local at=$served_at
    # 100,000 integers of 4 bytes in messages of 16 KiB are 25 messages a reduction. Joining takes 44
    # bytes; the first message's header 42, those of the others 12.
    workers 0 8 - "$at" --ranks 8 --count 100000 --iterations 5 --window 6 --message-bytes 16384
    check "8 workers on loopback: every element" codes_are $zeros
    check "a worker sends and receives the vector and headers, never more than the window in flight" \
        fields_are w3.out payload_bytes_out 2000000 payload_bytes_in 2000000 messages_out 125 \
        messages_in 125 window 4 most_in_flight 4 header_bytes_out $((44 + 5 * (42 + 24 * 12)))
    workers 0 2 - "$at" --ranks 2 --count 1001 --float
    check "floats" codes_are 0 0
    kill -USR1 "$served"
    until_true grep -q '}' "$work/s.out"
    check "SIGUSR1 writes statistics" fields_are s.out joined 10 parts 1002 sums 1002 malformed 0
    check "the aggregator has no more in flight than the window" fields_are s.out most_in_flight 4
    check "SIGTERM ends it well" stop s "$served"
    check "its last line has everything" fields_are s.out groups 2 groups_failed 0 groups_now 0
}

keys()
{
    serve s - 127.0.0.1:0
    local at=$served_at
    (umask 077 && echo 'another key, as long' >"$work/other")
    worker w0 - --aggregator "$at" --key "$work/other" --rank 0 --ranks 1
    group=("$started")
    check "another key: refused" codes_are 3
    check "... and the worker says why" says w0.out "the key is not this aggregator's"
    head -c 100000 /dev/urandom >"/dev/tcp/127.0.0.1/${at#*:}" 2>/dev/null
    workers 0 2 - "$at" --ranks 2
    check "who does not speak TLS changes nothing for others" codes_are 0 0
    stop s "$served"
    check "the refusal is counted" fields_are s.out wrong_key 1 joined 2
    check "... and said" says s.err "1 with another key"
    chmod 640 "$work/key"
    check "a key file that others may read is refused" \
        eval '! "$builddir/hetcoll_aggregator" --listen "$at" --key "$work/key" 2>"$work/e"'
    check "... and it says what to do" says e "chmod 600"
    worker w0 - --aggregator "$at" --key "$work/key" --rank 0 --ranks 1
    group=("$started")
    check "... by workers, too" codes_are 3
    chmod 600 "$work/key"
}

deaths()
{
    # Whoever is gone is noticed by its connection: an hour of silence would be longer than this test.
    local patient="--silence-seconds 3600"
    serve s - 127.0.0.1:0 $patient
    local at=$served_at
    workers 0 3 - "$at" --ranks 4 --count 100000 --iterations 3 $patient
    local alive=("${group[@]}")
    worker w3 - --aggregator "$at" --key "$work/key" --rank 3 --ranks 4 --count 100000 --iterations 3 --die-in 1
    group=("${alive[@]}" "$started")
    check "a worker dies: the others return an error" codes_are 3 3 3 9
    check "... that says who" says w0.out "rank 3 has gone before the sum was complete"
    workers 0 2 - "$at" --ranks 2
    check "... and the aggregator goes on" codes_are 0 0
    workers 0 4 - "$at" --ranks 4 --count 100000 --seconds 3600 $patient
    at_work 0 1 2 3
    kill -9 "$served"
    check "the aggregator dies: all workers return an error" codes_are 3 3 3 3
    check "... that says which" says w0.out "the connection to aggregator $at is lost"
    serve s - "$at"
    workers 0 2 - "$at" --ranks 2 --job 2
    check "one that is started anew serves at once" codes_are 0 0
    stop s "$served"
    worker w0 - --aggregator "$at" --key "$work/key" --rank 0 --ranks 1
    group=("$started")
    check "nobody listens: an error" codes_are 3
}

leaves()
{
    local both
    serve spine - 127.0.0.1:0 && local spine_pid=$served spine=$served_at
    serve a - 127.0.0.1:0 --spine "$spine" && local a_pid=$served a=$served_at
    serve b - 127.0.0.1:0 --spine "$spine" && local b_pid=$served b=$served_at
    workers 0 3 - "$a" --ranks 8 --served 3 --count 50000 --iterations 3
    both=("${group[@]}")
    workers 3 5 - "$b" --ranks 8 --first 3 --served 5 --count 50000 --iterations 3
    group=("${both[@]}" "${group[@]}")
    check "two leaves and their spine" codes_are $zeros
    stop a "$a_pid" && stop b "$b_pid" && stop spine "$spine_pid"
    check "a leaf sends its spine one vector, whatever its workers" \
        fields_are a.out payload_bytes_in 1800000 payload_bytes_up 600000 payload_bytes_down 600000
    check "... and so gets the spine" fields_are spine.out payload_bytes_in 1200000 joined 2
}

ipv6()
{
    local at
    if ! grep -q . /proc/net/if_inet6 2>/dev/null; then
        echo "skipped: this machine has no IPv6"
        return
    fi
    serve s - '[::1]:0' && at=$served_at
    workers 0 3 - "$at" --ranks 3 --count 100000 --iterations 3
    check "3 workers over IPv6" codes_are 0 0 0
    check "SIGTERM ends it well" stop s "$served"
}

# Both call their job and communicator the same.
tenants()
{
    local at name rank
    (umask 077 && echo 'the key of red, as long' >"$work/red" && echo 'the key of blue, as long' >"$work/blue")
    serve s - 127.0.0.1:0 --key "red:$work/red" --key "blue:$work/blue" && at=$served_at
    group=()
    for name in red blue; do
        for rank in 0 1; do
            worker "$name$rank" - --aggregator "$at" --key "$name:$work/$name" --rank "$rank" --ranks 2 --count 5000
            group+=("$started")
        done
    done
    check "two tenants, each with a key" codes_are 0 0 0 0
    worker w0 - --aggregator "$at" --key "red:$work/blue" --rank 0 --ranks 1
    group=("$started")
    check "one tenant's key under another's name is refused" codes_are 3
    stop s "$served"
    check "... and counted" fields_are s.out groups 2 wrong_key 1 joined 4
    check "two keys of one name are refused" eval \
        '! "$builddir/hetcoll_aggregator" --listen "$at" --key "a:$work/red" --key "a:$work/blue" 2>"$work/e"'
    check "... with the name" says e "two keys have the name a"
}

supervised()
{
    local at
    serve s - 127.0.0.1:0 --supervise
    kill -9 "$(cat "/proc/$served/task/$served/children")"
    until_true grep -q 'starts again' "$work/s.err"
    until_true eval '[ "$(grep -c "listening at" "$work/s.err")" = 2 ]'
    at=$(sed -n 's/.*listening at //p' "$work/s.err" | tail -n 1)
    workers 0 2 - "$at" --ranks 2
    check "a supervised aggregator that is killed serves again" codes_are 0 0
    kill -USR1 "$served"
    until_true grep -q '}' "$work/s.out"
    check "SIGTERM to its supervisor ends it well" stop s "$served"
    check "... and it has its last line" fields_are s.out joined 2
}

# log_at_fifo NAME: a server whose log goes to a fifo of which this shell has both ends as 7. It has
# read the first line; $served_at is where it listens.
log_at_fifo()
{
    local line
    rm -f "$work/fifo"
    mkfifo "$work/fifo" && exec 7<>"$work/fifo"
    "$builddir/hetcoll_aggregator" --listen 127.0.0.1:0 --key "$work/key" >"$work/$1.out" 2>"$work/fifo" 7>&- &
    served=$!
    pids+=("$served")
    read -r -u 7 line
    served_at=${line##* }
}

# A line of the log for each, then work.
unread_log()
{
    local how
    (umask 077 && echo 'another key, as long' >"$work/other")
    for how in full gone; do
        log_at_fifo s
        if [ "$how" = full ]; then
            dd if=/dev/zero of="$work/fifo" bs=4096 count=1000 oflag=nonblock 2>/dev/null
        else
            exec 7>&-
        fi
        worker w0 - --aggregator "$served_at" --key "$work/other" --rank 0 --ranks 1
        group=("$started")
        check "the reader of the log is $how: a stranger is refused" codes_are 3
        workers 0 2 - "$served_at" --ranks 2
        check "... and ranks are served" codes_are 0 0
        check "... SIGTERM ends it well" stop s "$served"
        check "... and the line that had no reader is counted" fields_are s.out joined 2 lines_dropped 1
        exec 7>&-
    done
}

# UCX's TCP on the loopback device stands for RDMA.
rdma()
{
    local both
    if ! grep -q 'define HETCOLL_WITH_UCX 1' "$builddir/hetcoll_config.h"; then
        echo "skipped: this build has no UCX"
        return
    fi
    serve spine - 127.0.0.1:0 --rdma tcp/lo && local spine_pid=$served spine=$served_at
    serve a - 127.0.0.1:0 --spine "$spine" --rdma tcp/lo && local a_pid=$served a=$served_at
    serve b - 127.0.0.1:0 --spine "$spine" && local b_pid=$served b=$served_at
    # Three vectors of eight messages, and as many sums.
    workers 0 3 - "$a" --ranks 8 --served 3 --count 500000 --iterations 3 --rdma tcp/lo
    both=("${group[@]}")
    workers 3 5 - "$b" --ranks 8 --first 3 --served 5 --count 500000 --iterations 3 --rdma tcp/lo
    group=("${both[@]}" "${group[@]}")
    check "vectors by RDMA to one leaf, over TLS to another" codes_are $zeros
    stop a "$a_pid" && stop b "$b_pid" && stop spine "$spine_pid"
    check "... to the first from its ranks and from its spine" fields_are a.out by_rdma 192
    check "... to the spine from the first" fields_are spine.out by_rdma 48
    check "... to the other from nobody" fields_are b.out by_rdma 0
    check "... whose ranks say so" says w3.err "no RDMA, vectors go over TLS: the aggregator offers no fitting device"
    check "... and nobody else does" eval '! grep -q RDMA "$work"/[ab].err "$work/spine.err" "$work/w0.err"'

    mkdir "$work/broken" && echo 'no library' >"$work/broken/libucp.so.0"
    LD_LIBRARY_PATH=$work/broken:${LD_LIBRARY_PATH:-} serve s - 127.0.0.1:0 --rdma tcp/lo
    a=$served_at
    workers 0 2 - "$a" --ranks 2 --count 100000 --rdma tcp/lo
    check "a server whose UCX cannot be loaded: every element" codes_are 0 0
    stop s "$served"
    check "... and it says why" says s.err "no RDMA, vectors go over TLS: UCX cannot be loaded: .*libucp"
    serve s - 127.0.0.1:0 --rdma tcp/lo && a=$served_at
    LD_LIBRARY_PATH=$work/broken:${LD_LIBRARY_PATH:-} workers 0 1 - "$a" --ranks 2 --count 100000 --rdma tcp/lo
    both=("${group[@]}")
    workers 1 1 - "$a" --ranks 2 --count 100000 --rdma tcp/lo
    group=("${both[@]}" "${group[@]}")
    check "a rank whose UCX cannot be loaded: every element" codes_are 0 0
    check "... and it says why" says w0.err "UCX cannot be loaded: .*libucp"
    workers 0 3 - "$a" --ranks 3 --count 1000000 --seconds 3600 --job 3 --rdma tcp/lo
    at_work 0 1 2
    kill -9 "${group[2]}" "$(cat "/proc/${group[2]}/task/${group[2]}/children")"
    check "a rank that uses RDMA is killed: the others return an error" codes_are 3 3 137
    workers 0 2 - "$a" --ranks 2 --count 1000000 --seconds 3600 --job 4 --rdma tcp/lo
    at_work 0 1
    kill -9 "$served"
    check "the aggregator is killed: all ranks return an error" codes_are 3 3
}

# A machine that is gone sends nothing, not even that it is gone.
cut_link()
{
    network 2 100mbit 400000 || { check "namespaces" false; return; }
    serve s "${net}sw" 10.77.0.1:0 --silence-seconds 4
    workers 0 2 "${net}w{I}" "$served_at" --ranks 2 --count 200000 --seconds 3600 --silence-seconds 12
    at_work 0 1
    ip -n "${net}sw" link set p1 down
    check "a worker's machine is gone: an error on both sides" codes_are 3 3
    check "... the others hear who" says w0.out "rank 1 has gone before the sum was complete"
    check "... and it hears why" says w1.out "has said nothing for a long time"
    stop s "$served"
    no_network
}

# A leaf says that it is there, and its workers wait as long; so it must find out for itself.
cut_spine()
{
    local first
    network 1 100mbit 400000 || { check "namespaces" false; return; }
    serve spine "${net}w0" 10.77.0.10:0 && local spine_pid=$served spine=$served_at
    serve a "${net}sw" 10.77.0.1:0 --spine "$spine" --silence-seconds 4 && local a_pid=$served a=$served_at
    serve b "${net}sw" 10.77.0.1:0 --spine "$spine" --silence-seconds 4 && local b_pid=$served b=$served_at
    workers 0 1 "${net}sw" "$a" --ranks 2 --served 1 --count 200000 --seconds 3600
    first=("${group[@]}")
    workers 1 1 "${net}sw" "$b" --ranks 2 --first 1 --served 1 --count 200000 --seconds 3600
    group=("${first[@]}" "${group[@]}")
    at_work 0 1
    ip -n "${net}sw" link set p0 down
    check "the spine's machine is gone: an error of all workers" codes_are 3 3
    check "... and their leaf says whom it has lost" says w0.out "the connection to aggregator $spine is lost"
    stop a "$a_pid" && stop b "$b_pid" && stop spine "$spine_pid"
    no_network
}

between_namespaces()
{
    if ! may_have_namespaces; then
        echo "skipped: no network namespaces with limited links here (needs root, ip and tc)"
        return
    fi
    cut_link
    cut_spine
    network 8 100mbit 400000 || { check "namespaces" false; return; }
    serve s "${net}sw" 10.77.0.1:0
    workers 0 8 "${net}w{I}" "$served_at" --ranks 8 --count 200000 --iterations 2
    check "8 workers on links of 100 Mbit/s: every element" codes_are $zeros
    stop s "$served"
    no_network
    # Short queues: what TCP sends too fast is lost. netem loses at random, and delays.
    network 8 100mbit 70000 || { check "namespaces" false; return; }
    if tc -n "${net}sw" qdisc replace dev p0 root netem loss 1% delay 2ms 2>/dev/null; then
        echo "      worker 0's link loses 1 % of all packets and delays them by 2 ms"
    fi
    serve s "${net}sw" 10.77.0.1:0
    workers 0 8 "${net}w{I}" "$served_at" --ranks 8 --count 200000 --iterations 2
    check "8 workers on links that lose packets: every element" codes_are $zeros
    echo "      $(lost_packets) packets were lost"
    check "... and some were lost" [ "$(lost_packets)" -gt 0 ]
    stop s "$served"
    no_network
}

loopback_sums
keys
deaths
leaves
ipv6
tenants
supervised
unread_log
rdma
between_namespaces
[ "$failures" -eq 0 ] || echo "$failures checks failed"
[ "$failures" -eq 0 ]
