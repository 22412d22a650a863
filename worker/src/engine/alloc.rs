//! Owns the memory of the engine: every byte QuickJS takes is counted here, and the
//! process ends at the limit. It never lets the engine see a failed allocation, because
//! the engine's own out-of-memory paths are not memory-safe.
#![expect(unsafe_code, reason = "the engine's allocator is an unsafe interface over malloc")]

use std::cell::Cell;

use brig_protocol::control::exit;
use rquickjs::allocator::Allocator;

use crate::lockdown::raw::exit_now;

// A worker has one thread, so a thread-local is a plain global to it; tests run several
// realms in one process, each on its own thread, and must not share a count.
thread_local! {
    static USED: Cell<usize> = const { Cell::new(0) };
    static FLOOR: Cell<usize> = const { Cell::new(0) };
    /// Whether the program before this one left its realm.
    static KEPT: Cell<bool> = const { Cell::new(false) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
    static LIMIT: Cell<usize> = const { Cell::new(usize::MAX) };
    static WARN_AT: Cell<usize> = const { Cell::new(usize::MAX) };
    static LAST_WORDS: Cell<fn()> = const { Cell::new(no_last_words) };
}

fn no_last_words() {}

/// What the engine holds and has held, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Bytes held now, the warm realm included.
    pub(crate) used: usize,
    /// The most held at once since the last [`rule`].
    pub(crate) peak: usize,
    /// Held at the last [`rule`]: the warm realm.
    pub(crate) floor: usize,
    /// The most that may be held.
    pub(crate) limit: usize,
}

/// Bytes held now and at the peak.
pub(crate) fn usage() -> Usage {
    Usage { used: USED.get(), peak: PEAK.get(), floor: FLOOR.get(), limit: LIMIT.get() }
}

/// Sets the limit for what comes: `heap_bytes` on top of what is held now. Peak starts
/// over. A realm that is `kept` counts from its first program on: what one evaluation
/// leaves behind is not given to the next one for nothing.
pub(crate) fn rule(heap_bytes: u64, kept: bool) {
    let used = USED.get();
    let heap = usize::try_from(heap_bytes).unwrap_or(usize::MAX);
    if !(kept && KEPT.get()) {
        FLOOR.set(used);
    }
    KEPT.set(kept);
    let floor = FLOOR.get();
    PEAK.set(used.max(floor));
    LIMIT.set(floor.saturating_add(heap));
    WARN_AT.set(floor.saturating_add(heap / 5 * 4));
}

/// No limit: for the nursery, which only builds the realm.
pub(crate) fn lift() {
    LIMIT.set(usize::MAX);
    WARN_AT.set(usize::MAX);
}

/// Whether more than four fifths of the limit have been held at some time.
pub(crate) fn is_nearly_full() -> bool {
    PEAK.get() >= WARN_AT.get()
}

/// What runs before the process ends at the limit: it hands over the output that is
/// still buffered. It must not allocate from the engine.
pub(crate) fn set_last_words(speak: fn()) {
    LAST_WORDS.set(speak);
}

#[cold]
fn end_at_limit() -> ! {
    (LAST_WORDS.get())();
    exit_now(exit::HEAP_LIMIT)
}

/// The counting allocator: malloc underneath, counted by usable size.
#[derive(Debug, Default)]
pub(crate) struct CountingAllocator;

fn add(bytes: usize) {
    let used = USED.get().saturating_add(bytes);
    USED.set(used);
    if used > PEAK.get() {
        PEAK.set(used);
        if used > LIMIT.get() {
            end_at_limit();
        }
    }
}

fn take(bytes: usize) {
    USED.set(USED.get().saturating_sub(bytes));
}

/// Ends the process when a request alone would pass the limit, before asking the kernel.
fn refuse_oversize(bytes: usize) {
    if USED.get().saturating_add(bytes) > LIMIT.get() {
        end_at_limit();
    }
}

fn size_of_block(block: *mut u8) -> usize {
    // SAFETY: the engine only hands back blocks that came from the malloc family below
    // and were not freed since; null gives 0.
    unsafe { libc::malloc_usable_size(block.cast()) }
}

fn counted(block: *mut u8) -> *mut u8 {
    if block.is_null() {
        end_at_limit();
    }
    add(size_of_block(block));
    block
}

// SAFETY: memory comes from malloc, calloc and realloc, which give blocks of at least the
// size asked for, aligned for any type; `usable_size` is what malloc says of its block.
unsafe impl Allocator for CountingAllocator {
    fn alloc(&mut self, size: usize) -> *mut u8 {
        refuse_oversize(size);
        // SAFETY: malloc takes any size; one byte at least, so that null means failure.
        counted(unsafe { libc::malloc(size.max(1)) }.cast())
    }

    fn calloc(&mut self, count: usize, size: usize) -> *mut u8 {
        refuse_oversize(count.saturating_mul(size));
        // SAFETY: calloc takes any sizes and checks their product itself.
        counted(unsafe { libc::calloc(count.max(1), size.max(1)) }.cast())
    }

    unsafe fn dealloc(&mut self, ptr: *mut u8) {
        take(size_of_block(ptr));
        // SAFETY: the caller promises that `ptr` came from this allocator and is live.
        unsafe { libc::free(ptr.cast()) }
    }

    unsafe fn realloc(&mut self, ptr: *mut u8, new_size: usize) -> *mut u8 {
        if ptr.is_null() {
            return self.alloc(new_size);
        }
        let old = size_of_block(ptr);
        if new_size == 0 {
            take(old);
            // SAFETY: as in `dealloc`.
            unsafe { libc::free(ptr.cast()) };
            return std::ptr::null_mut();
        }
        refuse_oversize(new_size.saturating_sub(old));
        take(old);
        // SAFETY: the caller promises that `ptr` came from this allocator and is live.
        counted(unsafe { libc::realloc(ptr.cast(), new_size) }.cast())
    }

    unsafe fn usable_size(ptr: *mut u8) -> usize {
        size_of_block(ptr)
    }
}

/// Largest hole that is plugged, in bytes; there is at most one of each greater size.
const HOLE_MOST: usize = 64 * 1024;

/// Takes every hole that the warming left in the heap, and keeps it: what is allocated
/// from now on lies together at the heap's end, on pages of its own. Without this a copy
/// writes into pages all over the heap, each of which the kernel must copy for it.
/// Called once, in the nursery.
pub(crate) fn plug_holes() {
    let Some(end) = end_of_use() else { return };
    let mut size = HOLE_MOST;
    while size >= 16 {
        // Bounded by the heap's own size: every round takes at least `size` bytes of it.
        for _ in 0..PLUGS_MOST {
            // SAFETY: malloc takes any size.
            let block = unsafe { libc::malloc(size) };
            // What lies behind all that was used is no hole: none of this size is left.
            if block.is_null() || block as usize >= end {
                // SAFETY: the block was just given by malloc, and is not kept.
                unsafe { libc::free(block) };
                break;
            }
        }
        size = if size > 1024 { size / 2 } else { size - 16 };
    }
}

/// Where the heap's used part ends: there malloc cuts what it has no hole for, such as a
/// block that is larger than any hole.
fn end_of_use() -> Option<usize> {
    // SAFETY: malloc takes any size; the block is freed once, and only its address is used.
    let block = unsafe {
        let block = libc::malloc(2 * HOLE_MOST - 1024);
        libc::free(block);
        block
    };
    (!block.is_null()).then_some(block as usize)
}

/// More holes of one size than a warmed heap has.
const PLUGS_MOST: usize = 4096;
