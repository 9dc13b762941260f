#!/bin/bash
# hetcoll_info page: the page is one file, says what explain says, and works in a browser, if there is one.
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

# The page's calls are those of hetcoll_info explain: on six machines, those with trees among them, and by tables that
# tell ops, elements and memory apart.
cat >"$work/rules.json" <<'END'
{"$schema": "hetcoll_tuning.schema.json", "rule_file_version": 3, "module": "hetcoll", "collectives": {"allreduce": [
  {"op": "other", "nodes_max": 1, "memory": "device", "rules": [
    {"msg_size_min": 33, "msg_size_max": 123456789, "alg": "radix3"},
    {"msg_size_min": 123456790, "msg_size_max": "inf", "alg": "ring", "chunk_bytes": 10000}]},
  {"op": "sum", "nodes_max": 1, "element_size_min": 8, "element_size_max": 16, "memory": "device", "rules": [
    {"msg_size_min": 5000, "msg_size_max": 70000, "alg": "recursive_multiplying"},
    {"msg_size_min": 300000, "msg_size_max": "inf", "alg": "radix8"}]},
  {"nodes_min": 2, "memory": "device", "rules": [
    {"msg_size_min": 5000, "msg_size_max": "inf", "alg": "hierarchical", "between_nodes": "radix4"}]},
  {"memory": "mixed", "rules": [{"msg_size_min": 9000, "msg_size_max": "inf", "alg": "radix4"}]}]}}
END
# agrees PAGE OPTION...: every answer of the page, and explain's with these options.
agrees()
{
    python3 "$data/report_check.py" "$@" >"$work/out" 2>&1
    verdict $? "$(tail -n 1 "$work/out") of $(basename "$1"), as hetcoll_info explain answers them"
}
for name in dgx1v-014 dgx1v-01234 dgxa100 dgxh100 pcie8 v100-100gbe; do
    rules=
    case $name in
    dgx1v-01234 | v100-100gbe) rules="--table $work/rules.json" ;;
    dgxh100) rules="--table $results/table_check-a.json" ;; # which its jobs ignore
    esac
    says 0 "wrote $work/$name" --html "$work/$name" --topology "$machines/$name.topology" --nodes 3 $rules
    agrees "$work/$name" "$info" explain --topology "$machines/$name.topology" $rules
done
agrees "$page" "$info" explain $machine
grep -q '"tree, 7 of 64 parts through host memory, chunks of 524288 bytes"' "$work/dgx1v-014"
verdict $? 'a page says which part of a tree call goes through host memory'

# And it works in a browser: typing and pointing, without an error.
browser=
for name in chromium-headless-shell chromium chromium-shell google-chrome; do
    command -v $name >/dev/null && browser=$name && break
done
# answers TOPOLOGY_AND_TABLE...: hetcoll_info's, for report_test.js. Calls: "SIZE on RANKS ranks of NODES nodes".
answers()
{
    while read -r bytes _ ranks _ _ nodes _ more; do
        echo "call $bytes on $ranks ranks of $nodes nodes${more:+ $more}"
        "$info" --explain --bytes "$bytes" --ranks "$ranks" --nodes "$nodes" ${more:+--reproducible} "$@" |
            awk '/^(served by|because)/ { sub(/   */, " "); print }
                /^reproducible/ { exit }
                prices && $2 ~ /^[0-9]/ { print $1, $2 }
                /^algorithm/ { prices = 1 }'
    done
}
# visit PAGE WIDTH[,dark] CALLS OPTION...: what report_test.js sees there; without options, whether calls are answered alone.
visit()
{
    {
        sed 's,<head>,<head><script>window.problems = []; addEventListener("error"\, (e) => problems.push(e.message)); addEventListener("securitypolicyviolation"\, (e) => problems.push(e.blockedURI))</script>,; /<\/body>/,$d' "$1"
        printf '<script>\n{\nconst wanted = `%s`;\n' "$(cat "$3")"
        printf 'const wantedEnd = `%s`;\n' "${*:4}"
        cat "$data/report_test.js"
        printf '}\n</script>\n</body>\n</html>\n'
    } >"$work/visited.html"
    case $2 in *,dark) scheme=0 ;; *) scheme=1 ;; esac
    timeout -k 5 300 $browser --blink-settings=preferredColorScheme=$scheme --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --window-size="${2%,dark}",1200 \
        --user-data-dir="$work/browser" --virtual-time-budget=20000 --dump-dom "file://$work/visited.html" 2>"$work/browser.log" |
        sed -n '/<pre id="said">/,/<\/pre>/ { s/.*<pre id="said">//; s,</pre>.*,,; s/&lt;/</g; s/&gt;/>/g; s/&amp;/\&/g; p }' >"$work/seen"
    cat "$work/seen"
    [ "$(grep -c '^ok ' "$work/seen")" -ge $(($# > 3 ? 26 : 7)) ] || { verdict 1 'the browser has gone through the page'; tail -n 5 "$work/browser.log"; }
    passed=$((passed + $(grep -c '^ok ' "$work/seen")))
    failed=$((failed + $(grep -c '^FAIL' "$work/seen")))
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
    done | answers $machine >"$work/wanted"
    visit "$page" 1200 "$work/wanted" $machine
    for bytes in 8 9000 100000 1M 5000001 64M 700M; do
        echo "$bytes on 3 ranks of 1 nodes"
    done | answers --topology "$machines/dgx1v-014.topology" >"$work/wanted"
    for width in 420 1100,dark 1400 1920,dark; do
        visit "$work/dgx1v-014" $width "$work/wanted"
    done
    : >"$work/wanted" # the widest matrices
    for name in dgxa100 dgxh100; do
        visit "$work/$name" 1200,dark "$work/wanted"
    done
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
