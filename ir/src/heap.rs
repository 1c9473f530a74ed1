//! The pages of the heap, asked for many at a time.
//!
//! The C library's heap grows by 132 KiB at a time, and each of its pages costs a page fault when it is first written: 3 µs beside
//! a rewrite, a third of the time of a conversion that makes many ops. Asked for together, right after the heap grew, they cost
//! two thirds of that, and no memory that would not have been written next.
//! What is left of the heap's last step when much is to come is asked for too.
//! Limits: Linux, and heaps that grow by `brk`; elsewhere, and with other allocators, nothing happens.

use std::ffi::c_void;

/// By how many bytes the C library's heap grows at least.
const STEP: usize = 132 << 10;
/// Most bytes that are asked for together: what grows the heap by more is one large object, which may never be written as a whole.
const MOST: usize = 1 << 20;

/// Where the heap ended when it was last looked at.
#[derive(Debug)]
pub(crate) struct HeapEnd(*mut c_void);

impl HeapEnd {
    /// Where it ends now.
    pub(crate) fn now() -> Self {
        // SAFETY: defined in the shim; reads a variable of the C library.
        Self(unsafe { monopour_shim_heap_end() })
    }
    /// Asks for the pages of the heap's last step that nobody has written yet.
    #[cold]
    pub(crate) fn fill(&self) {
        if !self.0.is_null() {
            // SAFETY: as below, whatever the pages belong to: where the heap is smaller, the kernel most often finds nothing before it.
            unsafe { monopour_shim_populate(self.0.wrapping_byte_sub(STEP), self.0) };
        }
    }
    /// Asks for the pages by which the heap grew since.
    #[inline]
    pub(crate) fn keep_up(&mut self) {
        let Self(now) = Self::now();
        if now != self.0 {
            self.populate(now);
        }
    }
    #[cold]
    fn populate(&mut self, now: *mut c_void) {
        let growth = (now as usize).wrapping_sub(self.0 as usize);
        if growth <= MOST {
            // SAFETY: defined in the shim; pages are only made present, and what they hold stays. Where another thread gave them
            // back meanwhile, the kernel says so, and nothing is done.
            unsafe { monopour_shim_populate(self.0, now) };
        }
        self.0 = now;
    }
}

unsafe extern "C" {
    // Where the heap that grows by brk ends; null where there is none.
    fn monopour_shim_heap_end() -> *mut c_void;
    // Makes the whole pages between two addresses of the heap present and writable, by one call of the kernel.
    fn monopour_shim_populate(from: *mut c_void, to: *mut c_void);
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::ffi::{c_int, c_void};

    use super::{HeapEnd, MOST, STEP};

    const PAGE: usize = 4096;

    unsafe extern "C" {
        fn sbrk(increment: isize) -> *mut c_void;
        fn mincore(from: *mut c_void, length: usize, pages: *mut u8) -> c_int;
    }

    /// How many pages lie in memory by which the heap has just grown, after `ask` got its end before that and could ask for them.
    fn present_of(pages: usize, ask: impl FnOnce(HeapEnd)) -> usize {
        let end = HeapEnd::now();
        // SAFETY: the C library takes note where somebody else has moved the end of its heap.
        let from = unsafe { sbrk(((pages + 1) * PAGE) as isize) } as usize;
        ask(end);
        let first = from.next_multiple_of(PAGE) as *mut c_void;
        let mut present = vec![0u8; pages];
        // SAFETY: as many bytes as pages are written, of memory that the heap has.
        assert_eq!(unsafe { mincore(first, pages * PAGE, present.as_mut_ptr()) }, 0);
        present.iter().filter(|page| **page & 1 == 1).count()
    }

    // One test: two would move the heap's end under each other.
    #[test]
    fn what_the_heap_grows_by_is_present_when_asked_for() {
        let keep_up = |mut end: HeapEnd| end.keep_up();
        assert_eq!(present_of(STEP / PAGE, keep_up), STEP / PAGE);
        assert!(present_of(4 * MOST / PAGE, keep_up) < MOST / PAGE, "one large object is not asked for");
        assert!(present_of(STEP / PAGE, |_| ()) < STEP / PAGE, "nobody asks");
        // The rest of a page below is not counted.
        assert!(present_of(STEP / PAGE, |_| HeapEnd::now().fill()) >= STEP / PAGE - 1);
    }
}
