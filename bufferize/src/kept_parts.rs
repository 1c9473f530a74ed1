//! Copy the part of a tensor that an insertion keeps, not all of it, nor what is inserted.
//!
//! ```text
//! %s = "stencil"(%x) outs(%e)                        %t = tensor.empty()
//! %n = tensor.insert_slice %s into %x[1] [14]  ==>   %a = tensor.insert_slice %x[0] [1] into %t[0] [1]
//!                                                    %b = tensor.insert_slice %x[15] [1] into %a[15] [1]
//!                                                    %s = "stencil"(%x) outs(%b[1] [14])
//!                                                    %n = tensor.insert_slice %s into %b[1] [14]
//! ```
//!
//! The left side copies what it inserts, for the dispatch reads what it would overwrite: 14 elements against 2. Where the tensor
//! may not be overwritten at all, the left side copies all of it: also what is overwritten then.
//!
//! Requires: functions on tensors, before bufferization. Ensures: the same values; a change that copies no fewer bytes is undone.
//! Limits: insertions of static place without steps that are part of one dimension alone.

use monopour_analysis::one_shot::InPlaceAnalysis;
use monopour_ir::typed::{Index, Slice, tensor};
use monopour_ir::{Diagnostic, Diagnostics, InsertionPoint, Op, OpSpec, Rewriter, Type, Use, ops};

use crate::block_order::BlockOrder;
use crate::copied::copied;
use crate::eliminate_empty_tensors::{self, Analysed};
use crate::improve::{Analyse, trials};
use crate::insert_copies::explain;
use crate::own_place::inserts_in_place;
use crate::remarks::{Remarks, bytes};
use crate::subset_extraction::{Edit, undo};

/// Insertions that are tried in one function.
const MOST_TRIED: usize = 8;

/// Copies less for the insertions of a function, and returns what was changed; remarks say why each part is copied. The analysis is
/// of the function as it is then.
///
/// # Errors
/// As [`crate::run_one_shot`], for programs that it would refuse.
pub(crate) fn keep_parts<'c>(
    function: Op<'c>,
    analysed: &mut Analysed<'c>,
    analyse: Analyse<'c, '_>,
    remarks: &mut Remarks,
) -> Result<Vec<Edit<'c>>, Diagnostics> {
    let (mut rw, mut kept) = (Rewriter::new(function.context()), vec![]);
    let found = candidates(analysed);
    for (insertion, parts) in found.into_iter().take(trials(analysed, MOST_TRIED)) {
        let (before, whole) = (copied(analysed).bytes, insertion.operand(1).ty());
        let mut edits = vec![];
        copy_parts(&mut rw, insertion, &parts, &mut edits)?;
        let mut after = analyse()?;
        let mut reasons = Remarks::default();
        edits.extend(eliminate_empty_tensors::improve(function, &mut after, analyse, Some(&mut reasons))?);
        if copied(&after).bytes < before {
            for ty in parts.iter().map(|part| part.ty(whole)) {
                remarks.push(reason(analysed, insertion, ty), ty.static_size_bytes());
            }
            remarks.append(reasons);
            *analysed = after;
            kept.extend(edits);
        } else {
            undo(&mut rw, &mut BlockOrder::default(), edits);
        }
    }
    Ok(kept)
}

/// Why a part is copied: as all of the tensor would be, or because what lies between the parts is read.
fn reason<'c>(Analysed { collected, decisions }: &Analysed<'c>, insertion: Op<'c>, part: Type<'c>) -> Diagnostic {
    let destination = collected.operand_ids.get(&(insertion, 1)).copied();
    let known = destination.and_then(|id| Some((id, decisions.reason(id)?)));
    let known = known.filter(|(id, _)| decisions.copy(*id).is_some_and(|copy| copy.contents));
    known.map_or_else(
        || {
            let name = insertion.name();
            let message = format!("copied {} for operand 1 of {name}: it keeps them in a new tensor", bytes(part));
            Diagnostic::remark("B0201", insertion.location(), message)
                .with_note("what it overwrites is read to make what it inserts, which would be copied instead")
                .with_help("let each tile of what is inserted read its own part alone, or write into another tensor")
        },
        |(id, reason)| explain(collected, id, reason, part, true),
    )
}

/// Insertions that copy more than what they keep, with the offset and size of each part that they keep, in the one dimension that
/// they do not overwrite whole.
fn candidates<'c>(analysed: &Analysed<'c>) -> Vec<(Op<'c>, Vec<Part>)> {
    let Analysed { collected, decisions } = analysed;
    let in_place = inserts_in_place(collected, decisions);
    let mut found = vec![];
    for op in collected.ops.iter().copied().filter(|op| op.is(ops::tensor::INSERT_SLICE)) {
        let bytes = |operand: usize| op.operand(operand).ty().static_size_bytes();
        let (Some(parts), Some(inserted), Some(whole)) = (kept_parts(op), bytes(0), bytes(1)) else { continue };
        let destination = collected.operand_ids.get(&(op, 1)).and_then(|id| decisions.copy(*id));
        let copied = if destination.is_some_and(|copy| copy.contents) { whole } else { 0 };
        let moved = if in_place.contains(&op) { 0 } else { inserted };
        // What is copied in any case may be what is inserted.
        if whole - inserted < copied.max(moved) {
            found.push((op, parts));
        }
    }
    found
}

/// Offset and size in the dimension that an insertion overwrites in part.
#[derive(Clone, Copy, Debug)]
struct Part {
    dimension: usize,
    offset: i64,
    size: i64,
}

impl Part {
    /// The type of the part.
    fn ty<'c>(&self, whole: Type<'c>) -> Type<'c> {
        let mut sizes = whole.shape().unwrap_or_default();
        sizes[self.dimension] = self.size;
        Type::tensor(&sizes, whole.element(), whole.as_tensor().and_then(|tensor| tensor.encoding))
    }
}

fn kept_parts(insertion: Op) -> Option<Vec<Part>> {
    insertion.operand(1).ty().static_size_bytes()?;
    let (slice, shape) = (Slice::of(insertion)?, insertion.operand(1).ty().shape()?);
    let known = |index: &Index| if let Index::Static(number) = index { Some(*number) } else { None };
    let list = |of: &[Index]| of.iter().map(known).collect::<Option<Vec<i64>>>();
    let (offsets, sizes, strides) = (list(&slice.offsets)?, list(&slice.sizes)?, list(&slice.strides)?);
    let are_ranks_equal = insertion.operand(0).ty().shape()?.len() == shape.len();
    let partial: Vec<usize> = (0..shape.len()).filter(|d| sizes[*d] != shape[*d]).collect();
    let [dimension] = partial[..] else { return None };
    if !are_ranks_equal || strides.iter().any(|stride| *stride != 1) {
        return None;
    }
    let (from, to) = (offsets[dimension], offsets[dimension] + sizes[dimension]);
    let parts = [(0, from), (to, shape[dimension] - to)];
    let parts = parts.into_iter().filter(|(_, size)| *size > 0);
    Some(parts.map(|(offset, size)| Part { dimension, offset, size }).collect())
}

/// Makes the destination of the insertion a new tensor with nothing but the parts in it.
fn copy_parts<'c>(
    rw: &mut Rewriter<'c>,
    insertion: Op<'c>,
    parts: &[Part],
    edits: &mut Vec<Edit<'c>>,
) -> Result<(), Diagnostics> {
    let (loc, whole) = (insertion.location(), insertion.operand(1));
    let shape = whole.ty().shape().unwrap_or_default();
    rw.set_point(InsertionPoint::Before(insertion));
    let mut made = |rw: &mut Rewriter<'c>, spec: OpSpec<'c, '_>| {
        let op = rw.create(spec)?;
        edits.push(Edit::Made(op));
        Ok::<_, Diagnostics>(op.result(0))
    };
    let mut new = made(rw, OpSpec::new(ops::tensor::EMPTY, loc).results(&[whole.ty()]))?;
    for part in parts {
        let (mut offsets, ty) = (vec![0; shape.len()], part.ty(whole.ty()));
        offsets[part.dimension] = part.offset;
        let slice = Slice::fixed(&offsets, &ty.shape().unwrap_or_default());
        let part = made(rw, tensor::extract_slice(loc, whole, &slice, ty))?;
        new = made(rw, tensor::insert_slice(loc, part, new, &slice))?;
    }
    rw.set_operand(insertion, 1, new);
    edits.push(Edit::Reader { used: Use { op: insertion, index: 1 }, old: whole });
    Ok(())
}
