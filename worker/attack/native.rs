//! Native code in a sealed worker: does what a guest would that took the engine over.
//! Owns: the attempts. Never: runs anywhere but behind the worker's own lock-down.
#![expect(unsafe_code, reason = "attacks are raw system calls and bad memory accesses")]

use std::arch::asm;

use brig_worker::lockdown::raw::exit_now;
use brig_worker::nursery::WorkerFacts;

use crate::cases::{NAMED, REFUSED, SURVIVED, Try, rule_cases};

/// Does one try, and ends the process.
pub(crate) fn perform(facts: &WorkerFacts) -> ! {
    match Try::decode(facts.generation) {
        Some(Try::Number(number)) => {
            call(number.into(), never_waiting(number, [0; 6], &NO_TIME));
        }
        Some(Try::X32(number)) => {
            call(i64::from(number | 0x4000_0000), [0; 6]);
        }
        Some(Try::Int80(number)) => int_80(number),
        Some(Try::Rule(place)) => {
            if let Some(case) = rule_cases().get(place as usize) {
                let args = never_waiting(case.number, case.args, &NO_TIME);
                call(case.number.into(), args);
            }
        }
        Some(Try::Named(place)) => match NAMED.get(place as usize) {
            Some(named) => by_name(named.name, facts),
            None => exit_now(1),
        },
        None => exit_now(1),
    }
    exit_now(SURVIVED)
}

static NO_TIME: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 0 };

/// A ppoll without a time would wait for ever.
fn never_waiting(number: u32, args: [u64; 6], time: &'static libc::timespec) -> [u64; 6] {
    match (i64::from(number) == libc::SYS_ppoll, args) {
        (true, [a, b, _, d, e, f]) => [a, b, std::ptr::from_ref(time) as u64, d, e, f],
        (false, args) => args,
    }
}

fn call(number: i64, args: [u64; 6]) -> i64 {
    let [a, b, c, d, e, f] = args;
    // SAFETY: that it may not be safe is the point; the process ends right after.
    unsafe { libc::syscall(number, a, b, c, d, e, f) }
}

#[cfg(target_arch = "x86_64")]
fn int_80(number: u32) {
    // SAFETY: as above. The kernel looks at the lower halves only.
    unsafe {
        asm!(
            "push rbx", "xor ebx, ebx", "int 0x80", "pop rbx",
            inlateout("eax") number => _,
            in("ecx") 0, in("edx") 0, in("esi") 0, in("edi") 0,
        );
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn int_80(_number: u32) {
    // SAFETY: an instruction that this machine does not have, so that the try ends as one.
    unsafe { asm!("udf #0") }
}

fn by_name(name: &str, facts: &WorkerFacts) -> ! {
    match name {
        "ptrace" => raw(libc::SYS_ptrace, [0; 6]),
        "fork" => raw(libc::SYS_clone, [libc::SIGCHLD as u64, 0, 0, 0, 0, 0]),
        "thread" => raw(libc::SYS_clone, [thread_flags(), 0, 0, 0, 0, 0]),
        "execve" => raw(libc::SYS_execve, [text(c"/bin/sh"), 0, 0, 0, 0, 0]),
        "execveat" => raw(libc::SYS_execveat, [3, text(c""), 0, 0, 0x1000, 0]),
        "open" => raw(libc::SYS_openat, [0, text(c"/etc/passwd"), 0, 0, 0, 0]),
        "socket" => raw(libc::SYS_socket, [2, 1, 0, 0, 0, 0]),
        "kill_parent" => raw(libc::SYS_kill, [1, 9, 0, 0, 0, 0]),
        "io_uring" => raw(425, [1, 0, 0, 0, 0, 0]),
        "seccomp" => raw(libc::SYS_seccomp, [1, 0, 0, 0, 0, 0]),
        "close_socket" => raw(libc::SYS_close, [3, 0, 0, 0, 0, 0]),
        "send_descriptor" => raw(libc::SYS_sendmsg, [3, 0, 0, 0, 0, 0]),
        "map_write_execute" => raw(libc::SYS_mmap, [0, 4096, 7, 0x22, u64::MAX, 0]),
        "protect_execute" => raw(libc::SYS_mprotect, [page(), 4096, 5, 0, 0, 0]),
        "map_file" => raw(libc::SYS_mmap, [0, 4096, 1, 2, 3, 0]),
        "map_fixed" => raw(libc::SYS_mmap, [page(), 4096, 3, 0x32, u64::MAX, 0]),
        "read_other_descriptor" => raw(libc::SYS_read, [4, page(), 1, 0, 0, 0]),
        "write_other_descriptor" => raw(libc::SYS_write, [2, page(), 1, 0, 0, 0]),
        "poll_many" => raw(libc::SYS_ppoll, [page(), 2, page(), 0, 0, 0]),
        // The clock of process 1, as the kernel codes it.
        "clock_of_other" => raw(libc::SYS_clock_gettime, [0xffff_fff6, page(), 0, 0, 0, 0]),
        "spin" => loop {
            std::hint::spin_loop();
        },
        "spin_in_calls" => loop {
            call(libc::SYS_munmap, [0; 6]);
        },
        "stack" => exit_now(u8::from(deeper(0) == 1)),
        // SAFETY: it is not; the process dies of it.
        "null" => unsafe {
            std::ptr::without_provenance_mut::<u8>(8).write_volatile(1);
            exit_now(1)
        },
        "abort" => std::process::abort(),
        "panic" => panic_here(),
        "memory_mapped" => hog_by_mapping(),
        "memory_broken" => hog_by_breaking(),
        "finish" => exit_now(brig_protocol::control::exit::FINISHED),
        "heap_limit" => exit_now(brig_protocol::control::exit::HEAP_LIMIT),
        "use_memory" => use_memory(),
        "read_clocks" => read_clocks(),
        "echo" => echo(),
        "wait" => wait(),
        "hold" => hold(),
        "seed" => say(&facts.seed),
        "layers" => say_layers(facts),
        _ => exit_now(1),
    }
}

#[expect(clippy::panic, reason = "what a fault of our own would do")]
fn panic_here() -> ! {
    panic!("on purpose")
}

/// Whatever comes back, came back.
fn raw(number: libc::c_long, args: [u64; 6]) -> ! {
    call(number, args);
    exit_now(SURVIVED)
}

fn text(text: &'static std::ffi::CStr) -> u64 {
    text.as_ptr() as u64
}

#[expect(clippy::cast_sign_loss, reason = "a flag word")]
fn thread_flags() -> u64 {
    let flags = libc::CLONE_VM | libc::CLONE_THREAD | libc::CLONE_SIGHAND;
    flags as u64
}

/// A fresh private page.
fn page() -> u64 {
    u64::from_ne_bytes(call(libc::SYS_mmap, [0, 4096, 3, 0x22, u64::MAX, 0]).to_ne_bytes())
}

#[inline(never)]
#[expect(unconditional_recursion, reason = "the stack has to overflow")]
fn deeper(depth: u64) -> u64 {
    let frame = std::hint::black_box([depth; 512]);
    let below = deeper(depth.wrapping_add(1));
    std::hint::black_box(frame).iter().fold(below, |a, b| a ^ b)
}

/// Maps and touches until the kernel says no: the address space has a ceiling.
fn hog_by_mapping() -> ! {
    loop {
        let start = call(libc::SYS_mmap, [0, 1 << 20, 3, 0x22, u64::MAX, 0]);
        if (-4095..0).contains(&start) {
            exit_now(if start == -1 { REFUSED } else { 1 });
        }
        for offset in (0..1 << 20).step_by(4096) {
            // SAFETY: within the mapping that was just made.
            unsafe { ((start + offset) as *mut u8).write_volatile(1) };
        }
    }
}

/// The same by `brk`, which answers with the old end where it refuses.
fn hog_by_breaking() -> ! {
    let mut end = call(libc::SYS_brk, [0; 6]);
    loop {
        let wanted = end + (1 << 20);
        end = call(libc::SYS_brk, [u64::from_ne_bytes(wanted.to_ne_bytes()), 0, 0, 0, 0, 0]);
        if end < wanted {
            exit_now(REFUSED);
        }
    }
}

/// Small and large blocks, growing, shrinking, given back in every way the library knows.
fn use_memory() -> ! {
    let mut large: Vec<u8> = Vec::new();
    for _ in 0..6 {
        large.resize(large.len() * 2 + (1 << 20), 7);
    }
    large.truncate(1 << 10);
    large.shrink_to_fit();
    let small: Vec<Box<[u8]>> = (1..2000).map(|size| vec![1; size].into()).collect();
    let sum: usize = small.iter().map(|block| block.len()).sum();
    drop((large, small));
    // SAFETY: takes an integer.
    unsafe { libc::malloc_trim(0) };
    let page = page();
    for advice in [libc::MADV_DONTNEED, libc::MADV_FREE] {
        let advice = u64::from(advice.unsigned_abs());
        if call(libc::SYS_madvise, [page, 4096, advice, 0, 0, 0]) != 0 {
            exit_now(1);
        }
    }
    exit_now(if sum > 0 { SURVIVED } else { 1 })
}

/// Through the vDSO and past it.
fn read_clocks() -> ! {
    let now = std::time::Instant::now();
    let time = std::time::SystemTime::now();
    let page = page();
    for clock in 0..4 {
        if call(libc::SYS_clock_gettime, [clock, page, 0, 0, 0, 0]) != 0 {
            exit_now(1);
        }
    }
    let day = call(libc::SYS_gettimeofday, [page, 0, 0, 0, 0, 0]);
    let sane = now.elapsed().as_secs() < 60 && time.elapsed().is_ok();
    exit_now(if day == 0 && sane { SURVIVED } else { 1 })
}

fn read(bytes: &mut [u8]) -> isize {
    // SAFETY: pointer and length are of one live slice.
    unsafe { libc::read(3, bytes.as_mut_ptr().cast(), bytes.len()) }
}

fn write(bytes: &[u8]) -> isize {
    // SAFETY: as above.
    unsafe { libc::write(3, bytes.as_ptr().cast(), bytes.len()) }
}

fn say(bytes: &[u8]) -> ! {
    let said = usize::try_from(write(bytes)) == Ok(bytes.len());
    exit_now(if said { SURVIVED } else { 1 })
}

fn say_layers(facts: &WorkerFacts) -> ! {
    let names: Vec<&str> = facts.layers.iter().filter(|(layer, _)| facts.layers.has(*layer)).map(|(layer, _)| layer.name()).collect();
    say(format!("{}:{}", facts.level.name(), names.join(",")).as_bytes())
}

/// One byte in, the same out.
fn echo() -> ! {
    let mut byte = [0];
    match read(&mut byte) {
        1 => say(&byte),
        _ => exit_now(1),
    }
}

/// Half a second in `poll`, which a stop and a continue must not end.
fn wait() -> ! {
    write(b"w");
    let mut entry = libc::pollfd { fd: 3, events: libc::POLLIN, revents: 0 };
    // SAFETY: one live entry.
    let woken = unsafe { libc::poll(&raw mut entry, 1, 500) };
    exit_now(if woken == 0 { SURVIVED } else { 1 })
}

/// Says that it is there, then waits until the other end is closed.
fn hold() -> ! {
    write(b"h");
    let mut byte = [0];
    loop {
        match read(&mut byte) {
            0 => exit_now(SURVIVED),
            1 => {}
            _ => exit_now(1),
        }
    }
}
