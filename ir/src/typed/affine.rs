//! Ops of the dialect `affine`.

use crate::ops;
use std::ops::Range;

view! {
    /// `affine.for`.
    For, ops::affine::FOR
}

impl For<'_> {
    /// The positions of the initial values of the loop-carried ones.
    pub fn init_positions(self) -> Range<usize> {
        self.0.operand_segment(2)
    }
}
