//! Collapses the short lines of images in contractions, for CPUs, and on GPUs rows that lie in several dimensions.
//!
//! Before / after (dispatch 3; lines of 14 elements where a vector has 16):
//!
//! ```text
//! %r = generic {dispatch = 3} (o, y, x, c)      %f = tensor.collapse_shape %image [[0], [1, 2]]
//!        image[c, y, x], filter[o, c]           %p = generic {dispatch = 3} (o, p, c)
//!                                                      f[c, p], filter[o, c]
//!                                               %r = tensor.expand_shape %p [[0], [1, 2]]
//! ```
//!
//! Columns then fill whole vectors, and a tile has as many of them as share the rows' loads.
//! Requires: what [`crate::fuse`] ensures.
//! Ensures: the same.
//! Limits: known sizes, and ops of the dispatch whose operands have both dimensions next to each other, or none of them.

use crate::dispatch::{self, Dispatch};
use crate::{kernel_cpu, kernel_matrices, linalg, products};
use monopour_contract::KernelClass;
use monopour_ir::ops;
use monopour_ir::typed::linalg::{IteratorType, iterator_types, iterator_types_attr};
use monopour_ir::{
    AffineMap, Attr, Context, DYNAMIC, Diagnostics, InsertionPoint, Location, Module, Op, OpSpec, Rewriter, Type, Value,
};
use monopour_program::{CpuTarget, GpuDescription};

/// Elements of a line that is long enough, in vectors.
const LONG: i64 = 4;

/// Collapses the lines of all contractions that have short ones.
///
/// # Errors
/// None of its own; what MLIR's op builders report.
pub fn run(module: &Module, cpu: &CpuTarget) -> Result<(), Diagnostics> {
    let mut rw = Rewriter::new(module.context());
    for dispatch in dispatch::collect(module) {
        if has_short_lines(&dispatch, cpu) {
            let rank = dispatch.root.result(0).ty().shape().map_or(0, |shape| shape.len());
            collapse(&dispatch, rank.saturating_sub(2), &mut rw)?;
        }
    }
    Ok(())
}

/// On GPUs, the rows of a product that lie in several dimensions as one, so that tiles at the ends of each leave nothing idle: a
/// batch of sequences times weights. On cooperative matrices the columns, too.
///
/// # Errors
/// None of its own; what MLIR's op builders report.
pub fn run_on_gpu(module: &Module, gpu: &GpuDescription) -> Result<(), Diagnostics> {
    let mut rw = Rewriter::new(module.context());
    if gpu.is_cpu_adapter() {
        return Ok(());
    }
    for dispatch in dispatch::collect(module) {
        while let Some(at) = several_dimensions(&dispatch, gpu) {
            if !collapse(&dispatch, at, &mut rw)? {
                break;
            }
        }
    }
    Ok(())
}

/// The first of two dimensions of a product's result that are its rows, or columns that matrices have.
fn several_dimensions(dispatch: &Dispatch, gpu: &GpuDescription) -> Option<usize> {
    let product =
        dispatch.contraction().filter(|op| dispatch.class() == KernelClass::Contraction && op.num_results() == 1)?;
    let roles = products::contraction_loops(product)?;
    let order = linalg::indexing_maps(product)?.last()?.dim_positions()?;
    let has_matrices =
        gpu.cooperative_lanes().is_some() && (0..2).all(|i| kernel_matrices::is_half(product.operand(i)));
    let are_one = |pair: &[usize]| {
        let within = |dims: &[usize]| pair.iter().all(|d| dims.contains(d));
        within(&roles.m) || has_matrices && within(&roles.n)
    };
    // What lies within another tensor has gaps between its lines.
    let inserts = |value: Value| value.uses().iter().any(|u| u.op.is(ops::tensor::INSERT_SLICE));
    let is_whole = !dispatch.ops.iter().flat_map(|(op, _)| op.results()).any(inserts);
    order.windows(2).position(are_one).filter(|_| is_whole)
}

/// Collapses dimensions `at` and `at + 1` of the results of a dispatch, if all of its ops allow it; returns whether.
fn collapse<'c>(dispatch: &Dispatch<'c>, at: usize, rw: &mut Rewriter<'c>) -> Result<bool, Diagnostics> {
    let members: Option<Vec<_>> = dispatch.ops.iter().map(|(op, _)| Member::of(*op, at)).collect();
    let extents = |member: &Member| (member.height, member.width);
    let alike = |members: &Vec<Member>| members.iter().all(|m| extents(m) == extents(&members[0]));
    let Some(members) = members.filter(alike) else { return Ok(false) };
    members.iter().try_for_each(|member| member.collapse(dispatch, rw))?;
    Ok(true)
}

/// Whether the columns of a contraction are lines that fill vectors badly.
fn has_short_lines(dispatch: &Dispatch, cpu: &CpuTarget) -> bool {
    let main = dispatch.main();
    let lanes = kernel_cpu::lanes(main, cpu);
    let columns = products::contraction_loops(main).map(|loops| loops.n).unwrap_or_default();
    let extents = linalg::loop_extents(main).unwrap_or_default();
    match columns[..] {
        [.., y, x] => extents[x] % lanes != 0 && (1..lanes * LONG).contains(&extents[x]) && extents[y] > 1,
        _ => false,
    }
}

/// An op of a dispatch whose result has the two dimensions.
struct Member<'c> {
    op: Op<'c>,
    /// The first of them in the result.
    at: usize,
    /// Positions of the dimensions in each operand that has them: of the first of the two.
    pairs: Vec<Option<usize>>,
    /// The loop over lines, and the one within a line.
    loops: Option<[usize; 2]>,
    height: i64,
    width: i64,
}

impl<'c> Member<'c> {
    fn of(op: Op<'c>, at: usize) -> Option<Self> {
        let shape = op.result(0).ty().shape().filter(|_| op.num_results() == 1)?;
        let [height, width] = shape.get(at..at + 2)? else { return None };
        let (height, width) = (*height, *width);
        if op.is(ops::linalg::FILL) {
            return Some(Self { op, at, pairs: vec![None, Some(at)], loops: None, height, width });
        }
        // No dimension twice.
        let positions = |map: &AffineMap<'c>| map.dim_positions().filter(|_| map.is_projected_permutation());
        let maps: Vec<_> = linalg::indexing_maps(op)?.iter().map(positions).collect::<Option<_>>()?;
        let [y, x] = maps.last()?.get(at..at + 2)? else { return None };
        let (y, x) = (*y, *x);
        let bodies = op.body()?.ops();
        let plain =
            op.is(ops::linalg::GENERIC) && !bodies.iter().any(|o| o.is(ops::linalg::INDEX) || o.num_regions() > 0);
        let pair = |map: &Vec<usize>| match (map.iter().position(|d| *d == y), map.iter().position(|d| *d == x)) {
            (None, None) => Some(None),
            (Some(at), Some(next)) if next == at + 1 => Some(Some(at)),
            _ => None,
        };
        let pairs: Vec<_> = maps.iter().map(pair).collect::<Option<_>>()?;
        let sliced = |v: &Value<'c>| v.defining_op().is_some_and(|def| def.is(ops::tensor::EXTRACT_SLICE));
        let known = op.operands().iter().all(|v| v.ty().shape().is_some_and(|s| s.iter().all(|size| *size > 0)));
        (plain && known && !op.operands().iter().any(sliced)).then_some(Self {
            op,
            at,
            pairs,
            loops: Some([y, x]),
            height,
            width,
        })
    }

    fn collapse(&self, dispatch: &Dispatch<'c>, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
        let op = self.op;
        let inside = |other: Op<'c>| dispatch.ops.iter().any(|(own, _)| *own == other);
        for (index, pair) in self.pairs.iter().enumerate() {
            let value = op.operand(index);
            // Results of the dispatch are collapsed already.
            if let Some(at) = pair.filter(|_| !value.defining_op().is_some_and(inside)) {
                rw.set_point(InsertionPoint::Before(op));
                let collapsed = collapsed(value, at, rw)?;
                rw.set_operand(op, index, collapsed);
            }
        }
        let result = op.result(0);
        let (ty, outside) = (result.ty(), result.uses().into_iter().filter(|u| !inside(u.op)).collect::<Vec<_>>());
        rw.set_type(result, collapsed_type(ty, self.at));
        if !outside.is_empty() {
            rw.set_point(InsertionPoint::After(op));
            let whole = expanded(result, ty, self.at, rw)?;
            outside.into_iter().for_each(|u| rw.set_operand(u.op, u.index, whole));
        }
        self.drop_loop(rw);
        Ok(())
    }

    /// Removes the loop within a line.
    fn drop_loop(&self, rw: &mut Rewriter<'c>) {
        let (op, cx) = (self.op, self.op.context());
        let Some([_, x]) = self.loops else { return };
        let maps = linalg::indexing_maps(op).unwrap_or_default();
        let smaller = |map: &AffineMap<'c>| {
            let positions = map.dim_positions().unwrap_or_default();
            let left: Vec<usize> = positions.into_iter().filter(|d| *d != x).map(|d| d - usize::from(d > x)).collect();
            AffineMap::select(cx, map.num_dims() - 1, &left).to_attr()
        };
        let maps: Vec<Attr> = maps.iter().map(smaller).collect();
        let mut kinds: Vec<IteratorType> = iterator_types(op).unwrap_or_default();
        kinds.remove(x);
        rw.set_attr(op, "indexing_maps", Attr::array(cx, &maps));
        rw.set_attr(op, "iterator_types", iterator_types_attr(cx, &kinds));
    }
}

fn collapsed_type<'c>(ty: Type<'c>, at: usize) -> Type<'c> {
    let mut shape = ty.shape().unwrap_or_default();
    let width = shape.remove(at + 1);
    shape[at] *= width;
    Type::tensor(&shape, ty.element(), None)
}

/// Dimensions `at` and `at + 1` of `rank` as one.
fn groups(cx: Context, rank: usize, at: usize) -> Attr {
    let group = |d: usize| {
        let dims: &[usize] = if d == at { &[at, at + 1] } else { &[d + usize::from(d > at)] };
        let numbers: Vec<Attr> = dims.iter().map(|d| Attr::i64(cx, *d as i64)).collect();
        Attr::array(cx, &numbers)
    };
    Attr::array(cx, &(0..rank - 1).map(group).collect::<Vec<_>>())
}

/// Dimensions `at` and `at + 1` of a value as one.
pub(crate) fn collapsed<'c>(value: Value<'c>, at: usize, rw: &mut Rewriter<'c>) -> Result<Value<'c>, Diagnostics> {
    let (cx, ty) = (rw.context(), value.ty());
    let small = collapsed_type(ty, at);
    let loc = value.defining_op().map_or(Location::unknown(cx), Op::location);
    if value.defining_op().is_some_and(|def| def.is(ops::tensor::EMPTY)) {
        let sizes = dynamic_sizes(value, rw)?;
        return Ok(rw.create(OpSpec::new(ops::tensor::EMPTY, loc).operands(&sizes).results(&[small]))?.result(0));
    }
    let rank = ty.shape().map_or(0, |shape| shape.len());
    let spec = OpSpec::new(ops::tensor::COLLAPSE_SHAPE, loc).operands(&[value]).results(&[small]);
    Ok(rw.create(spec.attr("reassociation", groups(cx, rank, at)))?.result(0))
}

/// The sizes of a tensor's dynamic dimensions.
pub(crate) fn dynamic_sizes<'c>(value: Value<'c>, rw: &mut Rewriter<'c>) -> Result<Vec<Value<'c>>, Diagnostics> {
    if let Some(empty) = value.defining_op().filter(|def| def.is(ops::tensor::EMPTY)) {
        return Ok(empty.operands());
    }
    let (loc, index) =
        (value.defining_op().map_or(Location::unknown(rw.context()), Op::location), Type::index(rw.context()));
    let shape = value.ty().shape().unwrap_or_default();
    let size = |d: usize| {
        let position = rw.const_index(d as i64, loc);
        let dim = OpSpec::new(ops::tensor::DIM, loc).operands(&[value, position]).results(&[index]);
        Ok(rw.create(dim)?.result(0))
    };
    (0..shape.len()).filter(|d| shape[*d] == DYNAMIC).map(size).collect()
}

/// A value in which dimension `at`, of a known size, is two; of a `tensor.empty` another one.
pub(crate) fn expanded<'c>(
    value: Value<'c>,
    ty: Type<'c>,
    at: usize,
    rw: &mut Rewriter<'c>,
) -> Result<Value<'c>, Diagnostics> {
    let cx = rw.context();
    let shape = ty.shape().unwrap_or_default();
    let loc = value.defining_op().map_or(Location::unknown(cx), Op::location);
    let sizes = dynamic_sizes(value, rw)?;
    if value.defining_op().is_some_and(|def| def.is(ops::tensor::EMPTY)) {
        return Ok(rw.create(OpSpec::new(ops::tensor::EMPTY, loc).operands(&sizes).results(&[ty]))?.result(0));
    }
    let spec = OpSpec::new(ops::tensor::EXPAND_SHAPE, loc)
        .operands(&[value])
        .operands(&sizes)
        .results(&[ty])
        .attr("reassociation", groups(cx, shape.len(), at))
        .attr("static_output_shape", Attr::dense_i64(cx, &shape));
    Ok(rw.create(spec)?.result(0))
}
