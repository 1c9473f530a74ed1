//! Counts what these tests, the runtime and wgpu hold of the heap, and what the whole process does: a driver's part is the rest.
#![allow(unsafe_code, reason = "an allocator is unsafe, and asks the C library")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of Rust's allocations.
static LIVE: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static COUNTING: Counting = Counting;

struct Counting;

// SAFETY: `System` allocates; the counter is beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise is `System`'s condition.
        let pointer = unsafe { System.alloc(layout) };
        // What the system refuses, as tests ask it to, is not held.
        if !pointer.is_null() {
            LIVE.fetch_add(layout.size(), Ordering::Relaxed);
        }
        pointer
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as in `alloc`; the pointer is from there.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Bytes that Rust code holds: the tests, the runtime, wgpu.
pub fn rust_bytes() -> usize {
    LIVE.load(Ordering::Relaxed)
}

/// Bytes of the C library's heap that are in use, Rust's among them, and those that it keeps of the system; where it says so.
pub fn heap_bytes() -> (usize, usize) {
    #[cfg(all(feature = "native", target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: it only reads the allocator's counters.
        let info = unsafe { libc::mallinfo2() };
        (info.uordblks + info.hblkhd, info.arena + info.hblkhd)
    }
    #[cfg(not(all(feature = "native", target_os = "linux", target_env = "gnu")))]
    (0, 0)
}
