//! Vouches for what this process compiled.
#![allow(unsafe_code, reason = "vouches for the machine code of this compiler")]

use monopour_program::Program;

/// The program, trusted.
pub(crate) fn compiled(program: Program) -> Program {
    // SAFETY: the code generators of this process made its code for its declarations. Objects of earlier compilations come
    // from a folder that `CompileOptions::object_cache` asks to be as trusted as the program.
    unsafe { program.trust() }
}
