//! What is tried, as data: every number, every argument rule with its neighbours, and named
//! attacks. Owns: the coding of one try in a worker's generation. Never: tries anything.

use brig_worker::lockdown::table::{Compare, Condition, Machine, Row, Rule, WORKER, Width};

/// One try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Try {
    /// A call by its number, with zeros.
    Number(u32),
    /// The same, with the x32 bit.
    X32(u32),
    /// A 32-bit call by `int 0x80`.
    Int80(u32),
    /// A place in [`rule_cases`].
    Rule(u32),
    /// A place in [`NAMED`].
    Named(u32),
}

impl Try {
    /// As a generation of the control link.
    pub(crate) fn encode(self) -> u64 {
        let (kind, number) = match self {
            Self::Number(number) => (0, number),
            Self::X32(number) => (1, number),
            Self::Int80(number) => (2, number),
            Self::Rule(place) => (3, place),
            Self::Named(place) => (4, place),
        };
        u64::from(number) | kind << 32
    }

    /// Back from a generation.
    pub(crate) fn decode(code: u64) -> Option<Self> {
        let number = u32::try_from(code & 0xffff_ffff).ok()?;
        Some(match code >> 32 {
            0 => Self::Number(number),
            1 => Self::X32(number),
            2 => Self::Int80(number),
            3 => Self::Rule(number),
            4 => Self::Named(number),
            _ => return None,
        })
    }
}

/// A call with arguments, and what the table says about it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RuleCase {
    pub name: &'static str,
    pub number: u32,
    pub args: [u64; 6],
    pub allowed: bool,
}

/// For each rule: arguments that it allows, and each condition's nearest neighbours.
pub(crate) fn rule_cases() -> Vec<RuleCase> {
    WORKER.iter().flat_map(cases_of).collect()
}

fn cases_of(row: &'static Row) -> Vec<RuleCase> {
    let (Some(number), Rule::AnyOf(lists)) = (row.number(Machine::NATIVE), row.rule) else {
        return Vec::new();
    };
    let mut cases = Vec::new();
    let mut add = |args: [u64; 6]| {
        cases.push(RuleCase { name: row.name, number, args, allowed: row.rule.allows(&args) });
    };
    for list in lists {
        let mut good = [0; 6];
        for condition in *list {
            put(&mut good, condition, fitting(condition));
        }
        add(good);
        for condition in *list {
            for value in neighbours(condition) {
                let mut args = good;
                put(&mut args, condition, value);
                add(args);
            }
        }
    }
    cases
}

fn put(args: &mut [u64; 6], condition: &Condition, value: u64) {
    if let Some(place) = args.get_mut(usize::from(condition.arg)) {
        *place = value;
    }
}

fn fitting(condition: &Condition) -> u64 {
    match condition.compare {
        Compare::Is(value) | Compare::AtMost(value) | Compare::Bits(_, value) => value,
    }
}

/// One more, one less, and each single bit changed that the rule looks at; and where the
/// kernel ignores the upper half, a value that differs there only.
fn neighbours(condition: &Condition) -> Vec<u64> {
    let value = fitting(condition);
    let mut values = vec![value.wrapping_add(1), value.wrapping_sub(1)];
    if condition.width == Width::Int {
        values.push(value | 1 << 32);
    }
    let looked_at = match (condition.compare, condition.width) {
        (Compare::Bits(mask, _), _) => mask,
        (_, Width::Int) => 0xffff_ffff,
        (_, Width::Long) => u64::MAX,
    };
    let bits = (0..64).map(|bit| 1u64 << bit);
    values.extend(bits.filter(|bit| looked_at & bit != 0).map(|bit| value ^ bit));
    values
}

/// How a named attack has to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// By this signal.
    Signal(i32),
    /// By itself, with this code.
    Code(u8),
}

/// A named attack, or a harmless act that must work.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Named {
    pub name: &'static str,
    pub fate: Fate,
}

/// The exit code of a try that came through.
pub(crate) const SURVIVED: u8 = 42;

/// The exit code of a try that the kernel answered with an error, as it should.
pub(crate) const REFUSED: u8 = 43;

const fn dies(name: &'static str, signal: i32) -> Named {
    Named { name, fate: Fate::Signal(signal) }
}

const fn ends(name: &'static str, code: u8) -> Named {
    Named { name, fate: Fate::Code(code) }
}

/// Everything that has a name; `native` does them.
pub(crate) const NAMED: &[Named] = &[
    dies("ptrace", libc::SIGSYS),
    dies("fork", libc::SIGSYS),
    dies("thread", libc::SIGSYS),
    dies("execve", libc::SIGSYS),
    dies("execveat", libc::SIGSYS),
    dies("open", libc::SIGSYS),
    dies("socket", libc::SIGSYS),
    dies("kill_parent", libc::SIGSYS),
    dies("io_uring", libc::SIGSYS),
    dies("seccomp", libc::SIGSYS),
    dies("close_socket", libc::SIGSYS),
    dies("send_descriptor", libc::SIGSYS),
    dies("map_write_execute", libc::SIGSYS),
    dies("protect_execute", libc::SIGSYS),
    dies("map_file", libc::SIGSYS),
    dies("map_fixed", libc::SIGSYS),
    dies("read_other_descriptor", libc::SIGSYS),
    dies("write_other_descriptor", libc::SIGSYS),
    dies("poll_many", libc::SIGSYS),
    dies("clock_of_other", libc::SIGSYS),
    dies("spin", libc::SIGKILL),
    dies("spin_in_calls", libc::SIGKILL),
    dies("stack", libc::SIGSEGV),
    dies("null", libc::SIGSEGV),
    dies("abort", libc::SIGSYS),
    ends("memory_mapped", REFUSED),
    ends("memory_broken", REFUSED),
    ends("panic", brig_protocol::control::exit::PANIC),
    ends("finish", brig_protocol::control::exit::FINISHED),
    ends("heap_limit", brig_protocol::control::exit::HEAP_LIMIT),
    ends("use_memory", SURVIVED),
    ends("read_clocks", SURVIVED),
    ends("echo", SURVIVED),
    ends("wait", SURVIVED),
    ends("hold", SURVIVED),
    ends("seed", SURVIVED),
    ends("layers", SURVIVED),
];

/// The place of a named attack.
pub(crate) fn named(name: &str) -> Option<Try> {
    let place = NAMED.iter().position(|named| named.name == name)?;
    u32::try_from(place).ok().map(Try::Named)
}
