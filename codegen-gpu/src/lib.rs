//! Distribution of tiles over invocations, then naga, WGSL and SPIR-V.
//!
//! * [`distribute`]: each outlined kernel (a short list of linalg ops over one tile) becomes the code of one invocation, in
//!   a small closed op set.
//! * [`emit`]: translates that set to a `naga::Module` without choices, and writes it as WGSL and SPIR-V.
//! * `error`: the diagnostics.

pub mod distribute;
pub mod emit;
mod error;
