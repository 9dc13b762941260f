#!/bin/bash
# hetcoll_info page: the page is one file, says what --explain says, and works in a browser, if there is one.
set -u
. "$HETCOLL_SRCDIR/tools/info_says.sh"
skipped=0
data=$HETCOLL_SRCDIR/tools
results=$HETCOLL_SRCDIR/bench/results

for rank in 0 1; do
    for i in 1 2 3 4; do
        printf '{"time":%s,"rank":%s,"comm":0,"ranks":2,"call":"allreduce","bytes":%s,"kind":"float32",' \
            "100.$((i * 10 + rank))" $rank $((4096 << i))
        printf '"op":"sum","memory":"device","algorithm":"two_shot","path":"mapped","chunk_bytes":0,"ns":%s}\n' \
            $((200000000 - rank * 10000000))
    done >"$work/job.$rank"
done
page=$work/report.html
machine="--topology $machines/dgx1v.topology --table $results/table_check-a.json --machine dgx1v"
says 0 "wrote $page" --html "$page" $machine --trace "$work/job.0" "$work/job.1" --nodes 2
[ "$(wc -c <"$page")" -le 500000 ]
verdict $? "the page has at most 500 KB: $(wc -c <"$page") bytes"
# It asks no network for anything; the one address is the name of SVG.
! grep -oE '(src|href)=|@import|url\(["'"'"']?[a-z]+:|fetch\(|XMLHttpRequest|https?://[^" ]*' "$page" |
    grep -v '^http://www.w3.org/2000/svg$' | grep .
verdict $? 'and nothing in it is elsewhere'
python3 - "$page" <<'END'
import json, re, sys
page = open(sys.argv[1], encoding="utf-8").read()
data = json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.S).group(1))
assert len(data["machine"]["gpus"]) == 8 and data["machine"]["gpus"][0]["routes"][0] is None
assert data["machine"]["gpus"][0]["routes"][3][0] == "NV2"
assert data["measurements"][0]["machine"] == "dgx1v" and data["measurements"][0]["setups"]
assert data["job"]["calls"] == 8 and data["job"]["gatherings"] == 4
late = data["job"]["late"]
assert late[1]["times"] == 4 and abs(late[1]["cost_s"] - 0.04) < 1e-5, late
END
verdict $? 'the data of the page can be read'
says 0 '<!DOCTYPE html>' --html - --topology "$machines/pcie8.topology:0-3"
printf 'hetcoll topology 1\ngpu </script><b> -\n' >"$work/evil"
says 1 'evil:2' --html "$page.evil" --topology "$work/evil"
says 1 'cannot be written (Is a directory)' --html "$work" $machine
says 1 'cannot be read (Is a directory)' --html "$page.none" --measurements "$work" $machine
says 2 '--measurements is for hetcoll_info page' --measurements "$work/x" --topology "$machines/pcie8.topology"
says 2 '--table is for hetcoll_info explain and page' --topology --table x
CUDA_VISIBLE_DEVICES='' says 0 "wrote $page.none" --html "$page.none"

# What the page answers is what --explain says, and the page works: typing and pointing, without an error.
browser=
for name in chromium-headless-shell chromium chromium-shell google-chrome; do
    command -v $name >/dev/null && browser=$name && break
done
# answers TOPOLOGY_AND_TABLE...: hetcoll_info's, in the words of report_test.js. Calls: "SIZE on RANKS ranks of NODES nodes".
answers()
{
    while read -r bytes _ ranks _ _ nodes _ more; do
        echo "call $bytes on $ranks ranks of $nodes nodes${more:+ $more}"
        "$info" --explain --bytes "$bytes" --ranks "$ranks" --nodes "$nodes" ${more:+--reproducible} "$@" |
            awk '/^served by/ { sub(/^served by  /, ""); print "served " $0 }
                /^because/ { sub(/^because    /, ""); print "because " $0 }
                /^reproducible/ { exit }
                prices && $2 ~ /^[0-9]/ { print $1, $2 }
                /^algorithm/ { prices = 1 }'
    done
}
# visit PAGE CALLS: what report_test.js sees there.
visit()
{
    {
        sed 's,<head>,<head><script>window.problems = []; addEventListener("error"\, (e) => problems.push(e.message)); addEventListener("securitypolicyviolation"\, (e) => problems.push(e.blockedURI))</script>,; /<\/body>/,$d' "$1"
        printf '<script>\n{\nconst wanted = `%s`;\n' "$(cat "$2")"
        printf 'const wantedEnd = `%s`;\n' "$machine"
        cat "$data/report_test.js"
        printf '}\n</script>\n</body>\n</html>\n'
    } >"$work/visited.html"
    timeout -k 5 300 $browser --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --window-size=1200,900 \
        --user-data-dir="$work/browser" --virtual-time-budget=20000 --dump-dom "file://$work/visited.html" 2>"$work/browser.log" |
        sed -n '/<pre id="said">/,/<\/pre>/ { s/.*<pre id="said">//; s,</pre>.*,,; s/&lt;/</g; s/&gt;/>/g; s/&amp;/\&/g; p }'
}
if [ -z "$browser" ]; then
    echo "SKIP  the page in a browser: install Debian's chromium-headless-shell"
    skipped=1
else
    for ranks in 2 4 8 16; do
        nodes=$((ranks == 16 ? 2 : 1))
        for bytes in 8 1000 4K 8K 8193 12000 16K 16385 100000 462289 1M 5000001 64M 700M; do
            echo "$bytes on $ranks ranks of $nodes nodes"
        done
        echo "4M on $ranks ranks of $nodes nodes reproducible"
        echo "1K on $ranks ranks of $nodes nodes reproducible"
    done >"$work/calls"
    answers $machine <"$work/calls" >"$work/wanted"
    visit "$page" "$work/calls" >"$work/seen"
    sed '/^checks$/,$d' "$work/seen" | diff "$work/wanted" - >"$work/out"
    verdict $? "$(wc -l <"$work/calls") calls typed into the page are answered as hetcoll_info explain does"
    sed '1,/^checks$/d' "$work/seen"
    [ "$(grep -c '^ok ' "$work/seen")" -ge 15 ] || { verdict 1 'the browser has gone through the page'; tail -n 5 "$work/browser.log"; }
    passed=$((passed + $(grep -c '^ok ' "$work/seen")))
    failed=$((failed + $(grep -c '^FAIL' "$work/seen")))
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
