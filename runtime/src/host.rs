//! The calls of host code to the runtime.

use crate::error::Error;

/// The calls of the host ABI. Handles are logical ids of allocations, from 1; 0 is none.
pub(crate) trait HostCalls: Send {
    /// An error once the run is cancelled: for loops that call nothing else.
    fn check(&self) -> Result<(), Error>;
    /// The handle of an input.
    fn input(&mut self, index: i64) -> Result<i64, Error>;
    /// The handle of a constant.
    fn constant(&mut self, index: i64) -> Result<i64, Error>;
    /// A new allocation.
    fn alloc(&mut self, bytes: i64) -> Result<i64, Error>;
    /// The arena, at least `bytes` long.
    fn arena(&mut self, bytes: i64) -> Result<i64, Error>;
    /// Asks for the place of a transient of `bytes` bytes, alive between ops of these two positions.
    fn request(&mut self, bytes: i64, lives: [i64; 2]) -> Result<(), Error>;
    /// The buffer of a request.
    fn place(&mut self, request: i64) -> Result<i64, Error>;
    /// Frees an allocation.
    fn free(&mut self, handle: i64) -> Result<(), Error>;
    /// Passes ownership of a buffer to the caller, as result `index`.
    fn result(&mut self, index: i64, handle: i64) -> Result<(), Error>;
    /// Pushes kernel arguments, each a handle, an offset and a number of bytes.
    fn args(&mut self, args: &[[i64; 3]]) -> Result<(), Error>;
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
