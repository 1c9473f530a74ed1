//! The boundary with native code: the functions that it calls, the calls into it, and the memory that it touches.
#![allow(unsafe_code, reason = "calls native code and is called by it, with raw pointers")]

use std::alloc::Layout;
use std::sync::Arc;

use monopour_contract::{LibraryFunction, RuntimeFunction, RuntimeTable};
use monopour_program::ConstantData;

use crate::error::Error;
use crate::host::{HostCalls, HostContext};
use crate::native::NativeModule;
use crate::pool::{GRANULARITY, Physical};

/// Makes one runtime call on behalf of native code.
fn enter<R: Default>(cx: i64, f: impl FnOnce(&mut dyn HostCalls) -> Result<R, Error>) -> R {
    let cx = cx as *mut HostContext<'_>;
    // SAFETY: native code passes on the first argument that it got from `HostFunction::call`: a context that outlives the call,
    // is not borrowed elsewhere meanwhile, and is used on this thread only, as host code creates no threads.
    let cx = unsafe { &mut *cx };
    cx.call(f)
}

extern "C" fn input(cx: i64, index: i64) -> i64 {
    enter(cx, |calls| calls.input(index))
}

extern "C" fn constant(cx: i64, index: i64) -> i64 {
    enter(cx, |calls| calls.constant(index))
}

extern "C" fn alloc(cx: i64, bytes: i64) -> i64 {
    enter(cx, |calls| calls.alloc(bytes))
}

extern "C" fn arena(cx: i64, bytes: i64) -> i64 {
    enter(cx, |calls| calls.arena(bytes))
}

extern "C" fn free(cx: i64, handle: i64) {
    enter(cx, |calls| calls.free(handle));
}

extern "C" fn result(cx: i64, index: i64, handle: i64) {
    enter(cx, |calls| calls.result(index, handle));
}

extern "C" fn arg(cx: i64, handle: i64, offset: i64, bytes: i64) {
    enter(cx, |calls| calls.arg(handle, offset, bytes));
}

extern "C" fn dispatch(cx: i64, kernel: i64, x: i64, y: i64, z: i64) {
    enter(cx, |calls| calls.dispatch(kernel, [x, y, z]));
}

extern "C" fn dispatch_once(cx: i64, kernel: i64, x: i64, y: i64, z: i64) {
    enter(cx, |calls| calls.dispatch_once(kernel, [x, y, z]));
}

extern "C" fn copy(cx: i64, src: i64, src_offset: i64, dst: i64, dst_offset: i64, bytes: i64) {
    enter(cx, |calls| calls.copy((src, src_offset), (dst, dst_offset), bytes));
}

extern "C" fn fill(cx: i64, dst: i64, offset: i64, bytes: i64, pattern: i64) {
    enter(cx, |calls| calls.fill((dst, offset), bytes, pattern as u32));
}

extern "C" fn input_scalar(cx: i64, index: i64) -> i64 {
    enter(cx, |calls| calls.input_scalar(index))
}

extern "C" fn input_dim(cx: i64, index: i64, dim: i64) -> i64 {
    enter(cx, |calls| calls.input_dim(index, dim))
}

extern "C" fn result_scalar(cx: i64, index: i64, bits: i64) {
    enter(cx, |calls| calls.result_scalar(index, bits));
}

extern "C" fn result_dim(cx: i64, index: i64, dim: i64, extent: i64) {
    enter(cx, |calls| calls.result_dim(index, dim, extent));
}

extern "C" fn scalar(cx: i64, bits: i64) {
    enter(cx, |calls| calls.scalar(bits));
}

extern "C" fn read(cx: i64, handle: i64, offset: i64, bytes: i64) -> i64 {
    enter(cx, |calls| calls.read(handle, offset, bytes))
}

extern "C" fn write(cx: i64, handle: i64, offset: i64, bytes: i64, bits: i64) {
    enter(cx, |calls| calls.write(handle, offset, bytes, bits));
}

extern "C" fn message(cx: i64, bytes: i64) {
    enter(cx, |calls| calls.message(bytes));
}

extern "C" fn trap(cx: i64, code: i64) {
    enter(cx, |calls| calls.trap(code));
}

/// Whether no call has failed: ends a loop that relies on a value from a failed call.
extern "C" fn ok(cx: i64) -> i64 {
    let cx = cx as *const HostContext<'_>;
    // SAFETY: as in `enter`.
    let cx = unsafe { &*cx };
    i64::from(cx.is_ok())
}

/// The implementation of every function of the runtime.
const TABLE: RuntimeTable = RuntimeTable {
    input,
    result,
    constant,
    alloc,
    arena,
    free,
    arg,
    dispatch,
    dispatch_once,
    copy,
    fill,
    input_scalar,
    input_dim,
    result_scalar,
    result_dim,
    scalar,
    read,
    write,
    message,
    trap,
    ok,
};

/// The address of a function that native code may call.
pub(crate) fn resolve(symbol: &str) -> Option<usize> {
    if let Some(function) = RuntimeFunction::parse(symbol) {
        return Some(TABLE.address(function));
    }
    Some(match LibraryFunction::parse(symbol)? {
        LibraryFunction::Memcpy => libc::memcpy as *const () as usize,
        LibraryFunction::Memmove => libc::memmove as *const () as usize,
        LibraryFunction::Memset => libc::memset as *const () as usize,
    })
}

/// The host function of a variant, with the module that holds it.
#[derive(Clone, Debug)]
pub(crate) struct HostFunction {
    address: usize,
    _module: Arc<NativeModule>,
}

impl HostFunction {
    /// The function `symbol` of `module`.
    pub fn find(module: &Arc<NativeModule>, symbol: &str) -> Result<HostFunction, Error> {
        let address = find(module, symbol)?;
        Ok(HostFunction { address, _module: module.clone() })
    }

    /// Runs the host function; its runtime calls go to `calls`.
    ///
    /// # Errors
    /// The first error of a runtime call.
    pub fn call(&self, calls: &mut dyn HostCalls) -> Result<(), Error> {
        let mut cx = HostContext::new(calls);
        // SAFETY: the address is that of a symbol in executable pages that `_module` keeps; that it is a function
        // `void(int64_t)` is the artifact's contract, whose hash was checked.
        let function = unsafe { std::mem::transmute::<usize, extern "C" fn(i64)>(self.address) };
        function(&raw mut cx as i64);
        cx.finish()
    }
}

/// A CPU kernel, with the module that holds it.
#[derive(Clone, Debug)]
pub(crate) struct NativeKernel {
    address: usize,
    _module: Arc<NativeModule>,
}

impl NativeKernel {
    /// The kernel `symbol` of `module`.
    pub fn find(module: &Arc<NativeModule>, symbol: &str) -> Result<NativeKernel, Error> {
        let address = find(module, symbol)?;
        Ok(NativeKernel { address, _module: module.clone() })
    }

    /// Runs one task: `args` are base addresses, then scalars; `ids` the tile ids, outermost first.
    pub fn call(&self, args: &[u64], ids: &[i64]) {
        type Function = extern "C" fn(*const u64, *const i64);
        // SAFETY: as in `HostFunction::call`; a kernel is `void(void *const *, const int64_t *)` by the artifact's
        // contract, and an address has the representation of a pointer. It stays within its buffers:
        // their sizes were checked against those stated by host code.
        let function = unsafe { std::mem::transmute::<usize, Function>(self.address) };
        function(args.as_ptr(), ids.as_ptr());
    }
}

fn find(module: &NativeModule, symbol: &str) -> Result<usize, Error> {
    module.symbol(symbol).ok_or_else(|| Error::native(format!("the object does not define `{symbol}`")))
}

/// Padding of each buffer. A kernel that looks up an element of an empty tensor reads at the tensor's start and
/// drops the value; that address may be the end of a buffer.
const ONE_ELEMENT: usize = 16;

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
        let layout = Layout::from_size_align(room, GRANULARITY as usize).map_err(|_| out_of_memory.clone())?;
        // SAFETY: the layout's size is not zero.
        let address = unsafe { std::alloc::alloc_zeroed(layout) };
        if address.is_null() {
            return Err(out_of_memory);
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
