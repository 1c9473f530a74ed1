//! The host function of a session, in one of its forms.

use crate::error::Error;
use crate::ffi::HostFunction;
use crate::host::HostCalls;
use crate::interpret::Interpreter;

/// The form of the host function that runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostForm {
    /// Native code where the program is trusted and was compiled for this architecture, else data.
    #[default]
    Auto,
    /// Native code.
    Native,
    /// Data, interpreted.
    Data,
}

impl HostForm {
    /// The name, as `--host` takes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            HostForm::Auto => "auto",
            HostForm::Native => "native",
            HostForm::Data => "data",
        }
    }
}

/// A host function, ready to run.
#[derive(Debug)]
pub(crate) enum LoadedHost {
    Native(HostFunction),
    Data(Interpreter),
}

impl LoadedHost {
    /// Runs it; its runtime calls go to `calls`.
    ///
    /// # Errors
    /// The first error of a runtime call; those of the interpreter.
    pub fn call(&mut self, calls: &mut dyn HostCalls) -> Result<(), Error> {
        match self {
            LoadedHost::Native(function) => function.call(calls),
            LoadedHost::Data(interpreter) => interpreter.call(calls),
        }
    }
}
