# What zsh offers after a line: capture.zsh FOLDER-OF-_brig LINE. An interactive zsh at a
# terminal of its own is given the line and a tab; what it adds as matches is printed.
emulate -L zsh
zmodload zsh/zpty || exit 1
zpty inner "zsh -f -i"
zpty -w inner "PROMPT= RPROMPT= PS2=; unsetopt zle_bracketed_paste; fpath=(${(q)1} \$fpath)"
zpty -w inner ". ${(q)0:A:h}/inner.zsh"
# What the terminal shows until then is of no interest.
zpty -r inner line $'*<<ready>>*' || exit 1
zpty -w -n inner "$2"$'\t'
zpty -r inner line $'*<<over>>*' || exit 1
zpty -d inner
