//! Reads a kernel body: tile ops, control flow around them, and their accesses.

use super::{Base, Local, Model, Operand, Size, Slice, Source, Step, TileOp};
use crate::distribute::code::Code;
use crate::distribute::stride::{Linear, Stride};
use crate::error;
use monopour_ir::ops;
use monopour_ir::typed::linalg::{self, IteratorType, Structured};
use monopour_ir::{
    AffineExpr, AffineExprKind, Block, DYNAMIC, Diagnostics, InsertionPoint, MemRefType, Op, Value, WalkOrder,
};

/// Reads the body `block` of a kernel whose index arithmetic is lowered and whose named ops are generic.
pub(in crate::distribute) fn read<'c>(
    func: Op<'c>,
    block: Block<'c>,
    code: &mut Code<'c, '_>,
) -> Result<Model<'c>, Diagnostics> {
    let mut model = Model::default();
    let args = func.body().map(|b| b.args()).unwrap_or_default();
    for (i, arg) in args.into_iter().enumerate().filter(|(_, arg)| arg.ty().is_memref()) {
        let slice = whole(code, func, arg, Base::Argument(i))?;
        model.define(arg, slice);
    }
    model.steps = model.block(code, block)?;
    Ok(model)
}

/// A whole buffer, contiguous and of static shape. One of rank 0 may be the base of a larger one. A window's offset is the
/// caller's binding offset.
fn whole<'c>(code: &mut Code<'c, '_>, op: Op<'c>, value: Value<'c>, base: Base) -> Result<Slice<'c>, Diagnostics> {
    let memref = value.ty().as_memref().filter(MemRefType::is_static_and_contiguous);
    let memref = memref.ok_or_else(|| error::not_a_tile(op, "a buffer has a dynamic shape or a layout"))?;
    let sizes = memref.shape.iter().map(|d| Size::new(code.c(*d))).collect();
    let stride_values = memref.strides.iter().map(|s| code.c(*s)).collect();
    Ok(Slice { base, offset: code.c(0), strides: stride_values, sizes, element: memref.element })
}

impl<'c> Model<'c> {
    pub(super) fn define(&mut self, value: Value<'c>, slice: Slice<'c>) {
        self.by_value.insert(value, self.slices.len());
        self.slices.push(slice);
    }
    pub(super) fn slice_of(&self, op: Op<'c>, value: Value<'c>) -> Result<usize, Diagnostics> {
        self.slice_named(value)
            .ok_or_else(|| error::not_a_tile(op, "an operand is not a slice of an argument or a local allocation"))
    }

    fn block(&mut self, code: &mut Code<'c, '_>, block: Block<'c>) -> Result<Vec<Step<'c>>, Diagnostics> {
        let mut steps: Vec<Step> = Vec::new();
        for op in block.ops() {
            let mut before = self.ops.len();
            match op.name() {
                ops::memref::ALLOC | ops::memref::ALLOCA => self.local(code, op)?,
                ops::memref::DIM | ops::memref::EXTRACT_STRIDED_METADATA => self.metadata(code, op)?,
                name if super::views::is_view(name) => self.view(code, op)?,
                ops::linalg::GENERIC => self.generic(code, op)?,
                ops::memref::COPY => self.copy(code, op)?,
                ops::memref::LOAD | ops::memref::STORE => {
                    let buffer = op.operand(usize::from(op.is(ops::memref::STORE)));
                    self.slice_of(op, buffer)?;
                    self.replaced.push(op);
                    steps.push(Step::Access(op));
                }
                ops::memref::DEALLOC | ops::memref::ASSUME_ALIGNMENT => self.replaced.push(op),
                ops::scf::FOR | ops::scf::IF | ops::scf::WHILE => {
                    self.region(code, op, &mut steps)?;
                    before = self.ops.len();
                }
                ops::func::RETURN | ops::scf::YIELD | ops::scf::CONDITION => no_buffers(op)?,
                ops::gpu::BLOCK_ID | ops::gpu::GRID_DIM => {}
                _ if matches!(op.dialect(), "arith" | "math" | "ub") => {}
                _ => return Err(error::not_a_tile(op, "it is not an op of a tile body")),
            }
            if self.ops.len() > before {
                match steps.last_mut() {
                    Some(Step::Run(run)) => run.end = self.ops.len(),
                    _ => steps.push(Step::Run(before..self.ops.len())),
                }
            }
        }
        Ok(steps)
    }

    fn region(&mut self, code: &mut Code<'c, '_>, op: Op<'c>, steps: &mut Vec<Step<'c>>) -> Result<(), Diagnostics> {
        if op.results().iter().any(|r| r.ty().is_memref()) {
            return Err(error::not_a_tile(op, "it carries a buffer"));
        }
        let mut blocks = Vec::new();
        for region in op.regions() {
            blocks.push(match region.entry() {
                Some(block) => self.block(code, block)?,
                None => vec![],
            });
        }
        // Regions with arithmetic alone stay as they are.
        if blocks.iter().any(|b| !b.is_empty()) {
            steps.push(Step::Region(op, blocks));
        }
        Ok(())
    }

    /// Dynamic extents are replaced by their upper bound where there is one: the static tile shape.
    fn local(&mut self, code: &mut Code<'c, '_>, op: Op<'c>) -> Result<(), Diagnostics> {
        let value = op.result(0);
        let shape = value.ty().shape().unwrap_or_default();
        let mut dynamic = op.operands().into_iter();
        let mut sizes = Vec::new();
        for d in shape {
            let size = if d == DYNAMIC {
                dynamic.next().ok_or_else(|| error::not_a_tile(op, "an extent is missing"))?
            } else {
                code.c(d)
            };
            sizes.push(Size::new(size));
        }
        code.at(InsertionPoint::Before(op));
        let bounds: Option<Vec<i64>> = sizes.iter().map(|s| s.facts.bound.map(|b| b.max(0))).collect();
        let extents: Vec<Value> = match &bounds {
            Some(bounds) => bounds.iter().map(|b| code.c(*b)).collect(),
            None => sizes.iter().map(|s| s.value).collect(),
        };
        let mut stride_values = vec![code.c(1); extents.len()];
        for d in (1..extents.len()).rev() {
            stride_values[d - 1] = code.mul(stride_values[d], extents[d]);
        }
        let base = Base::Local(self.locals.len());
        let element = value.ty().element();
        let elements = bounds.map_or(DYNAMIC, |b| b.iter().product::<i64>().max(1));
        self.locals.push(Local { op, elements, sizes: sizes.clone(), element });
        let offset = code.c(0);
        self.define(value, Slice { base, offset, strides: stride_values, sizes, element });
        self.replaced.push(op);
        Ok(())
    }

    fn generic(&mut self, code: &mut Code<'c, '_>, op: Op<'c>) -> Result<(), Diagnostics> {
        let malformed = || error::not_a_tile(op, "an attribute is missing");
        let maps = op.attr("indexing_maps").and_then(|a| a.as_array()).ok_or_else(malformed)?;
        let iterators = linalg::iterator_types(op).ok_or_else(malformed)?;
        let inputs = Structured::of(op).ok_or_else(malformed)?.num_inputs();
        let parallel: Vec<bool> = iterators.iter().map(|i| *i == IteratorType::Parallel).collect();
        let mut operands = Vec::new();
        for (value, map) in op.operands().into_iter().zip(maps) {
            let map = map.as_affine_map().ok_or_else(malformed)?.results();
            operands.push(self.operand(code, op, value, (map, parallel.len()))?);
        }
        let gathered = self.gathers(code, op)?;
        self.push(op, operands, parallel, inputs, op.body(), gathered)
    }

    /// The slices that the body of a generic op loads from; `memref.dim` in it is resolved here.
    fn gathers(&mut self, code: &mut Code<'c, '_>, op: Op<'c>) -> Result<Vec<usize>, Diagnostics> {
        let mut out = Vec::new();
        for inner in op.nested(WalkOrder::Pre) {
            match inner.name() {
                ops::memref::LOAD => out.push(self.slice_of(inner, inner.operand(0))?),
                ops::memref::DIM => {
                    let size = self.extent(inner)?;
                    code.rw.replace_op(inner, &[size]);
                }
                _ if inner.dialect() == "memref" => {
                    return Err(error::not_a_tile(
                        inner,
                        "the body of a linalg op loads, and does nothing else to memory",
                    ));
                }
                _ => {}
            }
        }
        out.sort_unstable();
        out.dedup();
        Ok(out)
    }

    fn copy(&mut self, code: &mut Code<'c, '_>, op: Op<'c>) -> Result<(), Diagnostics> {
        if op.operand(0) == op.operand(1) {
            self.replaced.push(op);
            return Ok(());
        }
        let rank = op.operand(0).ty().shape().map_or(0, |s| s.len());
        let identity = monopour_ir::AffineMap::identity(op.context(), rank).results();
        let operands = vec![
            self.operand(code, op, op.operand(0), (identity.clone(), rank))?,
            self.operand(code, op, op.operand(1), (identity, rank))?,
        ];
        self.push(op, operands, vec![true; rank], 1, None, vec![])
    }

    fn operand(
        &self,
        code: &mut Code<'c, '_>,
        op: Op<'c>,
        value: Value<'c>,
        (map, loops): (Vec<AffineExpr<'c>>, usize),
    ) -> Result<Operand<'c>, Diagnostics> {
        if !value.ty().is_memref() {
            return Ok(Operand { source: Source::Scalar(value), map, linear: Some(Linear::zero(loops)) });
        }
        let slice = self.slice_of(op, value)?;
        code.at(InsertionPoint::Before(op));
        let linear = linear_form(code, &map, &self.slices[slice], loops);
        Ok(Operand { source: Source::Slice(slice), map, linear })
    }

    fn push(
        &mut self,
        op: Op<'c>,
        operands: Vec<Operand<'c>>,
        parallel: Vec<bool>,
        num_inputs: usize,
        body: Option<Block<'c>>,
        gathered: Vec<usize>,
    ) -> Result<(), Diagnostics> {
        let mut sizes = Vec::new();
        for l in 0..parallel.len() {
            sizes.push(
                self.loop_size(&operands, l)
                    .ok_or_else(|| error::not_a_tile(op, &format!("no operand gives the extent of loop {l}")))?,
            );
        }
        let outer = outer_loops(&operands[num_inputs..], parallel.len());
        self.ops.push(TileOp { op, sizes, parallel, operands, num_inputs, body, outer, gathered });
        self.replaced.push(op);
        Ok(())
    }

    /// The extent of the dimension that a loop indexes alone; a static one if there is any.
    fn loop_size(&self, operands: &[Operand<'c>], l: usize) -> Option<Size<'c>> {
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

/// Checks that a terminator passes no buffers.
fn no_buffers(op: Op) -> Result<(), Diagnostics> {
    if op.operands().iter().any(|v| v.ty().is_memref()) {
        return Err(error::not_a_tile(op, "it passes a buffer on"));
    }
    Ok(())
}

/// The index in elements, if every expression is linear and the constant is static. The index of single elements is 0,
/// whatever their stride.
fn linear_form<'c>(
    code: &mut Code<'c, '_>,
    map: &[AffineExpr<'c>],
    slice: &Slice<'c>,
    loops: usize,
) -> Option<Linear<'c>> {
    let mut total = Linear::zero(loops);
    let dims = map.iter().zip(&slice.strides).zip(&slice.sizes);
    for ((expr, stride), size) in dims {
        let stride = Stride::of(*stride);
        if stride.exact().is_none() && size.exact() == Some(1) {
            continue;
        }
        let form = expr.linear(loops)?;
        total.constant += if form.constant == 0 { 0 } else { stride.exact()? * form.constant };
        for (factor, times) in total.factors.iter_mut().zip(&form.factors) {
            let part = stride.times(code, *times);
            *factor = factor.plus(code, &part);
        }
    }
    Some(total)
}

/// The loops of the first output in the order of its indices, if each combination of them has its own element in every
/// output: each of the loops is alone in an index, and no other loop is in any.
fn outer_loops(outputs: &[Operand], loops: usize) -> Option<Vec<usize>> {
    let of_one = |o: &Operand| -> Option<Vec<usize>> {
        let mut alone: Vec<usize> = Vec::new();
        let mut all: Vec<usize> = Vec::new();
        for e in &o.map {
            let form = e.linear(loops)?;
            let used: Vec<usize> = (0..loops).filter(|l| form.factors[*l] != 0).collect();
            if let &[only] = used.as_slice()
                && !alone.contains(&only)
            {
                alone.push(only);
            }
            all.extend(used);
        }
        all.iter().all(|l| alone.contains(l)).then_some(alone)
    };
    let first = of_one(outputs.first()?)?;
    let mut sorted = first.clone();
    sorted.sort_unstable();
    for output in &outputs[1..] {
        let mut other = of_one(output)?;
        other.sort_unstable();
        if other != sorted {
            return None;
        }
    }
    Some(first)
}
