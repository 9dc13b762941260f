# Completion of hetcoll's programs in bash, from what their --help says: subcommands, their options, and the words that an
# option's line lists in braces. All else is names of files; topologies are those that hetcoll brings, too.
_hetcoll()
{
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} help words=
    local -a asked=(--help)
    if [[ $COMP_CWORD -gt 1 && ${COMP_WORDS[1]} != -* ]]; then
        asked=("${COMP_WORDS[1]}" --help)
    elif [[ $1 == *hetcoll_info ]]; then
        asked=(--help-all)
    fi
    # The shell splits --option=value at the sign.
    if [[ $word == = ]]; then
        word=
    elif [[ $before == = ]]; then
        before=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    help=$("$1" "${asked[@]}" 2>/dev/null) || return
    help=$(awk 'substr($0, 1, 26) !~ /[^ ]/ { sub(/^ +/, " "); line = line $0; next } { print line; line = $0 } END { print line }' <<<"$help")
    if [[ $word == -* ]]; then
        words=$(sed -n 's/^  \(-[^ ]*\).*/\1/p' <<<"$help" | tr ',' ' ')
    else
        words=$(sed -n "s/^  \(-[a-z],\)*$before [^{]*{\([^}]*\)}.*/\2/p" <<<"$help" | tr ',' ' ')
        if [[ -z $words && $before =~ ^(--topology|--simulate|topology)$ ]]; then
            local program=$1 folder
            [[ $program == */* ]] || program=$(type -P "$program")
            folder=${program%/*}/../share/hetcoll/topology
            words=$(cd "$folder" 2>/dev/null && for file in *.topology *.cluster; do echo "${file%.*}"; done)
        elif [[ $COMP_CWORD -eq 1 ]]; then
            words=$(sed -n '/^Subcommands:/,/^$/s/^  \([a-z]*\) .*/\1/p' <<<"$help")
        fi
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word" | awk '!seen[$0]++')
}
complete -o bashdefault -o default -F _hetcoll hetcoll_aggregator hetcoll_bench hetcoll_info hetcoll_place hetcoll_sim hetcoll_tune
