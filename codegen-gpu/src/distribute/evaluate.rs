//! Computes tile ops for one element, or for a vector of neighbours, with intermediates in registers.
//!
//! A slice that was written at a point is read from its register ([`Point::held`]); only the final values of the point are
//! stored. An element is loaded and stored once, whatever the number of ops that access it.

use super::code::{Code, gcd};
use super::model::{Base, Model, Operand, Slice, Source, TileOp};
use super::stride::{Linear, Stride};
use super::types::is_vector_float;
use super::{body, indices};
use crate::error;
use monopour_ir::ops;
use monopour_ir::{DYNAMIC, Diagnostics, Op, Type, Value};
use std::collections::HashMap;

/// The element (or `lanes` neighbours along one coordinate, [`Evaluator::along`]) to compute.
#[derive(Clone, Debug)]
pub(super) struct Point<'c> {
    /// Coordinates in the space of the ops' outputs.
    pub(super) coordinates: Vec<Value<'c>>,
    pub(super) lanes: u32,
    /// Registers of the slices that were written here.
    pub(super) held: HashMap<usize, Value<'c>>,
    /// Values of the slices that were loaded before.
    pub(super) given: HashMap<usize, Value<'c>>,
}

impl<'c> Point<'c> {
    pub(super) fn new(coordinates: Vec<Value<'c>>, lanes: u32) -> Self {
        Self { coordinates, lanes, held: HashMap::new(), given: HashMap::new() }
    }
}

/// Emits the code of tile ops.
#[derive(Clone)]
pub(super) struct Evaluator<'c, 'a> {
    pub(super) model: &'a Model<'c>,
    /// Buffer of each base.
    pub(super) buffers: HashMap<Base, Value<'c>>,
    /// First element of the workgroup's part of a shared buffer; 0 where it is missing.
    pub(super) origins: HashMap<Base, Value<'c>>,
    /// Lane count of each base's accesses; 1 where it is missing.
    pub(super) lanes: HashMap<Base, u32>,
    /// The coordinate along which the lanes of a point lie; `None`: the last one.
    pub(super) along: Option<usize>,
}

/// The lane count of each buffer from those of its accesses: 1 where two differ.
pub(super) fn common_lanes(accesses: impl IntoIterator<Item = (Base, u32)>) -> HashMap<Base, u32> {
    let mut out = HashMap::new();
    for (base, lanes) in accesses {
        let common = out.entry(base).or_insert(lanes);
        *common = if *common == lanes { lanes } else { 1 };
    }
    out
}

/// Memory layout of the lanes of one access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reach<'c> {
    /// One element for all lanes.
    Uniform,
    /// Neighbours, aligned to the lane count.
    Wide,
    /// This many elements apart.
    Strided(Stride<'c>),
}

impl<'c, 'a> Evaluator<'c, 'a> {
    /// An evaluator of a body with these arguments; scalar accesses, unless a plan sets lanes.
    pub(super) fn new(model: &'a Model<'c>, arguments: &[Value<'c>]) -> Self {
        let buffers = arguments.iter().enumerate().filter(|(_, v)| v.ty().is_memref());
        let buffers = buffers.map(|(i, v)| (Base::Argument(i), *v)).collect();
        Self { model, buffers, origins: HashMap::new(), lanes: HashMap::new(), along: None }
    }

    /// Computes all results of `op` at `point`, and holds them.
    pub(super) fn evaluate(
        &self,
        code: &mut Code<'c, '_>,
        op: &TileOp<'c>,
        point: &mut Point<'c>,
    ) -> Result<(), Diagnostics> {
        let outer =
            op.outer.as_ref().ok_or_else(|| error::not_a_tile(op.op, "its outputs are not permutations of loops"))?;
        let mut loops: Vec<Option<Value>> = vec![None; op.sizes.len()];
        for (c, l) in outer.iter().enumerate() {
            loops[*l] = Some(point.coordinates[c]);
        }
        let inner = op.inner();
        let results = if inner.is_empty() {
            let initial = vec![None; op.outputs().len()];
            self.step(code, op, &all(&loops), point, &initial)?
        } else {
            let initial = self.initial_outputs(code, op, &loops, point)?;
            self.reduce(code, op, &inner, &mut loops, point, &initial)?
        };
        for (output, value) in op.outputs().iter().zip(results) {
            let Source::Slice(slice) = output.source else { continue };
            let value = code.broadcast(value, point.lanes);
            point.held.insert(slice, value);
        }
        Ok(())
    }

    /// Initial values of the outputs of an op with sequential loops.
    fn initial_outputs(
        &self,
        code: &mut Code<'c, '_>,
        op: &TileOp<'c>,
        loops: &[Option<Value<'c>>],
        point: &Point<'c>,
    ) -> Result<Vec<Value<'c>>, Diagnostics> {
        let zero = code.c(0);
        let at: Vec<Value> = loops.iter().map(|l| l.unwrap_or(zero)).collect();
        let mut out = Vec::new();
        for output in op.outputs() {
            let value = self.operand(code, op, output, &at, point)?;
            out.push(code.broadcast(value, point.lanes));
        }
        Ok(out)
    }

    /// Nested loops over `inner`, with the outputs as iter_args.
    fn reduce(
        &self,
        code: &mut Code<'c, '_>,
        op: &TileOp<'c>,
        inner: &[usize],
        loops: &mut Vec<Option<Value<'c>>>,
        point: &Point<'c>,
        carried: &[Value<'c>],
    ) -> Result<Vec<Value<'c>>, Diagnostics> {
        let Some((&first, rest)) = inner.split_first() else {
            let current: Vec<Option<Value>> = carried.iter().copied().map(Some).collect();
            let results = self.step(code, op, &all(loops), point, &current)?;
            return Ok(results.into_iter().map(|v| code.broadcast(v, point.lanes)).collect());
        };
        let bounds = [code.c(0), op.sizes[first].value, code.c(1)];
        code.for_loop(bounds, carried, |code, i, carried| {
            loops[first] = Some(i);
            self.reduce(code, op, rest, loops, point, carried)
        })
    }

    /// One execution of the op's body. `outputs` are the current values of the outputs where a register carries them.
    fn step(
        &self,
        code: &mut Code<'c, '_>,
        op: &TileOp<'c>,
        loops: &[Value<'c>],
        point: &Point<'c>,
        outputs: &[Option<Value<'c>>],
    ) -> Result<Vec<Value<'c>>, Diagnostics> {
        let mut args: Vec<Option<Value>> = Vec::new();
        for (i, operand) in op.operands.iter().enumerate() {
            let carried = i.checked_sub(op.num_inputs).and_then(|o| outputs[o]);
            args.push(match carried {
                Some(value) => Some(value),
                None if op.reads(i) => Some(self.operand(code, op, operand, loops, point)?),
                None => None,
            });
        }
        self.apply(code, op, args, loops, point.lanes)
    }

    /// The op's body on these values of its arguments (`None` for those that it does not read).
    pub(super) fn apply(
        &self,
        code: &mut Code<'c, '_>,
        op: &TileOp<'c>,
        args: Vec<Option<Value<'c>>>,
        loops: &[Value<'c>],
        lanes: u32,
    ) -> Result<Vec<Value<'c>>, Diagnostics> {
        let Some(body) = op.body else { return Ok(vec![args[0].expect("invariant: a copy reads its input")]) };
        let mut map: HashMap<Value, Value> = HashMap::new();
        for (arg, value) in body.args().into_iter().zip(args) {
            if let Some(value) = value {
                map.insert(arg, value);
            }
        }
        for inner in body.ops() {
            if inner.is(ops::linalg::YIELD) {
                return Ok(inner.operands().iter().map(|v| *map.get(v).unwrap_or(v)).collect());
            }
            body::copy_op(self, code, inner, loops, lanes, &mut map)?;
        }
        Err(error::not_a_tile(op.op, "its body does not yield"))
    }

    /// As [`Self::apply`], some results of an op without positions in its body: what the others alone read is left out.
    pub(super) fn apply_results(
        &self,
        code: &mut Code<'c, '_>,
        op: &TileOp<'c>,
        args: Vec<Option<Value<'c>>>,
        results: &[usize],
        lanes: u32,
    ) -> Result<Vec<Value<'c>>, Diagnostics> {
        let Some(body) = op.body.filter(|_| results.len() < op.outputs().len()) else {
            return self.apply(code, op, args, &[], lanes);
        };
        let args = body.args().into_iter().zip(args);
        let mut map: HashMap<Value, Value> = args.filter_map(|(arg, value)| Some((arg, value?))).collect();
        let (needed, yielded) = body::needed(body, results);
        for inner in body.ops().into_iter().filter(|inner| needed.contains(inner)) {
            body::copy_op(self, code, inner, &[], lanes, &mut map)?;
        }
        Ok(yielded.iter().map(|v| *map.get(v).unwrap_or(v)).collect())
    }

    /// Value of an operand at the given loop values: from a register if the slice was written here, else from memory.
    pub(super) fn operand(
        &self,
        code: &mut Code<'c, '_>,
        op: &TileOp<'c>,
        operand: &Operand<'c>,
        loops: &[Value<'c>],
        point: &Point<'c>,
    ) -> Result<Value<'c>, Diagnostics> {
        let s = match operand.source {
            Source::Scalar(value) => return Ok(value),
            Source::Slice(s) => s,
        };
        if let Some(value) = point.given.get(&s) {
            return Ok(*value);
        }
        let held = point.held.get(&s).copied();
        if let Some(value) = held.filter(|_| self.is_pointwise(op, operand)) {
            return Ok(value);
        }
        let index = self.linear_index(code, operand, s, loops);
        let reach = self.reach(op, operand, s, point.lanes);
        Ok(self.load(code, s, index, reach, point.lanes))
    }

    /// Whether the operand is indexed by the coordinates of the op's first output, in order.
    pub(super) fn is_pointwise(&self, op: &TileOp<'c>, operand: &Operand<'c>) -> bool {
        let Some(outer) = &op.outer else { return false };
        operand.map.len() == outer.len()
            && operand
                .map
                .iter()
                .zip(outer)
                .all(|(e, l)| matches!(e.kind(), monopour_ir::AffineExprKind::Dim(p) if p == *l))
    }

    /// The first element of a slice, counted from the start of the buffer that holds it.
    pub(super) fn origin(&self, code: &mut Code<'c, '_>, slice: &Slice<'c>) -> Value<'c> {
        match self.origins.get(&slice.base) {
            Some(origin) => code.add(*origin, slice.offset),
            None => slice.offset,
        }
    }

    /// Position in the buffer, in elements.
    pub(super) fn linear_index(
        &self,
        code: &mut Code<'c, '_>,
        operand: &Operand<'c>,
        slice: usize,
        loops: &[Value<'c>],
    ) -> Value<'c> {
        let slice = &self.model.slices[slice];
        let mut index = self.origin(code, slice);
        if let Some(Linear { factors: strides, constant }) = &operand.linear {
            // Outer loops first: their terms of the sum can be hoisted.
            for (value, stride) in loops.iter().zip(strides) {
                if !stride.is(0) {
                    let part = stride.scale(code, *value);
                    index = code.add(index, part);
                }
            }
            return code.add_const(index, *constant);
        }
        for (e, stride) in operand.map.iter().zip(&slice.strides) {
            let value = indices::expression(code, *e, loops, &[]);
            let part = code.mul(value, *stride);
            index = code.add(index, part);
        }
        index
    }

    /// Memory layout in a slice of the lanes of a point of `op`.
    pub(super) fn reach(&self, op: &TileOp<'c>, operand: &Operand<'c>, slice: usize, lanes: u32) -> Reach<'c> {
        let along = op.outer.as_ref().and_then(|o| o.get(self.along.unwrap_or(o.len().wrapping_sub(1))).copied());
        self.reach_along(operand, slice, along, lanes)
    }

    /// The buffer of an operand, and the lanes by which a point of `lanes` of `op` accesses it; `None` for a scalar.
    pub(super) fn access(&self, op: &TileOp<'c>, operand: &Operand<'c>, lanes: u32) -> Option<(Base, u32)> {
        let Source::Slice(slice) = operand.source else { return None };
        let is_wide = self.reach(op, operand, slice, lanes) == Reach::Wide;
        Some((self.model.slices[slice].base, if is_wide { lanes } else { 1 }))
    }

    /// Memory layout in a slice of `lanes` neighbours along a loop.
    pub(super) fn reach_along(
        &self,
        operand: &Operand<'c>,
        slice: usize,
        along: Option<usize>,
        lanes: u32,
    ) -> Reach<'c> {
        let (Some(along), Some(Linear { factors: strides, constant })) = (along, &operand.linear) else {
            return Reach::Uniform;
        };
        if lanes == 1 || strides[along].is(0) {
            return Reach::Uniform;
        }
        let slice = &self.model.slices[slice];
        let others =
            strides.iter().enumerate().filter(|(l, _)| *l != along).fold(*constant, |d, (_, s)| gcd(d, s.divisor()));
        let aligned = gcd(others, super::code::facts(slice.offset).divisor) % i64::from(lanes) == 0;
        // Packed elements are accessed in whole words.
        let words = slice.element.element_size_bytes().is_none_or(|bytes| bytes * u64::from(lanes) % 4 == 0);
        if strides[along].is(1) && aligned && words && self.elements(slice.base) % i64::from(lanes) == 0 {
            return Reach::Wide;
        }
        Reach::Strided(strides[along])
    }

    /// Elements of the whole buffer, whose last vector is whole if this is a multiple of the lanes. 0 for arguments of
    /// unknown extent: the runtime rounds bindings up to the widest vector. 1 if unknown: no access counts as aligned.
    pub(super) fn elements(&self, base: Base) -> i64 {
        match base {
            Base::Local(l) => {
                if self.model.locals[l].elements < 0 {
                    1
                } else {
                    self.model.locals[l].elements
                }
            }
            Base::Argument(_) => match self.buffers.get(&base).and_then(|b| b.ty().shape()).as_deref() {
                Some([DYNAMIC]) => 0,
                Some(shape) => shape.iter().product(),
                None => 1,
            },
        }
    }

    /// Loads the lanes of an access; a scalar where all lanes read the same element.
    pub(super) fn load(
        &self,
        code: &mut Code<'c, '_>,
        slice: usize,
        index: Value<'c>,
        reach: Reach<'c>,
        lanes: u32,
    ) -> Value<'c> {
        let Slice { base, element, .. } = self.model.slices[slice];
        // Memory of the tile that nothing writes has no buffer: any number is right.
        let Some(&buffer) = self.buffers.get(&base) else { return code.zero(element) };
        load_from(code, buffer, self.lanes.get(&base) == Some(&lanes), index, (reach, lanes))
    }

    /// Stores the registers of `point` for which `keep` holds, in the order of slices.
    pub(super) fn store(
        &self,
        code: &mut Code<'c, '_>,
        writers: &[&TileOp<'c>],
        point: &Point<'c>,
        keep: impl Fn(Base) -> bool,
    ) -> Result<(), Diagnostics> {
        let mut stored = Vec::new();
        // Any writer's indexing will do: ops of one point agree on their coordinates.
        for op in writers.iter().rev() {
            for output in op.outputs() {
                let Source::Slice(s) = output.source else { continue };
                if stored.contains(&s) || !keep(self.model.slices[s].base) {
                    continue;
                }
                stored.push(s);
                let value = point.held[&s];
                self.store_one(code, op, output, s, point, value)?;
            }
        }
        Ok(())
    }

    fn store_one(
        &self,
        code: &mut Code<'c, '_>,
        op: &TileOp<'c>,
        output: &Operand<'c>,
        s: usize,
        point: &Point<'c>,
        value: Value<'c>,
    ) -> Result<(), Diagnostics> {
        let outer = op.outer.as_ref().expect("invariant: a writer has outer loops");
        let zero = code.c(0);
        let mut loops = vec![zero; op.sizes.len()];
        for (c, l) in outer.iter().enumerate() {
            loops[*l] = point.coordinates[c];
        }
        let index = self.linear_index(code, output, s, &loops);
        let base = self.model.slices[s].base;
        let buffer = self.buffers[&base];
        let stride = match self.reach(op, output, s, point.lanes) {
            Reach::Uniform => return code.store(value, buffer, index),
            Reach::Wide if self.lanes.get(&base) == Some(&point.lanes) => return code.store(value, buffer, index),
            Reach::Wide => Stride::Known(1),
            Reach::Strided(stride) => stride,
        };
        for lane in 0..point.lanes {
            let element = code.extract(value, lane);
            let at = stride.from(code, index, i64::from(lane));
            code.store(element, buffer, at)?;
        }
        Ok(())
    }
}

/// As [`Evaluator::load`], from a buffer; `wide`: its accesses have these lanes.
pub(super) fn load_from<'c>(
    code: &mut Code<'c, '_>,
    buffer: Value<'c>,
    wide: bool,
    index: Value<'c>,
    (reach, lanes): (Reach<'c>, u32),
) -> Value<'c> {
    let stride = match reach {
        Reach::Uniform => return code.load(buffer, index, 1),
        Reach::Wide if wide => return code.load(buffer, index, lanes),
        Reach::Wide => Stride::Known(1),
        Reach::Strided(stride) => stride,
    };
    let elements: Vec<Value> = (0..i64::from(lanes))
        .map(|i| {
            let at = stride.from(code, index, i);
            code.load(buffer, at, 1)
        })
        .collect();
    code.vector_of(&elements)
}

fn all<'c>(loops: &[Option<Value<'c>>]) -> Vec<Value<'c>> {
    loops.iter().map(|l| l.expect("invariant: every loop has a value here")).collect()
}

/// Whether the body of `op` can be computed on vectors: lane by lane ops on 32-bit types and short floats.
pub(super) fn is_vectorizable(op: &TileOp) -> bool {
    is_vectorizable_with(op, &[])
}

/// Widths of integers that share a word with others.
pub(super) const PACKED: [u32; 2] = [8, 16];

/// As [`is_vectorizable`], also on integers of these widths.
pub(super) fn is_vectorizable_with(op: &TileOp, widths: &[u32]) -> bool {
    is_vectorizable_by(op, widths, &|_| false)
}

/// As [`is_vectorizable`], for lanes along the last of the outer loops, also of ops that compute with indices of others.
pub(super) fn is_vectorizable_beside_indices(op: &TileOp) -> bool {
    let along = op.outer.as_ref().and_then(|outer| outer.last().copied());
    is_vectorizable_by(op, &[], &|o| match o.name() {
        ops::linalg::INDEX => o.attr("dim").and_then(|dim| dim.as_int()) != along.map(|along| along as i64),
        // Only what is computed of indices alone is one for all lanes.
        _ => o.dialect() == "arith" && o.operands().iter().all(|v| v.ty().is_index()),
    })
}

fn is_vectorizable_by<'c>(op: &TileOp<'c>, widths: &[u32], is_uniform: &dyn Fn(Op<'c>) -> bool) -> bool {
    let Some(body) = op.body else { return true };
    let integer = |t: Type| t.integer_width().is_some_and(|width| width == 32 || widths.contains(&width));
    let lane = |t: Type| is_vector_float(t) || t.integer_width() == Some(1) || integer(t);
    let memory = |t: Type| is_vector_float(t) || integer(t);
    let body_fits = body.ops().iter().all(|o| {
        o.is(ops::linalg::YIELD)
            || is_uniform(*o)
            || (matches!(o.dialect(), "arith" | "math")
                && o.results().iter().chain(&o.operands()).all(|v| lane(v.ty())))
    });
    body_fits && body.args().iter().all(|a| memory(a.ty())) && op.operands.iter().all(|o| o.linear.is_some())
}

impl<'c> Evaluator<'c, '_> {
    /// The plain loop nest of an op: every iteration loads, computes and stores.
    pub(super) fn nest(&self, code: &mut Code<'c, '_>, op: &TileOp<'c>) -> Result<(), Diagnostics> {
        self.nest_from(code, op, &mut Vec::new())
    }

    fn nest_from(
        &self,
        code: &mut Code<'c, '_>,
        op: &TileOp<'c>,
        loops: &mut Vec<Value<'c>>,
    ) -> Result<(), Diagnostics> {
        if let Some(size) = op.sizes.get(loops.len()) {
            let count = size.value;
            return code.repeat(count, |code, i| {
                loops.push(i);
                let result = self.nest_from(code, op, loops);
                loops.pop();
                result
            });
        }
        let point = Point::new(vec![], 1);
        let carried = vec![None; op.outputs().len()];
        let results = self.step(code, op, loops, &point, &carried)?;
        for (output, value) in op.outputs().iter().zip(results) {
            let Source::Slice(s) = output.source else { continue };
            let index = self.linear_index(code, output, s, loops);
            code.store(value, self.buffers[&self.model.slices[s].base], index)?;
        }
        Ok(())
    }
}
