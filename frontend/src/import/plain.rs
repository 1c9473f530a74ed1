//! Replaces bufferization ops and special control flow by plain ones.
//!
//! ```text
//! bufferization.alloc_tensor(%n)                             tensor.empty(%n)
//! bufferization.alloc_tensor() copy(%x)                      %x: copies are decided by bufferization
//! bufferization.materialize_in_destination %x in %d          %x
//! bufferization.to_tensor (bufferization.to_buffer %x)       %x, where nothing else has the buffer
//! scf.index_switch %i case 2 {..} default {..}               scf.if of %i == 2
//! scf.parallel with scf.reduce                               nested scf.for, reduced in order
//! ```
//!
//! Forms that name memory are left to `verify`: a memory space, a destination that is a memref.

use monopour_ir::conversion::{ConversionRewriter, ConversionTarget, Declined, Mode, PatternSet, convert};
use monopour_ir::ops;
use monopour_ir::typed::{arith::CmpIPredicate, bufferization::AllocTensor, scf::Parallel};
use monopour_ir::{Block, Diagnostics, InsertionPoint, Module, Op, OpSpec, Region, Rewriter, Type, Value};

/// Replaces these ops in `module`.
///
/// # Errors
/// MLIR's, none on verified IR.
pub(super) fn run(module: &Module) -> Result<(), Diagnostics> {
    let mut target = ConversionTarget::new();
    target.dynamically_legal_op(ops::bufferization::ALLOC_TENSOR, |op| op.attr("memory_space").is_some());
    target.dynamically_legal_op(ops::bufferization::MATERIALIZE_IN_DESTINATION, |op| op.num_results() == 0);
    target.dynamically_legal_op(ops::bufferization::TO_TENSOR, |op| seen_through(op).is_none());
    target.illegal_op(ops::scf::INDEX_SWITCH).illegal_op(ops::scf::PARALLEL);
    let mut patterns = PatternSet::new();
    patterns.add_fn(ops::bufferization::ALLOC_TENSOR, |op, _, rw| allocated(op, rw).map_err(Declined::Failed));
    patterns.add_fn(ops::bufferization::MATERIALIZE_IN_DESTINATION, |op, _, rw| {
        materialized(op, rw).map_err(Declined::Failed)
    });
    patterns.add_fn(ops::bufferization::TO_TENSOR, |op, _, rw| seen(op, rw).map_err(Declined::Failed));
    patterns.add_fn(ops::scf::INDEX_SWITCH, |op, _, rw| switch(op, rw).map_err(Declined::Failed));
    patterns.add_fn(ops::scf::PARALLEL, |op, _, rw| parallel(op, rw).map_err(Declined::Failed));
    convert(module.op(), &target, &patterns, Mode::Partial)?;
    let mut rw = Rewriter::new(module.context());
    for unread in module.op().find_all(ops::bufferization::TO_BUFFER) {
        if unread.result(0).is_unused() {
            rw.erase(unread);
        }
    }
    Ok(())
}

fn allocated<'c>(op: Op<'c>, rw: &mut ConversionRewriter<'c>) -> Result<(), Diagnostics> {
    let alloc = AllocTensor::of(op).expect("invariant: the pattern is of this op");
    let value = match alloc.copy_position().map(|i| op.operand(i)) {
        Some(copied) => copied,
        None => {
            let empty = OpSpec::new(ops::tensor::EMPTY, op.location());
            rw.create(empty.operands(&alloc.dynamic_sizes()).results(&[op.result(0).ty()]))?.result(0)
        }
    };
    rw.replace_op(op, &[value]);
    Ok(())
}

fn materialized<'c>(op: Op<'c>, rw: &mut ConversionRewriter<'c>) -> Result<(), Diagnostics> {
    let (mut value, ty) = (op.operand(0), op.result(0).ty());
    if value.ty() != ty {
        let cast = OpSpec::new(ops::tensor::CAST, op.location()).operands(&[value]).results(&[ty]);
        value = rw.create(cast)?.result(0);
    }
    rw.replace_op(op, &[value]);
    Ok(())
}

/// The tensor behind a buffer that is only read back as a tensor.
fn seen_through<'c>(op: Op<'c>) -> Option<Value<'c>> {
    let buffer = op.operand(0);
    let made = buffer.defining_op().filter(|made| made.is(ops::bufferization::TO_BUFFER))?;
    let is_only_read = buffer.uses().into_iter().all(|user| user.op.is(ops::bufferization::TO_TENSOR));
    (is_only_read && made.operand(0).ty() == op.result(0).ty()).then(|| made.operand(0))
}

fn seen<'c>(op: Op<'c>, rw: &mut ConversionRewriter<'c>) -> Result<(), Diagnostics> {
    let tensor = seen_through(op).expect("invariant: it is illegal where it can be seen through");
    rw.replace_op(op, &[tensor]);
    Ok(())
}

/// One condition per case, each in the `else` of the one before; the default in the last.
fn switch<'c>(op: Op<'c>, rw: &mut ConversionRewriter<'c>) -> Result<(), Diagnostics> {
    let (cx, loc) = (op.context(), op.location());
    let cases = op.attr("cases").and_then(|a| a.as_ints()).unwrap_or_default();
    let types: Vec<Type> = op.results().into_iter().map(Value::ty).collect();
    let regions = op.regions();
    let (mut outer, mut open): (Option<Op>, Option<Block>) = (None, None);
    for (position, case) in cases.iter().enumerate() {
        let number = rw.const_index(*case, loc);
        let is_case = OpSpec::new(ops::arith::CMPI, loc)
            .operands(&[op.operand(0), number])
            .results(&[Type::integer(cx, 1)])
            .attr("predicate", CmpIPredicate::Eq.to_attr(cx));
        let is_case = rw.create(is_case)?.result(0);
        let (then, otherwise) = (Region::new(), Region::new());
        let is_last = position + 1 == cases.len();
        let next = (!is_last).then(|| Block::new(&[]));
        if let Some(next) = next {
            otherwise.append(next);
        }
        let spec = OpSpec::new(ops::scf::IF, loc).operands(&[is_case]).results(&types);
        let new = rw.create(spec.region(then).region(otherwise))?;
        rw.take_region(new.region(0), regions[position + 1]);
        if is_last {
            rw.take_region(new.region(1), regions[0]);
        }
        if let Some(block) = open {
            rw.set_point(InsertionPoint::End(block));
            rw.create(OpSpec::new(ops::scf::YIELD, loc).operands(&new.results()))?;
        }
        outer = outer.or(Some(new));
        open = next;
        if let Some(block) = next {
            rw.set_point(InsertionPoint::End(block));
        }
    }
    match outer {
        Some(outer) => rw.replace_op(op, &outer.results()),
        None => inline(op, rw, regions[0]),
    }
    Ok(())
}

/// A region of one block in the place of its op.
fn inline<'c>(op: Op<'c>, rw: &mut ConversionRewriter<'c>, region: Region<'c>) {
    let ops = region.blocks().into_iter().next().map(Block::ops).unwrap_or_default();
    let Some((terminator, body)) = ops.split_last() else { return };
    let values = terminator.operands();
    body.iter().for_each(|inner| rw.move_before(*inner, op));
    rw.replace_op(op, &values);
}

/// Runs the iterations in order, one of the orders that the op allows.
fn parallel<'c>(op: Op<'c>, rw: &mut ConversionRewriter<'c>) -> Result<(), Diagnostics> {
    let loc = op.location();
    let index = Type::index(op.context());
    let parallel = Parallel::of(op).expect("invariant: the pattern is of this op");
    let (lower, upper, step) = (parallel.lower_bounds(), parallel.upper_bounds(), parallel.steps());
    let inits = parallel.init_vals();
    let types: Vec<Type> = inits.iter().map(|v| v.ty()).collect();
    let (mut outer, mut carried, mut blocks): (Option<Op>, Vec<Value>, Vec<(Block, Op)>) = (None, inits, vec![]);
    for ((lower, upper), step) in lower.into_iter().zip(upper).zip(step) {
        let args: Vec<_> = std::iter::once(index).chain(types.iter().copied()).map(|ty| (ty, loc)).collect();
        let block = Block::new(&args);
        let region = Region::new();
        region.append(block);
        let mut given = vec![lower, upper, step];
        given.extend(&carried);
        let new = rw.create(OpSpec::new(ops::scf::FOR, loc).operands(&given).results(&types).region(region))?;
        outer = outer.or(Some(new));
        carried = block.args()[1..].to_vec();
        blocks.push((block, new));
        rw.set_point(InsertionPoint::End(block));
    }
    let old = op.body().expect("invariant: a parallel loop has a body");
    let reduce = old.terminator().expect("invariant: its body has a terminator");
    let (Some(outer), Some(&(innermost, _))) = (outer, blocks.last()) else { return Ok(()) };
    for (from, (block, _)) in old.args().into_iter().zip(&blocks) {
        rw.replace_all_uses(from, block.arg(0));
    }
    for inner in old.ops().into_iter().filter(|inner| *inner != reduce) {
        rw.move_to_end(inner, innermost);
    }
    let mut results = vec![];
    for (position, region) in reduce.regions().into_iter().enumerate() {
        let block = region.entry().expect("invariant: a reduction has a block");
        rw.replace_all_uses(block.arg(0), carried[position]);
        rw.replace_all_uses(block.arg(1), reduce.operand(position));
        let ops = block.ops();
        let (returned, body) = ops.split_last().expect("invariant: a reduction has a terminator");
        body.iter().for_each(|inner| rw.move_to_end(*inner, innermost));
        results.push(returned.operand(0));
    }
    yield_outwards(rw, &blocks, results)?;
    rw.replace_op(op, &outer.results());
    Ok(())
}

/// Terminates the bodies of nested loops: each yields the results of the loop in it, the innermost `results`.
pub(super) fn yield_outwards<'c>(
    rw: &mut ConversionRewriter<'c>,
    nest: &[(Block<'c>, Op<'c>)],
    mut results: Vec<Value<'c>>,
) -> Result<(), Diagnostics> {
    for (block, around) in nest.iter().rev() {
        rw.set_point(InsertionPoint::End(*block));
        rw.create(OpSpec::new(ops::scf::YIELD, around.location()).operands(&results))?;
        results = around.results();
    }
    Ok(())
}
