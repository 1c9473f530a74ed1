//! Let iterations of a parallel loop read the loop's operand instead of the output that others write.
//!
//! ```text
//! scf.forall (%i) in (4) shared_outs(%o = %t) {         scf.forall (%i) in (4) shared_outs(%o = %t) {
//!   %s = tensor.extract_slice %o[%other] [4] [1]  ==>     %s = tensor.extract_slice %t[%other] [4] [1]
//!   ..                                                    ..
//!     tensor.parallel_insert_slice %x into %o[%i] ..        tensor.parallel_insert_slice %x into %o[%i] ..
//! ```
//!
//! An iteration's shared output has the contents of the initial tensor until the iteration ends: both sides mean the same.
//! On memory they do not, for other iterations may have written by then; the right side shows the analysis a read of contents that
//! the loop overwrites, and the loop gets a copy. Reads of the slice that the iteration itself inserts are unchanged.
//! Differs: upstream keeps the left side, and iterations read each other's results.

use monopour_ir::ops;
use monopour_ir::{Op, Rewriter, Value};

use crate::slices::{Symbols, key, slice_of};

/// Rewrites the parallel loops of a function.
pub(crate) fn run(function: Op) {
    let mut rw = Rewriter::new(function.context());
    for forall in function.find_all(ops::scf::FORALL) {
        let Some(body) = forall.body() else { continue };
        let first = body.num_args() - forall.num_results().min(body.num_args());
        for i in 0..forall.num_results() {
            let init = forall.operand(forall.num_operands() - forall.num_results() + i);
            redirect(&mut rw, body.arg(first + i), init);
        }
    }
}

fn redirect<'c>(rw: &mut Rewriter<'c>, shared: Value<'c>, init: Value<'c>) {
    let mut symbols = Symbols::default();
    let uses = shared.uses();
    let is_insert = |op: Op<'c>, index: usize| op.is(ops::tensor::PARALLEL_INSERT_SLICE) && index == 1;
    let inserted: Vec<_> = uses
        .iter()
        .filter(|u| is_insert(u.op, u.index))
        .filter_map(|u| slice_of(u.op))
        .map(|s| key(&mut symbols, &s))
        .collect();
    for used in uses.into_iter().filter(|u| !is_insert(u.op, u.index)) {
        let slice = if used.op.is(ops::tensor::EXTRACT_SLICE) { slice_of(used.op) } else { None };
        // A slice that only its own iteration writes has not been written yet.
        let own = slice.is_some_and(|s| inserted.contains(&key(&mut symbols, &s)));
        if !own && !used.op.is(ops::tensor::DIM) {
            rw.set_operand(used.op, used.index, init);
        }
    }
}
