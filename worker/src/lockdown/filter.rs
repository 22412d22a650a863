//! From the table to seccomp programs. Owns: which lists make which filter. Never: a rule
//! of its own, an action other than allow and kill.
//!
//! The kernel runs every filter that was ever loaded and takes the strictest answer. So a
//! forking nursery loads [`base`] once (the worker's rows with their rules, and its own),
//! and each worker adds [`small`]: the worker's numbers alone. Both together allow exactly
//! what [`whole`] does; the tests prove it call by call.

use std::collections::BTreeMap;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
    sock_filter,
};

use super::table::{Compare, Condition, IMAGE, Machine, NURSERY, Row, Rule, WORKER, Width};

/// The whole worker table in one program: for a worker that inherits no base.
///
/// # Errors
/// [`BackendError`] when the table can not be compiled.
pub fn whole(machine: Machine) -> Result<BpfProgram, BackendError> {
    compile(WORKER.iter(), machine, Keep::Rules)
}

/// A forking nursery's filter: its own calls and the worker's, each with its rule.
///
/// # Errors
/// [`BackendError`] when the table can not be compiled.
pub fn base(machine: Machine) -> Result<BpfProgram, BackendError> {
    compile(WORKER.iter().chain(NURSERY), machine, Keep::Rules)
}

/// The filter of a nursery that execs: numbers only, since the start of an image uses some
/// of the worker's calls in other ways. Its workers load [`whole`] themselves.
///
/// # Errors
/// [`BackendError`] when the table can not be compiled.
pub fn base_for_images(machine: Machine) -> Result<BpfProgram, BackendError> {
    compile(WORKER.iter().chain(NURSERY).chain(IMAGE), machine, Keep::Numbers)
}

/// The rest of N0's life once the nursery runs in its namespaces: it waits.
///
/// # Errors
/// [`BackendError`] when the table can not be compiled.
pub fn waiter(machine: Machine) -> Result<BpfProgram, BackendError> {
    let rows = WORKER.iter().chain(NURSERY).filter(|row| matches!(row.name, "wait4" | "exit_group" | "restart_syscall"));
    compile(rows, machine, Keep::Numbers)
}

/// Takes everything away from a forked child that is not in the worker's list.
///
/// Written out by hand, one jump a call: seccompiler spends five instructions on each, and
/// this one is loaded for every worker. It compares whole numbers, so an x32 number (bit 30
/// set) is never equal to any and dies.
#[must_use]
pub fn small(machine: Machine) -> BpfProgram {
    small_of(WORKER.iter(), machine)
}

pub(super) fn small_of<'a>(rows: impl Iterator<Item = &'a Row>, machine: Machine) -> BpfProgram {
    const LOAD_WORD: u16 = 0x20;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    let op = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    let kill = op(RETURN, 0, 0, libc::SECCOMP_RET_KILL_PROCESS);
    let numbers: Vec<u32> = rows.filter_map(|row| row.number(machine)).collect();
    let mut program = vec![op(LOAD_WORD, 0, 0, 4), op(JUMP_IF_EQUAL, 1, 0, audit_machine(machine)), kill.clone(), op(LOAD_WORD, 0, 0, 0)];
    for (place, number) in numbers.iter().enumerate() {
        let to_allow = u8::try_from(numbers.len() - place).unwrap_or(u8::MAX);
        program.push(op(JUMP_IF_EQUAL, to_allow, 0, *number));
    }
    program.push(kill);
    program.push(op(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW));
    program
}

/// The kernel's name for a machine in `seccomp_data.arch`.
pub(super) fn audit_machine(machine: Machine) -> u32 {
    match machine {
        Machine::X86_64 => 0xc000_003e,
        Machine::Aarch64 => 0xc000_00b7,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    Rules,
    Numbers,
}

pub(super) fn compile<'a>(rows: impl Iterator<Item = &'a Row>, machine: Machine, keep: Keep) -> Result<BpfProgram, BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for row in rows {
        let Some(number) = row.number(machine) else {
            continue;
        };
        let chain = match keep {
            Keep::Rules => chain(&row.rule)?,
            Keep::Numbers => Vec::new(),
        };
        rules.insert(i64::from(number), chain);
    }
    let machine = match machine {
        Machine::X86_64 => TargetArch::x86_64,
        Machine::Aarch64 => TargetArch::aarch64,
    };
    SeccompFilter::new(rules, SeccompAction::KillProcess, SeccompAction::Allow, machine)?.try_into()
}

fn chain(rule: &Rule) -> Result<Vec<SeccompRule>, BackendError> {
    match rule {
        Rule::Any => Ok(Vec::new()),
        Rule::AnyOf(lists) => {
            lists.iter().map(|list| SeccompRule::new(list.iter().map(condition).collect::<Result<Vec<_>, BackendError>>()?)).collect()
        }
    }
}

fn condition(condition: &Condition) -> Result<SeccompCondition, BackendError> {
    let width = match condition.width {
        Width::Int => SeccompCmpArgLen::Dword,
        Width::Long => SeccompCmpArgLen::Qword,
    };
    let (compare, value) = match condition.compare {
        Compare::Is(value) => (SeccompCmpOp::Eq, value),
        Compare::AtMost(most) => (SeccompCmpOp::Le, most),
        Compare::Bits(mask, value) => (SeccompCmpOp::MaskedEq(mask), value),
    };
    SeccompCondition::new(condition.arg, width, compare, value)
}

#[cfg(test)]
mod tests;
