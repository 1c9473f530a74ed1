//! The pages of the heap, asked for many at a time.
//!
//! The C library's heap grows by 132 KiB at a time, and each of its pages costs a page fault when it is first written: 3 µs beside
//! a rewrite, a third of the time of a conversion that makes many ops. Asked for together, right after the heap grew, they cost
//! half of that, and no memory that would not have been written next.
//! Limits: Linux, and heaps that grow by `brk`; elsewhere, and with other allocators, nothing happens.

use std::ffi::c_void;

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

    use super::{HeapEnd, MOST};

    const PAGE: usize = 4096;

    unsafe extern "C" {
        fn sbrk(increment: isize) -> *mut c_void;
        fn mincore(from: *mut c_void, length: usize, pages: *mut u8) -> c_int;
    }

    /// How many of the pages by which the heap grows are present after the driver has kept up with it.
    fn present_of(pages: usize) -> usize {
        let mut end = HeapEnd::now();
        // SAFETY: the C library takes note where somebody else has moved the end of its heap.
        let from = unsafe { sbrk(((pages + 1) * PAGE) as isize) } as usize;
        end.keep_up();
        let first = from.next_multiple_of(PAGE) as *mut c_void;
        let mut present = vec![0u8; pages];
        // SAFETY: as many bytes as pages are written, of memory that the heap has.
        assert_eq!(unsafe { mincore(first, pages * PAGE, present.as_mut_ptr()) }, 0);
        present.iter().filter(|page| **page & 1 == 1).count()
    }

    #[test]
    fn what_the_heap_grows_by_is_present_at_once() {
        assert_eq!(present_of(33), 33, "the step by which the C library's heap grows");
        assert!(present_of(4 * MOST / PAGE) < MOST / PAGE, "one large object is not asked for");
    }
}
