//! Decomposes composed ops.
//!
//! Before / after:
//!
//! ```text
//! %c = tensor.concat dim(0) %a, %b        %e = tensor.empty; %0 = tensor.insert_slice %a into %e[0]; %c = .. %b into %0[4]
//! %p = tensor.pad %x low[1] high[1] {z}   %f = linalg.fill ins(%z); %p = tensor.insert_slice %x into %f[1]
//! %g = tensor.generate %n {..}            %g = linalg.generic {linalg.index, ..}
//! %s = linalg.softmax ..                  maximum, exp(x - maximum), sum, division
//! %u = linalg.pack ..                     tensor.pad, tensor.expand_shape, linalg.transpose
//! %r = scf.forall (%i) .. shared_outs     %r = scf.for %i .. iter_args
//! ```
//!
//! Requires: what `verify` accepts.
//! Ensures: on tensors only linalg generics and named ops over tensors that are not known to be empty, `tensor.{empty,extract,insert,extract_slice,insert_slice,
//! expand_shape,collapse_shape,cast,dim}`, `scf.{for,if,while}`.
//! Limits: what upstream cannot decompose (F0014); iterations of an `scf.forall` that read what another one inserts.
//! Source: the decompositions of LLVM 22, by the transform script `decompose.mlir`.

use super::plain;
use crate::linalg;
use monopour_ir::conversion::{ConversionRewriter, ConversionTarget, Declined, Mode, PatternSet, convert};
use monopour_ir::ops;
use monopour_ir::typed::{self, Index, Slice, scf::ForAll};
use monopour_ir::{
    Block, CANONICALIZE_PROGRAM, Diagnostic, Diagnostics, InsertionPoint, Location, Module, Op, OpSpec, Region,
    Rewriter, Type, Value, apply_named_sequence, run_passes,
};

const SCRIPT: &str = include_str!("decompose.mlir");
/// Ops that the script and the patterns below decompose.
const COMPOSED: [&str; 9] = [
    ops::linalg::PACK,
    ops::linalg::SOFTMAX,
    ops::linalg::UNPACK,
    ops::scf::FORALL,
    ops::tensor::CONCAT,
    ops::tensor::FROM_ELEMENTS,
    ops::tensor::GENERATE,
    ops::tensor::PAD,
    ops::tensor::SPLAT,
];
/// Sizes of results in terms of operands, where they can be inferred.
const SIZES: &str = "resolve-ranked-shaped-type-result-dims,resolve-shaped-type-result-dims";

/// Decomposes every composed op of `module`.
///
/// # Errors
/// F0014 for one that upstream cannot decompose.
pub(super) fn run(module: &Module) -> Result<(), Diagnostics> {
    run_passes(module.op(), &format!("builtin.module({SIZES},{CANONICALIZE_PROGRAM},cse)"))?;
    drop_empty(module);
    if composed(module).is_empty() {
        return Ok(());
    }
    own_patterns(module)?;
    let script = Module::parse(module.context(), SCRIPT.as_bytes(), "decompose.mlir")?;
    if let Err(errors) = apply_named_sequence(module.op(), &script, "__transform_main") {
        return Err(refused(module).unwrap_or(errors));
    }
    // The script may leave ops that came from the decomposition of others.
    refused(module).map_or(Ok(()), Err)?;
    drop_empty(module);
    run_passes(module.op(), &format!("builtin.module({SIZES},{CANONICALIZE_PROGRAM},cse)"))
}

/// A linalg op over a tensor without elements has no iterations: its results are its destinations.
fn drop_empty(module: &Module) {
    let mut rw = Rewriter::new(module.context());
    for op in linalg::structured_ops(module.op()) {
        let is_empty = |v: &Value| v.ty().as_tensor().is_some_and(|t| t.shape.contains(&0));
        let packs = op.is(ops::linalg::PACK) || op.is(ops::linalg::UNPACK);
        if !packs && op.num_results() > 0 && op.operands().iter().any(is_empty) {
            let destinations: Vec<Value> = (0..op.num_results()).map(|i| linalg::destination(op, i)).collect();
            rw.replace_op(op, &destinations);
        }
    }
}

fn composed<'c>(module: &'c Module<'c>) -> Vec<Op<'c>> {
    COMPOSED.into_iter().flat_map(|name| module.op().find_all(name)).collect()
}

/// An F0014 for the first composed op that is left.
fn refused(module: &Module) -> Option<Diagnostics> {
    let left = composed(module);
    let report = |op: &Op| {
        let message = format!("'{}' of this form is not supported", op.name());
        let help = "use static sizes and tiles, and constant padding, or write it as linalg.generic";
        Diagnostic::error("F0014", op.location(), message).with_help(help)
    };
    (!left.is_empty()).then(|| Diagnostics(left.iter().map(report).collect()))
}

fn own_patterns(module: &Module) -> Result<(), Diagnostics> {
    let mut target = ConversionTarget::new();
    target.illegal_op(ops::tensor::SPLAT).illegal_op(ops::scf::FORALL);
    let mut patterns = PatternSet::new();
    patterns.add_fn(ops::tensor::SPLAT, |op, _, rw| fill(op, rw).map_err(Declined::Failed));
    patterns.add_fn(ops::scf::FORALL, |op, _, rw| loops(op, rw).map_err(Declined::Failed));
    convert(module.op(), &target, &patterns, Mode::Partial).map(|_| ())
}

/// `tensor.splat` as `linalg.fill`.
fn fill<'c>(op: Op<'c>, rw: &mut ConversionRewriter<'c>) -> Result<(), Diagnostics> {
    let (loc, ty, value) = (op.location(), op.result(0).ty(), op.operand(0));
    let empty = rw.create(OpSpec::new(ops::tensor::EMPTY, loc).operands(&op.operands()[1..]).results(&[ty]))?;
    let body = Block::new(&[(value.ty(), loc), (value.ty(), loc)]);
    let region = Region::new();
    region.append(body);
    let filled = rw.create(typed::linalg::fill(loc, value, empty.result(0), region))?;
    rw.set_point(InsertionPoint::End(body));
    rw.create(OpSpec::new(ops::linalg::YIELD, loc).operands(&[body.arg(0)]))?;
    rw.replace_op(op, &[filled.result(0)]);
    Ok(())
}

/// Static and dynamic numbers, as values.
fn values<'c>(list: Vec<Index<'c>>, loc: Location<'c>, rw: &mut Rewriter<'c>) -> Vec<Value<'c>> {
    let value = |index| match index {
        Index::Dynamic(value) => value,
        Index::Static(number) => rw.const_index(number, loc),
    };
    list.into_iter().map(value).collect()
}

/// Reads of a shared output see its initial value, whatever others have inserted; only the slice that the iteration inserts
/// itself is read from the output.
fn read_as_given<'c>(forall: Op<'c>, body: Block<'c>, rw: &mut Rewriter<'c>) {
    let shared = forall.num_results();
    let (inits, args) = (forall.operands(), body.args());
    for (init, arg) in inits.into_iter().rev().zip(args.into_iter().rev()).take(shared) {
        let (inserts, reads): (Vec<_>, Vec<_>) =
            arg.uses().into_iter().partition(|u| u.op.is(ops::tensor::PARALLEL_INSERT_SLICE) && u.index == 1);
        let is_own =
            |op: Op<'c>| op.is(ops::tensor::EXTRACT_SLICE) && inserts.iter().any(|insert| is_same_slice(op, insert.op));
        for used in reads.into_iter().filter(|u| !is_own(u.op) && !u.op.is(ops::tensor::DIM)) {
            rw.set_operand(used.op, used.index, init);
        }
    }
}

/// Whether an extraction and an insertion have the same offsets, sizes and strides.
fn is_same_slice(extract: Op, insert: Op) -> bool {
    Slice::of(extract).is_some_and(|slice| Slice::of(insert) == Some(slice))
}

/// A forall of the model as a nest of `scf.for` with the shared outputs as iter_args.
fn loops<'c>(op: Op<'c>, rw: &mut ConversionRewriter<'c>) -> Result<(), Diagnostics> {
    let loc = op.location();
    let index = Type::index(op.context());
    let shared = op.num_results();
    let inits: Vec<Value> = op.operands()[op.num_operands() - shared..].to_vec();
    let types: Vec<Type> = inits.iter().map(|v| v.ty()).collect();
    let bounds = ForAll::of(op).and_then(ForAll::bounds).expect("invariant: a verified forall has bounds");
    let [lower, upper, step] = [bounds.lower, bounds.upper, bounds.step].map(|list| values(list, loc, rw));
    let old = op.body().expect("invariant: a forall has a body");

    let (mut outer, mut ids, mut carried): (Option<Op>, Vec<Value>, Vec<Value>) = (None, vec![], inits);
    let mut blocks = vec![];
    for ((from, to), by) in lower.into_iter().zip(upper).zip(step) {
        let mut args = vec![(index, loc)];
        args.extend(types.iter().map(|t| (*t, loc)));
        let block = Block::new(&args);
        let region = Region::new();
        region.append(block);
        let mut operands = vec![from, to, by];
        operands.extend(&carried);
        let new = rw.create(OpSpec::new(ops::scf::FOR, loc).operands(&operands).results(&types).region(region))?;
        outer = outer.or(Some(new));
        ids.push(block.arg(0));
        carried = block.args()[1..].to_vec();
        blocks.push((block, new));
        rw.set_point(InsertionPoint::End(block));
    }
    let Some(outer) = outer else { return Ok(()) };
    read_as_given(op, old, rw);
    for (from, to) in old.args().into_iter().zip(ids.into_iter().chain(carried.iter().copied())) {
        rw.replace_all_uses(from, to);
    }
    let (innermost, _) = blocks[blocks.len() - 1];
    let terminator = old.terminator().expect("invariant: a forall body has a terminator");
    for inner in old.ops().into_iter().filter(|o| *o != terminator) {
        rw.move_to_end(inner, innermost);
    }
    let mut results = carried.clone();
    for insert in terminator.body().map(Block::ops).unwrap_or_default() {
        rw.set_point(InsertionPoint::End(innermost));
        let slot = carried.iter().position(|v| *v == insert.operand(1));
        let slot = slot.expect("invariant: a forall inserts into its shared outputs only");
        let mut operands = insert.operands();
        operands[1] = results[slot];
        let spec =
            OpSpec::new(ops::tensor::INSERT_SLICE, insert.location()).operands(&operands).results(&[types[slot]]);
        results[slot] = rw.create(spec.attrs(&insert.attrs()))?.result(0);
    }
    plain::yield_outwards(rw, &blocks, results)?;
    rw.replace_op(op, &outer.results());
    Ok(())
}
