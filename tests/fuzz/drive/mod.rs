//! Drives a fuzz target for a bounded time, on any stable compiler.
//!
//! Owns the loop: first every regression vector and seed, then mutations of them until
//! the time is over. A target tells how the code behaved; an input that behaves in a new
//! way is kept and mutated further, so that the search goes deep without instrumented
//! builds. A fault is made small, saved, and fails the test with the way to keep it as a
//! vector. Never decides what is a fault: the target does, by panicking.
//!
//! `BRIG_FUZZ_SECONDS` is the time for each target (2 when not set: the same mutations in
//! every run); `BRIG_FUZZ_SEED` chooses other mutations.
#![expect(clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod chance;
mod mutate;

use chance::Chance;
use std::cell::Cell;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, Once, PoisonError};
use std::time::{Duration, Instant};

/// Inputs kept because they behave in a new way.
const KEPT: usize = 4000;
/// The stack of a worker, in bytes: targets run on as much.
const STACK_BYTES: usize = 8 * 1024 * 1024;
/// One input that takes longer than this hangs. Ten thousand times what any takes.
const STALL: Duration = Duration::from_secs(60);
/// Time for making a fault small.
const SHRINK: Duration = Duration::from_secs(5);

/// What is fuzzed, and with what.
pub(crate) struct Target<'a> {
    /// Also the name of its folder of vectors.
    pub(crate) name: &'a str,
    /// The folder that holds the folders of vectors.
    pub(crate) corpus: PathBuf,
    /// Words of its language.
    pub(crate) words: &'a [&'a str],
    /// How many mutations in a hundred are of tokens; the others are of bytes.
    pub(crate) text_share: usize,
    /// Longest input, in bytes.
    pub(crate) longest: usize,
}

/// A hash of how the code behaved; digits and what stands in quotes do not count, so that
/// error messages fall into few classes.
pub(crate) fn behaviour(told: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    let mut quoted = false;
    for byte in told.bytes() {
        quoted ^= matches!(byte, b'"' | b'`');
        if !quoted && !byte.is_ascii_digit() {
            byte.hash(&mut hasher);
        }
    }
    hasher.finish()
}

/// Runs `check` on every vector of `target`, on `seeds`, and on mutations of both until
/// its time is over.
///
/// # Panics
/// When `check` does, with the input.
pub(crate) fn fuzz(target: &Target<'_>, seeds: Vec<Vec<u8>>, check: impl Fn(&[u8]) -> u64 + Sync) {
    let watch = Watch::default();
    let fault = std::thread::scope(|scope| {
        let runner = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, || {
            let _end = Ends(&watch);
            Run { target, watch: &watch, check: &check, pool: Vec::new(), seen: HashSet::new(), runs: 0 }.explore(seeds)
        })?;
        watch.guard(target.name);
        std::io::Result::Ok(runner.join())
    });
    match fault {
        Ok(Ok(None)) => {}
        Ok(Ok(Some(fault))) => panic!("{fault}"),
        Ok(Err(panic)) => std::panic::resume_unwind(panic),
        Err(error) => panic!("no thread to fuzz in: {error}"),
    }
}

struct Run<'r, C> {
    target: &'r Target<'r>,
    watch: &'r Watch,
    check: &'r C,
    pool: Vec<Vec<u8>>,
    seen: HashSet<u64>,
    runs: u64,
}

impl<C: Fn(&[u8]) -> u64> Run<'_, C> {
    /// The first fault, told, or nothing.
    fn explore(mut self, seeds: Vec<Vec<u8>>) -> Option<String> {
        for input in vectors(self.target).into_iter().chain(seeds) {
            if let Some(fault) = self.one(&input) {
                return Some(fault);
            }
            self.pool.push(input);
        }
        let seeds = self.pool.len();
        assert!(seeds > 0, "{} has nothing to begin with", self.target.name);
        let (budget, seed) = settings();
        let mut chance = Chance::new(seed ^ behaviour(self.target.name));
        let start = Instant::now();
        while start.elapsed() < budget {
            let parent = self.pick(seeds, &mut chance);
            let other = self.pick(seeds, &mut chance);
            let Target { words, text_share, longest, .. } = *self.target;
            let input = mutate::child(&self.pool[parent], &self.pool[other], words, text_share, longest, &mut chance);
            if let Some(fault) = self.one(&input) {
                return Some(fault);
            }
        }
        println!("{}: {} inputs from {seeds} seeds, {} behaviours", self.target.name, self.runs, self.seen.len());
        None
    }

    /// A seed, which is mostly right; one of the latest finds, which are the deepest; or any.
    fn pick(&self, seeds: usize, chance: &mut Chance) -> usize {
        let all = self.pool.len();
        match chance.below(10) {
            0..4 => chance.below(seeds),
            4..7 => all - 1 - chance.below(all.min(64)),
            _ => chance.below(all),
        }
    }

    fn one(&mut self, input: &[u8]) -> Option<String> {
        self.runs += 1;
        self.watch.begins(input);
        match catch_unwind(AssertUnwindSafe(|| (self.check)(input))) {
            Ok(behaviour) => {
                if self.seen.len() < KEPT && self.seen.insert(behaviour) {
                    self.pool.push(input.to_vec());
                }
                None
            }
            Err(panic) => {
                let least = quietly(|| self.shrunk(input));
                let panic = quietly(|| catch_unwind(AssertUnwindSafe(|| (self.check)(&least)))).err().unwrap_or(panic);
                Some(self.told(&least, &*panic))
            }
        }
    }

    /// Takes pieces away for as long as what is left still fails.
    fn shrunk(&self, input: &[u8]) -> Vec<u8> {
        let start = Instant::now();
        let mut least = input.to_vec();
        let mut piece = least.len() / 2;
        while piece > 0 && start.elapsed() < SHRINK {
            let mut at = 0;
            while at < least.len() && start.elapsed() < SHRINK {
                let end = (at + piece).min(least.len());
                let less = [&least[..at], &least[end..]].concat();
                self.watch.begins(&less);
                if catch_unwind(AssertUnwindSafe(|| (self.check)(&less))).is_err() {
                    least = less;
                } else {
                    at = end;
                }
            }
            piece /= 2;
        }
        least
    }

    fn told(&self, input: &[u8], panic: &(dyn std::any::Any + Send)) -> String {
        let said = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
        let folder = self.target.corpus.join(self.target.name);
        format!(
            "{} fails: {}\n  on {}\n  saved as {}; once it is mended, keep that file in {}",
            self.target.name,
            said.unwrap_or("(see above)"),
            String::from_utf8_lossy(&input[..input.len().min(2000)]).escape_debug(),
            save(self.target.name, input),
            folder.display(),
        )
    }
}

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs `shrink` without a word about each panic of this thread: there are hundreds.
fn quietly<R>(shrink: impl FnOnce() -> R) -> R {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let loud = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                loud(info);
            }
        }));
    });
    QUIET.set(true);
    let result = shrink();
    QUIET.set(false);
    result
}

/// Findings of earlier runs, in the order of their names.
fn vectors(target: &Target<'_>) -> Vec<Vec<u8>> {
    let Ok(folder) = std::fs::read_dir(target.corpus.join(target.name)) else { return Vec::new() };
    let mut files: Vec<PathBuf> = folder.flatten().map(|entry| entry.path()).collect();
    files.sort();
    files.iter().map(|file| std::fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))).collect()
}

fn settings() -> (Duration, u64) {
    let number = |name: &str| {
        let text = std::env::var(name).ok()?;
        Some(text.parse::<u64>().unwrap_or_else(|_| panic!("{name} is {text:?}, not a whole number")))
    };
    (Duration::from_secs(number("BRIG_FUZZ_SECONDS").unwrap_or(2)), number("BRIG_FUZZ_SEED").unwrap_or(0))
}

/// Writes a finding to the temporary folder; gives its name.
fn save(target: &str, input: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    input.hash(&mut hasher);
    let path = std::env::temp_dir().join(format!("brig-fuzz-{target}-{:016x}", hasher.finish()));
    match std::fs::write(&path, input) {
        Ok(()) => path.display().to_string(),
        Err(error) => format!("nothing ({}: {error})", path.display()),
    }
}

/// What runs now and since when, for the one who looks whether it hangs.
#[derive(Default)]
struct Watch {
    now: Mutex<Now>,
    ended: Condvar,
}

#[derive(Default)]
struct Now {
    since: Option<Instant>,
    input: Vec<u8>,
    ended: bool,
}

impl Watch {
    fn begins(&self, input: &[u8]) {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        now.since = Some(Instant::now());
        now.input.clear();
        now.input.extend_from_slice(input);
    }

    /// Returns at the end; a thread that hangs can only be ended with its process.
    fn guard(&self, target: &str) {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        while !now.ended {
            now = self.ended.wait_timeout(now, Duration::from_secs(1)).unwrap_or_else(PoisonError::into_inner).0;
            if !now.ended && now.since.is_some_and(|since| since.elapsed() > STALL) {
                eprintln!("{target} hangs on an input saved as {}", save(target, &now.input));
                std::process::abort();
            }
        }
    }
}

/// Ends the watch however the run ends.
struct Ends<'w>(&'w Watch);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.now.lock().unwrap_or_else(PoisonError::into_inner).ended = true;
        self.0.ended.notify_all();
    }
}
