//! Loops and branches of host code: memrefs that they carry become numbers.

use crate::buffers::Buffer;
use crate::scalars;
use crate::schedule::State;
use monopour_contract::RuntimeFunction;
use monopour_ir::ops;
use monopour_ir::{Block, Builder, Diagnostics, InsertionPoint, Location, Op, OpSpec, Region, Type, Value};

/// Types of the numbers that carry values of `types`.
fn flat_types<'c>(b: &Builder<'c>, types: &[Type<'c>]) -> Vec<Type<'c>> {
    let i64_ty = Type::integer(b.context(), 64);
    let each = types.iter().flat_map(|ty| match ty.as_memref() {
        Some(memref) => vec![i64_ty; Buffer::flat_len(&memref)],
        None => vec![*ty],
    });
    each.collect()
}

/// The numbers that carry `values`.
fn flatten<'c>(
    state: &State<'c>,
    b: &mut Builder<'c>,
    op: Op<'c>,
    values: &[Value<'c>],
) -> Result<Vec<Value<'c>>, Diagnostics> {
    let mut out = vec![];
    for value in values {
        match value.ty().as_memref() {
            Some(memref) => {
                let buffer = state.buffer(op, *value)?;
                out.extend(buffer.flatten(b, op.location(), &memref));
            }
            None => out.push(state.scalar(op, *value)?),
        }
    }
    Ok(out)
}

/// Records that `new` carry `old`.
fn bind<'c>(state: &mut State<'c>, old: &[Value<'c>], new: &[Value<'c>]) {
    let mut at = 0;
    for value in old {
        match value.ty().as_memref() {
            Some(memref) => {
                let len = Buffer::flat_len(&memref);
                state.set_buffer(*value, Buffer::unflatten(&new[at..at + len], &memref));
                at += len;
            }
            None => {
                state.set_scalar(*value, new[at]);
                at += 1;
            }
        }
    }
}

fn types_of<'c>(values: &[Value<'c>]) -> Vec<Type<'c>> {
    values.iter().map(|v| v.ty()).collect()
}

/// A block with arguments that carry those of `old`.
fn block_like<'c>(b: &Builder<'c>, loc: Location<'c>, old: Block<'c>) -> Block<'c> {
    let types = flat_types(b, &types_of(&old.args()));
    Block::new(&types.into_iter().map(|t| (t, loc)).collect::<Vec<_>>())
}

/// Lowers `scf.if`, `scf.for` or `scf.while` with its regions.
///
/// # Errors
/// S0003 and S0004 of what it holds.
pub(crate) fn lower<'c>(state: &mut State<'c>, b: &mut Builder<'c>, op: Op<'c>) -> Result<(), Diagnostics> {
    let loc = op.location();
    let operands = flatten(state, b, op, &op.operands())?;
    let results = flat_types(b, &types_of(&op.results()));
    let mut spec = OpSpec::new(op.name(), loc).operands(&operands).results(&results);
    if let Some(unsigned) = op.attr("unsignedCmp") {
        spec = spec.attr("unsignedCmp", unsigned);
    }
    for old in op.regions() {
        let region = Region::new();
        if let Some(block) = old.entry() {
            let new = block_like(b, loc, block);
            region.append(new);
            bind(state, &block.args(), &new.args());
            let mut inner = Builder::new(b.context(), InsertionPoint::End(new));
            state.lower_block(&mut inner, block)?;
        }
        spec = spec.region(region);
    }
    let new = b.create(spec)?;
    bind(state, &op.results(), &new.results());
    Ok(())
}

/// Lowers `scf.yield` or `scf.condition`. A loop whose condition may come from a failed call ends.
///
/// # Errors
/// S0003, S0004 for values that host code cannot carry.
pub(crate) fn terminate<'c>(state: &mut State<'c>, b: &mut Builder<'c>, op: Op<'c>) -> Result<(), Diagnostics> {
    let loc = op.location();
    let mut operands = flatten(state, b, op, &op.operands())?;
    if op.is(ops::scf::CONDITION) {
        let ok = state.call(b, loc, RuntimeFunction::Ok, &[])?.result(0);
        let ok = scalars::from_bits(b, loc, ok, operands[0].ty())?;
        let spec = OpSpec::new(ops::arith::ANDI, loc).operands(&[operands[0], ok]).results(&[ok.ty()]);
        operands[0] = b.create(spec)?.result(0);
    }
    b.create(OpSpec::new(op.name(), loc).operands(&operands))?;
    Ok(())
}

/// `scf.if` without results around the ops of `then`.
///
/// # Errors
/// Those of `then`.
pub(crate) fn when<'c>(
    b: &mut Builder<'c>,
    loc: Location<'c>,
    condition: Value<'c>,
    then: impl FnOnce(&mut Builder<'c>) -> Result<(), Diagnostics>,
) -> Result<(), Diagnostics> {
    let block = Block::new(&[]);
    let region = Region::new();
    region.append(block);
    let mut inner = Builder::new(b.context(), InsertionPoint::End(block));
    then(&mut inner)?;
    inner.create(OpSpec::new(ops::scf::YIELD, loc))?;
    b.create(OpSpec::new(ops::scf::IF, loc).operands(&[condition]).region(region).region(Region::new()))?;
    Ok(())
}
