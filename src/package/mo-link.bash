# bash completion for mo-link. Options are read from --help, which is made from the one
# table of options, so none is forgotten here.
_mo_link()
{
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} i help
    COMPREPLY=()
    # Behind -- and -run stands a command.
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        -- | -run | --run)
            if declare -F _command_offset >/dev/null; then
                _command_offset $((i + 1))
            else
                COMPREPLY=($(compgen -c -- "$cur"))
            fi
            return ;;
        esac
    done
    # "=" breaks words; what follows it is a value.
    if [[ $cur == = || $prev == = ]]; then
        local option=$prev
        [[ $cur == = ]] && cur= || option=${COMP_WORDS[COMP_CWORD - 2]}
        case $option in
        -R | --report) COMPREPLY=($(compgen -W 'text json html json: html:' -- "$cur")) ;;
        --dump) COMPREPLY=($(compgen -W \
            'object code rows tokens repeats candidates plan' -- "$cur")) ;;
        *) COMPREPLY=($(compgen -f -- "$cur")) ;;
        esac
        return
    fi
    if [[ $cur == -* ]]; then
        help=$("${COMP_WORDS[0]}" --help 2>/dev/null |
            sed -n 's/^  \(-[a-zA-Z], \)\{0,1\}\(--[a-z-]*=\{0,1\}\).*/\2/p')
        COMPREPLY=($(compgen -W "$help -o -R -j -v -h -run --" -- "$cur"))
        [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
        return
    fi
    COMPREPLY=($(compgen -f -- "$cur"))
    compopt -o filenames 2>/dev/null
}
complete -F _mo_link mo-link
