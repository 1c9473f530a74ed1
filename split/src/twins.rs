//! A kernel for sizes that are multiples of the vector width, beside the one for all sizes; the host takes the one that
//! fits.
//!
//! Before:
//! ```mlir
//! func.func private @main_dispatch_0(.., %m: index, %k: index, %i: index) { reinterpret_cast .. sizes: [%m, %k] .. }
//! scf.forall (%i) in (%tiles) { func.call @main_dispatch_0(%x, .., %m, %k, %i) }
//! ```
//! After:
//! ```mlir
//! func.func private @main_dispatch_0_whole(..) { %w = %k / 8 * 8; reinterpret_cast .. sizes: [%m, %w] .. }
//! func.func private @main_dispatch_0(..) { .. }
//! scf.if (%k % 8 == 0) { scf.forall .. @main_dispatch_0_whole .. } else { scf.forall .. @main_dispatch_0 .. }
//! ```
//! Requires: outlined kernels for a GPU; the vector width of `monopour.kernel`.
//! Ensures: the lengths of rows of buffers, and strides, are known to be multiples in the new kernel: vectors of rows
//! begin aligned. The new kernel has the name of the general one in `monopour.general`; distribution drops it where it gains
//! nothing. Kernels whose rows have static lengths stay alone.

use monopour_contract::{KernelChoice, KernelClass, attributes};
use monopour_ir::ops;
use monopour_ir::typed::arith::CmpIPredicate;
use monopour_ir::typed::{Index, Slice};
use monopour_ir::{Attr, Block, Diagnostics, InsertionPoint, Module, Op, OpSpec, Region, Rewriter, Type, Value};

/// Adds the kernels and the choices between them; returns the number of kernels added.
///
/// # Errors
/// MLIR's, none on verified IR.
pub fn run(module: &Module) -> Result<usize, Diagnostics> {
    let mut rw = Rewriter::new(module.context());
    let mut added = 0;
    for kernel in module.functions().into_iter().filter(|f| f.attr(attributes::KERNEL).is_some()) {
        let Some(width) = width(kernel).filter(|width| *width > 1) else { continue };
        let sizes = row_lengths(kernel);
        if sizes.is_empty() {
            continue;
        }
        let name = kernel.symbol_name().unwrap_or_default();
        let whole = format!("{name}_whole");
        add(&mut rw, kernel, &whole, &sizes, width)?;
        for call in calls(module, &name) {
            choose(&mut rw, call, &whole, &sizes, width)?;
        }
        added += 1;
    }
    Ok(added)
}

/// Elements of the widest access, for kernels that are written differently where rows are multiples of it.
fn width(kernel: Op) -> Option<i64> {
    let attr = kernel.attr(attributes::KERNEL)?;
    let choice = KernelChoice::decode(|entry| attr.field(entry)).ok()?;
    let by_alignment = !matches!(choice.class, KernelClass::Elementwise | KernelClass::Generic);
    by_alignment.then_some(choice.vector_width)
}

/// Positions of the arguments that are the innermost size of a buffer of several dimensions, or a stride.
fn row_lengths(kernel: Op) -> Vec<usize> {
    let body = kernel.body().expect("invariant: a kernel has a body");
    let mut found = vec![];
    for cast in kernel.find_all(ops::memref::REINTERPRET_CAST) {
        let Some(slice) = Slice::of(cast) else { continue };
        let innermost = slice.sizes.last().filter(|_| slice.sizes.len() > 1);
        let passed = innermost.into_iter().chain(&slice.strides).filter_map(|index: &Index<'_>| index.value());
        let positions = passed.filter_map(|v| v.as_block_arg()).filter(|(block, _)| *block == body);
        found.extend(positions.map(|(_, position)| position));
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// A copy of `kernel` in front of it, in which these arguments are rounded down to multiples.
fn add<'c>(rw: &mut Rewriter<'c>, kernel: Op<'c>, name: &str, sizes: &[usize], width: i64) -> Result<(), Diagnostics> {
    let copy = rw.clone_op(kernel, |v| v);
    rw.set_point(InsertionPoint::Before(kernel));
    rw.insert(copy);
    let general = kernel.symbol_name().unwrap_or_default();
    rw.set_attr(copy, "sym_name", Attr::string(kernel.context(), name));
    rw.set_attr(copy, attributes::GENERAL, Attr::string(kernel.context(), &general));
    let (body, loc) = (copy.body().expect("invariant: a kernel has a body"), copy.location());
    rw.set_point(InsertionPoint::Start(body));
    let by = rw.const_index(width, loc);
    for position in sizes {
        let size = body.arg(*position);
        let uses = size.uses();
        let arith = |name, operands: [Value<'c>; 2]| OpSpec::new(name, loc).operands(&operands).results(&[size.ty()]);
        let count = rw.create(arith(ops::arith::DIVUI, [size, by]))?.result(0);
        let whole = rw.create(arith(ops::arith::MULI, [count, by]))?.result(0);
        for at in uses {
            rw.set_operand(at.op, at.index, whole);
        }
    }
    Ok(())
}

fn calls<'c>(module: &'c Module<'c>, name: &str) -> Vec<Op<'c>> {
    let calls = module.op().find_all(ops::func::CALL).into_iter();
    calls.filter(|call| call.callee() == Some(name)).collect()
}

/// Puts the dispatch of a call into a condition, beside one of `whole`.
fn choose<'c>(
    rw: &mut Rewriter<'c>,
    call: Op<'c>,
    whole: &str,
    sizes: &[usize],
    width: i64,
) -> Result<(), Diagnostics> {
    let Some(forall) = call.parent().filter(|op| op.is(ops::scf::FORALL)) else { return Ok(()) };
    let (cx, loc) = (call.context(), forall.location());
    rw.set_point(InsertionPoint::Before(forall));
    let index = Type::index(cx);
    let mut bits = call.operand(sizes[0]);
    for position in &sizes[1..] {
        let operands = [bits, call.operand(*position)];
        bits = rw.create(OpSpec::new(ops::arith::ORI, loc).operands(&operands).results(&[index]))?.result(0);
    }
    let (by, zero) = (rw.const_index(width, loc), rw.const_index(0, loc));
    let rest = rw.create(OpSpec::new(ops::arith::REMUI, loc).operands(&[bits, by]).results(&[index]))?.result(0);
    let spec = OpSpec::new(ops::arith::CMPI, loc)
        .operands(&[rest, zero])
        .results(&[Type::integer(cx, 1)])
        .attr("predicate", CmpIPredicate::Eq.to_attr(cx));
    let fits = rw.create(spec)?.result(0);
    let copy = rw.clone_op(forall, |v| v);
    let [then, otherwise] = [(); 2].map(|()| Block::new(&[]));
    let regions = [then, otherwise].map(|block| {
        let region = Region::new();
        region.append(block);
        region
    });
    let [first, second] = regions;
    rw.create(OpSpec::new(ops::scf::IF, loc).operands(&[fits]).region(first).region(second))?;
    rw.set_point(InsertionPoint::End(then));
    rw.insert(copy);
    for block in [then, otherwise] {
        rw.set_point(InsertionPoint::End(block));
        rw.create(OpSpec::new(ops::scf::YIELD, loc))?;
    }
    let end = otherwise.terminator().expect("invariant: it was created");
    rw.move_before(forall, end);
    let calls = copy.find_all(ops::func::CALL);
    rw.set_attr(calls[0], "callee", Attr::symbol(cx, whole));
    Ok(())
}
