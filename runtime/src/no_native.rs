//! Native code where the runtime has none: nothing of it exists, and loading it is an error.

use std::sync::Arc;

use monopour_program::NativeCode;

use crate::error::Error;
use crate::host::HostCalls;

/// Loaded code: [`load`] makes none. (Types without values would make code behind them unreachable, which is a warning.)
#[derive(Debug)]
pub(crate) struct NativeModule(());

/// The host function of a variant: there is none.
#[derive(Clone, Debug)]
pub(crate) struct HostFunction(());

/// A CPU kernel: there is none.
#[derive(Clone, Debug)]
pub(crate) struct NativeKernel(());

/// Loads nothing.
///
/// # Errors
/// [`Error::NativeCode`].
pub(crate) fn load(_code: &NativeCode) -> Result<Arc<NativeModule>, Error> {
    Err(nothing())
}

fn nothing() -> Error {
    Error::native("this build of the runtime runs no native code")
}

impl HostFunction {
    pub fn find(_module: &Arc<NativeModule>, _symbol: &str) -> Result<HostFunction, Error> {
        Err(nothing())
    }

    pub fn call(&self, _calls: &mut dyn HostCalls) -> Result<(), Error> {
        Err(nothing())
    }
}

impl NativeKernel {
    pub fn find(_module: &Arc<NativeModule>, _symbol: &str) -> Result<NativeKernel, Error> {
        Err(nothing())
    }

    /// Never called: [`NativeKernel::find`] finds none.
    pub fn call(&self, _args: &[u64], _ids: &[i64]) {}
}
