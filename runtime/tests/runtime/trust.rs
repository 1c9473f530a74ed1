//! Trust in the programs of these tests.
#![allow(unsafe_code, reason = "vouches for what the tests compile")]

use std::sync::Arc;

use monopour_program::Program;

/// The program, trusted.
pub fn trusted(program: Program) -> Arc<Program> {
    // SAFETY: the C and WGSL of these tests do what their metadata says, or are refused before they run.
    Arc::new(unsafe { program.trust() })
}
