#!/bin/bash
# strangers.sh [BUILD_DIR] [SECONDS [CROWD_SECONDS]]: eight workers reduce, and others join, while people
# without the key send to the aggregator all that they can think of: random, cut, changed and recorded bytes
# for that time; then, for as long or CROWD_SECONDS, 2,000 connections that say nothing and three that
# offer 400 MiB each, with ulimit -n 256. make check runs it for some seconds. Writes a results file to
# stdout.
set -u
builddir=$(cd "${1:-${HETCOLL_BUILDDIR:-.}}" && pwd) || exit 1
here=$(cd "$(dirname "$0")/../.." && pwd)
seconds=${2:-4}
crowd_seconds=${3:-$seconds}
commit=$(git -C "$here" rev-parse --short=12 HEAD 2>/dev/null)$(
    [ -z "$(git -C "$here" status --porcelain 2>/dev/null)" ] || echo ', changed')
. "$here/test/aggregator/net.sh"
command -v python3 >/dev/null || { echo "skipped: no python3, which plays the strangers" >&2; exit 77; }
begin
strangers=$here/test/aggregator/strangers.py
worker_seconds=$(((seconds + crowd_seconds) * 3 + 120))
bad=0
rss() { sed -n 's/VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$1/status"; }
open_files() { find "/proc/$1/fd" -mindepth 1 2>/dev/null | wc -l; }
fail() { echo "FAIL  $*" >&2; bad=$((bad + 1)); }

# listens PID: sockets on which the process listens.
listens()
{
    local inodes
    inodes=$(find "/proc/$1/fd" -lname 'socket:*' -printf '%l\n' 2>/dev/null | tr -dc '0-9\n')
    awk '$4 == "0A" { print $10 }' "/proc/$1/net/tcp" "/proc/$1/net/tcp6" 2>/dev/null |
        grep -cxF "${inodes:-none}"
}

# reduce SECONDS JOB: eight workers that check every element.
reduce()
{
    local rank
    group=()
    for rank in $(seq 0 7); do
        worker "w$rank" - --aggregator "$at" --key "$work/key" --rank "$rank" --ranks 8 --count 20000 \
            --job "$2" --seconds "$1" --join-seconds 60
        group+=("$started")
    done
}

# watch PID SECONDS: its most memory and descriptors meanwhile, in $most_rss and $most_files. Others join.
watch()
{
    local end=$((SECONDS + $2)) now job=100
    most_rss=0 most_files=0
    while [ $SECONDS -lt $end ]; do
        now=$(rss "$1") && [ "${now:-0}" -gt $most_rss ] && most_rss=$now
        now=$(open_files "$1") && [ "$now" -gt $most_files ] && most_files=$now
        job=$((job + 1))
        worker x - --aggregator "$at" --key "$work/key" --rank 0 --ranks 1 --job $job
        wait "$started" && joined=$((joined + 1)) || { late=$((late + 1)); cat "$work/x.out" >&2; }
        sleep 0.3
    done
}

# ends_well WHAT: the workers have ended, and every element was right.
ends_well()
{
    local pid
    for pid in "${group[@]}"; do
        wait "$pid" || fail "$1: a worker ended with $?: $(cat "$work"/w*.out)"
    done
    kill -0 "$server" || fail "$1: the aggregator has ended"
    reductions=$(field "$work/w0.out" iterations)
}

# Records the bytes that a worker sends, for the stranger to send again.
serve s - 127.0.0.1:0 && server=$served at=$served_at
python3 "$strangers" record "${at#*:}" "$work/recorded" >"$work/record.out" &
pids+=($!)
until grep -qs listening "$work/record.out"; do sleep 0.1; done
worker r - --aggregator "127.0.0.1:$(sed -n 's/listening at //p' "$work/record.out")" --key "$work/key" --rank 0 --ranks 1 --count 5000
wait "$started" || fail "a worker does not get through the recorder: $(cat "$work/r.out")"

joined=0 late=0
reduce "$((seconds + 2))" 1
until grep -qs "is at work" "$work/w0.err"; do sleep 0.1; done
for pid in "${group[@]}"; do # of timeout: the worker is its child
    child=$(cat "/proc/$pid/task/$pid/children")
    [ "$(listens "${child%% *}")" = 0 ] || fail "a rank listens somewhere"
done
[ "$(listens "$server")" = 1 ] || fail "the aggregator listens at $(listens "$server") places"
rss_before=$(rss "$server")
python3 "$strangers" send "${at#*:}" "$seconds" "$work/recorded" >"$work/send.out" &
stranger=$!
watch "$server" "$seconds"
send_rss=$most_rss send_files=$most_files
wait "$stranger" || fail "the stranger has failed"
ends_well "bytes without the key"
send_reductions=$reductions
kill "$server" && wait "$server" || fail "the aggregator did not end well"
said_by_sending=$(wc -l <"$work/s.err")
wrong_by_sending="$(field "$work/s.out" wrong_key), $(field "$work/s.out" no_key)"
malformed=$(field "$work/s.out" malformed)

# The same with few descriptors, and crowds.
ulimit -S -n 256
serve s - 127.0.0.1:0 && server=$served at=$served_at
reduce "$((crowd_seconds + 2))" 2
python3 "$strangers" idle "${at#*:}" "$crowd_seconds" 2000 >"$work/idle.out" &
idle=$!
python3 "$strangers" much "${at#*:}" "$crowd_seconds" $((400 << 20)) >"$work/much.out" &
much=$!
watch "$server" "$crowd_seconds"
wait "$idle" && wait "$much" || fail "the strangers have failed"
ends_well "idle connections and large ones"
crowd_reductions=$reductions
kill "$server" && wait "$server" || fail "the aggregator did not end well"

[ "$most_files" -le 256 ] || fail "$most_files descriptors"
[ "$late" -eq 0 ] || fail "$late ranks that came meanwhile did not join"
[ "$malformed" = 0 ] || fail "$malformed messages got through"
[ "$(wc -l <"$work/s.err")" -le $((crowd_seconds / 60 * 20 + 22)) ] || fail "too much was said"
[ "$((send_rss > most_rss ? send_rss : most_rss))" -le $((rss_before + 65536)) ] || fail "memory: $rss_before KiB, then $send_rss and $most_rss"
cat <<END
# date          $(date -u '+%F %T UTC')
# machine       $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores
# commit        $commit
# made by: test/aggregator/strangers.sh BUILD $seconds $crowd_seconds
failures                                   $bad
ports of the aggregator, of a rank         1, 0
memory of the aggregator before (KiB)      $rss_before
ranks that joined meanwhile, did not       $joined, $late

random, cut, changed, recorded bytes for   $seconds s
  what was sent, connections               $(cat "$work/send.out")
  not let in: another key, something else  $wrong_by_sending
  messages that got through                $malformed
  reductions of 20,000 integers, 8 ranks   $send_reductions, every element right
  aggregator's memory (KiB), descriptors   $send_rss, $send_files at most
  lines of its log                         $said_by_sending

idle and large ones, ulimit -n 256, for    $crowd_seconds s
  idle                                     $(cat "$work/idle.out")
  three that offer 400 MiB                 $(cat "$work/much.out")
  crowded out, silent too long             $(field "$work/s.out" crowded_out), $(field "$work/s.out" late)
  without a descriptor                     $(field "$work/s.out" no_descriptors)
  reductions of 20,000 integers, 8 ranks   $crowd_reductions, every element right
  aggregator's memory (KiB), descriptors   $most_rss, $most_files at most
  lines of its log                         $(wc -l <"$work/s.err")
END
[ "$bad" -eq 0 ]
