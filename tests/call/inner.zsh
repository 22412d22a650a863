# Read by the inner zsh of capture.zsh: what completion would offer goes to the file BRIG_OFFERED.
autoload -Uz compinit && compinit -u -d $BRIG_OFFERED.dump
zstyle ':completion:*' list-grouped false
zstyle ':completion:*' insert-tab false
bindkey '^M' undefined-key
bindkey '^J' undefined-key
compadd() {
    # Only asked whether something would match, or for a list: not offered.
    if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then
        builtin compadd "$@"
        return $?
    fi
    local -a offered
    builtin compadd -A offered "$@"
    (( $#offered )) && print -rl -- $offered >> $BRIG_OFFERED
    builtin compadd "$@"
}
offer() {
    unset 'compstate[vared]'
    _main_complete "$@"
    print -n -- '<<'over'>>'
}
zle -C offer complete-word offer
bindkey '^I' offer
print -- '<<'ready'>>'
