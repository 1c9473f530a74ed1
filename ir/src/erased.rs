//! Use-after-erase checks in debug builds: a handle that outlives its op panics when used, and names the op.
//!
//! An address counts as erased on this thread until MLIR returns another object there. Erasures by upstream's passes are not
//! seen. Release builds keep and check nothing.

#[cfg(debug_assertions)]
mod kept {
    use crate::HandleMap;
    use std::cell::RefCell;

    thread_local! {
        /// Names of erased ops, by address.
        pub(super) static ERASED: RefCell<HandleMap<usize, Box<str>>> = RefCell::default();
    }
}

/// Records that the op at this address is about to be erased.
#[inline]
pub(crate) fn erasing(address: usize, name: &str) {
    #[cfg(debug_assertions)]
    kept::ERASED.with_borrow_mut(|erased| erased.insert(address, name.into()));
    #[cfg(not(debug_assertions))]
    let _ = (address, name);
}

/// An op without regions that a call may erase.
pub(crate) struct Pending {
    #[cfg(debug_assertions)]
    op: (usize, Box<str>),
}

impl Pending {
    /// Only debug builds read the name.
    #[inline]
    pub(crate) fn new<'c>(address: usize, name: impl FnOnce() -> &'c str) -> Self {
        #[cfg(not(debug_assertions))]
        let _ = (address, name);
        Self {
            #[cfg(debug_assertions)]
            op: (address, name().into()),
        }
    }
    /// Records that the call erased it.
    #[inline]
    pub(crate) fn note_gone(self) {
        #[cfg(debug_assertions)]
        kept::ERASED.with_borrow_mut(|erased| erased.insert(self.op.0, self.op.1));
    }
}

/// Records that MLIR returned a live object at this address.
#[inline]
pub(crate) fn made(address: usize) {
    #[cfg(debug_assertions)]
    kept::ERASED.with_borrow_mut(|erased| {
        if !erased.is_empty() {
            erased.remove(&address);
        }
    });
    #[cfg(not(debug_assertions))]
    let _ = address;
}

/// # Panics
/// In debug builds, where an op at this address was erased.
#[inline]
#[cfg_attr(debug_assertions, track_caller)]
pub(crate) fn check(address: usize) {
    #[cfg(debug_assertions)]
    kept::ERASED.with_borrow(|erased| {
        if let Some(name) = erased.get(&address) {
            panic!("'{name}' is used after it was erased");
        }
    });
    #[cfg(not(debug_assertions))]
    let _ = address;
}
