//! A dealloc of several memrefs without any list on the heap.
//!
//! A few pointers are compared in registers, each with each. Many go to lists on the stack, where loops compare them, because
//! straight-line code would grow with the number of pairs.

use monopour_ir::ops;
use monopour_ir::typed::arith::CmpIPredicate;
use monopour_ir::{Diagnostics, Op, Rewriter, Value};

use super::{Dealloc, compare, free_if, general, pointer_of};

/// Most pairs of pointers compared one by one, so that the code stays shorter than the loops.
const MAX_PAIRS: usize = 64;

pub(super) fn lower<'c>(op: Op<'c>, parts: &Dealloc<'c>, rw: &mut Rewriter<'c>) -> Result<Vec<Value<'c>>, Diagnostics> {
    let count = parts.memrefs.len();
    let pairs = count * parts.retained.len() + count * (count - 1) / 2;
    if pairs > MAX_PAIRS {
        return general::lower_on_stack(op, parts, rw);
    }
    let loc = op.location();
    let mut pointers = Vec::with_capacity(count);
    for memref in &parts.memrefs {
        pointers.push(pointer_of(op, *memref, rw)?);
    }
    let mut retained = Vec::with_capacity(parts.retained.len());
    for memref in &parts.retained {
        retained.push(pointer_of(op, *memref, rw)?);
    }
    let never = rw.const_bool(false, loc);
    let always = rw.const_bool(true, loc);
    let mut results = vec![never; retained.len()];
    let mut frees = Vec::with_capacity(count);
    for (i, pointer) in pointers.iter().enumerate() {
        let condition = parts.conditions[i];
        let mut is_kept = never;
        for (result, other) in results.iter_mut().zip(&retained) {
            let same = compare(CmpIPredicate::Eq, loc, *pointer, *other, rw)?;
            let owns = rw.binary(ops::arith::ANDI, same, condition, loc)?;
            *result = rw.binary(ops::arith::ORI, *result, owns, loc)?;
            is_kept = rw.binary(ops::arith::ORI, is_kept, same, loc)?;
        }
        // An owner after an alias without ownership still frees the memory.
        for (earlier, owns) in pointers[..i].iter().zip(&parts.conditions) {
            let same = compare(CmpIPredicate::Eq, loc, *pointer, *earlier, rw)?;
            let frees = rw.binary(ops::arith::ANDI, same, *owns, loc)?;
            is_kept = rw.binary(ops::arith::ORI, is_kept, frees, loc)?;
        }
        let goes = rw.binary(ops::arith::XORI, is_kept, always, loc)?;
        frees.push(rw.binary(ops::arith::ANDI, goes, condition, loc)?);
    }
    for (free, memref) in frees.into_iter().zip(&parts.memrefs) {
        free_if(op, free, *memref, rw)?;
    }
    Ok(results)
}
