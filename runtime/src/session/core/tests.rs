//! Inputs that a session refuses before it runs.

use std::cell::Cell;
use std::sync::Arc;

use super::{Claim, unwrap};
use crate::buffer::{Shared, Storage};
use crate::error::Error;
use crate::executor::{Place, Value};
use crate::pool::{Loan, Physical};

struct Memory;

impl Physical for Memory {
    fn bytes(&self) -> u64 {
        0
    }
}

/// The outcome for one input with this memory; `held`: it has another holder.
fn outcome(donated: bool, held: bool) -> Result<usize, Error> {
    let memory: Shared<Memory> = Arc::new(Loan::foreign(Memory));
    let _elsewhere = held.then(|| memory.clone());
    let memory = Cell::new(Some(memory));
    let claim = Claim { storage: Storage::Scalar(0), bytes: 0, shape: vec![0], donated };
    unwrap(vec![claim], |_| memory.take().map(|memory| Value::Buffer(Place::own(memory)))).map(|inputs| inputs.len())
}

/// Another session may be reading the tensor in another thread. If a donated tensor in use elsewhere were accepted, the
/// program would write memory that the other session reads.
#[test]
fn a_donated_tensor_in_use_elsewhere_is_refused() {
    assert!(matches!(outcome(true, false), Ok(1)));
    assert!(matches!(outcome(false, true), Ok(1)), "many may read");
    let error = outcome(true, true).unwrap_err();
    assert_eq!(error.code(), "R0016");
    assert!(error.to_string().contains("in use elsewhere"), "{error}");
}
