//! Turn `tensor.empty` into the allocation `bufferization.alloc_tensor`.
//!
//! ```text
//! %e = tensor.empty(%n) : tensor<?xf32>    ==>    %e = bufferization.alloc_tensor(%n) : tensor<?xf32>
//! ```
//!
//! No analysis. An allocation is no longer eliminated.
//! Source: MLIR's `empty-tensor-to-alloc-tensor`, LLVM 22.

use monopour_ir::ops;
use monopour_ir::typed::bufferization;
use monopour_ir::{Diagnostics, InsertionPoint, Op, Rewriter};

/// Replaces all in `root`, and returns their number.
///
/// # Errors
/// MLIR's diagnostics for the op.
pub fn empty_tensor_to_alloc_tensor(root: Op) -> Result<usize, Diagnostics> {
    let mut rw = Rewriter::new(root.context());
    let empties = root.find_all(ops::tensor::EMPTY);
    for empty in &empties {
        rw.set_point(InsertionPoint::Before(*empty));
        let spec = bufferization::alloc_tensor(empty.location(), &empty.operands(), None, empty.result(0).ty());
        let made = rw.create(spec)?;
        rw.replace_op(*empty, &made.results());
    }
    Ok(empties.len())
}
