#!/bin/bash
# The subcommands of hetcoll_info: each prints what its older form prints, in which it is an option, and has a help of one
# screen; options that belong elsewhere.
set -u
. "$HETCOLL_SRCDIR/tools/info_says.sh"

dgx1v=$machines/dgx1v.topology
export EMU_NODE="info$$" EMU_LINKS="$machines/dgx1v-014.topology"
for rank in 0 1; do
    printf '{"time":100.%d,"rank":%d,"comm":0,"ranks":2,"call":"allreduce","bytes":4096,"kind":"float32","op":"sum",' $rank $rank
    printf '"memory":"device","algorithm":"two_shot","path":"mapped","chunk_bytes":0,"ns":%d}\n' $((2000 - rank))
done >"$work/job.0"
cp "$work/job.0" "$work/job.1"

# prints FILE ARGUMENT...: FILE gets all that it prints, without the time that prices took, and its exit status.
prints()
{
    "$info" "${@:2}" >"$work/printed" 2>&1 </dev/null
    echo "status $?" >>"$work/printed"
    sed 's/priced     in [0-9.]* ms/priced/' "$work/printed" >"$1"
}

compared=
while IFS='|' read -r older newer; do
    eval "older=($older) newer=($newer)"
    prints "$work/older" "${older[@]}"
    prints "$work/newer" "${newer[@]}"
    diff "$work/older" "$work/newer" >"$work/out" && [ "$(wc -l <"$work/newer")" -gt 1 ]
    verdict $? "hetcoll_info ${newer[*]}, and ${older[*]}"
    compared="$compared ${newer[0]}"
done <<'END'
--topology|topology
--topology "$dgx1v"|topology "$dgx1v"
--topology="$dgx1v:0,3"|topology "$dgx1v:0,3"
--svg --topology "$dgx1v"|topology --svg "$dgx1v"
--topology --write|topology --write
--json --topology "$dgx1v"|topology "$dgx1v" --json
--topology "$dgx1v" --json - --measure|topology "$dgx1v" --json - --measure
--topology "$work/none"|topology "$work/none"
--fingerprint|fingerprint
--topology "$dgx1v" --fingerprint --json|fingerprint --topology "$dgx1v" --json
--explain --bytes 4M --ranks 8|explain --bytes 4M --ranks 8
--bytes 4M --topology --explain --ranks 3|explain --bytes 4M --ranks 3 --topology
--explain --bytes 64M,8 --ranks 16 --nodes 2 --topology "$dgx1v" --json|explain --bytes 64M,8 --ranks 16 --nodes 2 --topology "$dgx1v" --json
--explain --bytes 4M --ranks 3 --collective bcast|explain --bytes 4M --ranks 3 --collective bcast
--explain --ranks 3|explain --ranks 3
--model --ranks 8 --intra 100 --latency 5|model --ranks 8 --intra 100 --latency 5
--schedule ring --ranks 3 --rank 1|schedule ring --ranks 3 --rank 1
--ranks 3 --topology "$machines/dgx1v-014.topology" --schedule tree|schedule tree --ranks 3 --topology "$machines/dgx1v-014.topology"
--schedule rings --ranks 3|schedule rings --ranks 3
--trace "$work/job.0" "$work/job.1"|trace "$work/job.0" "$work/job.1"
--trace "$work/job.0" --json --trace "$work/job.1"|trace "$work/job.0" "$work/job.1" --json
--perfetto - --trace "$work/job.0"|trace "$work/job.0" --perfetto -
--live $$ --json|live $$ --json
--live me|live me
--doctor locked_memory,table|doctor locked_memory,table
--json --doctor gpus --component "$work"|doctor gpus --component "$work" --json
--doctor everything|doctor everything
--html - --topology "$dgx1v:0-3" --nodes 2 --trace "$work/job.0"|page - --topology "$dgx1v:0-3" --nodes 2 --trace "$work/job.0"
--html "$work/page" --topology|page "$work/page" --topology
END

# One screen.
"$info" --help >"$work/out"
[ "$(wc -l <"$work/out")" -le 24 ] && [ "$(wc -L <"$work/out")" -le 100 ]
verdict $? 'hetcoll_info --help fits'
subcommands=$(sed -n '/^Subcommands:/,/^$/s/^  \([a-z]\+\) .*/\1/p' "$work/out")
"$info" --help-all >"$work/all"
for subcommand in $subcommands; do
    "$info" "$subcommand" --help >"$work/out" && [ "$(wc -l <"$work/out")" -le 24 ] && [ "$(wc -L <"$work/out")" -le 100 ]
    verdict $? "hetcoll_info $subcommand --help fits"
    [[ $(<"$work/all") == *"$(<"$work/out")"* && " $compared " == *" $subcommand "* ]]
    verdict $? "and is part of --help-all, and what it prints was compared"
done

# The other programs: no line wider than a terminal, and no name that the parser invents for a value.
for program in hetcoll_aggregator hetcoll_bench hetcoll_place hetcoll_sim hetcoll_tune; do
    [ -x "$HETCOLL_BUILDDIR/$program" ] || continue
    "$HETCOLL_BUILDDIR/$program" --help >"$work/out" && [ "$(wc -L <"$work/out")" -le 100 ] &&
        ! grep -qE '[ =](TEXT|UINT|INT|FLOAT)\b' "$work/out"
    verdict $? "$program --help fits"
done

# The lists that the shell completes from.
says 0 '--collective bcast reduce ' explain --completion
says 0 'subcommand explain' --completion
says 0 '--perfetto ' --completion
complete_line()
{
    # shellcheck disable=SC2016
    bash -c '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _hetcoll "$1"; echo "${COMPREPLY[@]}"' \
        bash "$HETCOLL_SRCDIR/share/hetcoll_completion.bash" "$info" "$@" 2>&1
}
[ "$(complete_line --sv)" = --svg ] && [ "$(complete_line --collective bc)" = bcast ] && [ "$(complete_line --op '')" = 'sum other' ] &&
    [ "$(complete_line expl)" = explain ] && [ "$(complete_line topology --ra)" = '' ] &&
    [ "$(complete_line schedule --ra)" = '--rank --ranks --ranks-per-node --ranks-per-gpu --rack-nodes --rack-gbps' ]
verdict $? 'the shell completes subcommands, options and the words that they take'

says 2 "'dgx1v' is no subcommand: write one of topology, " dgx1v
says 2 '--bytes is for hetcoll_info explain, schedule and model, not for doctor; hetcoll_info doctor --help' doctor --bytes 4M
says 2 '--rank is for hetcoll_info schedule, not for explain' explain --ranks 4 --rank=1
says 2 '--svg is for hetcoll_info topology; hetcoll_info --help' --svg
says 2 'not expected: --bogus; hetcoll_info topology --help' topology --bogus
says 2 'not expected: more; hetcoll_info topology --help' topology "$dgx1v" more
says 2 'ALGORITHM is required' schedule --ranks 4
says 2 '--schedule and --explain are two things to show' --schedule ring --explain --ranks 4
says 2 '--machine requires --table' page "$work/page" --machine box
says 2 'would overwrite' trace "$work/job.0" --perfetto "$work/job.0"
says 2 'would overwrite' page "$work/job.0" --trace "$work/job.0"

sum_up
