//! The boundary with native code: the functions that it calls, and the calls into it.
#![allow(unsafe_code, reason = "calls native code and is called by it, with raw pointers")]

use std::sync::Arc;

use monopour_contract::{LibraryFunction, RuntimeFunction, RuntimeTable};
use monopour_program::NativeCode;

use crate::error::Error;
use crate::host::HostCalls;
use crate::native;
pub(crate) use crate::native::NativeModule;

/// Arguments that are kept until the next call of another kind: more than most dispatches have.
const MOST_KEPT: usize = 16;

/// The first argument of every call.
struct HostContext<'a> {
    calls: &'a mut dyn HostCalls,
    error: Option<Error>,
    /// Pushed arguments: handle, offset, bytes. They are passed on together before the next call, so that a dispatch is one call
    /// that catches panics, not one more for each argument.
    kept: [[i64; 3]; MOST_KEPT],
    kept_len: usize,
}

impl<'a> HostContext<'a> {
    fn new(calls: &'a mut dyn HostCalls) -> HostContext<'a> {
        HostContext { calls, error: None, kept: [[0; 3]; MOST_KEPT], kept_len: 0 }
    }

    /// Pushes an argument of the next dispatch.
    fn keep(&mut self, argument: [i64; 3]) {
        if self.kept_len == MOST_KEPT {
            self.call(|_| Ok(()));
        }
        self.kept[self.kept_len] = argument;
        self.kept_len += 1;
    }

    /// Makes one call, after passing on the kept arguments. After the first error every call does nothing and returns
    /// `R::default()`.
    fn call<R: Default>(&mut self, f: impl FnOnce(&mut dyn HostCalls) -> Result<R, Error>) -> R {
        let kept = &self.kept[..std::mem::take(&mut self.kept_len)];
        if self.error.is_some() {
            return R::default();
        }
        let calls = &mut *self.calls;
        // Unwinding into native code, which has no unwind tables, would abort the process.
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            if !kept.is_empty() {
                calls.args(kept)?;
            }
            f(calls)
        }));
        match outcome {
            Ok(Ok(value)) => value,
            Ok(Err(error)) => {
                self.error = Some(error);
                R::default()
            }
            Err(_) => {
                self.error = Some(Error::host_code("a runtime call panicked"));
                R::default()
            }
        }
    }

    /// The first error, once host code has returned.
    fn finish(mut self) -> Result<(), Error> {
        // Arguments without a dispatch are checked all the same.
        self.call(|_| Ok(()));
        self.error.map_or(Ok(()), Err)
    }
}

/// Makes one runtime call on behalf of native code.
fn enter<R: Default>(cx: i64, f: impl FnOnce(&mut dyn HostCalls) -> Result<R, Error>) -> R {
    with(cx, |cx| cx.call(f))
}

fn with<R>(cx: i64, f: impl FnOnce(&mut HostContext<'_>) -> R) -> R {
    let cx = cx as *mut HostContext<'_>;
    // SAFETY: native code passes on the first argument that it got from `HostFunction::call`: a context that outlives the call,
    // is not borrowed elsewhere meanwhile, and is used on this thread only, as host code creates no threads.
    f(unsafe { &mut *cx })
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
    with(cx, |cx| cx.keep([handle, offset, bytes]));
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

/// Whether no call has failed and the run is not cancelled, which counts as a failure: ends a loop.
extern "C" fn ok(cx: i64) -> i64 {
    enter(cx, |calls| calls.check().map(|()| 1))
}

extern "C" fn request(cx: i64, bytes: i64, first: i64, last: i64) {
    enter(cx, |calls| calls.request(bytes, [first, last]));
}

extern "C" fn place(cx: i64, request: i64) -> i64 {
    enter(cx, |calls| calls.place(request))
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
    request,
    place,
};

/// The address of a function that native code may call.
fn resolve(symbol: &str) -> Option<usize> {
    if let Some(function) = RuntimeFunction::parse(symbol) {
        return Some(TABLE.address(function));
    }
    Some(match LibraryFunction::parse(symbol)? {
        LibraryFunction::Memcpy => libc::memcpy as *const () as usize,
        LibraryFunction::Memmove => libc::memmove as *const () as usize,
        LibraryFunction::Memset => libc::memset as *const () as usize,
    })
}

/// Loads `code`.
///
/// # Errors
/// Those of [`NativeModule::load`] and [`native::ask_for_registers`].
pub(crate) fn load(code: &NativeCode) -> Result<Arc<NativeModule>, Error> {
    native::ask_for_registers(&code.features)?;
    Ok(Arc::new(NativeModule::load(&code.objects, &resolve)?))
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
        // `void(int64_t)` is the contract of `Program::trust`: a session loads the code of trusted programs only.
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
