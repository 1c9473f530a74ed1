//! `tensor` operations whose result is a new buffer: allocated, then filled.

use monopour_analysis::facts::Definition;
use monopour_ir::conversion::{ConversionRewriter, Declined};
use monopour_ir::{Attr, DYNAMIC, Diagnostics, InsertionPoint, Op, OpSpec, Region, Type, Value};

use super::no_uses;
use crate::boundary::Callees;
use crate::op_model::{AliasModel, Buffers, Index, OpModel, OpModels, RegionModel, ResultModel, SliceModel, UseModel};
use crate::rewrite::Rewriting;

pub(super) fn add(models: &mut OpModels) {
    models.add("tensor.empty", Empty);
    models.add("tensor.from_elements", FromElements);
    models.add("tensor.splat", Splat);
    models.add("tensor.generate", Generate);
    models.add("tensor.pad", Pad);
    models.add("tensor.concat", Concat);
    models.add("tensor.yield", Yield);
}

/// A fresh buffer with contents.
const MADE: ResultModel = ResultModel { writable: true, definition: Definition::Inferred, allocates: true };

struct Empty;

impl OpModel for Empty {
    no_uses!();
    fn result(&self, _op: Op, _result: usize) -> ResultModel {
        ResultModel { definition: Definition::Never, allocates: true, ..ResultModel::default() }
    }
    fn rewrite(
        &self,
        op: Op,
        _buffers: &Buffers<'_>,
        rw: &mut ConversionRewriter,
        pass: &Rewriting<'_>,
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
    fn result(&self, _op: Op, _result: usize) -> ResultModel {
        MADE
    }
    fn rewrite(
        &self,
        op: Op,
        _buffers: &Buffers<'_>,
        rw: &mut ConversionRewriter,
        pass: &Rewriting<'_>,
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
            rw.create(OpSpec::new("memref.store", op.location()).operands(&operands))?;
        }
        rw.replace_op(op, &[buffer]);
        Ok(())
    }
}

/// `linalg.map` without inputs into `buffer`: its payload is that of `generator`, a function of the position,
/// or the one value `all`.
fn fill(
    rw: &mut ConversionRewriter,
    op: Op,
    buffer: Value,
    generator: Option<Region>,
    all: Option<Value>,
) -> Result<(), Diagnostics> {
    let cx = rw.context();
    let element = op.result(0).ty().element();
    let block = monopour_ir::Block::new(&[(element, op.location())]);
    let region = Region::new();
    if generator.is_none() {
        region.append(block);
    }
    let map = rw.create(OpSpec::new("linalg.map", op.location()).operands(&[buffer]).region(region))?;
    let after = InsertionPoint::After(map);
    if let Some(value) = all {
        rw.set_point(InsertionPoint::End(block));
        rw.create(OpSpec::new("linalg.yield", op.location()).operands(&[value]))?;
    }
    if let Some(generator) = generator {
        rw.take_region(map.region(0), generator);
        let Some(body) = map.body() else { return Ok(()) };
        let positions = body.args();
        rw.set_point(InsertionPoint::Start(body));
        for (dim, position) in positions.iter().enumerate() {
            let number = Attr::i64(cx, i64::try_from(dim).unwrap_or(i64::MAX));
            let index = OpSpec::new("linalg.index", op.location()).results(&[Type::index(cx)]).attr("dim", number);
            let index = rw.create(index)?;
            rw.replace_all_uses(*position, index.result(0));
        }
        for dim in (0..positions.len()).rev() {
            rw.erase_block_arg(body, dim);
        }
        rw.add_block_arg(body, element, op.location());
        if let Some(yielded) = body.terminator() {
            rw.set_point(InsertionPoint::Before(yielded));
            rw.create(OpSpec::new("linalg.yield", op.location()).operands(&yielded.operands()))?;
            rw.erase(yielded);
        }
    }
    rw.set_point(after);
    Ok(())
}

struct Splat;

impl OpModel for Splat {
    no_uses!();
    fn result(&self, _op: Op, _result: usize) -> ResultModel {
        MADE
    }
    fn rewrite(
        &self,
        op: Op,
        _buffers: &Buffers<'_>,
        rw: &mut ConversionRewriter,
        pass: &Rewriting<'_>,
    ) -> Result<(), Declined> {
        let buffer = pass.alloc(rw, op, pass.identity(op.result(0).ty()), &op.operands()[1..])?;
        fill(rw, op, buffer, None, Some(op.operand(0)))?;
        rw.replace_op(op, &[buffer]);
        Ok(())
    }
}

/// What runs once per position, in any order.
const PER_POSITION: RegionModel =
    RegionModel { repetitive: true, parallel: true, graph: false, writable_arguments: false, trip_count: None };

struct Generate;

impl OpModel for Generate {
    no_uses!();
    fn result(&self, _op: Op, _result: usize) -> ResultModel {
        MADE
    }
    fn region(&self, _op: Op, _region: usize) -> RegionModel {
        PER_POSITION
    }
    fn rewrite(
        &self,
        op: Op,
        _buffers: &Buffers<'_>,
        rw: &mut ConversionRewriter,
        pass: &Rewriting<'_>,
    ) -> Result<(), Declined> {
        let buffer = pass.alloc(rw, op, pass.identity(op.result(0).ty()), &op.operands())?;
        fill(rw, op, buffer, Some(op.region(0)), None)?;
        rw.replace_op(op, &[buffer]);
        Ok(())
    }
}

/// Everything is padding first; then the source is copied into its place.
struct Pad;

/// The numbers of a list of static and dynamic ones, and how many operands it has.
fn mixed(op: Op, attr: &str, first: usize) -> Option<(Vec<Index>, usize)> {
    let mut at = first;
    let numbers = op.attr(attr)?.as_ints()?.into_iter().map(|number| {
        if number != DYNAMIC {
            return Some(Index::Static(number));
        }
        at += 1;
        (at <= op.num_operands()).then(|| Index::Dynamic(op.operand(at - 1)))
    });
    let numbers = numbers.collect::<Option<Vec<_>>>()?;
    Some((numbers, at - first))
}

fn as_value(rw: &mut ConversionRewriter, op: Op, index: Index) -> Value {
    match index {
        Index::Static(number) => rw.const_index(number, op.location()),
        Index::Dynamic(value) => value,
    }
}

/// `memref.dim`, or the number where the type has it.
fn size_of(rw: &mut ConversionRewriter, op: Op, memref: Value, dim: usize) -> Result<Index, Diagnostics> {
    match memref.ty().shape().unwrap_or_default().get(dim) {
        Some(size) if *size != DYNAMIC => Ok(Index::Static(*size)),
        _ => {
            let number = rw.const_index(i64::try_from(dim).unwrap_or(i64::MAX), op.location());
            let ty = Type::index(rw.context());
            let spec = OpSpec::new("memref.dim", op.location()).operands(&[memref, number]).results(&[ty]);
            Ok(Index::Dynamic(rw.create(spec)?.result(0)))
        }
    }
}

fn sum(rw: &mut ConversionRewriter, op: Op, terms: &[Index]) -> Result<Index, Diagnostics> {
    let fixed = terms.iter().map(|t| if let Index::Static(n) = t { Some(*n) } else { None }).sum::<Option<i64>>();
    if let Some(number) = fixed {
        return Ok(Index::Static(number));
    }
    let mut total: Option<Value> = None;
    for term in terms.iter().filter(|t| **t != Index::Static(0)) {
        let term = as_value(rw, op, *term);
        total = Some(match total {
            None => term,
            Some(before) => {
                let ty = Type::index(rw.context());
                let spec = OpSpec::new("arith.addi", op.location()).operands(&[before, term]).results(&[ty]);
                rw.create(spec)?.result(0)
            }
        });
    }
    Ok(total.map_or(Index::Static(0), Index::Dynamic))
}

impl OpModel for Pad {
    fn use_of(&self, _op: Op, _operand: usize, _callees: &Callees) -> UseModel {
        UseModel::READ
    }
    fn aliases(&self, _op: Op, _operand: usize, _callees: &Callees) -> Vec<AliasModel> {
        vec![]
    }
    fn result(&self, _op: Op, _result: usize) -> ResultModel {
        MADE
    }
    fn region(&self, _op: Op, _region: usize) -> RegionModel {
        PER_POSITION
    }
    fn rewrite(
        &self,
        op: Op,
        buffers: &Buffers<'_>,
        rw: &mut ConversionRewriter,
        pass: &Rewriting<'_>,
    ) -> Result<(), Declined> {
        let source = buffers.operand(0);
        let low = mixed(op, "static_low", 1);
        let high = low.as_ref().and_then(|(_, count)| mixed(op, "static_high", 1 + count));
        let (Some((low, _)), Some((high, _))) = (low, high) else {
            return Err(pass.unsupported(op, "malformed padding").into());
        };
        let tensor = op.result(0).ty();
        let shape = tensor.shape().unwrap_or_default();
        let (mut sizes, mut inner) = (Vec::new(), Vec::new());
        for (dim, size) in shape.iter().enumerate() {
            let own = size_of(rw, op, source, dim)?;
            inner.push(own);
            if *size == DYNAMIC {
                let all = sum(rw, op, &[own, low[dim], high[dim]])?;
                sizes.push(as_value(rw, op, all));
            }
        }
        let buffer = pass.alloc(rw, op, pass.identity(tensor), &sizes)?;
        fill(rw, op, buffer, Some(op.region(0)), None)?;
        let source_shape = source.ty().shape().unwrap_or_default();
        let strides = vec![Index::Static(1); low.len()];
        let view = pass.subview(rw, op, buffer, &SliceModel { offsets: low, sizes: inner, strides }, &source_shape)?;
        pass.copy(rw, op, source, view)?;
        rw.replace_op(op, &[buffer]);
        Ok(())
    }
}

/// Each operand is copied into its part of the result.
struct Concat;

impl OpModel for Concat {
    fn use_of(&self, _op: Op, _operand: usize, _callees: &Callees) -> UseModel {
        UseModel::READ
    }
    fn aliases(&self, _op: Op, _operand: usize, _callees: &Callees) -> Vec<AliasModel> {
        vec![]
    }
    fn result(&self, _op: Op, _result: usize) -> ResultModel {
        MADE
    }
    fn rewrite(
        &self,
        op: Op,
        buffers: &Buffers<'_>,
        rw: &mut ConversionRewriter,
        pass: &Rewriting<'_>,
    ) -> Result<(), Declined> {
        let tensor = op.result(0).ty();
        let shape = tensor.shape().unwrap_or_default();
        let along = op.attr("dim").and_then(|a| a.as_int()).and_then(|d| usize::try_from(d).ok());
        let Some(along) = along.filter(|d| *d < shape.len()) else {
            return Err(pass.unsupported(op, "a malformed dimension").into());
        };
        let mut offset = Index::Static(0);
        let mut parts = Vec::new();
        for source in buffers.operands() {
            let sizes = (0..shape.len()).map(|d| size_of(rw, op, *source, d)).collect::<Result<Vec<_>, _>>()?;
            let mut offsets = vec![Index::Static(0); shape.len()];
            offsets[along] = offset;
            offset = sum(rw, op, &[offset, sizes[along]])?;
            parts.push((*source, SliceModel { offsets, sizes, strides: vec![Index::Static(1); shape.len()] }));
        }
        let mut dynamic = Vec::new();
        for dim in (0..shape.len()).filter(|d| shape[*d] == DYNAMIC) {
            let size = if dim == along { offset } else { size_of(rw, op, buffers.operand(0), dim)? };
            dynamic.push(as_value(rw, op, size));
        }
        let buffer = pass.alloc(rw, op, pass.identity(tensor), &dynamic)?;
        for (source, slice) in parts {
            let shape = source.ty().shape().unwrap_or_default();
            let view = pass.subview(rw, op, buffer, &slice, &shape)?;
            pass.copy(rw, op, source, view)?;
        }
        rw.replace_op(op, &[buffer]);
        Ok(())
    }
}

/// The payload of a pad or generate yields a scalar.
struct Yield;

impl OpModel for Yield {
    fn use_of(&self, _op: Op, _operand: usize, _callees: &Callees) -> UseModel {
        UseModel::READ
    }
    fn aliases(&self, _op: Op, _operand: usize, _callees: &Callees) -> Vec<AliasModel> {
        vec![]
    }
    fn rewrite(
        &self,
        op: Op,
        _buffers: &Buffers<'_>,
        _rw: &mut ConversionRewriter,
        pass: &Rewriting<'_>,
    ) -> Result<(), Declined> {
        Err(pass.unsupported(op, "a tensor operand").into())
    }
}
