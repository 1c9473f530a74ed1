//! Splits dispatches over tensors larger than a binding into parts.
//!
//! Before / after (`%a`, `%b` and the result have 160 MiB each, a binding at most 128):
//!
//! ```text
//! %r = linalg.generic {dispatch = 0}         %a0 = tensor.extract_slice %a[0, 0] [32768, 1024] [1, 1] ...
//!   ins(%a, %b) outs(%e)                     %r0 = linalg.generic {dispatch = 1} ins(%a0, %b0) outs(%e0)
//!                                            %p = tensor.insert_slice %r0 into %e[0, 0] [32768, 1024] [1, 1]
//!                                            %a1 = tensor.extract_slice %a[32768, 0] [8192, 1024] [1, 1] ...
//!                                            %r1 = linalg.generic {dispatch = 2} ins(%a1, %b1) outs(%p1)
//!                                            %r = tensor.insert_slice %r1 into %p[32768, 0] [8192, 1024] [1, 1]
//! ```
//!
//! Requires: what [`crate::fuse`] ensures.
//! Ensures: [`crate::fuse`]'s postconditions; every window of a large tensor is contiguous and begins at a multiple of
//! `ALIGNMENT_BYTES`.
//! Limits: a dispatch of dynamic shapes, or without a parallel loop along the outermost dimension of every large tensor,
//! stays whole; distribution rejects it if the device cannot bind it.

use crate::dispatch::{self, Dispatch};
use crate::linalg;
use monopour_contract::attributes;
use monopour_ir::ops;
use monopour_ir::typed::{Slice, tensor};
use monopour_ir::{
    AffineExprKind, AffineMap, Attr, DYNAMIC, Diagnostic, Diagnostics, InsertionPoint, Module, Op, OpSpec, Rewriter,
    Type, Value,
};
use monopour_program::GpuDescription;
use std::collections::HashMap;

/// Most parts of one dispatch, each a kernel of its own; a tensor of more is larger than any memory.
const MAX_PARTS: u64 = 1_024;
/// Alignment of a binding's offset on every device.
const ALIGNMENT_BYTES: u64 = 256;

/// Splits the dispatches of `module` that exceed `device`'s bindings.
///
/// # Errors
/// F0031 for a tensor that takes too many parts; what MLIR reports.
pub fn run(module: &Module, device: &GpuDescription) -> Result<(), Diagnostics> {
    let mut rw = Rewriter::new(module.context());
    let dispatches = dispatch::collect(module);
    let mut next = dispatches.iter().map(|d| d.number + 1).max().unwrap_or(0);
    for dispatch in dispatches {
        if let Some(windows) = Windows::plan(&dispatch, device.limits.max_binding_bytes) {
            windows.check_parts(device.limits.max_binding_bytes)?;
            windows.split(&mut rw, &mut next)?;
        }
    }
    Ok(())
}

/// How one dispatch is split.
struct Windows<'c> {
    /// The ops in order, each with the loop that is split.
    ops: Vec<(Op<'c>, usize)>,
    extent: i64,
    /// Iterations of one part.
    part: i64,
}

/// The part that is being written.
struct Part<'c, 'a> {
    /// First iteration, and their number.
    at: (i64, i64),
    windows: HashMap<(Value<'c>, usize), Value<'c>>,
    /// Results of the part's ops, by those of the original ops.
    results: HashMap<Value<'c>, Value<'c>>,
    /// Each tensor after the parts so far.
    current: &'a HashMap<Value<'c>, Value<'c>>,
}

fn maps_of<'c>(op: Op<'c>) -> Option<Vec<AffineMap<'c>>> {
    if op.is(ops::linalg::FILL) {
        let rank = op.result(0).ty().shape()?.len();
        return Some(vec![AffineMap::select(op.context(), rank, &[]), AffineMap::identity(op.context(), rank)]);
    }
    if op.is(ops::linalg::MATMUL) && op.attr("indexing_maps").is_none() {
        let map = |dims: &[usize]| AffineMap::select(op.context(), 3, dims);
        return Some(vec![map(&[0, 2]), map(&[2, 1]), map(&[0, 1])]);
    }
    linalg::indexing_maps(op)
}

/// Fuse leaves generics, fills, and matrix products, whose last loop is the reduction.
fn is_parallel(op: Op, l: usize) -> bool {
    match op.name() {
        ops::linalg::FILL => true,
        ops::linalg::MATMUL => l < 2,
        _ => linalg::parallel_loops(op).is_some_and(|p| p.get(l) == Some(&true)),
    }
}

/// Whether a value is a new tensor that only these ops compute in: it has no binding, but tiles of its own.
fn is_local(value: Value, ops: &[Op]) -> bool {
    let is_read_outside = |result: &Value| result.uses().iter().any(|u| !ops.contains(&u.op));
    let mut results = ops.iter().flat_map(|op| op.results()).filter(is_read_outside);
    value.defining_op().is_some_and(|def| def.is(ops::tensor::EMPTY))
        && results.all(|result| place_of(result, ops).is_some_and(|place| place != value))
}

/// The dimension that is loop `l` alone; `Err` where the loop is in another expression.
fn dimension(map: &AffineMap, l: usize) -> Result<Option<usize>, ()> {
    let mut found = None;
    for (d, e) in map.results().into_iter().enumerate() {
        match e.kind() {
            AffineExprKind::Dim(p) if p == l => found = Some(d),
            _ if e.dims().contains(&l) => return Err(()),
            _ => {}
        }
    }
    Ok(found)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

impl<'c> Windows<'c> {
    /// `None` if the dispatch fits the bindings, or cannot be split.
    fn plan(dispatch: &Dispatch<'c>, most_bytes: u64) -> Option<Self> {
        let ops: Vec<Op> = dispatch.ops.iter().map(|(op, _)| *op).collect();
        let is_large = |v: Value<'c>| v.ty().static_size_bytes().is_some_and(|b| b > most_bytes);
        let bound = |op: &Op<'c>| {
            let operands = op.operands().into_iter();
            operands.filter(|v| !is_inside(*v, &ops) && is_large(*v) && !is_local(*v, &ops)).collect::<Vec<_>>()
        };
        ops.iter().flat_map(bound).next()?;
        let loops = maps_of(dispatch.root)?.first()?.num_dims();
        (0..loops).find_map(|l| Self::along(&ops, dispatch.root, l, most_bytes))
    }

    /// The split along loop `l` of the root.
    fn along(ops: &[Op<'c>], root: Op<'c>, l: usize, most_bytes: u64) -> Option<Self> {
        let mut loops: HashMap<Op, usize> = HashMap::from([(root, l)]);
        let (mut extent, mut part, mut step) = (None, i64::MAX, 1u64);
        for op in ops.iter().rev() {
            let l = *loops.get(op)?;
            if !is_parallel(*op, l) {
                return None;
            }
            for (value, map) in op.operands().into_iter().zip(maps_of(*op)?) {
                let shape = value.ty().shape().unwrap_or_default();
                let large = value.ty().static_size_bytes().is_some_and(|b| b > most_bytes) && !is_local(value, ops);
                let d = dimension(&map, l).ok()?;
                if shape.contains(&DYNAMIC) || (d.is_none() && (large || is_inside(value, ops))) {
                    return None;
                }
                let Some(d) = d else { continue };
                if extent.is_some_and(|e| e != shape[d]) {
                    return None;
                }
                extent = Some(shape[d]);
                if is_inside(value, ops) {
                    let writer = value.defining_op()?;
                    let map = maps_of(writer)?.get(linalg::num_inputs(writer) + value.result_index()?).copied()?;
                    let AffineExprKind::Dim(theirs) = map.results().get(d)?.kind() else { return None };
                    if *loops.entry(writer).or_insert(theirs) != theirs {
                        return None;
                    }
                } else if large {
                    if shape[..d].iter().any(|e| *e != 1) {
                        return None;
                    }
                    let row_bytes = value.ty().static_size_bytes()? / u64::try_from(shape[d]).ok()?.max(1);
                    part = part.min(i64::try_from(most_bytes / row_bytes.max(1)).ok()?);
                    let own = ALIGNMENT_BYTES / gcd(ALIGNMENT_BYTES, row_bytes);
                    // Both are powers of two.
                    step = step.max(own);
                }
            }
        }
        let part = part / step as i64 * step as i64;
        let split = ops.iter().map(|op| Some((*op, *loops.get(op)?))).collect::<Option<Vec<_>>>()?;
        let windows = Self { ops: split, extent: extent?, part };
        (part > 0 && part < windows.extent && windows.targets().is_some()).then_some(windows)
    }

    /// The results with readers outside, each with the tensor that it overwrites; no two overwrite one.
    fn targets(&self) -> Option<Vec<(Value<'c>, Value<'c>)>> {
        let ops: Vec<Op> = self.ops.iter().map(|(op, _)| *op).collect();
        let mut out: Vec<(Value, Value)> = vec![];
        for result in ops.iter().flat_map(|op| op.results()) {
            if result.uses().iter().all(|u| ops.contains(&u.op)) {
                continue;
            }
            let place = place_of(result, &ops)?;
            if out.iter().any(|(_, other)| *other == place) {
                return None;
            }
            out.push((result, place));
        }
        Some(out)
    }

    /// Refuses too many parts before they are written.
    fn check_parts(&self, most_bytes: u64) -> Result<(), Diagnostics> {
        let parts = self.extent.unsigned_abs().div_ceil(self.part.unsigned_abs().max(1));
        if parts <= MAX_PARTS {
            return Ok(());
        }
        let root = self.ops.last().expect("invariant: a dispatch has a root").0;
        let values = root.operands().into_iter().chain(root.results());
        let largest = values.max_by_key(|v| v.ty().static_size_bytes()).expect("invariant: a root has results").ty();
        let bytes = largest.static_size_bytes().unwrap_or_default();
        let message = format!(
            "a {largest} of {bytes} bytes takes {parts} kernels on a device that binds {most_bytes} bytes at once, at most {MAX_PARTS}"
        );
        let help = "make the tensor smaller, or compile for a device that binds more";
        Err(Diagnostic::error("F0031", root.location(), message).with_help(help).into())
    }

    fn split(&self, rw: &mut Rewriter<'c>, next: &mut i64) -> Result<(), Diagnostics> {
        let anchor = self.ops.last().expect("invariant: a dispatch has a root").0;
        let targets = self.targets().expect("invariant: planned");
        // Each tensor after the parts so far.
        let mut current: HashMap<Value, Value> = HashMap::new();
        let mut first = 0;
        while first < self.extent {
            let size = self.part.min(self.extent - first);
            rw.set_point(InsertionPoint::Before(anchor));
            let at = (first, size);
            let mut part = Part { at, windows: HashMap::new(), results: HashMap::new(), current: &current };
            for (op, l) in &self.ops {
                self.copy(rw, *op, *l, &mut part)?;
                let copy = part.results[&op.result(0)].defining_op().expect("invariant: an op's result");
                rw.set_attr(copy, attributes::DISPATCH, Attr::i64(rw.context(), *next));
            }
            let results = part.results;
            for (result, place) in &targets {
                let whole = current.get(place).copied().unwrap_or(*place);
                let slice = window(result.ty(), self.result_dimension(*result), at);
                let spec = tensor::insert_slice(anchor.location(), results[result], whole, &slice);
                let inserted = rw.create(spec)?.result(0);
                current.insert(*place, inserted);
            }
            *next += 1;
            first += size;
        }
        for (result, place) in targets {
            rw.replace_all_uses(result, current[&place]);
        }
        for (op, _) in self.ops.iter().rev() {
            rw.erase(*op);
        }
        Ok(())
    }

    fn result_dimension(&self, result: Value<'c>) -> usize {
        let found = self.ops.iter().find(|(op, _)| Some(*op) == result.defining_op()).and_then(|(op, l)| {
            let map = maps_of(*op)?.get(linalg::num_inputs(*op) + result.result_index()?).copied()?;
            dimension(&map, *l).ok()?
        });
        found.expect("invariant: planned")
    }

    /// The window of an outside tensor that an op reads or overwrites.
    fn window(
        &self,
        rw: &mut Rewriter<'c>,
        op: Op<'c>,
        value: Value<'c>,
        d: usize,
        part: &mut Part<'c, '_>,
    ) -> Result<Value<'c>, Diagnostics> {
        if let Some(known) = part.windows.get(&(value, d)) {
            return Ok(*known);
        }
        let ty = window_type(value.ty(), d, part.at.1);
        // A slice of a `tensor.empty` would only be its second reader.
        let is_empty =
            value.defining_op().is_some_and(|e| e.is(ops::tensor::EMPTY)) && !part.current.contains_key(&value);
        let spec = if is_empty {
            OpSpec::new(ops::tensor::EMPTY, op.location()).results(&[ty])
        } else {
            let whole = part.current.get(&value).copied().unwrap_or(value);
            tensor::extract_slice(op.location(), whole, &window(value.ty(), d, part.at), ty)
        };
        let window = rw.create(spec)?.result(0);
        part.windows.insert((value, d), window);
        Ok(window)
    }

    /// Clones one op onto its windows.
    fn copy(&self, rw: &mut Rewriter<'c>, op: Op<'c>, l: usize, part: &mut Part<'c, '_>) -> Result<(), Diagnostics> {
        let maps = maps_of(op).expect("invariant: planned");
        let mut operands = vec![];
        for (value, indexing) in op.operands().into_iter().zip(maps) {
            let d = dimension(&indexing, l).expect("invariant: planned");
            operands.push(match (part.results.get(&value), d) {
                (Some(result), _) => *result,
                (None, Some(d)) => self.window(rw, op, value, d, part)?,
                (None, None) => value,
            });
        }
        let copy = rw.clone_op(op, |v| v);
        rw.insert(copy);
        for (i, operand) in operands.into_iter().enumerate() {
            rw.set_operand(copy, i, operand);
        }
        for (i, (result, old)) in copy.results().into_iter().zip(op.results()).enumerate() {
            rw.set_type(result, linalg::destination(copy, i).ty());
            part.results.insert(old, result);
        }
        shift_indices(rw, copy, l, part.at.0);
        let anchor = self.ops.last().expect("invariant: a dispatch has a root").0;
        rw.set_point(InsertionPoint::Before(anchor));
        Ok(())
    }
}

/// Whether one of `ops` computes the value.
fn is_inside(value: Value, ops: &[Op]) -> bool {
    value.defining_op().is_some_and(|op| ops.contains(&op))
}

/// The outside tensor that a result overwrites, directly or through a chain of destinations.
fn place_of<'c>(result: Value<'c>, ops: &[Op<'c>]) -> Option<Value<'c>> {
    let mut value = result;
    while is_inside(value, ops) {
        value = linalg::destination(value.defining_op()?, value.result_index()?);
    }
    Some(value)
}

fn window_type<'c>(ty: Type<'c>, d: usize, size: i64) -> Type<'c> {
    let tensor = ty.as_tensor().expect("invariant: linalg ops before tiling are on tensors");
    let mut shape = tensor.shape;
    shape[d] = size;
    Type::tensor(&shape, tensor.element, tensor.encoding)
}

/// The slice of a part (first iteration, number of iterations) along dimension `d`.
fn window<'c>(whole: Type<'c>, d: usize, part: (i64, i64)) -> Slice<'c> {
    let shape = whole.shape().unwrap_or_default();
    let (mut offsets, mut sizes) = (vec![0; shape.len()], shape);
    (offsets[d], sizes[d]) = part;
    Slice::fixed(&offsets, &sizes)
}

/// Offsets `linalg.index` of the split loop by the part's first iteration.
fn shift_indices<'c>(rw: &mut Rewriter<'c>, op: Op<'c>, l: usize, first: i64) {
    for index in op.find_all(ops::linalg::INDEX) {
        if first == 0 || index.attr("dim").and_then(|a| a.as_int()) != i64::try_from(l).ok() {
            continue;
        }
        let uses = index.result(0).uses();
        rw.set_point(InsertionPoint::After(index));
        let shift = rw.const_index(first, index.location());
        let spec = OpSpec::new(ops::arith::ADDI, index.location()).operands(&[index.result(0), shift]);
        let sum = rw.create(spec.results(&[index.result(0).ty()])).expect("invariant: both are indices").result(0);
        for u in uses {
            rw.set_operand(u.op, u.index, sum);
        }
    }
}
