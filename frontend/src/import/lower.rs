//! Lowers gathers, scatters and bitcasts to `linalg.generic`, and reshapes by data to reshapes by sizes.
//!
//! Before / after:
//!
//! ```text
//! tensor.gather %s[%at] gather_dims([0])          linalg.generic { tensor.extract %at[..]; tensor.extract %s[..] }
//! tensor.scatter %v into %d[%at] scatter_dims     linalg.generic over %d and all of %at { select is_at(..), %v, %d }
//! tensor.bitcast %x                               linalg.generic { arith.bitcast }
//! tensor.reshape %x(%shape)                       tensor.collapse_shape; tensor.expand_shape by the elements of %shape
//! tensor.pad %x low[-1] high[2]                   tensor.extract_slice %x[1] ..; tensor.pad low[0] high[2]
//! ```
//!
//! A scatter searches the updates for each element of its destination: nothing is written out of range, no two invocations
//! write one element, and of several updates of an element the last one counts.
//! Requires: what `verify` accepts.

use super::guards::Guard;
use super::ranges;
use monopour_ir::ops;
use monopour_ir::typed::arith::CmpIPredicate;
use monopour_ir::typed::linalg::{self, IteratorType};
use monopour_ir::typed::{Index, Slice, tensor};
use monopour_ir::{
    AffineExpr, AffineExprKind, AffineMap, Attr, Block, DYNAMIC, Diagnostics, InsertionPoint, Location, Module, Op,
    OpSpec, Region, Rewriter, Type, Value, WalkOrder, run_passes,
};

/// Lowers all such ops of `module`.
///
/// # Errors
/// MLIR's, none on verified IR.
pub(super) fn run(module: &Module) -> Result<(), Diagnostics> {
    open_divisions(module)?;
    let mut guard = Guard { rw: Rewriter::new(module.context()) };
    let lowerings: [(&str, Lowering); 5] = [
        (ops::tensor::GATHER, gather),
        (ops::tensor::SCATTER, scatter),
        (ops::tensor::BITCAST, bitcast),
        (ops::tensor::RESHAPE, reshape),
        (ops::tensor::PAD, crop),
    ];
    for (name, lower) in lowerings {
        for op in module.op().find_all(name) {
            guard.rw.set_point(InsertionPoint::Before(op));
            lower(&mut guard, op)?;
        }
    }
    Ok(())
}

/// Affine ops that divide by dynamic values become arith, whose divisors are guarded and checked.
fn open_divisions(module: &Module) -> Result<(), Diagnostics> {
    let divides = |op: &Op| {
        let map = op.attr("map").and_then(|a| a.as_affine_map());
        op.dialect() == "affine" && map.is_some_and(|map| map.results().into_iter().any(has_open_divisor))
    };
    if module.op().nested(WalkOrder::Pre).iter().any(divides) {
        run_passes(module.op(), "builtin.module(lower-affine)")?;
    }
    Ok(())
}

fn has_open_divisor(expr: AffineExpr) -> bool {
    use AffineExprKind::{Add, CeilDiv, Constant, FloorDiv, Mod, Mul};
    match expr.kind() {
        FloorDiv(l, r) | CeilDiv(l, r) | Mod(l, r) => !matches!(r.kind(), Constant(_)) || has_open_divisor(l),
        Add(l, r) | Mul(l, r) => has_open_divisor(l) || has_open_divisor(r),
        _ => false,
    }
}

type Lowering = for<'c> fn(&mut Guard<'c>, Op<'c>) -> Result<(), Diagnostics>;

/// A `linalg.generic` to be: loops, inputs and the destination with their maps.
pub(super) struct Generic<'c, 'a> {
    pub(super) parallel: usize,
    pub(super) reductions: usize,
    pub(super) inputs: &'a [(Value<'c>, String)],
    pub(super) output: (Value<'c>, String),
}

/// `d0, d1` for the dimensions of a range.
fn dims(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|d| format!("d{d}")).collect()
}

impl<'c> Generic<'c, '_> {
    /// Builds the op; `body` creates the yielded value from the block arguments.
    pub(super) fn build(
        self,
        guard: &mut Guard<'c>,
        loc: Location<'c>,
        body: impl FnOnce(&mut Guard<'c>, &[Value<'c>]) -> Result<Value<'c>, Diagnostics>,
    ) -> Result<Value<'c>, Diagnostics> {
        let cx = guard.rw.context();
        let loops = dims(0..self.parallel + self.reductions).join(", ");
        let operands: Vec<&(Value, String)> = self.inputs.iter().chain([&self.output]).collect();
        let map = |(_, results): &&(Value<'c>, String)| {
            let text = format!("affine_map<({loops}) -> ({results})>");
            let map = Attr::parse(cx, &text).and_then(|a| a.as_affine_map());
            map.expect("invariant: the text is a map")
        };
        let kinds = (0..self.parallel + self.reductions)
            .map(|i| if i < self.parallel { IteratorType::Parallel } else { IteratorType::Reduction });
        let kinds = linalg::iterator_types_attr(cx, &kinds.collect::<Vec<_>>());
        let maps: Vec<AffineMap> = operands.iter().map(map).collect();
        let arguments: Vec<(Type, Location)> = operands.iter().map(|(v, _)| (v.ty().element(), loc)).collect();
        let block = Block::new(&arguments);
        let region = Region::new();
        region.append(block);
        let inputs: Vec<Value> = self.inputs.iter().map(|(v, _)| *v).collect();
        let operands = linalg::Operands { inputs: &inputs, outputs: &[self.output.0] };
        let spec = linalg::generic(loc, operands, &maps, kinds, region);
        let result = guard.rw.create(spec)?.result(0);
        guard.rw.set_point(InsertionPoint::End(block));
        let value = body(guard, &block.args())?;
        guard.rw.create(OpSpec::new(ops::linalg::YIELD, loc).operands(&[value]))?;
        Ok(result)
    }
}

impl<'c> Guard<'c> {
    pub(super) fn counter(&mut self, loc: Location<'c>, dim: usize) -> Result<Value<'c>, Diagnostics> {
        let cx = self.rw.context();
        let spec =
            OpSpec::new(ops::linalg::INDEX, loc).attr("dim", Attr::i64(cx, dim as i64)).results(&[Type::index(cx)]);
        Ok(self.rw.create(spec)?.result(0))
    }

    fn empty(&mut self, loc: Location<'c>, ty: Type<'c>, sizes: &[Value<'c>]) -> Result<Value<'c>, Diagnostics> {
        self.op(ops::tensor::EMPTY, loc, sizes, ty)
    }

    /// Element `part` of the index vector at the loops from `first` on.
    fn coordinate(
        &mut self,
        loc: Location<'c>,
        at: Value<'c>,
        first: usize,
        part: usize,
    ) -> Result<Value<'c>, Diagnostics> {
        let rank = at.ty().shape().map_or(0, |shape| shape.len());
        let mut operands = vec![at];
        for dim in 0..rank.saturating_sub(1) {
            operands.push(self.counter(loc, first + dim)?);
        }
        let index = Type::index(self.rw.context());
        operands.push(self.constant(loc, index, part as i64)?);
        self.op(ops::tensor::EXTRACT, loc, &operands, at.ty().element())
    }

    pub(super) fn cast_to(
        &mut self,
        loc: Location<'c>,
        value: Value<'c>,
        ty: Type<'c>,
    ) -> Result<Value<'c>, Diagnostics> {
        if value.ty() == ty { Ok(value) } else { self.op(ops::arith::INDEX_CAST, loc, &[value], ty) }
    }
}

fn list(op: Op, name: &str) -> Vec<i64> {
    op.attr(name).and_then(|a| a.as_ints()).unwrap_or_default()
}

/// For each dimension of a tensor its dimension in a slice, whose dimensions begin at `first`; `None` for one that a
/// coordinate indexes and the slice drops.
fn slice_dims(rank: usize, named: &[i64], slice_rank: usize, first: usize) -> Vec<Option<usize>> {
    let is_full = slice_rank == rank;
    let mut next = first;
    let place = |dim: usize| {
        let kept = is_full || !named.contains(&(dim as i64));
        kept.then(|| {
            next += 1;
            next - 1
        })
    };
    (0..rank).map(place).collect()
}

fn gather<'c>(guard: &mut Guard<'c>, op: Op<'c>) -> Result<(), Diagnostics> {
    let (loc, source, at) = (op.location(), op.operand(0), op.operand(1));
    let ty = op.result(0).ty();
    let index = Type::index(op.context());
    let rank = |v: Value<'c>| v.ty().shape().map_or(0, |shape| shape.len());
    let (named, batch) = (list(op, "gather_dims"), rank(at) - 1);
    let shape = ty.shape().unwrap_or_default();
    let places = slice_dims(rank(source), &named, shape.len() - batch, batch);
    let mut sizes = vec![];
    for (dim, _) in shape.iter().enumerate().filter(|(_, size)| **size == DYNAMIC) {
        let (from, dim) = if dim < batch {
            (at, dim)
        } else {
            (source, places.iter().position(|p| *p == Some(dim)).expect("invariant: a slice is of the source"))
        };
        sizes.push(guard.size(loc, from, dim)?);
    }
    let empty = guard.empty(loc, ty, &sizes)?;
    let all = dims(0..shape.len()).join(", ");
    let generic = Generic { parallel: shape.len(), reductions: 0, inputs: &[], output: (empty, all) };
    let result = generic.build(guard, loc, |guard, _| {
        let mut operands = vec![source];
        for (dim, place) in places.iter().enumerate() {
            let part = named.iter().position(|n| *n == dim as i64);
            let value = match (part, place) {
                (Some(part), _) => {
                    let coordinate = guard.coordinate(loc, at, 0, part)?;
                    guard.cast_to(loc, coordinate, index)?
                }
                (None, Some(place)) => guard.counter(loc, *place)?,
                (None, None) => guard.constant(loc, index, 0)?,
            };
            operands.push(value);
        }
        guard.op(ops::tensor::EXTRACT, loc, &operands, ty.element())
    })?;
    guard.rw.replace_op(op, &[result]);
    Ok(())
}

fn scatter<'c>(guard: &mut Guard<'c>, op: Op<'c>) -> Result<(), Diagnostics> {
    let (loc, updates, into, at) = (op.location(), op.operand(0), op.operand(1), op.operand(2));
    let rank = |v: Value<'c>| v.ty().shape().map_or(0, |shape| shape.len());
    let (named, batch, into_rank) = (list(op, "scatter_dims"), rank(at) - 1, rank(into));
    let places = slice_dims(into_rank, &named, rank(updates) - batch, 0);
    let mut from = dims(into_rank..into_rank + batch);
    for (dim, _) in places.iter().enumerate().filter(|(_, place)| place.is_some()) {
        from.push(if named.contains(&(dim as i64)) { "0".to_owned() } else { format!("d{dim}") });
    }
    let output = (into, dims(0..into_rank).join(", "));
    let inputs = [(updates, from.join(", "))];
    let generic = Generic { parallel: into_rank, reductions: batch, inputs: &inputs, output };
    let result = generic.build(guard, loc, |guard, args| {
        let bool_ty = Type::integer(guard.rw.context(), 1);
        let mut meant: Option<Value> = None;
        for (part, dim) in named.iter().enumerate() {
            let coordinate = guard.coordinate(loc, at, into_rank, part)?;
            let here = guard.counter(loc, usize::try_from(*dim).unwrap_or(0))?;
            let here = guard.cast_to(loc, here, coordinate.ty())?;
            let same = guard.compare(loc, CmpIPredicate::Eq, coordinate, here)?;
            meant = Some(match meant {
                Some(before) => guard.op(ops::arith::ANDI, loc, &[before, same], bool_ty)?,
                None => same,
            });
        }
        let Some(meant) = meant else { return Ok(args[0]) };
        guard.op(ops::arith::SELECT, loc, &[meant, args[0], args[1]], args[1].ty())
    })?;
    guard.rw.replace_op(op, &[result]);
    Ok(())
}

fn bitcast<'c>(guard: &mut Guard<'c>, op: Op<'c>) -> Result<(), Diagnostics> {
    let (loc, from, ty) = (op.location(), op.operand(0), op.result(0).ty());
    let shape = ty.shape().unwrap_or_default();
    if from.ty().element() == ty.element() {
        let cast = guard.op(ops::tensor::CAST, loc, &[from], ty)?;
        guard.rw.replace_op(op, &[cast]);
        return Ok(());
    }
    let mut sizes = vec![];
    for (dim, _) in shape.iter().enumerate().filter(|(_, size)| **size == DYNAMIC) {
        sizes.push(guard.size(loc, from, dim)?);
    }
    let empty = guard.empty(loc, ty, &sizes)?;
    let all = dims(0..shape.len()).join(", ");
    let inputs = [(from, all.clone())];
    let generic = Generic { parallel: shape.len(), reductions: 0, inputs: &inputs, output: (empty, all) };
    let result =
        generic.build(guard, loc, |guard, args| guard.op(ops::arith::BITCAST, loc, &[args[0]], ty.element()))?;
    guard.rw.replace_op(op, &[result]);
    Ok(())
}

fn reshape<'c>(guard: &mut Guard<'c>, op: Op<'c>) -> Result<(), Diagnostics> {
    let (cx, loc, ty) = (op.context(), op.location(), op.result(0).ty());
    let index = Type::index(cx);
    let shape = ty.shape().unwrap_or_default();
    let mut sizes = vec![];
    for (dim, _) in shape.iter().enumerate().filter(|(_, size)| **size == DYNAMIC) {
        let at = guard.constant(loc, index, dim as i64)?;
        let size = guard.op(ops::tensor::EXTRACT, loc, &[op.operand(1), at], op.operand(1).ty().element())?;
        sizes.push(guard.cast_to(loc, size, index)?);
    }
    let flat = flattened(guard, op, op.operand(0))?;
    let one_group = |rank: usize| {
        let group: Vec<Attr> = (0..rank as i64).map(|d| Attr::i64(cx, d)).collect();
        Attr::array(cx, &[Attr::array(cx, &group)])
    };
    let product = if shape.contains(&DYNAMIC) { DYNAMIC } else { shape.iter().product() };
    let flat = match shape.len() {
        1 => cast_flat(guard, loc, flat, shape[0])?,
        _ => cast_flat(guard, loc, flat, product)?,
    };
    let result = match shape.len() {
        0 => {
            let spec = OpSpec::new(ops::tensor::COLLAPSE_SHAPE, loc).attr("reassociation", Attr::array(cx, &[]));
            guard.rw.create(spec.operands(&[flat]).results(&[ty]))?.result(0)
        }
        1 => flat,
        rank => {
            let spec = OpSpec::new(ops::tensor::EXPAND_SHAPE, loc)
                .attr("reassociation", one_group(rank))
                .attr("static_output_shape", Attr::dense_i64(cx, &shape));
            guard.rw.create(spec.operands(&[flat]).operands(&sizes).results(&[ty]))?.result(0)
        }
    };
    guard.rw.replace_op(op, &[result]);
    Ok(())
}

/// A tensor collapsed to one dimension.
fn flattened<'c>(guard: &mut Guard<'c>, op: Op<'c>, tensor: Value<'c>) -> Result<Value<'c>, Diagnostics> {
    let (cx, loc, ty) = (op.context(), op.location(), tensor.ty());
    let shape = ty.shape().unwrap_or_default();
    let size = if shape.contains(&DYNAMIC) { DYNAMIC } else { shape.iter().product() };
    let flat = Type::tensor(&[size], ty.element(), None);
    match shape.len() {
        0 => {
            let spec = OpSpec::new(ops::tensor::EXPAND_SHAPE, loc)
                .attr("reassociation", Attr::array(cx, &[]))
                .attr("static_output_shape", Attr::dense_i64(cx, &[1]));
            Ok(guard.rw.create(spec.operands(&[tensor]).results(&[flat]))?.result(0))
        }
        1 => Ok(tensor),
        rank => {
            let group: Vec<Attr> = (0..rank as i64).map(|d| Attr::i64(cx, d)).collect();
            let spec = OpSpec::new(ops::tensor::COLLAPSE_SHAPE, loc)
                .attr("reassociation", Attr::array(cx, &[Attr::array(cx, &group)]));
            Ok(guard.rw.create(spec.operands(&[tensor]).results(&[flat]))?.result(0))
        }
    }
}

fn cast_flat<'c>(
    guard: &mut Guard<'c>,
    loc: Location<'c>,
    flat: Value<'c>,
    size: i64,
) -> Result<Value<'c>, Diagnostics> {
    let ty = Type::tensor(&[size], flat.ty().element(), None);
    if flat.ty() == ty { Ok(flat) } else { guard.op(ops::tensor::CAST, loc, &[flat], ty) }
}

/// Splits a pad with negative amounts into a slice and a pad.
fn crop<'c>(guard: &mut Guard<'c>, op: Op<'c>) -> Result<(), Diagnostics> {
    let (loc, source) = (op.location(), op.operand(0));
    let [low, high] = pads(guard, op)?;
    if low.iter().chain(&high).all(|pad| ranges::is_size(*pad)) {
        return Ok(());
    }
    let mut parts = Crop::default();
    for (dim, (low, high)) in low.into_iter().zip(high).enumerate() {
        parts.dimension(guard, loc, source, dim, (low, high))?;
    }
    let cut = parts.slice(guard, loc, source)?;
    let mut result = parts.pad(guard, op, cut)?;
    if result.ty() != op.result(0).ty() {
        result = guard.op(ops::tensor::CAST, loc, &[result], op.result(0).ty())?;
    }
    guard.rw.replace_op(op, &[result]);
    Ok(())
}

/// The low and the high pads of a `tensor.pad`, each per dimension.
fn pads<'c>(guard: &mut Guard<'c>, op: Op<'c>) -> Result<[Vec<Value<'c>>; 2], Diagnostics> {
    let pad = tensor::Pad::of(op).expect("invariant: the pattern is of this op");
    let mut sides = [vec![], vec![]];
    for (side, given) in sides.iter_mut().zip([pad.low(), pad.high()]) {
        for size in given.expect("invariant: a verified pad has a number per dimension") {
            side.push(match size {
                Index::Dynamic(value) => value,
                Index::Static(size) => guard.constant(op.location(), Type::index(op.context()), size)?,
            });
        }
    }
    Ok(sides)
}

/// The values; constants are static.
fn mixed<'c>(values: &[Value<'c>]) -> Vec<Index<'c>> {
    values.iter().copied().map(Index::of).collect()
}

/// The slice that is left of a tensor, and the pads around it, none of them negative.
#[derive(Default)]
struct Crop<'c> {
    offsets: Vec<Value<'c>>,
    sizes: Vec<Value<'c>>,
    low: Vec<Value<'c>>,
    high: Vec<Value<'c>>,
}

impl<'c> Crop<'c> {
    /// `tensor.extract_slice` of what is left.
    fn slice(&self, guard: &mut Guard<'c>, loc: Location<'c>, source: Value<'c>) -> Result<Value<'c>, Diagnostics> {
        let slice = Slice::new(mixed(&self.offsets), mixed(&self.sizes));
        let shape: Vec<i64> = slice.sizes.iter().map(|size| size.number()).collect();
        let ty = Type::tensor(&shape, source.ty().element(), None);
        Ok(guard.rw.create(tensor::extract_slice(loc, source, &slice, ty))?.result(0))
    }

    /// `op` around the slice. Its type is the one that upstream's verifier infers; where the op says more, a cast does.
    fn pad(&self, guard: &mut Guard<'c>, op: Op<'c>, slice: Value<'c>) -> Result<Value<'c>, Diagnostics> {
        let (low, high) = (mixed(&self.low), mixed(&self.high));
        let region = Region::new();
        guard.rw.take_region(region, op.region(0));
        let padded: Vec<i64> = (0..self.sizes.len())
            .map(|d| {
                let known = [self.low[d], self.sizes[d], self.high[d]].map(|v| v.constant_int());
                known.into_iter().sum::<Option<i64>>().unwrap_or(DYNAMIC)
            })
            .collect();
        let ty = Type::tensor(&padded, slice.ty().element(), None);
        let mut spec = tensor::pad(op.location(), slice, (&low, &high), ty, region);
        if let Some(nofold) = op.attr("nofold") {
            spec = spec.attr("nofold", nofold);
        }
        Ok(guard.rw.create(spec)?.result(0))
    }

    fn dimension(
        &mut self,
        guard: &mut Guard<'c>,
        loc: Location<'c>,
        source: Value<'c>,
        dim: usize,
        (low, high): (Value<'c>, Value<'c>),
    ) -> Result<(), Diagnostics> {
        let size = guard.size(loc, source, dim)?;
        let zero = guard.constant(loc, size.ty(), 0)?;
        if ranges::is_size(low) && ranges::is_size(high) {
            self.push((zero, size), (low, high));
            return Ok(());
        }
        let (cut_low, cut_high) = (guard.least(loc, low)?, guard.least(loc, high)?);
        let rest = guard.arith(loc, ops::arith::ADDI, size, cut_low)?;
        let rest = guard.arith(loc, ops::arith::ADDI, rest, cut_high)?;
        // A crop may be larger than the tensor: then all of the result is padding.
        let kept = guard.arith(loc, ops::arith::MAXSI, rest, zero)?;
        let sides = guard.arith(loc, ops::arith::ADDI, low, high)?;
        let padded = guard.arith(loc, ops::arith::ADDI, size, sides)?;
        let before = guard.arith(loc, ops::arith::SUBI, low, cut_low)?;
        let before = guard.arith(loc, ops::arith::MINSI, before, padded)?;
        let behind = guard.arith(loc, ops::arith::SUBI, padded, before)?;
        let behind = guard.arith(loc, ops::arith::SUBI, behind, kept)?;
        let cut = guard.arith(loc, ops::arith::SUBI, zero, cut_low)?;
        let most = guard.arith(loc, ops::arith::SUBI, size, kept)?;
        let cut = guard.arith(loc, ops::arith::MINSI, cut, most)?;
        // The offset of an empty slice is 0, not behind the last element.
        let offset = if kept.constant_int() == Some(0) { zero } else { cut };
        self.push((offset, kept), (before, behind));
        Ok(())
    }

    fn push(&mut self, (offset, size): (Value<'c>, Value<'c>), (low, high): (Value<'c>, Value<'c>)) {
        self.offsets.push(offset);
        self.sizes.push(size);
        self.low.push(low);
        self.high.push(high);
    }
}

impl<'c> Guard<'c> {
    /// The minimum of a number and zero.
    fn least(&mut self, loc: Location<'c>, value: Value<'c>) -> Result<Value<'c>, Diagnostics> {
        let zero = self.constant(loc, value.ty(), 0)?;
        self.arith(loc, ops::arith::MINSI, value, zero)
    }

    /// A sum, difference, minimum or maximum of indices, folded where both are known.
    fn arith(
        &mut self,
        loc: Location<'c>,
        name: &str,
        left: Value<'c>,
        right: Value<'c>,
    ) -> Result<Value<'c>, Diagnostics> {
        let known = left.constant_int().zip(right.constant_int()).and_then(|(l, r)| match name {
            ops::arith::ADDI => l.checked_add(r),
            ops::arith::SUBI => l.checked_sub(r),
            ops::arith::MINSI => Some(l.min(r)),
            _ => Some(l.max(r)),
        });
        match (known, right.constant_int()) {
            (Some(known), _) => self.constant(loc, left.ty(), known),
            (None, Some(0)) if matches!(name, ops::arith::ADDI | ops::arith::SUBI) => Ok(left),
            _ => self.op(name, loc, &[left, right], left.ty()),
        }
    }
}
