//! Promote small buffers to the stack.
//!
//! ```text
//! func.func @f(%x: memref<8xf32>) {                     func.func @f(%x: memref<8xf32>) {
//!   %t = memref.alloc() : memref<8xf32>        ==>        %t = memref.alloca() : memref<8xf32>
//!   "use"(%t, %x)                                         "use"(%t, %x)
//!   return                                                return
//! }                                                     }
//! ```
//!
//! An allocation becomes an alloca in place. It must be small, and no alias may leave the enclosing allocation scope,
//! as a result, through memory or as an address.
//! With extensions buffers of dynamic size are promoted too where a constant bounds the size (they take that much stack), and
//! freed buffers without their frees.
//! Limits: ranked buffers of known element size; not in a block on a cycle, where each iteration would take more stack.
//! Source: the pass `promote-buffers-to-stack` of MLIR.
//! Differs: upstream lets addresses of stack memory escape from functions, and promotes in loops of blocks.

use monopour_ir::control_flow::{view_source, viewed};
use monopour_ir::interfaces::{is_allocation_scope, is_region_branch, is_repetitive_region, type_bits};
use monopour_ir::ops;
use monopour_ir::typed::memref;
use monopour_ir::{DYNAMIC, Diagnostics, HandleMap, InsertionPoint, Op, OpSpec, Rewriter, Type, Value};

use super::aliases::Aliases;
use super::facts::{Frees, Reach, is_free, reaches};
use super::functions;
use super::places::Places;
use crate::promote::{bounded_shape, dense_view};

/// Limits of promotion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PromoteOptions {
    /// `max-alloc-size-in-bytes`: larger buffers stay.
    pub max_size_bytes: u64,
    /// `max-rank-of-allocated-memref`: for buffers whose sizes are ranks of unranked memrefs.
    pub max_rank: u64,
    /// Extensions: bounded sizes, and buffers that are freed.
    pub extensions: bool,
}

impl Default for PromoteOptions {
    fn default() -> Self {
        Self { max_size_bytes: 1024, max_rank: 1, extensions: false }
    }
}

/// The promotion of one buffer.
struct Promotion<'c> {
    alloc: Op<'c>,
    frees: Vec<Op<'c>>,
    /// The sizes on the stack; `None` for the allocation's own.
    bound: Option<Vec<i64>>,
}

/// Replaces allocations by stack memory, and returns their number.
///
/// # Errors
/// MLIR's diagnostics for the new ops.
pub fn promote_buffers_to_stack(root: Op, options: &PromoteOptions) -> Result<u32, Diagnostics> {
    let mut promoted = 0;
    for function in functions(root) {
        let (aliases, places) = (Aliases::new(function), Places::new(function));
        let reaches = reaches(&aliases, &places);
        let freed = FreedBy::new(function, options);
        let wanted: Vec<Promotion> = function
            .find_all(ops::memref::ALLOC)
            .into_iter()
            .filter_map(|alloc| promotion(&places, alloc, reaches.of(alloc.result(0))?, &freed, options))
            .collect();
        let mut rw = Rewriter::new(function.context());
        for promotion in wanted {
            promote(&mut rw, promotion)?;
            promoted += 1;
        }
    }
    Ok(promoted)
}

/// The ops that free a buffer and no other, by its allocation.
struct FreedBy<'c>(HandleMap<Op<'c>, Vec<Op<'c>>>);

impl<'c> FreedBy<'c> {
    fn new(function: Op<'c>, options: &PromoteOptions) -> Self {
        let mut all = Self(HandleMap::default());
        for free in function.find_all(ops::memref::DEALLOC).into_iter().filter(|_| options.extensions) {
            if let Some(alloc) = viewed(free.operand(0)).defining_op() {
                all.0.entry(alloc).or_default().push(free);
            }
        }
        all
    }
}

fn promotion<'c>(
    places: &Places<'c>,
    alloc: Op<'c>,
    reach: &Reach<'c>,
    freed: &FreedBy<'c>,
    options: &PromoteOptions,
) -> Option<Promotion<'c>> {
    let scope = scope_around(alloc)?;
    // No alias may be an argument or a result of the scope, or escape.
    if reach.escapes || reach.first_definition <= places.number(scope) || places.is_on_cycle(alloc.block()?) {
        return None;
    }
    let frees = freed.0.get(&alloc).cloned().unwrap_or_default();
    match reach.frees {
        Frees::Never => {}
        Frees::By(op) if frees[..] == [op] => {}
        // Several ops free it, and no other buffer.
        Frees::Several if options.extensions && frees_are_all(alloc, &frees) => {}
        _ => return None,
    }
    let bound = fits(alloc, options)?;
    Some(Promotion { alloc, frees, bound })
}

/// Whether no other op frees the buffer: it is accessed through views only.
fn frees_are_all(alloc: Op, frees: &[Op]) -> bool {
    let mut seen = vec![alloc.result(0)];
    while let Some(value) = seen.pop() {
        for used in value.uses() {
            if is_free(used, value) && !frees.contains(&used.op) {
                return false;
            }
            let views = used.op.results().into_iter().filter(|r| r.ty().is_memref());
            // A region may take it as an argument without a result.
            let hands_on = || used.op.is_terminator() || (used.op.num_regions() > 0 && used.op.dialect() != "linalg");
            if view_source(used.op) == Some(value) {
                seen.extend(views);
            } else if views.count() > 0 || hands_on() {
                return false;
            }
        }
    }
    true
}

/// The enclosing allocation scope, if no op between them repeats or is unknown.
fn scope_around<'c>(alloc: Op<'c>) -> Option<Op<'c>> {
    let mut inner = alloc;
    let mut around = alloc.parent();
    while let Some(op) = around {
        if is_allocation_scope(op) {
            return Some(op);
        }
        let region = inner.block()?.region()?;
        let index = op.regions().iter().position(|r| *r == region)?;
        if !is_region_branch(op) || is_repetitive_region(op, index) {
            return None;
        }
        (inner, around) = (op, op.parent());
    }
    None
}

/// Whether the buffer is small enough, with the bounds of its sizes where it needs them.
fn fits(alloc: Op, options: &PromoteOptions) -> Option<Option<Vec<i64>>> {
    let memref = alloc.result(0).ty().as_memref()?;
    if !memref.shape.contains(&DYNAMIC) {
        return (bytes(alloc, &memref.shape, &memref.strides)? <= options.max_size_bytes).then_some(None);
    }
    let is_rank = |v: &Value| v.defining_op().is_some_and(|op| op.is(ops::memref::RANK));
    if memref.shape.len() as u64 <= options.max_rank && alloc.operands().iter().all(is_rank) {
        return Some(None);
    }
    if !options.extensions || !memref.is_identity() {
        return None;
    }
    let bound = bounded_shape(alloc)?;
    let dense = Type::memref(&bound, memref.element, None).as_memref()?;
    (bytes(alloc, &bound, &dense.strides)? <= options.max_size_bytes).then_some(Some(bound))
}

/// Bytes from the first to the last element.
fn bytes(alloc: Op, shape: &[i64], strides: &[i64]) -> Option<u64> {
    let bits = type_bits(alloc, alloc.result(0).ty().element())?;
    if shape.contains(&0) {
        return Some(0);
    }
    let reach = shape.iter().zip(strides).try_fold(1u64, |sum, (size, stride)| {
        let steps = u64::try_from(size - 1).ok()?;
        sum.checked_add(steps.checked_mul(stride.unsigned_abs())?)
    });
    reach?.checked_mul(bits.div_ceil(8))
}

fn promote<'c>(rw: &mut Rewriter<'c>, promotion: Promotion<'c>) -> Result<(), Diagnostics> {
    let Promotion { alloc, frees, bound } = promotion;
    frees.into_iter().for_each(|free| rw.erase(free));
    let ty = alloc.result(0).ty();
    let stack_ty = match (&bound, ty.as_memref()) {
        (Some(shape), Some(memref)) => Type::memref(shape, memref.element, memref.memory_space),
        _ => ty,
    };
    rw.set_point(InsertionPoint::Before(alloc));
    let spec = match bound {
        Some(_) => memref::alloca(alloc.location(), &[], stack_ty),
        None => OpSpec::new(ops::memref::ALLOCA, alloc.location()).operands(&alloc.operands()).results(&[stack_ty]),
    };
    let stack = rw.create(spec.attrs_of(alloc))?.result(0);
    let value = match (bound, ty.as_memref()) {
        (Some(_), Some(memref)) => dense_view(rw, alloc, stack, &memref)?,
        _ => stack,
    };
    rw.replace_op(alloc, &[value]);
    Ok(())
}
