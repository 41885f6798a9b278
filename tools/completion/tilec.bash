# Completion of tilec for bash.
_tilec()
{
    local typed=${COMP_WORDS[COMP_CWORD]} words=() i line
    # bash parts words at = and :, tilec does not
    for ((i = 1; i <= COMP_CWORD; i++)); do
        if ((i > 1)) && [[ ${COMP_WORDS[i]} == [=:]* || ${COMP_WORDS[i - 1]} == *[=:] ]]; then
            words[${#words[@]} - 1]+=${COMP_WORDS[i]}
        else
            words+=("${COMP_WORDS[i]}")
        fi
    done
    [[ $typed == [=:] ]] && typed=
    local whole=${words[${#words[@]} - 1]}
    local before=${whole%"$typed"} IFS=$'\n'
    while read -r line; do
        line=${line%%$'\t'*}
        case $line in
            :files) COMPREPLY+=($(compgen -f -- "$typed")) ;;
            :folders) COMPREPLY+=($(compgen -d -- "$typed")) ;;
            :tile) COMPREPLY+=($(compgen -f -X '!*.tile' -- "$typed") $(compgen -d -- "$typed")) ;;
            *) COMPREPLY+=("${line#"$before"}") ;;
        esac
    done < <("${COMP_WORDS[0]}" completion words "${words[@]}" 2>/dev/null)
    if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[=:[\(,] ]]; then
        compopt -o nospace 2>/dev/null
    fi
}
complete -o filenames -F _tilec tilec
