#!/bin/bash
# soak.sh [BUILD_DIR] [SECONDS]: eight workers reduce for ten minutes over links that lose packets, as root,
# while other jobs come, go and die at the same aggregator. Not a part of make check. Writes a results file
# to stdout.
set -u
builddir=$(cd "${1:-.}" && pwd) || exit 1
here=$(cd "$(dirname "$0")/../.." && pwd)
seconds=${2:-600}
. "$here/test/aggregator/net.sh"
begin
may_have_namespaces || { echo "soak.sh: no network namespaces with limited links here" >&2; exit 1; }
worker_seconds=$((seconds + 120))
rss() { sed -n 's/VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$1/status"; }

network 8 20mbit 70000 || exit 1
serve s "${net}sw" 10.77.0.1:0 --window 6 || exit 1
server=$served at=$served_at
group=()
for rank in $(seq 0 7); do
    worker "w$rank" "${net}w$rank" --aggregator "$at" --key "$work/key" --rank "$rank" --ranks 8 --count 100003 \
        --message-bytes 32768 --window 6 --seconds "$seconds"
    group+=("$started")
done
soak=("${group[@]}")

# Meanwhile: jobs of three that end, of three of which one dies, and strangers with a wrong key.
(umask 077 && echo 'another key, as long' >"$work/other")
start=$SECONDS jobs=0 ended=0 died=0 wrong=0 rss_first=0 rss_most=0
while [ $((SECONDS - start)) -lt $((seconds - 15)) ]; do
    jobs=$((jobs + 1))
    dying=$([ $((jobs % 2)) -eq 0 ] && echo "--die-in 1")
    group=()
    for rank in 0 1 2; do
        # shellcheck disable=SC2086
        worker "j$rank" "${net}w$rank" --aggregator "$at" --key "$work/key" --rank "$rank" --ranks 3 --job $((100 + jobs)) \
            --count 50000 --iterations 4 --silence-seconds 20 $([ "$rank" = 2 ] && echo $dying)
        group+=("$started")
    done
    codes=
    for pid in "${group[@]}"; do
        wait "$pid"
        codes="$codes$?"
    done
    case $codes in
    000) ended=$((ended + 1)) ;;
    339) died=$((died + 1)) ;;
    *) wrong=$((wrong + 1)); cat "$work"/j*.out >&2 ;;
    esac
    worker x "${net}w0" --aggregator "$at" --key "$work/other" --rank 0 --ranks 1
    wait "$started"
    now=$(rss "$server")
    [ "$rss_first" -ne 0 ] || rss_first=$now
    [ "$now" -le "$rss_most" ] || rss_most=$now
    sleep 3
done
bad=0
for pid in "${soak[@]}"; do
    wait "$pid" || bad=$((bad + 1))
done
lost=$(lost_packets)
kill "$server"
wait "$server"
ended_well=$?
cat <<END
# date          $(date -u '+%F %T UTC')
# machine       $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores
# commit        $(git -C "$here" rev-parse --short=12 HEAD 2>/dev/null)
# links         20 Mbit/s each way for every worker (tbf), queues of 70,000 bytes
# made by: test/aggregator/soak.sh BUILD $seconds
seconds                                   $seconds
workers that failed or had a wrong element $bad of 8
reductions of 100,003 integers            $(field "$work/w0.out" iterations)
messages of a worker                      $(field "$work/w0.out" messages_out)
most in flight, window 6                  $(field "$work/w0.out" most_in_flight)
packets lost                              $lost
other jobs that ended well                $ended
other jobs whose worker died, told        $died
other jobs with another end               $wrong
joins with a wrong key, refused           $(field "$work/s.out" wrong_key)
malformed messages                        $(field "$work/s.out" malformed)
aggregator's memory (KiB), first and most $rss_first $rss_most
aggregator's exit code                    $ended_well
END
cat "$work"/w*.err >&2
[ "$bad" -eq 0 ] && [ "$wrong" -eq 0 ] && [ "$ended_well" -eq 0 ]
