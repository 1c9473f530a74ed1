//! Copies in kernels: counts them, and lowers strided ones to loops.
//!
//! Before: `memref.copy %a, %b : memref<8x10xf32, strided<[512, 1], offset: ?>> to memref<8x10xf32>`.
//! After: a nest of `scf.for` that loads and stores each element. Upstream would call a library function (`memrefCopy`).
//! A copy between contiguous memrefs stays: it becomes `memcpy`.

use crate::abi;
use monopour_contract::attributes;
use monopour_ir::conversion::{ConversionTarget, Declined, Mode, PatternSet, convert};
use monopour_ir::ops;
use monopour_ir::{
    Block, DYNAMIC, Diagnostics, InsertionPoint, Location, Module, Op, OpSpec, Region, Rewriter, Type, Value,
};
use monopour_program::{CopiedSize, DispatchCopies};

/// Turns strided copies into loops.
///
/// # Errors
/// None on verified IR.
pub(crate) fn run(module: &Module) -> Result<(), Diagnostics> {
    let contiguous = |ty: Type| ty.as_memref().is_some_and(|m| m.is_identity());
    let mut target = ConversionTarget::new();
    target.dynamically_legal_op(ops::memref::COPY, move |op| op.operands().into_iter().all(|v| contiguous(v.ty())));
    let mut patterns = PatternSet::new();
    patterns.add_fn(ops::memref::COPY, |copy, _, rw| {
        lower(rw, copy).map_err(Declined::Failed)?;
        rw.erase(copy);
        Ok(())
    });
    convert(module.op(), &target, &patterns, Mode::Partial)?;
    Ok(())
}

/// Copies from one argument of a kernel to another: of the bytes or sizes that the copy states, else of the whole destination.
pub(crate) fn count<'c>(kernel: Op<'c>) -> DispatchCopies {
    let base_of = |mut value: Value<'c>| loop {
        match value.defining_op() {
            Some(op) if op.num_operands() > 0 && op.operand(0).ty().is_memref() => value = op.operand(0),
            Some(_) => return None,
            None => return Some(value).filter(|v| v.as_block_arg().is_some_and(|(b, _)| Some(b) == kernel.body())),
        }
    };
    let mut total = DispatchCopies::default();
    if !abi::is_kernel(kernel) {
        return total;
    }
    for copy in kernel.find_all(ops::memref::COPY) {
        if let (Some(_), Some(to)) = (base_of(copy.operand(0)), base_of(copy.operand(1))) {
            total.count += 1;
            if let Some(sizes) = copy.attr(attributes::COPIED_SIZES).and_then(|a| a.as_int_lists()) {
                total.sizes.push(sizes.iter().filter_map(|list| CopiedSize::from_list(list)).collect());
                continue;
            }
            let known = copy.attr(attributes::COPIED_BYTES).and_then(|a| u64::try_from(a.as_int()?).ok());
            total.bytes += known.or_else(|| to.ty().static_size_bytes()).unwrap_or(0);
        }
    }
    total
}

fn lower<'c>(rw: &mut Rewriter<'c>, copy: Op<'c>) -> Result<(), Diagnostics> {
    let loc = copy.location();
    let (source, target) = (copy.operand(0), copy.operand(1));
    rw.set_point(InsertionPoint::Before(copy));
    let zero = rw.const_index(0, loc);
    let one = rw.const_index(1, loc);
    let mut indices = Vec::new();
    for (dim, extent) in source.ty().shape().unwrap_or_default().into_iter().enumerate() {
        let bound = extent_value(rw, source, dim, extent, loc)?;
        let body = Block::new(&[(Type::index(rw.context()), loc)]);
        let region = Region::new();
        region.append(body);
        let spec = OpSpec::new(ops::scf::FOR, loc).operands(&[zero, bound, one]).region(region);
        rw.create(spec)?;
        rw.set_point(InsertionPoint::End(body));
        let terminator = rw.create(OpSpec::new(ops::scf::YIELD, loc))?;
        rw.set_point(InsertionPoint::Before(terminator));
        indices.push(body.arg(0));
    }
    let element = source.ty().element();
    let load =
        rw.create(OpSpec::new(ops::memref::LOAD, loc).operands(&[source]).operands(&indices).results(&[element]))?;
    rw.create(OpSpec::new(ops::memref::STORE, loc).operands(&[load.result(0), target]).operands(&indices))?;
    Ok(())
}

fn extent_value<'c>(
    rw: &mut Rewriter<'c>,
    memref: Value<'c>,
    dim: usize,
    extent: i64,
    loc: Location<'c>,
) -> Result<Value<'c>, Diagnostics> {
    if extent != DYNAMIC {
        return Ok(rw.const_index(extent, loc));
    }
    let index = rw.const_index(dim as i64, loc);
    let spec = OpSpec::new(ops::memref::DIM, loc).operands(&[memref, index]).results(&[Type::index(rw.context())]);
    Ok(rw.create(spec)?.result(0))
}
