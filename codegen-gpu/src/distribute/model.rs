//! A kernel body as data: slices of buffers, and tile ops over them.

use super::code::{Code, Facts, facts};
use crate::error;
use monopour_ir::{AffineExpr, AffineExprKind, Block, DYNAMIC, Diagnostics, Op, Type, Value};
use std::collections::HashMap;

/// The memory that a slice lies in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Base {
    /// A kernel argument, by position.
    Argument(usize),
    /// A local allocation, by position in [`Model::locals`].
    Local(usize),
}

/// An extent that may depend on the tile.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) value: Value,
    pub(super) facts: Facts,
}

impl Size {
    fn new(value: Value) -> Self {
        Self { value, facts: facts(value) }
    }
    pub(super) fn exact(&self) -> Option<i64> {
        self.value.constant_int()
    }
    pub(super) fn same(&self, other: &Size) -> bool {
        self.value == other.value || self.exact().is_some_and(|e| other.exact() == Some(e))
    }
}

/// A strided part of a buffer.
#[derive(Clone, Debug)]
pub(super) struct Slice {
    pub(super) base: Base,
    /// First element, counted from the start of the buffer.
    pub(super) offset: Value,
    pub(super) strides: Vec<i64>,
    pub(super) sizes: Vec<Size>,
    pub(super) element: Type,
}

/// A local allocation.
#[derive(Clone, Debug)]
pub(super) struct Local {
    pub(super) op: Op,
    /// Elements at most.
    pub(super) elements: i64,
    pub(super) element: Type,
}

/// An operand of a tile op.
#[derive(Clone, Debug)]
pub(super) struct Operand {
    /// Index into [`Model::slices`], or a scalar.
    pub(super) source: Source,
    /// Indexing expressions over the loops.
    pub(super) map: Vec<AffineExpr>,
    /// For linear maps: elements between neighbours per loop, and the constant part.
    pub(super) linear: Option<(Vec<i64>, i64)>,
}

/// Where an operand's values come from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source {
    Slice(usize),
    Scalar(Value),
}

/// One op of the body.
#[derive(Clone, Debug)]
pub(super) struct TileOp {
    pub(super) op: Op,
    pub(super) sizes: Vec<Size>,
    pub(super) parallel: Vec<bool>,
    /// Inputs, then outputs, in the order of the body's arguments.
    pub(super) operands: Vec<Operand>,
    pub(super) num_inputs: usize,
    /// The computation; `None` copies input to output.
    pub(super) body: Option<Block>,
    /// Loops of the first output's indices, outermost first; `None` when an output is not a permutation of distinct loops.
    pub(super) outer: Option<Vec<usize>>,
}

impl TileOp {
    pub(super) fn outputs(&self) -> &[Operand] {
        &self.operands[self.num_inputs..]
    }
    /// Loops that are not in [`TileOp::outer`]: these run one after the other per output element.
    pub(super) fn inner(&self) -> Vec<usize> {
        let outer = self.outer.clone().unwrap_or_default();
        (0..self.sizes.len()).filter(|l| !outer.contains(l)).collect()
    }
    /// Whether the old value of operand `index` matters.
    pub(super) fn reads(&self, index: usize) -> bool {
        match self.body {
            Some(body) => !body.arg(index).is_unused(),
            None => index == 0,
        }
    }
}

/// A kernel body.
#[derive(Debug, Default)]
pub(super) struct Model {
    pub(super) slices: Vec<Slice>,
    pub(super) locals: Vec<Local>,
    pub(super) ops: Vec<TileOp>,
    /// Ops to erase when the code is written, in program order.
    pub(super) replaced: Vec<Op>,
    by_value: HashMap<Value, usize>,
}

/// Reads the body of a kernel whose index arithmetic is lowered and whose named ops are generic.
pub(super) fn read(func: Op, code: &mut Code) -> Result<Model, Diagnostics> {
    let body = func.body().ok_or_else(|| error::not_a_tile(func, "the function has no body"))?;
    let mut model = Model::default();
    for (i, arg) in body.args().into_iter().enumerate() {
        if arg.ty().is_memref() {
            let slice = whole(code, func, arg, Base::Argument(i))?;
            model.define(arg, slice);
        }
    }
    for op in body.ops() {
        match op.name() {
            "memref.alloc" | "memref.alloca" => model.local(code, op)?,
            "memref.subview" => model.subview(code, op)?,
            "memref.cast" => model.cast(op)?,
            "memref.collapse_shape" | "memref.expand_shape" => model.reshape(code, op)?,
            "linalg.generic" => model.generic(op)?,
            "memref.copy" => model.copy(op)?,
            "memref.dealloc" | "memref.assume_alignment" => model.replaced.push(op),
            "func.return" | "gpu.block_id" => {}
            _ if op.dialect() == "arith" || op.dialect() == "math" => {}
            _ => return Err(error::not_a_tile(op, "it is not an op of a tile body")),
        }
    }
    Ok(model)
}

/// A whole buffer of static shape and identity layout.
fn whole(code: &mut Code, op: Op, value: Value, base: Base) -> Result<Slice, Diagnostics> {
    let memref = value.ty().as_memref().filter(|m| m.is_identity() && m.shape.iter().all(|d| *d >= 0));
    let memref = memref.ok_or_else(|| error::not_a_tile(op, "a buffer has a dynamic shape or a layout"))?;
    let sizes = memref.shape.iter().map(|d| Size::new(code.c(*d))).collect();
    Ok(Slice { base, offset: code.c(0), strides: memref.strides, sizes, element: memref.element })
}

impl Model {
    fn define(&mut self, value: Value, slice: Slice) {
        self.by_value.insert(value, self.slices.len());
        self.slices.push(slice);
    }
    fn slice_of(&self, op: Op, value: Value) -> Result<usize, Diagnostics> {
        self.by_value
            .get(&value)
            .copied()
            .ok_or_else(|| error::not_a_tile(op, "an operand is not a slice of an argument or a local allocation"))
    }

    /// Dynamic extents take their upper bound: the static tile shape.
    fn local(&mut self, code: &mut Code, op: Op) -> Result<(), Diagnostics> {
        let value = op.result(0);
        let shape = value.ty().shape().unwrap_or_default();
        let mut dynamic = op.operands().into_iter();
        let (mut sizes, mut extents) = (Vec::new(), Vec::new());
        for d in shape {
            let size = if d == DYNAMIC {
                dynamic.next().ok_or_else(|| error::not_a_tile(op, "an extent is missing"))?
            } else {
                code.c(d)
            };
            let size = Size::new(size);
            extents.push(size.facts.bound.ok_or_else(|| error::not_a_tile(op, "an extent has no known bound"))?);
            sizes.push(size);
        }
        let mut strides = vec![1i64; extents.len()];
        for d in (1..extents.len()).rev() {
            strides[d - 1] = strides[d] * extents[d];
        }
        let base = Base::Local(self.locals.len());
        let element = value.ty().element();
        self.locals.push(Local { op, elements: extents.iter().product::<i64>().max(1), element });
        let offset = code.c(0);
        self.define(value, Slice { base, offset, strides, sizes, element });
        self.replaced.push(op);
        Ok(())
    }

    fn subview(&mut self, code: &mut Code, op: Op) -> Result<(), Diagnostics> {
        let source = self.slices[self.slice_of(op, op.operand(0))?].clone();
        let ints = |name: &str| {
            op.attr(name).and_then(|a| a.as_ints()).ok_or_else(|| error::not_a_tile(op, "an attribute is missing"))
        };
        let (offsets, sizes, strides) = (ints("static_offsets")?, ints("static_sizes")?, ints("static_strides")?);
        let mut dynamic = op.operands().into_iter().skip(1);
        let mut next = |code: &mut Code, value: i64| {
            if value == DYNAMIC {
                dynamic.next().expect("invariant: one operand per dynamic entry")
            } else {
                code.c(value)
            }
        };
        let offsets: Vec<Value> = offsets.iter().map(|v| next(code, *v)).collect();
        let sizes: Vec<Value> = sizes.iter().map(|v| next(code, *v)).collect();
        if strides.contains(&DYNAMIC) {
            return Err(error::not_a_tile(op, "its strides are dynamic"));
        }
        // New code goes before the op: sums of offsets are used by what follows.
        code.at(monopour_ir::InsertionPoint::Before(op));
        let mut offset = source.offset;
        for (o, stride) in offsets.iter().zip(&source.strides) {
            let scaled = code.mul_const(*o, *stride);
            offset = code.add(offset, scaled);
        }
        let kept = kept_dims(op, &sizes);
        let strides = kept.iter().map(|d| source.strides[*d] * strides[*d]).collect();
        let sizes = kept.iter().map(|d| Size::new(sizes[*d])).collect();
        self.define(op.result(0), Slice { base: source.base, offset, strides, sizes, element: source.element });
        self.replaced.push(op);
        Ok(())
    }

    fn cast(&mut self, op: Op) -> Result<(), Diagnostics> {
        let source = self.slice_of(op, op.operand(0))?;
        self.by_value.insert(op.result(0), source);
        self.replaced.push(op);
        Ok(())
    }

    /// Reshapes of static shape keep the order of elements; the result type says the strides.
    fn reshape(&mut self, code: &mut Code, op: Op) -> Result<(), Diagnostics> {
        let source = self.slices[self.slice_of(op, op.operand(0))?].clone();
        let memref = op.result(0).ty().as_memref().filter(|m| m.shape.iter().chain(&m.strides).all(|d| *d >= 0));
        let memref = memref.ok_or_else(|| error::not_a_tile(op, "its shape is dynamic"))?;
        let sizes = memref.shape.iter().map(|d| Size::new(code.c(*d))).collect();
        self.define(op.result(0), Slice { strides: memref.strides, sizes, ..source });
        self.replaced.push(op);
        Ok(())
    }

    fn generic(&mut self, op: Op) -> Result<(), Diagnostics> {
        let malformed = || error::not_a_tile(op, "an attribute is missing");
        let maps = op.attr("indexing_maps").and_then(|a| a.as_array()).ok_or_else(malformed)?;
        let iterators = op.attr("iterator_types").and_then(|a| a.as_array()).ok_or_else(malformed)?;
        let segments = op.attr("operandSegmentSizes").and_then(|a| a.as_ints()).ok_or_else(malformed)?;
        let parallel: Vec<bool> = iterators.iter().map(|i| i.to_string().contains("parallel")).collect();
        let mut operands = Vec::new();
        for (value, map) in op.operands().into_iter().zip(maps) {
            let map = map.as_affine_map().ok_or_else(malformed)?.results();
            operands.push(self.operand(op, value, map, parallel.len())?);
        }
        let body = op.body();
        self.push(op, operands, parallel, segments[0] as usize, body)
    }

    fn copy(&mut self, op: Op) -> Result<(), Diagnostics> {
        if op.operand(0) == op.operand(1) {
            self.replaced.push(op);
            return Ok(());
        }
        let rank = op.operand(0).ty().shape().map_or(0, |s| s.len());
        let identity = monopour_ir::AffineMap::identity(op.context(), rank).results();
        let operands = vec![
            self.operand(op, op.operand(0), identity.clone(), rank)?,
            self.operand(op, op.operand(1), identity, rank)?,
        ];
        self.push(op, operands, vec![true; rank], 1, None)
    }

    fn operand(&self, op: Op, value: Value, map: Vec<AffineExpr>, loops: usize) -> Result<Operand, Diagnostics> {
        if !value.ty().is_memref() {
            return Ok(Operand { source: Source::Scalar(value), map, linear: Some((vec![0; loops], 0)) });
        }
        let slice = self.slice_of(op, value)?;
        let linear = linear_form(&map, &self.slices[slice].strides, loops);
        Ok(Operand { source: Source::Slice(slice), map, linear })
    }

    fn push(
        &mut self,
        op: Op,
        operands: Vec<Operand>,
        parallel: Vec<bool>,
        num_inputs: usize,
        body: Option<Block>,
    ) -> Result<(), Diagnostics> {
        let mut sizes = Vec::new();
        for l in 0..parallel.len() {
            sizes.push(
                self.loop_size(&operands, l)
                    .ok_or_else(|| error::not_a_tile(op, &format!("no operand gives the extent of loop {l}")))?,
            );
        }
        let outer = outer_loops(&operands[num_inputs..]);
        self.ops.push(TileOp { op, sizes, parallel, operands, num_inputs, body, outer });
        self.replaced.push(op);
        Ok(())
    }

    /// The extent of the dimension that a loop indexes alone; a static one if there is any.
    fn loop_size(&self, operands: &[Operand], l: usize) -> Option<Size> {
        let mut found = None;
        for operand in operands {
            let Source::Slice(s) = operand.source else { continue };
            for (d, e) in operand.map.iter().enumerate() {
                if matches!(e.kind(), AffineExprKind::Dim(p) if p == l) {
                    let size = self.slices[s].sizes[d];
                    if size.exact().is_some() {
                        return Some(size);
                    }
                    found = found.or(Some(size));
                }
            }
        }
        found
    }
}

/// Dimensions of a subview that its result keeps. Which of several unit extents is dropped makes no difference: their index is 0.
fn kept_dims(op: Op, sizes: &[Value]) -> Vec<usize> {
    let result = op.result(0).ty().shape().unwrap_or_default();
    let mut kept = Vec::new();
    for (d, size) in sizes.iter().enumerate() {
        let remaining_sizes = sizes.len() - d;
        let remaining_result = result.len() - kept.len();
        let wanted = result.get(kept.len());
        let matches = wanted.is_some_and(|w| size.constant_int().map_or(*w == DYNAMIC, |s| s == *w));
        if remaining_sizes == remaining_result || (matches && (size.constant_int() != Some(1) || wanted == Some(&1))) {
            kept.push(d);
        }
    }
    kept.truncate(result.len());
    kept
}

/// Strides per loop and the constant part, if every expression is a sum of loops times constants.
fn linear_form(map: &[AffineExpr], strides: &[i64], loops: usize) -> Option<(Vec<i64>, i64)> {
    let mut total = (vec![0; loops], 0);
    for (e, stride) in map.iter().zip(strides) {
        add_linear(*e, *stride, &mut total)?;
    }
    Some(total)
}

fn add_linear(e: AffineExpr, factor: i64, total: &mut (Vec<i64>, i64)) -> Option<()> {
    match e.kind() {
        AffineExprKind::Dim(p) => total.0[p] += factor,
        AffineExprKind::Constant(c) => total.1 += factor * c,
        AffineExprKind::Add(l, r) => {
            add_linear(l, factor, total)?;
            add_linear(r, factor, total)?;
        }
        AffineExprKind::Mul(l, r) => match (l.kind(), r.kind()) {
            (_, AffineExprKind::Constant(c)) => add_linear(l, factor * c, total)?,
            (AffineExprKind::Constant(c), _) => add_linear(r, factor * c, total)?,
            _ => return None,
        },
        _ => return None,
    }
    Some(())
}

/// The loops of the first output, if all outputs are indexed by permutations of the same distinct loops.
fn outer_loops(outputs: &[Operand]) -> Option<Vec<usize>> {
    let dims = |o: &Operand| -> Option<Vec<usize>> {
        o.map
            .iter()
            .map(|e| match e.kind() {
                AffineExprKind::Dim(p) => Some(p),
                _ => None,
            })
            .collect()
    };
    let first = dims(outputs.first()?)?;
    let mut sorted = first.clone();
    sorted.sort_unstable();
    if sorted.windows(2).any(|w| w[0] == w[1]) {
        return None;
    }
    for output in &outputs[1..] {
        let mut other = dims(output)?;
        other.sort_unstable();
        if other != sorted {
            return None;
        }
    }
    Some(first)
}
