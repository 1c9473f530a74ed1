//! Workgroup tiles over invocations, then naga, WGSL and SPIR-V.
//!
//! [`distribute`] turns each outlined kernel (a short list of linalg ops over one tile) into the code of one invocation, in a
//! small closed op set; [`emit`] translates that set to a `naga::Module` without choosing anything, and writes it as WGSL and SPIR-V.

pub mod distribute;
pub mod emit;
mod error;
