//! Trust in a program's native code and SPIR-V, which no check can make safe.
#![allow(unsafe_code, reason = "declares the function by which a caller vouches for machine code")]

use crate::program::Program;

/// Whether someone vouched for a program: what it says is run as machine code only as long as it is what was vouched for.
///
/// It is no part of a program's value: programs are equal whatever their trust, and it is not in the artifact.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trust(Option<[u8; 32]>);

impl PartialEq for Trust {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Eq for Trust {}

impl Program {
    /// Vouches for the program as it is now: its native code may run in this process, and its SPIR-V may go to the driver as
    /// it is. A program that is changed afterwards is no longer trusted.
    ///
    /// # Safety
    /// The native code of every variant does what its host function and kernels are declared to do, and touches no other
    /// memory than their arguments; the same holds for SPIR-V. That is so for what monopour compiled, if no one has changed
    /// it since: the hash in an artifact detects accidents, not forgeries.
    ///
    /// ```
    /// # use monopour_program::{Error, Program};
    /// fn ours(path: &std::path::Path) -> Result<Program, Error> {
    ///     let program = Program::open(path)?;
    ///     // SAFETY: this application wrote the file, into a folder that only it writes to.
    ///     Ok(unsafe { program.trust() })
    /// }
    /// ```
    #[must_use]
    pub unsafe fn trust(mut self) -> Program {
        self.trust = Trust(self.code_hash());
        self
    }

    /// Whether the program is what someone vouched for. A program that equals a trusted one is trusted with its
    /// [`Program::trust`](field@Program::trust).
    pub fn is_trusted(&self) -> bool {
        self.trust.0.is_some() && self.trust.0 == self.code_hash()
    }
}
