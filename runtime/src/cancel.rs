//! The sign that a run is to end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::Error;

/// Shared by a run and by who may cancel it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cancel(Arc<AtomicBool>);

impl Cancel {
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// # Errors
    /// [`Error::Cancelled`] once it is set.
    pub fn check(&self) -> Result<(), Error> {
        if self.is_set() { Err(Error::Cancelled) } else { Ok(()) }
    }
}
