//! What the end of a program means.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

use super::*;
use crate::host::redact::Planted;
use std::process::ExitStatus;

const LABEL: Label<'_> = Label { function: "shop.f", evaluation: "ev_1", call: 1 };

fn command(output: Output) -> Command {
    Command {
        program: "/usr/bin/true".into(),
        arguments: Arguments::default(),
        environment: Vec::new(),
        credentials: Vec::new(),
        user: None,
        folder: "/".into(),
        umask: 0o077,
        limits: Limits { cpu_seconds: None, memory_bytes: None, open_files: None, file_bytes: None, processes: None },
        input: Input::Json,
        output,
        failure_codes: vec![3],
    }
}

fn ended(output: Output, wait_status: i32, text: &[u8]) -> CallAnswer {
    let redactor = Redactor::new(&[Planted { name: "token", text: b"hunter2-hunter2" }]).unwrap();
    let finished = Finished::of(Some(ExitStatus::from_raw(wait_status)), text, false);
    command(output).answer(finished, LABEL, (&redactor, &|| true)).unwrap()
}

fn exited(code: i32, text: &str) -> CallAnswer {
    ended(Output::Json, code << 8, text.as_bytes())
}

#[test]
fn an_exit_code_of_0_gives_what_was_written() {
    let value = |answer| match answer {
        CallAnswer::Output(raw) => raw.get().to_owned(),
        other => panic!("{other:?}"),
    };
    assert_eq!(value(exited(0, " {\"a\": 12345678901234567890}\n")), "{\"a\": 12345678901234567890}");
    assert_eq!(value(ended(Output::Text, 0, "line \"1\"\nü\n".as_bytes())), "\"line \\\"1\\\"\\nü\"");
    assert_eq!(value(ended(Output::None, 0, b"\xff noise")), "null");
    assert_eq!(value(exited(0, "{\"t\":\"hunter2-hunter2\"}")), "{\"t\":\"[redacted:token]\"}");
    assert_eq!(value(ended(Output::Text, 0, b"a hunter2-hunter2 b")), "\"a [redacted:token] b\"");
}

#[test]
fn an_output_that_is_none_is_spoilt_and_not_shown() {
    for (output, text) in [
        (Output::Json, "".as_bytes()),
        (Output::Json, b"{\"secret\":"),
        (Output::Json, b"1 2"),
        (Output::Json, b"nope"),
        (Output::Text, b"\xff"),
    ] {
        match ended(output, 0, text) {
            CallAnswer::Spoilt { code: CallCode::InvalidOutput, fault, .. } => {
                assert!(!fault.contains("secret") && !fault.contains("nope"), "{fault}");
            }
            other => panic!("{other:?}"),
        }
    }
    let finished = Finished::of(Some(ExitStatus::from_raw(0)), b"[]", true);
    let answer = command(Output::Json).answer(finished, LABEL, (&Redactor::default(), &|| true)).unwrap();
    assert!(matches!(answer, CallAnswer::Spoilt { code: CallCode::OutputTooLarge, .. }));
}

#[test]
fn a_program_can_say_why_it_failed() {
    let said = r#"{"error":{"name":"NotFound","message":"no order; token hunter2-hunter2","code":"no_order","data":{"id":7}}}"#;
    match exited(1, said) {
        CallAnswer::Failed { message, data } => {
            assert_eq!(message, "no order; token [redacted:token]");
            assert_eq!(data.unwrap().get(), r#"{"name":"NotFound","code":"no_order","data":{"id":7}}"#);
        }
        other => panic!("{other:?}"),
    }
    for code in [64, 69, 75, 78, 3] {
        assert!(matches!(exited(code, ""), CallAnswer::Failed { message, .. } if message.contains(&code.to_string())), "{code}");
    }
    let mut never = Finished::of(Some(ExitStatus::from_raw(70 << 8)), b"", false);
    never.not_started = true;
    let answer = command(Output::Json).answer(never, LABEL, (&Redactor::default(), &|| true)).unwrap();
    assert!(matches!(answer, CallAnswer::Failed { message, .. } if message.contains("could not be started")));
}

#[test]
fn an_end_that_says_nothing_is_no_answer() {
    for code in [1, 2, 63, 79, 101, 127, 255] {
        assert!(matches!(exited(code, "Traceback"), CallAnswer::Crashed(_)), "{code}");
        assert!(matches!(exited(code, "{\"error\":\"no\"}"), CallAnswer::Crashed(_)), "{code}");
    }
    for signal in nix::sys::signal::Signal::iterator() {
        assert!(matches!(ended(Output::Json, signal as i32, b"{}"), CallAnswer::Crashed(fault) if fault.contains(signal.as_str())));
    }
    let unseen = Finished::of(None, b"{}", false);
    assert!(matches!(command(Output::Json).answer(unseen, LABEL, (&Redactor::default(), &|| true)).unwrap(), CallAnswer::Crashed(_)));
}

#[test]
fn an_output_that_nobody_awaits_is_nobodys() {
    let redactor = Redactor::new(&[Planted { name: "token", text: b"hunter2-hunter2" }]).unwrap();
    for (output, status) in [(Output::Json, 0), (Output::Text, 0), (Output::Json, 1 << 8)] {
        let finished = Finished::of(Some(ExitStatus::from_raw(status)), b"\"%68unter2-hunter2\"", false);
        let answer = command(output).answer(finished, LABEL, (&redactor, &|| false));
        assert!(answer.is_err(), "{answer:?}");
    }
}
