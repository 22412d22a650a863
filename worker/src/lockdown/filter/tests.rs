//! The compiled programs are run here by a small interpreter and held against the table.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

use super::super::table::{IMAGE, NURSERY, Row, WORKER};
use super::*;

const MACHINES: [Machine; 2] = [Machine::X86_64, Machine::Aarch64];
const X32: u32 = 0x4000_0000;
const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
const KILL: u32 = libc::SECCOMP_RET_KILL_PROCESS;

struct Call {
    number: u32,
    machine: u32,
    args: [u64; 6],
}

impl Call {
    /// A 32-bit word of the kernel's `seccomp_data`, by its byte offset.
    fn word(&self, offset: u32) -> u32 {
        let half = |value: u64, high: bool| {
            let [a, b, c, d, e, f, g, h] = value.to_le_bytes();
            u32::from_le_bytes(if high { [e, f, g, h] } else { [a, b, c, d] })
        };
        match offset {
            0 => self.number,
            4 => self.machine,
            8 | 12 => 0,
            16..=60 if offset.is_multiple_of(4) => half(self.args[(offset as usize - 16) / 8], !offset.is_multiple_of(8)),
            _ => panic!("a load from {offset}"),
        }
    }
}

/// Classic BPF, the instructions that filters use, and a panic for any other.
fn run(program: &[sock_filter], call: &Call) -> u32 {
    let mut accumulator = 0u32;
    let mut at = 0usize;
    loop {
        let op = &program[at];
        at += 1;
        let jump = |holds: bool| usize::from(if holds { op.jt } else { op.jf });
        match op.code {
            0x20 => accumulator = call.word(op.k),
            0x54 => accumulator &= op.k,
            0x05 => at += op.k as usize,
            0x15 => at += jump(accumulator == op.k),
            0x25 => at += jump(accumulator > op.k),
            0x35 => at += jump(accumulator >= op.k),
            0x06 => return op.k,
            other => panic!("instruction {other:#x}"),
        }
    }
}

/// The kernel takes the strictest answer; of ours that is kill.
fn strictest(programs: &[&[sock_filter]], call: &Call) -> u32 {
    if programs.iter().all(|program| run(program, call) == ALLOW) { ALLOW } else { KILL }
}

fn expected(rows: &[Row], machine: Machine, number: u32, args: &[u64; 6]) -> u32 {
    let allowed = rows.iter().any(|row| row.number(machine) == Some(number) && row.rule.allows(args));
    if allowed { ALLOW } else { KILL }
}

/// Values around every edge that a rule names, in both halves of an argument.
fn corners(rows: &[Row]) -> Vec<u64> {
    let mut values = vec![0, 1, 2, 3, 4, 5, 7, 8, 9, u64::MAX, 1 << 31, 1 << 32, 1 << 63];
    for row in rows {
        let Rule::AnyOf(lists) = row.rule else {
            continue;
        };
        for condition in lists.iter().copied().flatten() {
            let value = match condition.compare {
                Compare::Is(value) | Compare::AtMost(value) => value,
                Compare::Bits(mask, value) => value | !mask,
            };
            values.extend([value, value.wrapping_add(1), value.wrapping_sub(1), value | 1 << 32, value | 1 << 63]);
            values.extend((0..64).map(|bit| value ^ (1 << bit)));
        }
    }
    values.sort_unstable();
    values.dedup();
    values
}

/// Argument lists: for the arguments that a row's rule names every corner, and for every
/// pair of named arguments every pair of corners.
fn argument_lists(rows: &[Row], number: u32, machine: Machine) -> Vec<[u64; 6]> {
    let row = rows.iter().find(|row| row.number(machine) == Some(number));
    let mut named: Vec<usize> = match row.map(|row| row.rule) {
        Some(Rule::AnyOf(lists)) => lists.iter().copied().flatten().map(|condition| usize::from(condition.arg)).collect(),
        _ => Vec::new(),
    };
    named.sort_unstable();
    named.dedup();
    let values = corners(row.map(std::slice::from_ref).unwrap_or_default());
    let mut lists = vec![[0; 6], [3; 6], [u64::MAX; 6], [1 << 32 | 3; 6]];
    for &first in &named {
        for &second in &named {
            for &one in &values {
                for &other in &values {
                    let mut args = [0; 6];
                    args[first] = one;
                    args[second] = other;
                    lists.push(args);
                }
            }
        }
    }
    lists.sort_unstable();
    lists.dedup();
    lists
}

fn numbers() -> impl Iterator<Item = u32> {
    (0..600).chain((0..600).map(|number| number | X32)).chain([u32::MAX, 0x8000_0000, 1 << 29])
}

fn assert_equal_to_table(programs: &[&[sock_filter]], rows: &[Row], machine: Machine) {
    for number in numbers() {
        for args in argument_lists(rows, number, machine) {
            let call = Call { number, machine: audit_machine(machine), args };
            assert_eq!(strictest(programs, &call), expected(rows, machine, number, &args), "{machine:?} call {number:#x} {args:x?}");
        }
    }
}

#[test]
fn the_whole_filter_is_the_table() {
    for machine in MACHINES {
        assert_equal_to_table(&[&whole(machine).unwrap()], WORKER, machine);
    }
}

#[test]
fn base_and_small_together_are_the_table() {
    for machine in MACHINES {
        let (base, small) = (base(machine).unwrap(), small(machine));
        assert_equal_to_table(&[&base, &small], WORKER, machine);
    }
}

#[test]
fn base_alone_is_the_nurserys_and_the_workers_table() {
    let rows: Vec<Row> = WORKER.iter().chain(NURSERY).copied().collect();
    for machine in MACHINES {
        assert_equal_to_table(&[&base(machine).unwrap()], &rows, machine);
    }
}

#[test]
fn an_images_base_and_the_whole_filter_together_are_the_table() {
    for machine in MACHINES {
        let (base, whole) = (base_for_images(machine).unwrap(), whole(machine).unwrap());
        assert_equal_to_table(&[&base, &whole], WORKER, machine);
    }
}

#[test]
fn another_machines_numbers_are_killed_whatever_they_are() {
    for machine in MACHINES {
        let programs =
            [whole(machine).unwrap(), base(machine).unwrap(), base_for_images(machine).unwrap(), small(machine), waiter(machine).unwrap()];
        // 32-bit x86 (int 0x80), the other machine, nonsense.
        let others = MACHINES.iter().filter(|other| **other != machine);
        for foreign in others.map(|other| audit_machine(*other)).chain([0x4000_0003, 0]) {
            for number in 0..600 {
                let call = Call { number, machine: foreign, args: [3; 6] };
                for program in &programs {
                    assert_eq!(run(program, &call), KILL);
                }
            }
        }
    }
}

#[test]
fn a_row_left_out_changes_the_verdict_of_the_whole_filter_and_of_the_pair() {
    for machine in MACHINES {
        for left_out in WORKER {
            let Some(number) = left_out.number(machine) else {
                continue;
            };
            let rest = || WORKER.iter().filter(|row| *row != left_out);
            let call = Call { number, machine: audit_machine(machine), args: allowed_arguments(left_out) };
            let whole_of_rest = compile(rest(), machine, Keep::Rules).unwrap();
            assert_eq!(run(&whole(machine).unwrap(), &call), ALLOW, "{}", left_out.name);
            assert_eq!(run(&whole_of_rest, &call), KILL, "{}", left_out.name);
            assert_eq!(run(&small_of(rest(), machine), &call), KILL, "{}", left_out.name);
        }
    }
}

#[test]
fn a_condition_left_out_would_let_a_call_through_that_the_table_kills() {
    for row in WORKER.iter().chain(NURSERY) {
        let Rule::AnyOf(lists) = row.rule else {
            continue;
        };
        for condition in lists.iter().copied().flatten() {
            let good = allowed_arguments(row);
            let changed = corners(std::slice::from_ref(row)).into_iter().any(|value| {
                let mut args = good;
                args[usize::from(condition.arg)] = value;
                !row.rule.allows(&args)
            });
            assert!(changed, "{} argument {}", row.name, condition.arg);
        }
    }
}

/// Arguments with which the row's rule lets the call through.
fn allowed_arguments(row: &Row) -> [u64; 6] {
    let mut args = [0; 6];
    if let Rule::AnyOf(lists) = row.rule {
        for condition in lists[0] {
            args[usize::from(condition.arg)] = match condition.compare {
                Compare::Is(value) | Compare::AtMost(value) | Compare::Bits(_, value) => value,
            };
        }
    }
    assert!(row.rule.allows(&args), "{}", row.name);
    args
}

#[test]
fn no_row_is_listed_twice_or_without_a_reason() {
    let rows: Vec<&Row> = WORKER.iter().chain(NURSERY).chain(IMAGE).collect();
    for machine in MACHINES {
        let mut numbers: Vec<u32> = rows.iter().filter_map(|row| row.number(machine)).collect();
        numbers.sort_unstable();
        let all = numbers.len();
        numbers.dedup();
        assert_eq!(numbers.len(), all, "{machine:?}");
    }
    for row in rows {
        assert!(row.why.len() > 8 && !row.test.is_empty(), "{}", row.name);
    }
}

#[test]
fn each_row_names_a_test_that_exists() {
    let sources = [include_str!("tests.rs"), include_str!("../../../tests/attack.rs"), include_str!("../../../tests/nursery.rs")];
    for row in WORKER.iter().chain(NURSERY).chain(IMAGE) {
        let definition = format!("fn {}(", row.test);
        assert!(sources.iter().any(|source| source.contains(&definition)), "{}: no test `{}`", row.name, row.test);
    }
}

#[test]
fn the_small_filter_has_one_instruction_a_call() {
    for machine in MACHINES {
        let calls = WORKER.iter().filter(|row| row.number(machine).is_some()).count();
        assert_eq!(small(machine).len(), calls + 6);
    }
}

#[test]
fn numbers_are_the_kernels_own_on_this_machine() {
    let names: &[(&str, libc::c_long)] = &[
        ("read", libc::SYS_read),
        ("write", libc::SYS_write),
        ("mmap", libc::SYS_mmap),
        ("mprotect", libc::SYS_mprotect),
        ("munmap", libc::SYS_munmap),
        ("brk", libc::SYS_brk),
        ("mremap", libc::SYS_mremap),
        ("madvise", libc::SYS_madvise),
        ("futex", libc::SYS_futex),
        ("clock_gettime", libc::SYS_clock_gettime),
        ("gettimeofday", libc::SYS_gettimeofday),
        #[cfg(target_arch = "x86_64")]
        ("poll", libc::SYS_poll),
        ("ppoll", libc::SYS_ppoll),
        ("restart_syscall", libc::SYS_restart_syscall),
        ("rt_sigreturn", libc::SYS_rt_sigreturn),
        ("exit_group", libc::SYS_exit_group),
        ("recvmsg", libc::SYS_recvmsg),
        ("sendmsg", libc::SYS_sendmsg),
        ("socketpair", libc::SYS_socketpair),
        ("clone", libc::SYS_clone),
        ("wait4", libc::SYS_wait4),
        ("pidfd_open", libc::SYS_pidfd_open),
        ("kill", libc::SYS_kill),
        ("close", libc::SYS_close),
        ("close_range", libc::SYS_close_range),
        ("dup3", libc::SYS_dup3),
        ("fcntl", libc::SYS_fcntl),
        ("prctl", libc::SYS_prctl),
        ("getppid", libc::SYS_getppid),
        ("getpid", libc::SYS_getpid),
        ("gettid", libc::SYS_gettid),
        ("set_robust_list", libc::SYS_set_robust_list),
        ("rseq", libc::SYS_rseq),
        ("rt_sigaction", libc::SYS_rt_sigaction),
        ("rt_sigprocmask", libc::SYS_rt_sigprocmask),
        ("setgroups", libc::SYS_setgroups),
        ("setresgid", libc::SYS_setresgid),
        ("setresuid", libc::SYS_setresuid),
        ("capget", libc::SYS_capget),
        ("capset", libc::SYS_capset),
        ("landlock_create_ruleset", libc::SYS_landlock_create_ruleset),
        ("landlock_restrict_self", libc::SYS_landlock_restrict_self),
        ("timer_create", libc::SYS_timer_create),
        ("timer_settime", libc::SYS_timer_settime),
        ("prlimit64", libc::SYS_prlimit64),
        ("getrandom", libc::SYS_getrandom),
        ("seccomp", libc::SYS_seccomp),
        ("execveat", libc::SYS_execveat),
        ("pipe2", libc::SYS_pipe2),
        #[cfg(target_arch = "x86_64")]
        ("arch_prctl", libc::SYS_arch_prctl),
        ("set_tid_address", libc::SYS_set_tid_address),
        ("readlinkat", libc::SYS_readlinkat),
        #[cfg(target_arch = "x86_64")]
        ("readlink", libc::SYS_readlink),
        ("openat", libc::SYS_openat),
        ("fstat", libc::SYS_fstat),
        ("newfstatat", libc::SYS_newfstatat),
        ("sched_getaffinity", libc::SYS_sched_getaffinity),
        ("sigaltstack", libc::SYS_sigaltstack),
        ("getuid", libc::SYS_getuid),
        ("getgid", libc::SYS_getgid),
        ("uname", libc::SYS_uname),
    ];
    let rows: Vec<&Row> = WORKER.iter().chain(NURSERY).chain(IMAGE).filter(|row| row.number(Machine::NATIVE).is_some()).collect();
    assert_eq!(rows.len(), names.len());
    for row in rows {
        let (_, number) = names.iter().find(|(name, _)| *name == row.name).unwrap();
        assert_eq!(row.number(Machine::NATIVE).map(i64::from), Some(*number), "{}", row.name);
    }
}
