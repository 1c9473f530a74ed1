//! Rewrite tensors into memrefs, op by op.
//!
//! ```text
//! %e = tensor.empty() : tensor<4xf32>                         %b = memref.alloc() {alignment = 64 : i64} : memref<4xf32>
//! %f = linalg.fill ins(%z : f32) outs(%e : ..) -> ..    ==>   linalg.fill ins(%z : f32) outs(%b : memref<4xf32>)
//! "other.op"(%f) : (tensor<4xf32>) -> ()                      %t = bufferization.to_tensor %b
//!                                                             "other.op"(%t) : (tensor<4xf32>) -> ()
//! ```
//!
//! A result that still has users on tensors is replaced by a `bufferization.to_tensor`; a tensor defined
//! elsewhere gets a `bufferization.to_buffer` right after it, one for each use. At the end pairs of the two are folded (a cast,
//! or a copy if the layouts do not fit) and unused ops are erased. So no bridge is left if all ops take part,
//! and else (`allow-unknown-ops`, `dialect-filter`, function boundaries) the two are the border.
//!
//! Requires: copies are inserted, every tensor of an op with a model has a predicted type.
//! Ensures: no tensors but those of ops that do not take part; else an error (B0120).
//! Differs from upstream: an op is rewritten before its nested ops, so that they find their types.

use monopour_ir::ops;
use std::cell::RefCell;
use std::collections::HashSet;

use monopour_ir::conversion::{
    Adaptor, Bridges, ConversionPattern, ConversionRewriter, ConversionTarget, Declined, Legality, PatternSet,
    convert_bridged,
};
use monopour_ir::{Attr, Change, Diagnostic, Diagnostics, HandleMap, InsertionPoint, Op, Type, WalkOrder, interfaces};

use crate::buffer_type::BufferTypes;
use crate::failures::failed_to_bufferize;
use crate::op_model::{Buffers, OpModel, OpModels};
use crate::options::Options;
use crate::remarks::Remarks;
use crate::rewriting::Rewriting;
use crate::scope::{both_orders, has_tensors, ops_in_scope};

const TO_TENSOR: &str = ops::bufferization::TO_TENSOR;
const TO_BUFFER: &str = ops::bufferization::TO_BUFFER;
const BRIDGES: Bridges = Bridges { to_old: TO_TENSOR, to_new: TO_BUFFER };

/// Counts and remarks of the rewrite.
pub(crate) struct Made {
    pub(crate) allocs: u32,
    pub(crate) copies: u32,
    pub(crate) remarks: Remarks,
    /// Changes of the IR, and operations visited for types or for a rewrite.
    pub(crate) steps: u64,
}

/// Rewrites the module. `self_copies`: inserts whose source already is the slice that they overwrite.
pub(crate) fn run<'c>(
    module: Op<'c>,
    models: &OpModels,
    options: &Options,
    types: BufferTypes<'c, '_>,
    self_copies: HashSet<Op<'c>>,
) -> Result<Made, Diagnostics> {
    let pass = Rewriting::new(module, options, types, self_copies);
    let (ops, work) = Worklist::new(module, options);
    let work = RefCell::new(work);
    let mut target = ConversionTarget::new();
    target.unknown_is(|op| match work.borrow().pending.contains_key(&op) {
        true => Legality::Unknown,
        false => Legality::Legal,
    });
    let mut patterns = PatternSet::new();
    patterns.add(Bufferization { models, pass: &pass, work: &work });
    convert_bridged(module, ops, BRIDGES, &target, &patterns)?;
    drop((target, patterns));
    pass.verify_made()?;
    let mut work = work.into_inner();
    let mut rw = ConversionRewriter::with_bridges(module.context(), BRIDGES);
    let has_left = fold_bridges(&mut rw, &pass, &mut work)?;
    let steps = work.steps + pass.types.steps();
    if has_left && !options.allow_unknown_ops {
        check_nothing_is_left(module, models, options)?;
    }
    Ok(Made { allocs: pass.allocs.get(), copies: pass.copies.get(), remarks: pass.remarks.take(), steps })
}

/// The one pattern, for every op: the rewrite of its model.
struct Bufferization<'c, 'a> {
    models: &'a OpModels,
    pass: &'a Rewriting<'c, 'a>,
    work: &'a RefCell<Worklist<'c>>,
}

impl<'c> ConversionPattern<'c> for Bufferization<'c, '_> {
    fn root(&self) -> &str {
        "*"
    }
    fn rewrite(&self, op: Op<'c>, adaptor: &Adaptor<'c, '_>, rw: &mut ConversionRewriter<'c>) -> Result<(), Declined> {
        let name = op.name();
        let rank = self.work.borrow_mut().pending.remove(&op).unwrap_or_default();
        visit(op, adaptor, self.models, rw, self.pass)?;
        self.work.borrow_mut().absorb(rw.journal(), rank, name);
        // A model may make no change.
        if rw.journal().is_empty() { Err(stays()) } else { Ok(()) }
    }
}

/// The ops to visit: those of the input in order, and those that rewrites created.
struct Worklist<'c> {
    /// Ops to visit that were not erased, with their position in post-order.
    pending: HandleMap<Op<'c>, usize>,
    next_rank: usize,
    /// The `to_buffer`s of the rewrite: for which op, and which of them.
    made_buffers: HandleMap<Op<'c>, (usize, usize)>,
    made: usize,
    /// Visits, and changes of the IR.
    steps: u64,
}

impl<'c> Worklist<'c> {
    fn new(module: Op<'c>, options: &Options) -> (Vec<Op<'c>>, Self) {
        let (pre, post) = both_orders(module, options, |op| has_tensors(*op) || has_tensor_signature(*op));
        let pending: HandleMap<Op, usize> = post.into_iter().enumerate().map(|(rank, op)| (op, rank)).collect();
        (pre, Self { next_rank: pending.len(), pending, made_buffers: HandleMap::default(), made: 0, steps: 0 })
    }
    /// Records the rewrite of the op of this rank and name.
    fn absorb(&mut self, journal: &[Change<'c>], rank: usize, name: &str) {
        self.steps += 1 + journal.len() as u64;
        let mut created = Vec::new();
        for change in journal.iter().copied() {
            match change {
                Change::Created(op) => created.push(op),
                Change::Erased(op) => {
                    self.pending.remove(&op);
                    self.made_buffers.remove(&op);
                    created.retain(|other| *other != op);
                }
                Change::Modified(_) | Change::Moved(_) => {}
            }
        }
        for op in created {
            if op.is(TO_BUFFER) {
                self.made_buffers.insert(op, (rank, self.made));
                self.made += 1;
            } else if !op.is(TO_TENSOR) && !op.is(name) && has_tensors(op) && !self.pending.contains_key(&op) {
                // A new op of the same name is the final form: if it has tensors, another visit would not end it.
                self.pending.insert(op, self.next_rank);
                self.next_rank += 1;
            }
        }
    }

    /// Puts the remaining `to_buffer`s in upstream's order: those of one value are after it, the last requested
    /// first, and upstream requests in post-order.
    fn order_buffers(&mut self, rw: &mut ConversionRewriter<'c>) {
        for change in rw.take_journal() {
            if let Change::Erased(op) = change {
                self.made_buffers.remove(&op);
            }
        }
        let mut left: Vec<_> = self.made_buffers.drain().collect();
        left.sort_by_key(|(_, rank)| *rank);
        for (op, _) in left {
            let tensor = op.operand(0);
            let first = tensor.as_block_arg().and_then(|(block, _)| block.first_op());
            match (tensor.defining_op(), first) {
                (Some(def), _) => rw.move_after(op, def),
                (None, Some(first)) if first != op => rw.move_before(op, first),
                _ => {}
            }
        }
    }
}

fn stays() -> Declined {
    Declined::no_match("it stays as it is")
}

/// Rewrites one op, if it takes part and still has tensors.
fn visit<'c>(
    op: Op<'c>,
    adaptor: &Adaptor<'c, '_>,
    models: &OpModels,
    rw: &mut ConversionRewriter<'c>,
    pass: &Rewriting<'c, '_>,
) -> Result<(), Declined> {
    if op.is(ops::func::FUNC) {
        if pass.options.bufferize_function_boundaries {
            signature(op, rw, pass);
            return Ok(());
        }
        return Err(stays());
    }
    let model = models.taking_part(op, pass.options).filter(|_| has_tensors(op)).ok_or_else(stays)?;
    if model.follows_blocks(op) && stay_blocks(op, models, pass.options) {
        return Err(stays());
    }
    let (location, name) = (op.location(), op.name());
    rewrite_op(op, adaptor, &**model, rw, pass).map_err(|declined| {
        let mut errors = match declined {
            Declined::Failed(errors) => errors,
            Declined::NoMatch(reason) => {
                let message = format!("{name} cannot be bufferized: {reason}");
                Diagnostic::error("B0104", location, message).with_help("rewrite it to the plain form of the op").into()
            }
        };
        failed_to_bufferize(&mut errors, location, pass.options);
        Declined::Failed(errors)
    })
}

fn rewrite_op<'c>(
    op: Op<'c>,
    adaptor: &Adaptor<'c, '_>,
    model: &dyn OpModel,
    rw: &mut ConversionRewriter<'c>,
    pass: &Rewriting<'c, '_>,
) -> Result<(), Declined> {
    for result in op.results().into_iter().filter(|r| r.ty().is_tensor()) {
        pass.types.check_space(result)?;
    }
    let mut buffers = Vec::with_capacity(op.num_operands());
    for (tensor, &buffer) in op.operands().into_iter().zip(adaptor.operands()) {
        if !buffer.ty().is_tensor() || model.keeps_tensors(op) {
            buffers.push(buffer);
            continue;
        }
        pass.types.check_space(tensor)?;
        let ty = pass.types.of(tensor);
        buffers.push(rw.cast(buffer, ty));
    }
    model.rewrite(op, &Buffers::new(&buffers), rw, pass)
}

/// Whether the arguments of the enclosing blocks stay tensors.
fn stay_blocks(op: Op, models: &OpModels, options: &Options) -> bool {
    op.parent().is_none_or(|parent| match parent.is(ops::func::FUNC) {
        true => !options.bufferize_function_boundaries,
        false => models.taking_part(parent, options).is_none(),
    })
}

/// Folds `to_buffer(to_tensor m)`, and erases unused bridges: `to_tensor`s, and `to_buffer`s of the rewrite.
/// Returns whether another op has tensors.
fn fold_bridges<'c>(
    rw: &mut ConversionRewriter<'c>,
    pass: &Rewriting<'c, '_>,
    work: &mut Worklist<'c>,
) -> Result<bool, Diagnostics> {
    let (mut to_tensors, mut to_buffers, mut has_left) = (vec![], vec![], false);
    for op in ops_in_scope(pass.module, pass.options, WalkOrder::Pre).into_iter().filter(|op| has_tensors(*op)) {
        match op.name() {
            TO_TENSOR => to_tensors.push(op),
            TO_BUFFER => to_buffers.push(op),
            _ => has_left = true,
        }
    }
    for op in to_buffers {
        let source = rw.converted(op.operand(0));
        if work.made_buffers.contains_key(&op) && op.result(0).is_unused() {
            rw.erase(op);
        } else if !source.ty().is_tensor() {
            rw.set_point(InsertionPoint::Before(op));
            let buffer = pass.cast_or_copy(rw, op, source, op.result(0).ty())?;
            rw.replace_op(op, &[buffer]);
        }
    }
    // Users come after their operands, so that chains are erased at once.
    for op in to_tensors.into_iter().rev().filter(|op| op.result(0).is_unused()) {
        rw.erase(op);
    }
    work.order_buffers(rw);
    Ok(has_left)
}

/// An error for the first op that should have been bufferized and still has tensors.
///
/// An op with neither users nor effects is erased by folding, and bridges may stay.
fn check_nothing_is_left(module: Op, models: &OpModels, options: &Options) -> Result<(), Diagnostics> {
    let stays = |op: Op| {
        !models.is_allowed(op, options)
            || models.taking_part(op, options).is_some_and(|m| m.follows_blocks(op) && stay_blocks(op, models, options))
            || op.is(TO_TENSOR)
            || op.is(TO_BUFFER)
            || op.results().iter().all(|r| r.is_unused()) && interfaces::is_memory_effect_free(op)
    };
    let left = ops_in_scope(module, options, WalkOrder::Post).into_iter().find(|op| has_tensors(*op) && !stays(*op));
    let Some(op) = left else { return Ok(()) };
    let help = "rewrite it to linalg or tensor operations, register an op model, or leave it with allow-unknown-ops";
    Err(Diagnostic::error("B0120", op.location(), "op was not bufferized").with_help(help).into())
}

fn has_tensor_signature(op: Op) -> bool {
    op.is(ops::func::FUNC)
        && op.function_type().is_some_and(|(inputs, results)| inputs.iter().chain(&results).any(|t| t.is_tensor()))
}

/// A function's type, and the arguments of its body.
fn signature<'c>(op: Op<'c>, rw: &mut ConversionRewriter<'c>, pass: &Rewriting<'c, '_>) {
    let (inputs, results) = pass.types.signature(op);
    let ty = Type::function(rw.context(), &inputs, &results);
    rw.set_attr(op, "function_type", Attr::ty(ty));
    if let Some(body) = op.body() {
        rw.convert_block_args(body, &inputs);
        pass.convert_blocks(rw, op.region(0));
    }
}
