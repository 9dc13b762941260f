# Completion of hetcoll's programs in bash, from what their --completion prints: subcommands, options, and the words that an
# option takes. All else is names of files; topologies are those that hetcoll brings, too.
_hetcoll()
{
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} known words=
    local -a asked=(--completion)
    if [[ $COMP_CWORD -gt 1 && ${COMP_WORDS[1]} != -* ]]; then
        asked=("${COMP_WORDS[1]}" --completion)
    fi
    # The shell splits --option=value at the sign.
    if [[ $word == = ]]; then
        word=
    elif [[ $before == = ]]; then
        before=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    known=$("$1" "${asked[@]}" 2>/dev/null) || return
    if [[ $word == -* ]]; then
        words=$(sed -n 's/^\(-[^ ]*\).*/\1/p' <<<"$known")
    else
        words=$(awk -v option="$before" '$1 == option { $1 = ""; print }' <<<"$known")
        if [[ -z ${words// /} && $before =~ ^(--topology|--simulate|topology)$ ]]; then
            local program=$1 folder
            [[ $program == */* ]] || program=$(type -P "$program")
            folder=${program%/*}/../share/hetcoll/topology
            words=$(cd "$folder" 2>/dev/null && for file in *.topology *.cluster; do echo "${file%.*}"; done)
        elif [[ $COMP_CWORD -eq 1 ]]; then
            words=$(sed -n 's/^subcommand //p' <<<"$known")
        fi
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word" | awk '!seen[$0]++')
}
complete -o bashdefault -o default -F _hetcoll hetcoll_aggregator hetcoll_bench hetcoll_info hetcoll_place hetcoll_sim hetcoll_tune
