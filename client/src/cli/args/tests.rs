//! Arguments are read, and refused with what would be right.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]
use super::*;
use clap::CommandFactory;

fn program(arguments: &[&str]) -> ProgramArgs {
    let all = ["brig", "eval", "1"].iter().chain(arguments);
    match Cli::try_parse_from(all).unwrap().command {
        Command::Eval(eval) => eval.options,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_definition_of_the_arguments_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn a_program_may_begin_with_a_hyphen() {
    let cli = Cli::try_parse_from(["brig", "eval", "-1+2"]).unwrap();
    assert!(matches!(cli.command, Command::Eval(EvalArgs { program, .. }) if program == "-1+2"));
}

#[test]
fn times_need_a_unit() {
    assert_eq!(time("500ms"), Ok(Duration::from_millis(500)));
    assert_eq!(time("1.5s"), Ok(Duration::from_millis(1500)));
    assert_eq!(time("2m"), Ok(Duration::from_secs(120)));
    for wrong in ["5", "", "s", "-1s", "0s", "1e3s", "nans", "infs", "999999999999999999999h"] {
        assert!(time(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn limits_are_read_by_their_names_and_units() {
    let asked = program(&["--limit", "heapBytes=16MiB", "--limit", "cpuMs=2s", "--limit", "hostCalls=3", "-l", "hostCalls=5"]);
    let limits = requested_limits(&asked.limit);
    assert_eq!((limits.heap_bytes, limits.cpu_ms, limits.host_calls), (Some(16 << 20), Some(2000), Some(5)));
}

#[test]
fn a_wrong_limit_is_told_with_what_would_be_right() {
    let told = |text: &str| limit(text).unwrap_err();
    assert!(told("heap=1").contains("heapBytes"));
    assert!(told("heapBytes").contains("NAME=VALUE"));
    assert!(told("heapBytes=lots").contains("MiB"));
    assert!(told("heapBytes=1").contains("at least"));
    assert!(told("hostCalls=2s").contains("whole number"));
}

#[test]
fn a_pattern_that_can_match_nothing_is_refused() {
    assert!(Cli::try_parse_from(["brig", "eval", "1", "--allow", "orders"]).is_err());
    assert_eq!(program(&["--allow", "orders.*"]).allow, ["orders.*"]);
}

#[test]
fn an_unknown_option_is_refused() {
    assert!(Cli::try_parse_from(["brig", "eval", "1", "--surprise"]).is_err());
}
