//! `brig completions`: scripts for shells, from the definitions that `--help` prints.
//!
//! Owns what is added to them: names and flags of configured functions are asked for when
//! they are needed ([`super::call::suggest`]). Never puts anything into a script that is
//! not known when it is made.

use super::args::Cli;
use super::exit::Exit;
use super::shell_args::{CompletionsArgs, ShellArg};
use super::{Fault, terminal};
use clap::CommandFactory;
use clap_complete::{Shell, generate};

/// At the beginning of bash's function. A candidate is a plain word, which `__complete`
/// sees to; read does nothing to it.
const BASH: &str = r#"
    local brig_name=${1##*/}
    local -a brig_words=("${COMP_WORDS[@]:1:COMP_CWORD}")
    case $brig_name in
        brig-*) brig_words=(call "${brig_name#brig-}" "${brig_words[@]}") ;;
    esac
    if [[ ${#brig_words[@]} -gt 1 && ( ${brig_words[0]} == call || ${brig_words[0]} == functions ) ]]; then
        local brig_found
        COMPREPLY=()
        while IFS= read -r brig_found; do
            COMPREPLY+=("$brig_found")
        done < <(command brig __complete -- "${brig_words[@]}" 2>/dev/null)
        return 0
    fi
"#;

/// At the end, for the links that are there when the script is read.
const BASH_LINKS: &str = r#"
while IFS= read -r brig_link; do
    complete -F _brig -o bashdefault -o default -- "$brig_link"
done < <(compgen -c brig- | sort -u)
unset brig_link
"#;

/// The same for zsh.
const ZSH: &str = r#"
    local -a brig_words brig_found
    brig_words=("${(@)words[2,CURRENT]}")
    if [[ ${service:t} == brig-* ]]; then
        brig_words=(call "${${service:t}#brig-}" "${brig_words[@]}")
    fi
    if (( ${#brig_words} > 1 )) && [[ ${brig_words[1]} == (call|functions) ]]; then
        brig_found=("${(@f)$(command brig __complete -- "${brig_words[@]}" 2>/dev/null)}")
        compadd -- "${(@)brig_found:#}"
        return 0
    fi
"#;

/// After the script of fish: the same, also for the links that are there when it is read.
const FISH: &str = r#"
function __fish_brig_functions
    set -l brig_words (commandline -opc)
    set -l brig_name (string replace -r '.*/' '' -- $brig_words[1])
    set -e brig_words[1]
    if string match -q 'brig-*' -- $brig_name
        set brig_words call (string sub -s 6 -- $brig_name) $brig_words
    end
    set -a brig_words (commandline -ct)
    command brig __complete -- $brig_words 2>/dev/null
end

complete -c brig -n "__fish_brig_using_subcommand call functions" -f -a "(__fish_brig_functions)"
for brig_link in (string replace -r '.*/' '' -- $PATH/brig-*)
    complete -c $brig_link -f -a "(__fish_brig_functions)"
end
"#;

/// Prints the script of a shell.
pub(crate) fn completions(args: CompletionsArgs) -> Result<Exit, Fault> {
    terminal::out(&script(args.shell)?);
    Ok(Exit::Succeeded)
}

fn script(shell: ShellArg) -> Result<String, Fault> {
    match shell {
        ShellArg::Fish => Ok(generated(Shell::Fish)? + FISH),
        ShellArg::Bash => Ok(within("bash", &generated(Shell::Bash)?, "_brig() {\n", BASH)? + BASH_LINKS),
        ShellArg::Zsh => {
            let script = within("zsh", &generated(Shell::Zsh)?, "_brig() {\n", ZSH)?;
            let script = within("zsh", &script, "#compdef brig", " -P brig-*")?;
            within("zsh", &script, "compdef _brig brig", " -P 'brig-*'")
        }
    }
}

fn generated(shell: Shell) -> Result<String, Fault> {
    let mut script = Vec::new();
    generate(shell, &mut Cli::command(), "brig", &mut script);
    String::from_utf8(script).map_err(|fault| Fault::usage(format!("the completions are not UTF-8: {fault}")))
}

/// The script with something after its first `place`.
fn within(shell: &str, script: &str, place: &str, more: &str) -> Result<String, Fault> {
    match script.split_once(place) {
        Some((before, after)) => Ok(format!("{before}{place}{more}{after}")),
        None => Err(Fault::usage(format!("the completions of {shell} are not as brig knows them: they lack {place:?}"))),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn every_shell_has_a_script_that_knows_the_commands() {
        for shell in [ShellArg::Bash, ShellArg::Zsh, ShellArg::Fish] {
            let script = script(shell).unwrap();
            assert!(script.contains("idempotency-key") && script.contains("evaluations"), "{shell:?}");
        }
        assert!(!generated(Shell::Fish).unwrap().contains("__complete"), "a hidden command is listed");
        assert!(script(ShellArg::Zsh).unwrap().starts_with("#compdef brig -P brig-*\n"));
    }
}
