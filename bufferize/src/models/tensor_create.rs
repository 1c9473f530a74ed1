//! `tensor` operations whose result is a new buffer: allocated, then filled.

use monopour_analysis::facts::Definition;
use monopour_ir::conversion::{ConversionRewriter, Declined};
use monopour_ir::ops;
use monopour_ir::{Attr, DYNAMIC, Diagnostics, InsertionPoint, Op, OpSpec, Region, Type, Value};

use super::sizes::{Sum, as_value, mixed, size_of};
use super::{no_uses, only_reads};
use crate::boundary::Callees;
use crate::buffer_type::BufferTypes;
use crate::op_model::{AliasModel, BufferInfo, Buffers, Index, OpModel, OpModels, RegionInfo, SliceModel, UseModel};
use crate::rewriting::Rewriting;

pub(super) fn add(models: &mut OpModels) {
    models.add(ops::tensor::EMPTY, Empty);
    models.add(ops::tensor::FROM_ELEMENTS, FromElements);
    models.add(ops::tensor::SPLAT, Splat);
    models.add(ops::tensor::GENERATE, Generate);
    models.add(ops::tensor::PAD, Pad);
    models.add(ops::tensor::CONCAT, Concat);
    models.add(ops::tensor::YIELD, Yield);
}

/// A fresh buffer with contents.
const MADE: BufferInfo = BufferInfo { writable: true, definition: Definition::Inferred, allocates: true };

struct Empty;

impl OpModel for Empty {
    no_uses!();
    fn result(&self, _op: Op, _result: usize) -> BufferInfo {
        BufferInfo { definition: Definition::Never, allocates: true, ..BufferInfo::default() }
    }
    fn rewrite<'c>(
        &self,
        op: Op<'c>,
        _buffers: &Buffers<'c, '_>,
        rw: &mut ConversionRewriter<'c>,
        pass: &Rewriting<'c, '_>,
    ) -> Result<(), Declined> {
        if op.result(0).is_unused() {
            rw.erase(op);
            return Ok(());
        }
        let buffer = pass.alloc(rw, op, pass.identity(op.result(0).ty()), &op.operands())?;
        rw.replace_op(op, &[buffer]);
        Ok(())
    }
}

/// The elements of a tensor are stored one by one.
struct FromElements;

impl OpModel for FromElements {
    no_uses!();
    fn result(&self, _op: Op, _result: usize) -> BufferInfo {
        MADE
    }
    fn rewrite<'c>(
        &self,
        op: Op<'c>,
        _buffers: &Buffers<'c, '_>,
        rw: &mut ConversionRewriter<'c>,
        pass: &Rewriting<'c, '_>,
    ) -> Result<(), Declined> {
        let tensor = op.result(0).ty();
        let buffer = pass.alloc(rw, op, pass.identity(tensor), &[])?;
        let shape = tensor.shape().unwrap_or_default();
        let most = shape.iter().copied().max().unwrap_or(0);
        let numbers: Vec<Value> = (0..most).map(|i| rw.const_index(i, op.location())).collect();
        for (mut flat, element) in op.operands().into_iter().enumerate() {
            let mut operands = vec![element, buffer];
            for size in shape.iter().rev() {
                let size = usize::try_from(*size).unwrap_or(1).max(1);
                operands.insert(2, numbers[flat % size]);
                flat /= size;
            }
            rw.create(OpSpec::new(ops::memref::STORE, op.location()).operands(&operands))?;
        }
        rw.replace_op(op, &[buffer]);
        Ok(())
    }
}

/// `linalg.map` without inputs into `buffer`: its payload is that of `generator`, a function of the position,
/// or the one value `all`. Returns the replacement of the operation.
///
/// If `linalg` does not take part, the map is on tensors, like other operations of that dialect.
fn fill<'c>(
    rw: &mut ConversionRewriter<'c>,
    op: Op<'c>,
    pass: &Rewriting<'c, '_>,
    buffer: Value<'c>,
    generator: Option<Region<'c>>,
    all: Option<Value<'c>>,
) -> Result<Value<'c>, Diagnostics> {
    let cx = rw.context();
    let tensor = op.result(0).ty();
    let block = monopour_ir::Block::new(&[(tensor.element(), op.location())]);
    let region = Region::new();
    if generator.is_none() {
        region.append(block);
    }
    let on_tensors = !pass.dialect_takes_part("linalg");
    let (out, results) = if on_tensors { (rw.cast(buffer, tensor), vec![tensor]) } else { (buffer, vec![]) };
    let map = OpSpec::new(ops::linalg::MAP, op.location()).operands(&[out]).results(&results).region(region);
    let map = rw.create(map)?;
    let after = InsertionPoint::After(map);
    if let Some(value) = all {
        rw.set_point(InsertionPoint::End(block));
        rw.create(OpSpec::new(ops::linalg::YIELD, op.location()).operands(&[value]))?;
    }
    if let Some(generator) = generator {
        rw.take_region(map.region(0), generator);
        let Some(body) = map.body() else { return Ok(buffer) };
        let positions = body.args();
        rw.set_point(InsertionPoint::Start(body));
        for (dim, position) in positions.iter().enumerate() {
            let number = Attr::i64(cx, i64::try_from(dim).unwrap_or(i64::MAX));
            let index = OpSpec::new(ops::linalg::INDEX, op.location()).results(&[Type::index(cx)]).attr("dim", number);
            let index = rw.create(index)?;
            rw.replace_all_uses(*position, index.result(0));
        }
        for dim in (0..positions.len()).rev() {
            rw.erase_block_arg(body, dim);
        }
        rw.add_block_arg(body, tensor.element(), op.location());
        if let Some(yielded) = body.terminator() {
            rw.set_point(InsertionPoint::Before(yielded));
            rw.create(OpSpec::new(ops::linalg::YIELD, op.location()).operands(&yielded.operands()))?;
            rw.erase(yielded);
        }
    }
    rw.set_point(after);
    Ok(if on_tensors { map.result(0) } else { buffer })
}

/// Upstream creates some tensors in the default memory space only.
fn refuse_memory_space<'c>(op: Op<'c>, pass: &Rewriting<'c, '_>) -> Result<(), Declined> {
    let elsewhere = pass.identity(op.result(0).ty()).memref_space().is_some();
    if elsewhere && !pass.extensions() {
        return Err(pass.refuse(op, "memory space not implemented yet", "a memory space").into());
    }
    Ok(())
}

struct Splat;

impl OpModel for Splat {
    no_uses!();
    fn result(&self, _op: Op, _result: usize) -> BufferInfo {
        MADE
    }
    fn rewrite<'c>(
        &self,
        op: Op<'c>,
        _buffers: &Buffers<'c, '_>,
        rw: &mut ConversionRewriter<'c>,
        pass: &Rewriting<'c, '_>,
    ) -> Result<(), Declined> {
        refuse_memory_space(op, pass)?;
        let buffer = pass.alloc(rw, op, pass.identity(op.result(0).ty()), &op.operands()[1..])?;
        let filled = fill(rw, op, pass, buffer, None, Some(op.operand(0)))?;
        rw.replace_op(op, &[filled]);
        Ok(())
    }
}

/// A region that runs once per position, in any order.
const PER_POSITION: RegionInfo = RegionInfo { repetitive: true, parallel: true, graph: false, trip_count: None };

struct Generate;

impl OpModel for Generate {
    no_uses!();
    fn result(&self, _op: Op, _result: usize) -> BufferInfo {
        MADE
    }
    fn region(&self, _op: Op, _region: usize) -> RegionInfo {
        PER_POSITION
    }
    fn rewrite<'c>(
        &self,
        op: Op<'c>,
        _buffers: &Buffers<'c, '_>,
        rw: &mut ConversionRewriter<'c>,
        pass: &Rewriting<'c, '_>,
    ) -> Result<(), Declined> {
        refuse_memory_space(op, pass)?;
        let buffer = pass.alloc(rw, op, pass.identity(op.result(0).ty()), &op.operands())?;
        let filled = fill(rw, op, pass, buffer, Some(op.region(0)), None)?;
        rw.replace_op(op, &[filled]);
        Ok(())
    }
}

/// All elements are padding first; then the source is copied to its position.
struct Pad;

/// The buffer of a padded tensor: row-major, in the memory space of the source.
fn padded<'c>(op: Op<'c>, source: Type<'c>) -> Type<'c> {
    let tensor = op.result(0).ty();
    Type::memref(&tensor.shape().unwrap_or_default(), tensor.element(), source.memref_space())
}

impl OpModel for Pad {
    only_reads!();
    fn result(&self, _op: Op, _result: usize) -> BufferInfo {
        MADE
    }
    fn region(&self, _op: Op, _region: usize) -> RegionInfo {
        PER_POSITION
    }
    fn buffer_types<'c>(&self, op: Op<'c>, types: &mut BufferTypes<'c, '_>) -> Result<(), Diagnostics> {
        let ty = padded(op, types.of(op.operand(0)));
        types.set(op.result(0), ty);
        op.regions().into_iter().flat_map(|r| r.blocks()).try_for_each(|b| types.walk(b))
    }
    fn rewrite<'c>(
        &self,
        op: Op<'c>,
        buffers: &Buffers<'c, '_>,
        rw: &mut ConversionRewriter<'c>,
        pass: &Rewriting<'c, '_>,
    ) -> Result<(), Declined> {
        let source = buffers.operand(0);
        let low = mixed(op, "static_low", 1);
        let high = low.as_ref().and_then(|(_, count)| mixed(op, "static_high", 1 + count));
        let (Some((low, _)), Some((high, _))) = (low, high) else {
            return Err(pass.unsupported(op, "malformed padding").into());
        };
        let shape = op.result(0).ty().shape().unwrap_or_default();
        let mut sizes = Vec::new();
        for dim in (0..shape.len()).filter(|d| shape[*d] == DYNAMIC) {
            let own = size_of(rw, op, source, dim)?;
            let all = Sum::of(&[own, low[dim], high[dim]]).make(rw, op)?;
            sizes.push(as_value(rw, op, all));
        }
        let ty = padded(op, source.ty());
        let buffer = pass.alloc(rw, op, ty, &sizes)?;
        let filled = fill(rw, op, pass, buffer, Some(op.region(0)), None)?;
        let buffer = rw.cast(filled, ty);
        let inner = (0..shape.len()).map(|d| size_of(rw, op, source, d)).collect::<Result<Vec<_>, _>>()?;
        let strides = vec![Index::Static(1); low.len()];
        copy_into_part(rw, op, pass, source, buffer, &SliceModel { offsets: low, sizes: inner, strides })?;
        rw.replace_op(op, &[buffer]);
        Ok(())
    }
}

/// Copies a buffer into a slice of another one.
///
/// Upstream refuses an empty slice after the last element: its offset is out of bounds.
fn copy_into_part<'c>(
    rw: &mut ConversionRewriter<'c>,
    op: Op<'c>,
    pass: &Rewriting<'c, '_>,
    source: Value<'c>,
    buffer: Value<'c>,
    part: &SliceModel<'c>,
) -> Result<(), Declined> {
    if pass.extensions() && part.sizes.contains(&Index::Static(0)) {
        return Ok(());
    }
    let view = pass.subview(rw, op, buffer, part, &source.ty().shape().unwrap_or_default())?;
    pass.copy(rw, op, source, view)?;
    Ok(())
}

/// Each operand is copied into its slice of the result.
struct Concat;

impl OpModel for Concat {
    only_reads!();
    fn result(&self, _op: Op, _result: usize) -> BufferInfo {
        MADE
    }
    fn rewrite<'c>(
        &self,
        op: Op<'c>,
        buffers: &Buffers<'c, '_>,
        rw: &mut ConversionRewriter<'c>,
        pass: &Rewriting<'c, '_>,
    ) -> Result<(), Declined> {
        let tensor = op.result(0).ty();
        let shape = tensor.shape().unwrap_or_default();
        let along = op.attr("dim").and_then(|a| a.as_int()).and_then(|d| usize::try_from(d).ok());
        let Some(along) = along.filter(|d| *d < shape.len()) else {
            return Err(pass.unsupported(op, "a malformed dimension").into());
        };
        let mut sizes = Vec::new();
        for dim in (0..shape.len()).filter(|d| shape[*d] == DYNAMIC) {
            let parts = if dim == along { buffers.operands() } else { &buffers.operands()[..1] };
            let terms = parts.iter().map(|p| size_of(rw, op, *p, dim)).collect::<Result<Vec<_>, _>>()?;
            let all = Sum::of(&terms).make(rw, op)?;
            sizes.push(as_value(rw, op, all));
        }
        let buffer = pass.alloc(rw, op, pass.identity(tensor), &sizes)?;
        let mut sizes = Vec::with_capacity(shape.len());
        for dim in 0..shape.len() {
            sizes.push(if dim == along { Index::Static(0) } else { size_of(rw, op, buffer, dim)? });
        }
        let mut offset = Sum::default();
        for source in buffers.operands() {
            let mut offsets = vec![Index::Static(0); shape.len()];
            offsets[along] = offset.make(rw, op)?;
            sizes[along] = size_of(rw, op, *source, along)?;
            offset.push_composed(sizes[along]);
            let strides = vec![Index::Static(1); shape.len()];
            copy_into_part(rw, op, pass, *source, buffer, &SliceModel { offsets, sizes: sizes.clone(), strides })?;
        }
        rw.replace_op(op, &[buffer]);
        Ok(())
    }
}

/// The payload of a pad or generate yields a scalar.
struct Yield;

impl OpModel for Yield {
    only_reads!();
    fn rewrite<'c>(
        &self,
        op: Op<'c>,
        _buffers: &Buffers<'c, '_>,
        _rw: &mut ConversionRewriter<'c>,
        pass: &Rewriting<'c, '_>,
    ) -> Result<(), Declined> {
        Err(pass.unsupported(op, "a tensor operand").into())
    }
}
