//! Memory of the CPU target.
#![allow(unsafe_code, reason = "native code accesses it by address, so that it is no slice")]

use std::alloc::Layout;

use monopour_program::ConstantData;

use crate::error::Error;
use crate::pool::{GRANULARITY, Physical};

/// Padding of each buffer. A kernel that looks up an element of an empty tensor reads at the tensor's start and
/// drops the value; that address may be the end of a buffer.
const ONE_ELEMENT: usize = 16;
/// Bytes of a huge page, of which larger buffers are made: with small ones a core waits for their addresses (an x86-64 core
/// with DDR5 reads weights at 24 GB/s with pages of 4 KiB, and at 34 with these).
const HUGE_PAGE: usize = 2 << 20;

/// Memory of the CPU target, aligned to [`GRANULARITY`], which native code accesses by address.
#[derive(Debug)]
pub(crate) struct HostMemory {
    address: *mut u8,
    bytes: usize,
    owner: Owner,
}

#[derive(Debug)]
enum Owner {
    Allocated(Layout),
    /// Read-only: the bytes of a constant, in a mapped file or in memory.
    Constant(#[allow(dead_code, reason = "keeps the bytes alive")] ConstantData),
}

// SAFETY: the memory is not tied to a thread. Kernels write to it from several threads, which is their contract (tasks of a
// dispatch write disjoint elements); Rust code accesses it only through the methods below, whose callers hold the session
// that runs the kernels, or a tensor that no running session has.
unsafe impl Send for HostMemory {}
// SAFETY: as for `Send`.
unsafe impl Sync for HostMemory {}

impl HostMemory {
    /// Zeroed memory.
    pub fn new(bytes: u64) -> Result<HostMemory, Error> {
        let out_of_memory = Error::OutOfMemory { asked_bytes: bytes };
        let size = usize::try_from(bytes.max(1)).map_err(|_| out_of_memory.clone())?;
        let room = size.checked_add(ONE_ELEMENT).ok_or_else(|| out_of_memory.clone())?;
        let is_large = cfg!(all(target_os = "linux", feature = "native")) && room >= 2 * HUGE_PAGE;
        let alignment = if is_large { HUGE_PAGE } else { GRANULARITY as usize };
        let layout = Layout::from_size_align(room, alignment).map_err(|_| out_of_memory.clone())?;
        // SAFETY: the layout's size is not zero.
        let address = unsafe { std::alloc::alloc_zeroed(layout) };
        if address.is_null() {
            return Err(out_of_memory);
        }
        if is_large {
            ask_for_huge_pages(address, room);
        }
        Ok(HostMemory { address, bytes: size, owner: Owner::Allocated(layout) })
    }

    /// The bytes of a constant in place, if they are sufficiently aligned.
    pub fn constant(data: &ConstantData) -> Option<HostMemory> {
        let bytes = data.bytes();
        let is_aligned = (bytes.as_ptr() as usize).is_multiple_of(GRANULARITY as usize);
        (is_aligned && !bytes.is_empty()).then(|| HostMemory {
            address: bytes.as_ptr().cast_mut(),
            bytes: bytes.len(),
            owner: Owner::Constant(data.clone()),
        })
    }

    /// The base address.
    pub fn address(&self) -> usize {
        self.address as usize
    }

    /// Copies `data` to the start.
    pub fn write(&self, data: &[u8]) {
        assert!(data.len() <= self.bytes && self.is_writable(), "invariant: the caller sized the buffer for its data");
        // SAFETY: `data.len()` bytes are ours (checked), and a borrowed slice cannot overlap memory that only this type hands out.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), self.address, data.len()) };
    }

    /// Copies the first `data.len()` bytes out.
    pub fn read(&self, data: &mut [u8]) {
        assert!(data.len() <= self.bytes, "invariant: the caller sized its data by the buffer");
        // SAFETY: `data.len()` bytes are ours (checked); the memory was zeroed on allocation.
        unsafe { std::ptr::copy_nonoverlapping(self.address, data.as_mut_ptr(), data.len()) };
    }

    /// Copies bytes from another buffer, or within this one; ranges may overlap.
    pub fn copy_from(&self, offset: usize, src: &HostMemory, src_offset: usize, bytes: usize) {
        let fits = |end: Option<usize>, of: &HostMemory| end.is_some_and(|end| end <= of.bytes);
        assert!(
            fits(offset.checked_add(bytes), self) && fits(src_offset.checked_add(bytes), src) && self.is_writable(),
            "invariant: the executor checks ranges"
        );
        // SAFETY: the range was checked to be within `src`.
        let from = unsafe { src.address.add(src_offset) };
        // SAFETY: the range was checked to be within `self`.
        let to = unsafe { self.address.add(offset) };
        // SAFETY: both ranges are valid for `bytes` bytes (checked); `copy` allows overlap.
        unsafe { std::ptr::copy(from, to, bytes) };
    }

    /// Copies bytes at `offset` out.
    pub fn read_at(&self, offset: usize, data: &mut [u8]) {
        assert!(
            offset.checked_add(data.len()).is_some_and(|end| end <= self.bytes),
            "invariant: the executor checks ranges"
        );
        // SAFETY: the range was checked to be within `self`.
        let from = unsafe { self.address.add(offset) };
        // SAFETY: `data.len()` bytes are ours (checked), initialized on allocation; a borrowed slice cannot overlap this memory.
        unsafe { std::ptr::copy_nonoverlapping(from, data.as_mut_ptr(), data.len()) };
    }

    /// Copies `data` to `offset`.
    pub fn write_at(&self, offset: usize, data: &[u8]) {
        let end = offset.checked_add(data.len()).filter(|&end| end <= self.bytes);
        assert!(end.is_some() && self.is_writable(), "invariant: the executor checks ranges");
        // SAFETY: the range was checked to be within `self`.
        let to = unsafe { self.address.add(offset) };
        // SAFETY: `data.len()` bytes are ours (checked), and a borrowed slice cannot overlap this memory.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), to, data.len()) };
    }

    /// Fills bytes with a little-endian pattern that begins at `offset`.
    pub fn fill(&self, offset: usize, bytes: usize, pattern: u32) {
        let end = offset.checked_add(bytes).filter(|&end| end <= self.bytes);
        assert!(end.is_some() && self.is_writable(), "invariant: the executor checks ranges");
        // SAFETY: the range was checked to be within `self`.
        let start = unsafe { self.address.add(offset) };
        // SAFETY: the range is valid (checked), initialized (zeroed when made), and not otherwise borrowed: Rust code has no
        // references into this memory, and no kernel runs while host code fills.
        let slice = unsafe { std::slice::from_raw_parts_mut(start, bytes) };
        for (byte, value) in slice.iter_mut().zip(pattern.to_le_bytes().into_iter().cycle()) {
            *byte = value;
        }
    }

    fn is_writable(&self) -> bool {
        matches!(self.owner, Owner::Allocated(_))
    }
}

/// Advises the system, which may decline: the memory is the same.
#[cfg_attr(
    not(all(target_os = "linux", feature = "native")),
    allow(unused_variables, reason = "there is no such advice")
)]
fn ask_for_huge_pages(address: *mut u8, bytes: usize) {
    #[cfg(all(target_os = "linux", feature = "native"))]
    // SAFETY: the advice changes no content, and covers whole pages within the buffer.
    unsafe {
        libc::madvise(address.cast(), bytes / HUGE_PAGE * HUGE_PAGE, libc::MADV_HUGEPAGE);
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        if let Owner::Allocated(layout) = self.owner {
            // SAFETY: allocated with this layout in `new`, and freed only here.
            unsafe { std::alloc::dealloc(self.address, layout) };
        }
    }
}

impl Physical for HostMemory {
    fn bytes(&self) -> u64 {
        match self.owner {
            Owner::Allocated(_) => self.bytes as u64,
            Owner::Constant(_) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{HUGE_PAGE, HostMemory};

    #[test]
    fn large_buffers_begin_with_a_huge_page() {
        let bytes = 3 * HUGE_PAGE + 5;
        let memory = HostMemory::new(bytes as u64).expect("there is memory");
        let is_asked_for = cfg!(all(target_os = "linux", feature = "native"));
        assert!(!is_asked_for || memory.address().is_multiple_of(HUGE_PAGE));
        memory.write_at(bytes - 3, &[1, 2, 3]);
        let mut found = vec![9; bytes];
        memory.read(&mut found);
        assert_eq!(
            (&found[bytes - 3..], found.iter().map(|byte| usize::from(*byte)).sum::<usize>()),
            (&[1, 2, 3][..], 6)
        );
    }
}
