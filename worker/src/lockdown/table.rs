//! The system calls, as data: each row has the call's number on both machines, the rule for
//! its arguments, why it is there, and the test that fails without it.
//! Owns: the three lists. Never: a default "allow", a row without a reason.
//!
//! - [`WORKER`]: what a worker may do once it is sealed. This is the wall.
//! - [`NURSERY`]: what a nursery that forks needs beside it, the steps of a forked child up
//!   to its own filter included.
//! - [`IMAGE`]: what a freshly exec'd worker image needs beside both, up to the same point.

/// How many bits of an argument the kernel looks at, and so a rule compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// The kernel takes an `int`: upper bits are ignored by it and by the rule.
    Int,
    /// All 64 bits.
    Long,
}

/// One comparison of one argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compare {
    /// Equal to this.
    Is(u64),
    /// Not greater than this, unsigned.
    AtMost(u64),
    /// Equal to `.1` in the bits of `.0`.
    Bits(u64, u64),
}

/// A comparison of a numbered argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Condition {
    /// Argument 0 to 5.
    pub arg: u8,
    /// Bits that count.
    pub width: Width,
    /// What must hold.
    pub compare: Compare,
}

impl Condition {
    /// Whether it holds: the reference that the compiled filters are tested against.
    #[must_use]
    pub fn holds(&self, args: &[u64; 6]) -> bool {
        let raw = args.get(usize::from(self.arg)).copied().unwrap_or(u64::MAX);
        let value = match self.width {
            Width::Int => raw & 0xffff_ffff,
            Width::Long => raw,
        };
        match self.compare {
            Compare::Is(wanted) => value == wanted,
            Compare::AtMost(most) => value <= most,
            Compare::Bits(mask, wanted) => value & mask == wanted,
        }
    }
}

/// When a call is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Whatever its arguments are.
    Any,
    /// When all conditions of one of the lists hold.
    AnyOf(&'static [&'static [Condition]]),
}

impl Rule {
    /// Whether a call with these arguments is allowed.
    #[must_use]
    pub fn allows(&self, args: &[u64; 6]) -> bool {
        match self {
            Self::Any => true,
            Self::AnyOf(lists) => lists.iter().any(|list| list.iter().all(|condition| condition.holds(args))),
        }
    }
}

/// The machines that brig knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Machine {
    /// AMD and Intel, 64 bits.
    X86_64,
    /// Arm, 64 bits.
    Aarch64,
}

impl Machine {
    /// The one this was compiled for.
    pub const NATIVE: Self = if cfg!(target_arch = "x86_64") { Self::X86_64 } else { Self::Aarch64 };
}

/// One call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The kernel's name.
    pub name: &'static str,
    /// Its number on `x86_64`; `None` where the call does not exist or is not needed.
    pub x86_64: Option<u32>,
    /// Its number on `aarch64`.
    pub aarch64: Option<u32>,
    /// When it is allowed.
    pub rule: Rule,
    /// Why it is allowed at all.
    pub why: &'static str,
    /// The test that fails without it.
    pub test: &'static str,
}

impl Row {
    /// Its number on this machine.
    #[must_use]
    pub fn number(&self, machine: Machine) -> Option<u32> {
        match machine {
            Machine::X86_64 => self.x86_64,
            Machine::Aarch64 => self.aarch64,
        }
    }
}

const fn int(arg: u8, compare: Compare) -> Condition {
    Condition { arg, width: Width::Int, compare }
}

const fn long(arg: u8, compare: Compare) -> Condition {
    Condition { arg, width: Width::Long, compare }
}

const fn row(name: &'static str, x86_64: u32, aarch64: u32, rule: Rule, why: &'static str, test: &'static str) -> Row {
    Row { name, x86_64: Some(x86_64), aarch64: Some(aarch64), rule, why, test }
}

const PROT_READ_WRITE: u64 = 0x1 | 0x2;
const MAP_PRIVATE_ANONYMOUS: u64 = 0x02 | 0x20;
const MREMAP_MAYMOVE: u64 = 1;
const MADV_DONTNEED: u64 = 4;
const MADV_FREE: u64 = 8;
const FUTEX_WAKE_PRIVATE: u64 = 1 | 128;
const CLOCK_THREAD_CPUTIME_ID: u64 = 3;
const AF_UNIX: u64 = 1;

/// The only descriptor of a worker, and of a forking nursery's own link.
pub const ONLY_DESCRIPTOR: u64 = 3;

const ON_THE_SOCKET: Rule = Rule::AnyOf(&[&[int(0, Compare::Is(ONLY_DESCRIPTOR))]]);
const ONE_ENTRY: Rule = Rule::AnyOf(&[&[long(1, Compare::AtMost(1))]]);
const NOT_EXECUTABLE: Condition = long(2, Compare::Bits(!PROT_READ_WRITE, 0));

/// A sealed worker. Everything else kills it.
///
/// Two numbers never reach a filter: since 2025 the kernel passes `uretprobe` (335) and
/// `uprobe` (336) of `x86_64` before it asks; they do nothing outside a probed program.
pub const WORKER: &[Row] = &[
    row(
        "read",
        0,
        63,
        ON_THE_SOCKET,
        "receives the evaluation and the answers to host calls",
        "a_sealed_worker_reads_and_writes_only_descriptor_3",
    ),
    row("write", 1, 64, ON_THE_SOCKET, "sends host calls, output and the outcome", "a_sealed_worker_reads_and_writes_only_descriptor_3"),
    row(
        "mmap",
        9,
        222,
        Rule::AnyOf(&[&[NOT_EXECUTABLE, long(3, Compare::Is(MAP_PRIVATE_ANONYMOUS))]]),
        "large allocations; never executable, shared, of a file or at a chosen place",
        "memory_is_mapped_private_and_never_executable",
    ),
    row(
        "mprotect",
        10,
        226,
        Rule::AnyOf(&[&[NOT_EXECUTABLE]]),
        "the allocator's heaps; never executable",
        "memory_is_mapped_private_and_never_executable",
    ),
    row("munmap", 11, 215, Rule::Any, "gives large allocations back", "a_sealed_worker_uses_and_frees_memory"),
    row("brk", 12, 214, Rule::Any, "small allocations", "a_sealed_worker_uses_and_frees_memory"),
    row(
        "mremap",
        25,
        216,
        Rule::AnyOf(&[&[long(3, Compare::Is(MREMAP_MAYMOVE))]]),
        "grows a large allocation; never to a chosen place",
        "a_sealed_worker_uses_and_frees_memory",
    ),
    row(
        "madvise",
        28,
        233,
        Rule::AnyOf(&[&[int(2, Compare::Is(MADV_DONTNEED))], &[int(2, Compare::Is(MADV_FREE))]]),
        "gives pages back without unmapping them",
        "a_sealed_worker_uses_and_frees_memory",
    ),
    row(
        "futex",
        202,
        98,
        Rule::AnyOf(&[&[int(1, Compare::Bits(!FUTEX_WAKE_PRIVATE & 0xffff_ffff, 0))]]),
        "locks of the C and Rust libraries: WAIT and WAKE only",
        "each_argument_rule_stops_its_nearest_neighbour",
    ),
    row(
        "clock_gettime",
        228,
        113,
        Rule::AnyOf(&[&[int(0, Compare::AtMost(CLOCK_THREAD_CPUTIME_ID))]]),
        "the clock where the vDSO can not answer, and the CPU time; never another process's",
        "a_sealed_worker_reads_clocks",
    ),
    row("gettimeofday", 96, 169, Rule::Any, "the engine's clock where the vDSO can not answer", "a_sealed_worker_reads_clocks"),
    Row {
        name: "poll",
        x86_64: Some(7),
        aarch64: None,
        rule: ONE_ENTRY,
        why: "waits for the socket or a timer; one entry, so never a survey of descriptors",
        test: "a_sealed_worker_waits_and_survives_being_stopped",
    },
    row("ppoll", 271, 73, ONE_ENTRY, "poll where there is none, and with nanoseconds", "a_sealed_worker_waits_and_survives_being_stopped"),
    row(
        "restart_syscall",
        219,
        128,
        Rule::Any,
        "the kernel itself calls it to go on with a wait after SIGCONT or a suspended host",
        "a_sealed_worker_waits_and_survives_being_stopped",
    ),
    row(
        "rt_sigreturn",
        15,
        139,
        Rule::Any,
        "returns from a signal that was delivered just before the last handler was removed",
        "every_number_of_the_table_is_let_through_and_no_other",
    ),
    row("exit_group", 231, 94, Rule::Any, "every end that is not a kill", "each_end_has_its_documented_code"),
];

/// What glibc's `fork` passes to `clone`: nothing shared, no namespace, no thread.
const FORK_FLAGS: u64 = 0x0120_0000 | 17;
const FORKS: &str = "a_forking_nursery_makes_workers";

/// A forking nursery, and its children up to their own filter. None of these is in
/// [`WORKER`]: the small filter takes them all away.
pub const NURSERY: &[Row] = &[
    row("recvmsg", 47, 212, Rule::Any, "requests of the supervisor", FORKS),
    row("sendmsg", 46, 211, Rule::Any, "reports, with descriptors", FORKS),
    row("socketpair", 53, 199, Rule::AnyOf(&[&[int(0, Compare::Is(AF_UNIX))]]), "a worker's socket", FORKS),
    row("clone", 56, 220, Rule::AnyOf(&[&[long(0, Compare::Is(FORK_FLAGS))]]), "fork, and nothing else that clone can do", FORKS),
    row("wait4", 61, 260, Rule::Any, "reaps, with the use of resources", FORKS),
    row("pidfd_open", 434, 434, Rule::Any, "the supervisor's handle of a worker", FORKS),
    row(
        "kill",
        62,
        129,
        Rule::AnyOf(&[&[int(1, Compare::Is(9))]]),
        "ends a child for which there is no pidfd; it is not reaped yet, so its id is its own",
        "a_worker_without_a_handle_is_killed",
    ),
    row("close", 3, 57, Rule::Any, "descriptors that were passed on", FORKS),
    row("close_range", 436, 436, Rule::Any, "the child: only 3 stays", FORKS),
    row("dup3", 292, 24, Rule::Any, "the child: its socket becomes 3", FORKS),
    row("fcntl", 72, 25, Rule::Any, "checks of descriptors in debug builds", FORKS),
    row("prctl", 157, 167, Rule::Any, "the child: parent death, dumpable, MDWE", FORKS),
    row("getppid", 110, 173, Rule::Any, "the child: is the parent still there", FORKS),
    row("getpid", 39, 172, Rule::Any, "the C library's fork", FORKS),
    row("gettid", 186, 178, Rule::Any, "the C library's fork", FORKS),
    row("set_robust_list", 273, 99, Rule::Any, "the C library's fork", FORKS),
    row("rseq", 334, 293, Rule::Any, "the C library's fork", FORKS),
    row("rt_sigaction", 13, 134, Rule::Any, "the child: default signals", FORKS),
    row("rt_sigprocmask", 14, 135, Rule::Any, "fork; the child: no blocked signal", FORKS),
    row("setgroups", 116, 159, Rule::Any, "the child: its own user", FORKS),
    row("setresgid", 119, 149, Rule::Any, "the child: its own user", FORKS),
    row("setresuid", 117, 147, Rule::Any, "the child: its own user", FORKS),
    row("capget", 125, 90, Rule::Any, "the child: reads back that it has none", FORKS),
    row("capset", 126, 91, Rule::Any, "the child: no capabilities", FORKS),
    row("landlock_create_ruleset", 444, 444, Rule::Any, "the child: Landlock", FORKS),
    row("landlock_restrict_self", 446, 446, Rule::Any, "the child: Landlock", FORKS),
    row("timer_create", 222, 107, Rule::Any, "the child: CPU timer", FORKS),
    row("timer_settime", 223, 110, Rule::Any, "the child: CPU timer", FORKS),
    row("prlimit64", 302, 261, Rule::Any, "the child: limits", FORKS),
    row("getrandom", 318, 278, Rule::Any, "the child: its own randomness", FORKS),
    row("seccomp", 317, 277, Rule::Any, "the child: its own, last filter", FORKS),
];

const EXECS: &str = "an_execing_nursery_makes_workers";

/// A fresh worker image from `execveat` to its own filter: what the C and Rust libraries do
/// at start. It runs our own code only, and it loads the whole table by itself.
pub const IMAGE: &[Row] = &[
    row("execveat", 322, 281, Rule::Any, "the image", EXECS),
    row("pipe2", 293, 59, Rule::Any, "hands the facts to the image", EXECS),
    Row { name: "arch_prctl", x86_64: Some(158), aarch64: None, rule: Rule::Any, why: "thread-local storage", test: EXECS },
    row("set_tid_address", 218, 96, Rule::Any, "start of the C library", EXECS),
    row("readlinkat", 267, 78, Rule::Any, "start of the C library: its origin", EXECS),
    Row { name: "readlink", x86_64: Some(89), aarch64: None, rule: Rule::Any, why: "start of the C library: its origin", test: EXECS },
    row("openat", 257, 56, Rule::Any, "the main thread's stack, from /proc if any", EXECS),
    row("fstat", 5, 80, Rule::Any, "reads that file", EXECS),
    row("newfstatat", 262, 79, Rule::Any, "reads that file", EXECS),
    row("sched_getaffinity", 204, 123, Rule::Any, "start of the Rust library", EXECS),
    row("sigaltstack", 131, 132, Rule::Any, "start of the Rust library", EXECS),
    row("getuid", 102, 174, Rule::Any, "reads back that the ids were taken", EXECS),
    row("getgid", 104, 176, Rule::Any, "reads back that the ids were taken", EXECS),
    row("uname", 63, 160, Rule::Any, "start of the C library", EXECS),
];
