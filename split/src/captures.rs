//! Values that the body of a dispatch captures, as kernel arguments or clones in the kernel.

use crate::error;
use crate::sizes::{self, Sizes};
use monopour_ir::ops;
use monopour_ir::typed::{self, Index};
use monopour_ir::{
    Block, DYNAMIC, Diagnostics, InsertionPoint, MemRefType, Op, OpSpec, Rewriter, Type, Value, WalkOrder,
};
use std::collections::{HashMap, HashSet};

/// Views of the first operand, which are cloned into the kernel.
const SUNK: [&str; 7] = [
    ops::memref::CAST,
    ops::memref::COLLAPSE_SHAPE,
    ops::memref::EXPAND_SHAPE,
    ops::memref::MEMORY_SPACE_CAST,
    ops::memref::REINTERPRET_CAST,
    ops::memref::SUBVIEW,
    ops::memref::TRANSPOSE,
];

/// The captured values of a body, by how the kernel gets them.
#[derive(Default)]
pub(crate) struct Captures<'c> {
    /// Whole buffers, by first use.
    pub(crate) memrefs: Vec<Value<'c>>,
    /// Scalars of host code.
    pub(crate) scalars: Vec<Value<'c>>,
    /// Constants, cloned.
    pub(crate) constants: Vec<Op<'c>>,
    /// Views, cloned, each after its source.
    pub(crate) views: Vec<Op<'c>>,
    seen: HashSet<Value<'c>>,
    /// Largest buffer that the device binds whole, in bytes.
    most_bytes: u64,
}

/// The values that `forall` captures. Of a buffer of more than `most_bytes`, contiguous windows are arguments.
///
/// # Errors
/// S0001 for a value that no kernel argument can carry.
pub(crate) fn collect<'c>(forall: Op<'c>, most_bytes: u64) -> Result<Captures<'c>, Diagnostics> {
    let mut out = Captures { most_bytes, ..Captures::default() };
    for op in forall.nested(WalkOrder::Pre).into_iter().filter(|op| *op != forall) {
        for value in op.operands().into_iter().filter(|v| !is_defined_inside(*v, forall)) {
            out.capture(op, value)?;
        }
    }
    Ok(out)
}

fn is_defined_inside(value: Value, forall: Op) -> bool {
    let owner = value.block().and_then(Block::parent_op);
    owner.is_some_and(|o| o.is_inside(forall))
}

impl<'c> Captures<'c> {
    fn capture(&mut self, user: Op<'c>, value: Value<'c>) -> Result<(), Diagnostics> {
        if !self.seen.insert(value) {
            return Ok(());
        }
        let ty = value.ty();
        match value.defining_op() {
            Some(op) if op.is(ops::arith::CONSTANT) || op.is(ops::ub::POISON) => self.constants.push(op),
            Some(_) if is_window(value, self.most_bytes) => self.memrefs.push(value),
            Some(op) if ty.is_memref() && SUNK.contains(&op.name()) => {
                for operand in op.operands() {
                    self.capture(op, operand)?;
                }
                self.views.push(op);
            }
            _ if ty.as_memref().is_some() => self.memrefs.push(value),
            _ if is_scalar(ty) => self.scalars.push(value),
            _ => return Err(error::captured(user, &ty.to_string()).into()),
        }
        Ok(())
    }
}

/// Whether a value is a contiguous part at a static offset of a buffer that is too large to bind.
fn is_window(value: Value, most_bytes: u64) -> bool {
    let bytes = |v: Value| v.ty().static_size_bytes();
    let mut base = value;
    while let Some(op) = base.defining_op().filter(|op| SUNK.contains(&op.name()) && op.operand(0).ty().is_memref()) {
        base = op.operand(0);
    }
    base != value
        && value.ty().as_memref().is_some_and(|m| m.is_static_and_contiguous())
        && bytes(value).is_some_and(|b| b <= most_bytes)
        && bytes(base).is_some_and(|b| b > most_bytes)
}

/// Whether a kernel argument can carry a value of this type.
fn is_scalar(ty: Type) -> bool {
    let is_int = ty.integer_width().is_some_and(|w| matches!(w, 1 | 8 | 16 | 32 | 64));
    ty.is_index() || is_int || ty.float_width().is_some_and(|w| matches!(w, 16 | 32 | 64))
}

/// A buffer of dynamic sizes or strides, split into base and metadata in front of the dispatch.
struct Split<'c> {
    value: Value<'c>,
    /// Its base, of rank 0.
    base: Value<'c>,
    /// Offset, sizes and strides; no value for a static one, and no strides of a buffer without gaps.
    offset: Option<Value<'c>>,
    sizes: Vec<Option<Value<'c>>>,
    strides: Vec<Option<Value<'c>>>,
}

/// The operands of the call.
pub(crate) struct Passed<'c> {
    buffers: Vec<Value<'c>>,
    scalars: Vec<Value<'c>>,
    splits: Vec<Split<'c>>,
}

impl<'c> Passed<'c> {
    /// Buffers, then scalars.
    pub(crate) fn operands(&self) -> Vec<Value<'c>> {
        [&self.buffers[..], &self.scalars].concat()
    }

    fn scalar(&mut self, value: Value<'c>) {
        if !self.scalars.contains(&value) {
            self.scalars.push(value);
        }
    }
}

/// Splits buffers where needed, at the insertion point, and lists the operands of the call.
///
/// # Errors
/// MLIR's, none on verified IR.
pub(crate) fn pass<'c>(
    rw: &mut Rewriter<'c>,
    forall: Op<'c>,
    captures: &Captures<'c>,
    sizes: &mut Sizes<'c>,
) -> Result<Passed<'c>, Diagnostics> {
    let mut passed = Passed { buffers: vec![], scalars: vec![], splits: vec![] };
    for value in &captures.memrefs {
        let ty = value.ty();
        let memref = ty.as_memref().expect("invariant: collected as a memref");
        let is_whole = memref.is_identity() && ty.static_size_bytes().is_some();
        if is_whole || is_window(*value, captures.most_bytes) {
            passed.buffers.push(*value);
            continue;
        }
        let split = split(rw, forall, *value, &memref, sizes)?;
        passed.buffers.push(split.base);
        for part in split.offset.into_iter().chain(split.sizes.iter().chain(&split.strides).copied().flatten()) {
            passed.scalar(part);
        }
        passed.splits.push(split);
    }
    for value in &captures.scalars {
        passed.scalar(*value);
    }
    Ok(passed)
}

fn split<'c>(
    rw: &mut Rewriter<'c>,
    forall: Op<'c>,
    value: Value<'c>,
    memref: &MemRefType<'c>,
    known: &mut Sizes<'c>,
) -> Result<Split<'c>, Diagnostics> {
    let index = Type::index(forall.context());
    let rank = memref.shape.len();
    let mut results = vec![Type::memref(&[], memref.element, memref.memory_space)];
    results.extend(std::iter::repeat_n(index, 1 + 2 * rank));
    let spec =
        OpSpec::new(ops::memref::EXTRACT_STRIDED_METADATA, forall.location()).operands(&[value]).results(&results);
    rw.set_point(InsertionPoint::Before(forall));
    let parts = rw.create(spec)?.results();
    let unless = |known: i64, part: Value<'c>| (known == DYNAMIC).then_some(part);
    let each = |known: &[i64], parts: &[Value<'c>]| known.iter().zip(parts).map(|(k, p)| unless(*k, *p)).collect();
    let mut split = Split {
        value,
        base: parts[0],
        offset: unless(memref.offset, parts[1]),
        sizes: each(&memref.shape, &parts[2..2 + rank]),
        strides: each(&memref.strides, &parts[2 + rank..]),
    };
    if memref.is_identity() {
        // The kernel computes the strides.
        split.strides.clear();
        for (d, size) in split.sizes.iter_mut().enumerate().filter(|(_, size)| size.is_some()) {
            *size = Some(known.size(rw, value, d, forall.location())?);
        }
    }
    Ok(split)
}

/// Rebuilds the split buffers inside of the kernel.
///
/// # Errors
/// MLIR's, none on verified IR.
pub(crate) fn rebuild<'c>(
    rw: &mut Rewriter<'c>,
    passed: &Passed<'c>,
    map: &mut HashMap<Value<'c>, Value<'c>>,
) -> Result<(), Diagnostics> {
    for split in &passed.splits {
        let cx = rw.context();
        let ty = split.value.ty();
        let memref = ty.as_memref().expect("invariant: collected as a memref");
        let inside = |parts: &[Option<Value<'c>>]| -> Vec<Value<'c>> {
            parts.iter().flatten().map(|v| map.get(v).copied().unwrap_or(*v)).collect()
        };
        let (offset, sizes, mut strides) = (inside(&[split.offset]), inside(&split.sizes), inside(&split.strides));
        let loc = split.value.defining_op().map_or(monopour_ir::Location::unknown(cx), Op::location);
        if memref.is_identity() {
            let sizes = Index::mixed(&memref.shape, sizes.iter().copied());
            let all = sizes::strides(rw, &sizes.expect("invariant: a value per dynamic number"), loc)?;
            let dynamic = all.iter().zip(&memref.strides).filter(|(_, known)| **known == DYNAMIC);
            strides = dynamic.filter_map(|(stride, _)| stride.value()).collect();
        }
        let slice = memref.to_slice(offset, sizes, strides).expect("invariant: a value per dynamic number");
        let base = map.get(&split.base).copied().unwrap_or(split.base);
        let whole = rw.create(typed::memref::reinterpret_cast(loc, base, &slice, ty))?.result(0);
        map.insert(split.value, whole);
    }
    Ok(())
}
