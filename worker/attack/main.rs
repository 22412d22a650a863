//! brig-attack: a nursery whose workers attack their own lock-down, for tests.
//!
//! ```text
//! brig-attack nursery | worker              what brig-worker is, with attacks as the guest
//! brig-attack without CALL,CALL nursery     the same on a host that refuses these calls
//! brig-attack run [--exec] [--no-namespaces] [--uids BASE:COUNT] ATTACK
//! ```
//!
//! `ATTACK` is `numbers`, `x32`, `int80`, `rules` or a name of `cases::NAMED`. Each try gets
//! a fresh worker; one JSON line a try says what was tried, what the table says, and how the
//! worker ended. It is built for tests only (feature `attack`) and is in no package.

mod cases;
mod native;
mod supervisor;

use std::collections::BTreeMap;
use std::io::Write;

use brig_protocol::control::{Configure, Origin, WaitStatus, exit};
use brig_worker::lockdown::raw::exit_now;
use brig_worker::lockdown::table::{Machine, WORKER};
use brig_worker::nursery::{self, Program, WorkerFacts};
use cases::{Fate, NAMED, RuleCase, Try, named, rule_cases};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use serde_json::{Value, json};
use supervisor::{Nursery, Outcome, configuration};

/// Beyond the kernel's last call on every machine, with room for new ones.
const NUMBERS: u32 = 600;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let program =
        Program { warm: |_: &Configure| (), own: |(), _: &WorkerFacts| (), run: |(), _, facts: &WorkerFacts| native::perform(facts) };
    match arguments.next().as_deref() {
        Some("nursery") => {
            silence();
            nursery::main(program)
        }
        Some("worker") => {
            silence();
            nursery::image_main(program)
        }
        Some("without") => match refuse(&arguments.next().unwrap_or_default()) {
            Ok(()) if arguments.next().as_deref() == Some("nursery") => {
                silence();
                nursery::main(program)
            }
            _ => std::process::exit(exit::USAGE.into()),
        },
        Some("run") => match run(&arguments.collect::<Vec<_>>()) {
            Ok(()) => {}
            Err(error) => {
                let line = json!({"error": error.to_string()});
                drop(writeln!(std::io::stdout(), "{line}"));
                std::process::exit(1);
            }
        },
        _ => std::process::exit(exit::USAGE.into()),
    }
}

/// As in brig-worker: a panic has its own code and says nothing.
fn silence() {
    std::panic::set_hook(Box::new(|_| exit_now(exit::PANIC)));
}

/// From here on the kernel answers EPERM to these calls, as a container or a unit would.
fn refuse(calls: &str) -> Outcome<()> {
    let mut rules = BTreeMap::new();
    for call in calls.split(',') {
        let number = match call {
            "unshare" => libc::SYS_unshare,
            "landlock" => libc::SYS_landlock_create_ruleset,
            "seccomp" => libc::SYS_seccomp,
            "timer" => libc::SYS_timer_create,
            other => return Err(format!("no call `{other}`").into()),
        };
        rules.insert(number, Vec::new());
    }
    let machine = std::env::consts::ARCH.try_into()?;
    let refused = SeccompAction::Errno(1);
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refused, machine)?;
    seccompiler::apply_filter(&BpfProgram::try_from(filter)?)?;
    Ok(())
}

fn run(arguments: &[String]) -> Outcome<()> {
    let mut config = configuration(Origin::Fork, true);
    let mut attack = None;
    for argument in arguments {
        match argument.as_str() {
            "--exec" => config.origin = Origin::Exec,
            "--no-namespaces" => config.namespaces = false,
            other => match other.strip_prefix("--uids=").map(|r| r.split_once(':')) {
                Some(Some((base, count))) => {
                    (config.uid_base, config.uid_count) = (base.parse()?, count.parse()?);
                }
                Some(None) => return Err("--uids=BASE:COUNT".into()),
                None => attack = Some(other),
            },
        }
    }
    let tries = tries(attack.ok_or("which attack?")?)?;
    let (mut nursery, _) = Nursery::ready(&std::env::current_exe()?, None, config)?;
    let rules = rule_cases();
    for attempt in tries {
        let worker = nursery.spawn(0, attempt.encode(), cpu_ms(attempt))?;
        drive(attempt, &worker)?;
        let exited = nursery.exited()?;
        let fate = match exited.status {
            WaitStatus::Code(code) => json!({"code": code}),
            WaitStatus::Signal(signal) => json!({"signal": signal}),
        };
        let mut line = describe(attempt, &rules);
        if let Some(line) = line.as_object_mut() {
            line.insert("fate".into(), fate);
            line.insert("pid".into(), worker.pid.into());
        }
        writeln!(std::io::stdout(), "{line}")?;
    }
    match nursery.close()?.code() {
        Some(0) => Ok(()),
        other => Err(format!("the nursery ended with {other:?}").into()),
    }
}

fn tries(attack: &str) -> Outcome<Vec<Try>> {
    let numbers = 0..NUMBERS;
    Ok(match attack {
        "numbers" => numbers.map(Try::Number).collect(),
        "x32" => numbers.map(Try::X32).collect(),
        "int80" => numbers.map(Try::Int80).collect(),
        "rules" => (0..u32::try_from(rule_cases().len())?).map(Try::Rule).collect(),
        name => vec![named(name).ok_or_else(|| format!("no attack `{name}`"))?],
    })
}

/// The ceiling of the configuration, and little for an attack that uses all it gets.
fn cpu_ms(attempt: Try) -> u32 {
    match attempt {
        Try::Named(place) => match NAMED.get(place as usize).map(|named| named.name) {
            Some("spin" | "spin_in_calls") => 100,
            _ => 0,
        },
        _ => 0,
    }
}

/// The supervisor's part of an attack that has one.
fn drive(attempt: Try, worker: &supervisor::Worker) -> Outcome<()> {
    let Try::Named(place) = attempt else {
        return Ok(());
    };
    match NAMED.get(place as usize).map(|named| named.name) {
        Some("echo") => {
            rustix::io::write(&worker.socket, b"x")?;
            expect_byte(worker, b'x')
        }
        Some("wait") => {
            expect_byte(worker, b'w')?;
            stop_and_go(worker)
        }
        _ => Ok(()),
    }
}

fn expect_byte(worker: &supervisor::Worker, wanted: u8) -> Outcome<()> {
    let mut byte = [0];
    supervisor::wait_readable(std::os::fd::AsFd::as_fd(&worker.socket))?;
    match rustix::io::read(&worker.socket, &mut byte)? {
        1 if byte == [wanted] => Ok(()),
        _ => Err("the worker said something else".into()),
    }
}

/// Stops and continues the worker again and again until it ends.
fn stop_and_go(worker: &supervisor::Worker) -> Outcome<()> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::process::{Signal, pidfd_send_signal};
    let moment = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
    loop {
        let mut entry = [PollFd::new(&worker.handle, PollFlags::IN)];
        if poll(&mut entry, Some(&moment))? > 0 {
            return Ok(());
        }
        for signal in [Signal::STOP, Signal::CONT] {
            // It may have ended since.
            match pidfd_send_signal(&worker.handle, signal) {
                Ok(()) | Err(rustix::io::Errno::SRCH) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

fn describe(attempt: Try, rules: &[RuleCase]) -> Value {
    let by_table = |number| {
        let row = WORKER.iter().find(|row| row.number(Machine::NATIVE) == Some(number));
        row.is_some_and(|row| row.rule.allows(&[0; 6]))
    };
    match attempt {
        Try::Number(number) => {
            json!({"attack": "number", "number": number, "allowed": by_table(number)})
        }
        Try::X32(number) => json!({"attack": "x32", "number": number, "allowed": false}),
        Try::Int80(number) => json!({"attack": "int80", "number": number, "allowed": false}),
        Try::Rule(place) => match rules.get(place as usize) {
            Some(case) => json!({
                "attack": "rule", "call": case.name, "number": case.number,
                "args": case.args, "allowed": case.allowed,
            }),
            None => Value::Null,
        },
        Try::Named(place) => match NAMED.get(place as usize) {
            Some(named) => json!({
                "attack": named.name,
                "wanted": match named.fate {
                    Fate::Signal(signal) => json!({"signal": signal}),
                    Fate::Code(code) => json!({"code": code}),
                },
            }),
            None => Value::Null,
        },
    }
}
