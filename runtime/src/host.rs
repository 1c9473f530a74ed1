//! The calls of host code to the runtime, and their context.

use crate::error::Error;

/// The calls of the host ABI. Handles are logical ids of allocations, from 1; 0 is none.
pub(crate) trait HostCalls: Send {
    /// The handle of an input.
    fn input(&mut self, index: i64) -> Result<i64, Error>;
    /// The handle of a constant.
    fn constant(&mut self, index: i64) -> Result<i64, Error>;
    /// A new allocation.
    fn alloc(&mut self, bytes: i64) -> Result<i64, Error>;
    /// The arena, at least `bytes` long.
    fn arena(&mut self, bytes: i64) -> Result<i64, Error>;
    /// Frees an allocation.
    fn free(&mut self, handle: i64) -> Result<(), Error>;
    /// Passes ownership of a buffer to the caller, as result `index`.
    fn result(&mut self, index: i64, handle: i64) -> Result<(), Error>;
    /// Pushes a kernel argument.
    fn arg(&mut self, handle: i64, offset: i64, bytes: i64) -> Result<(), Error>;
    /// Runs a kernel over `grid` with the pushed arguments.
    fn dispatch(&mut self, kernel: i64, grid: [i64; 3]) -> Result<(), Error>;
    /// As `dispatch`, if the arena is new; else drops the pushed arguments.
    fn dispatch_once(&mut self, kernel: i64, grid: [i64; 3]) -> Result<(), Error>;
    /// The value of a scalar input, in the low bits.
    fn input_scalar(&mut self, index: i64) -> Result<i64, Error>;
    /// The size of a dimension of an input.
    fn input_dim(&mut self, index: i64, dim: i64) -> Result<i64, Error>;
    /// Sets the value of a scalar result, in the low bits.
    fn result_scalar(&mut self, index: i64, bits: i64) -> Result<(), Error>;
    /// Sets the size of a dimension of a result.
    fn result_dim(&mut self, index: i64, dim: i64, extent: i64) -> Result<(), Error>;
    /// Pushes a scalar argument of the next dispatch.
    fn scalar(&mut self, bits: i64) -> Result<(), Error>;
    /// Reads up to 8 bytes of a buffer; waits for their writes.
    fn read(&mut self, handle: i64, offset: i64, bytes: i64) -> Result<i64, Error>;
    /// Writes up to 8 bytes of a buffer.
    fn write(&mut self, handle: i64, offset: i64, bytes: i64, bits: i64) -> Result<(), Error>;
    /// Appends up to 8 bytes to the message of the next trap.
    fn message(&mut self, bytes: i64) -> Result<(), Error>;
    /// Ends the run with an error of the program.
    fn trap(&mut self, code: i64) -> Result<(), Error>;
    /// Copies bytes between buffers or within one.
    fn copy(&mut self, src: (i64, i64), dst: (i64, i64), bytes: i64) -> Result<(), Error>;
    /// Fills bytes with a repeated 32-bit pattern.
    fn fill(&mut self, dst: (i64, i64), bytes: i64, pattern: u32) -> Result<(), Error>;
}

/// The first argument of every call.
pub(crate) struct HostContext<'a> {
    calls: &'a mut dyn HostCalls,
    error: Option<Error>,
}

impl<'a> HostContext<'a> {
    pub fn new(calls: &'a mut dyn HostCalls) -> HostContext<'a> {
        HostContext { calls, error: None }
    }

    /// Makes one call. After the first error every call does nothing and returns `R::default()`.
    pub fn call<R: Default>(&mut self, f: impl FnOnce(&mut dyn HostCalls) -> Result<R, Error>) -> R {
        if self.error.is_some() {
            return R::default();
        }
        // Unwinding into native code, which has no unwind tables, would abort the process.
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| f(self.calls)));
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

    /// Whether no call has failed so far.
    pub fn is_ok(&self) -> bool {
        self.error.is_none()
    }

    /// The first error, once host code has returned.
    pub fn finish(self) -> Result<(), Error> {
        self.error.map_or(Ok(()), Err)
    }
}
