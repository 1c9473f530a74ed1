//! Loops of sums of products: batches, rows and columns of a contraction, image and window of a convolution.
//!
//! Before / after [`normalize`]:
//!
//! ```text
//! generic (b, k, m, n) -> (b, m, k), (b, k, n), (b, m, n)    generic (d0, d1, d2, d3) -> (d0, d1, d3), (d0, d3, d2), (d0, d1, d2)
//! ```
//!
//! Ensures, after [`normalize`]: the loops of every reduction with one result are its result's dimensions in order, then the
//! reductions in the order of the first operand that has them all (float sums are reassociated). So the loops of a
//! contraction and of its elementwise reader are numbered alike.

use crate::linalg;
use monopour_ir::bodies::{self, MultiplyAdd};
use monopour_ir::ops;
use monopour_ir::{AffineExpr, AffineExprKind, AffineMap, Attr, Module, Op, Rewriter, Value};
use std::collections::BTreeSet;

/// The loops of a contraction `out += lhs * rhs`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ContractionLoops {
    /// In both operands and the result.
    pub batch: Vec<usize>,
    /// In the left operand and the result.
    pub m: Vec<usize>,
    /// In the right operand and the result. The result's last dimension is among them where it is in one operand only.
    pub n: Vec<usize>,
    /// In both operands: the reductions.
    pub k: Vec<usize>,
    /// Which operand is the left one.
    pub lhs: usize,
}

/// The loops of a convolution `out += input * filter`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ConvolutionLoops {
    /// Which operand is the input; the other is the filter.
    pub input: usize,
    /// In the input and the result.
    pub batch: Vec<usize>,
    /// In a window of the input and in the result, or behind such a one.
    pub image: Vec<usize>,
    /// In the filter and the result: output channels.
    pub channels: Vec<usize>,
    /// In input, filter and result: the channels of a depthwise convolution.
    pub depth: Vec<usize>,
    /// In a window of the input and in the filter: reductions.
    pub window: Vec<usize>,
    /// In the input alone and in the filter: input channels, reductions.
    pub k: Vec<usize>,
}

/// The loops of a contraction: a matmul, or a generic whose body is `out + a * b` and whose maps are projections of its
/// loops. `None` where every dimension of the result is in both operands: a reduction of an elementwise product.
pub(crate) fn contraction_loops(op: Op) -> Option<ContractionLoops> {
    if op.is(ops::linalg::MATMUL) {
        return Some(ContractionLoops { batch: vec![], m: vec![0], n: vec![1], k: vec![2], lhs: 0 });
    }
    let Factors { operands, dims: [a, b], out } = Factors::plain(op).or_else(|| Factors::scaled(op))?;
    // The right operand has the last dimension of the result.
    let lhs = usize::from(out.last().is_some_and(|d| a.contains(d) && !b.contains(d)));
    let (left, right) = if lhs == 0 { (&a, &b) } else { (&b, &a) };
    let mut loops = ContractionLoops { batch: vec![], m: vec![], n: vec![], k: vec![], lhs: operands[lhs] };
    for d in 0..linalg::parallel_loops(op)?.len() {
        match (left.contains(&d), right.contains(&d), out.contains(&d)) {
            (true, true, true) => loops.batch.push(d),
            (true, false, true) => loops.m.push(d),
            (false, true, true) => loops.n.push(d),
            (true, true, false) => loops.k.push(d),
            _ => return None,
        }
    }
    let is_product = !loops.k.is_empty() && loops.m.len() + loops.n.len() > 0;
    is_product.then_some(loops)
}

/// The factors of a product whose maps are projections of its loops.
struct Factors {
    /// Of each, the operand with the most dimensions.
    operands: [usize; 2],
    /// The loops that index each.
    dims: [Vec<usize>; 2],
    /// The loops of the result, in order.
    out: Vec<usize>,
}

impl Factors {
    /// One operand each.
    fn plain(op: Op) -> Option<Self> {
        let maps = product_maps(op)?;
        let [a, b, out] = [0, 1, 2].map(|i| maps[i].dim_positions());
        maps.iter().all(|m| m.is_projected_permutation()).then_some(())?;
        Some(Self { operands: [0, 1], dims: [a?, b?], out: out? })
    }

    /// Functions of several operands, of which one is stored in fewer bits than it is computed in: dequantised. Sums of
    /// several such products, too, and several results.
    fn scaled(op: Op) -> Option<Self> {
        if !op.is(ops::linalg::GENERIC) {
            return None;
        }
        let (inputs, maps) = (linalg::num_inputs(op), linalg::indexing_maps(op)?);
        let body = op.body().filter(|_| inputs > 2 && op.find_all(ops::linalg::INDEX).is_empty())?;
        let (mut a, mut b) = (BTreeSet::new(), BTreeSet::new());
        let results = (0..op.num_results()).map(|result| MultiplyAdd::chain_of_result(body, result));
        for term in results.collect::<Option<Vec<_>>>()?.concat() {
            let [left, right] = term.factors.map(|factor| bodies::arguments(body, factor));
            a.extend(left?);
            b.extend(right?);
        }
        let packed = |i: usize| op.operand(i).ty().element().integer_width().is_some_and(|width| width <= 16);
        let apart = a.is_disjoint(&b) && a.len() + b.len() == inputs;
        let alike = maps[inputs..].iter().all(|map| *map == maps[inputs]);
        let several = op.num_results() > 1;
        // Positions along the result are bare loops, others of the reductions alone.
        let parallel = linalg::parallel_loops(op)?;
        let is_bare = |e: AffineExpr| matches!(e.kind(), AffineExprKind::Dim(_));
        let reduces = |e: AffineExpr| e.linear(parallel.len()).is_some() && e.dims().iter().all(|d| !parallel[*d]);
        let fits = maps.iter().all(|m| m.results().into_iter().all(|e| is_bare(e) || reduces(e)));
        if !apart
            || !alike
            || !(several || (0..inputs).any(packed))
            || !fits
            || !maps[inputs].is_projected_permutation()
        {
            return None;
        }
        let positions: Vec<Vec<usize>> =
            maps.iter().map(|m| m.results().into_iter().flat_map(AffineExpr::dims).collect()).collect();
        let dims = [&a, &b].map(|factor| {
            let all: BTreeSet<usize> = factor.iter().flat_map(|i| positions[*i].iter().copied()).collect();
            all.into_iter().collect::<Vec<_>>()
        });
        let widest = |factor: &BTreeSet<usize>| factor.iter().copied().max_by_key(|i| positions[*i].len());
        Some(Self { operands: [widest(&a)?, widest(&b)?], dims, out: positions[inputs].clone() })
    }
}

/// The loops of a convolution: a generic whose body is `out + a * b`, one operand of which is read by windows
/// `stride * image + dilation * window`.
pub(crate) fn convolution_loops(op: Op) -> Option<ConvolutionLoops> {
    let maps = product_maps(op)?;
    let input = (0..2).find(|i| !maps[*i].is_projected_permutation())?;
    let (filter, out) = (&maps[1 - input], &maps[2]);
    if !filter.is_projected_permutation() || !linalg::can_tile_loops(op).iter().all(|can| *can) {
        return None;
    }
    let (filter, out) = (filter.dim_positions()?, out.dim_positions()?);
    let (mut bare, mut behind, mut windows) = (vec![], vec![], vec![]);
    for expr in maps[input].results() {
        match expr.kind() {
            AffineExprKind::Dim(d) => {
                bare.push(d);
                behind.extend((!windows.is_empty()).then_some(d));
            }
            _ => windows.push(expr.dims()),
        }
    }
    let in_window = |d: &usize| windows.iter().any(|w| w.contains(d));
    let mut loops = ConvolutionLoops {
        input,
        batch: vec![],
        image: vec![],
        channels: vec![],
        depth: vec![],
        window: vec![],
        k: vec![],
    };
    for d in 0..maps[0].num_dims() {
        match (bare.contains(&d), in_window(&d), filter.contains(&d), out.contains(&d)) {
            (true, false, false, true) if behind.contains(&d) => loops.image.push(d),
            (true, false, false, true) => loops.batch.push(d),
            (false, true, false, true) => loops.image.push(d),
            (false, false, true, true) => loops.channels.push(d),
            (true, false, true, true) => loops.depth.push(d),
            (false, true, true, false) => loops.window.push(d),
            (true, false, true, false) => loops.k.push(d),
            _ => return None,
        }
    }
    let one_each = windows.iter().all(|w| {
        w.len() == 2 && w.iter().any(|d| loops.image.contains(d)) && w.iter().any(|d| loops.window.contains(d))
    });
    one_each.then_some(loops)
}

/// The maps of a generic of two inputs and one result whose body is `out + a * b`; the result's is a projected permutation.
fn product_maps<'c>(op: Op<'c>) -> Option<Vec<AffineMap<'c>>> {
    let two_to_one = op.is(ops::linalg::GENERIC) && op.num_results() == 1 && linalg::num_inputs(op) == 2;
    let maps = linalg::indexing_maps(op).filter(|_| two_to_one && is_multiply_add(op))?;
    maps[2].is_projected_permutation().then_some(maps)
}

/// Whether the body of an op of two inputs is `out + in0 * in1` in one type, in any operand order; factors may be extended
/// or converted from integers, and a constant taken off these, before they are multiplied.
pub(crate) fn is_multiply_add<'c>(op: Op<'c>) -> bool {
    let Some(body) = op.body() else { return false };
    let ops = body.ops();
    let is = |value: Value, names: &[&str]| value.defining_op().is_some_and(|op| names.contains(&op.name()));
    let extends = |op: &Op| {
        use ops::arith::{CONSTANT, EXTF, EXTSI, EXTUI, SITOFP, SUBF, UITOFP};
        // Of a factor that is converted, as a zero point is taken off: a body of floats alone is a plain product's.
        let lessens = op.is(SUBF) && is(op.operand(0), &[SITOFP, UITOFP]) && is(op.operand(1), &[CONSTANT]);
        lessens || matches!(op.name(), EXTF | EXTSI | EXTUI | SITOFP | UITOFP)
    };
    let (extensions, rest) = ops.split_at(ops.iter().take_while(|op| extends(op)).count());
    let [mul, add, done] = rest[..] else { return false };
    if body.num_args() != 3 || extensions.iter().any(|op| op.operand(0) == body.arg(2)) {
        return false;
    }
    let same = |a: &[Value], b: [Value; 2]| a == [b[0], b[1]] || a == [b[1], b[0]];
    let given = |value: Value<'c>| {
        let before = |value: &Value<'c>| Some(extensions.iter().find(|op| op.result(0) == *value)?.operand(0));
        std::iter::successors(Some(value), before).last().unwrap_or(value)
    };
    let factors: Vec<Value> = mul.operands().into_iter().map(given).collect();
    let floats = mul.is(ops::arith::MULF) && add.is(ops::arith::ADDF);
    let integers = mul.is(ops::arith::MULI) && add.is(ops::arith::ADDI);
    (floats || integers)
        && same(&factors, [body.arg(0), body.arg(1)])
        && same(&add.operands(), [mul.result(0), body.arg(2)])
        && done.operand(0) == add.result(0)
}

/// Renumbers the loops of reductions with one result.
pub(crate) fn normalize<'c>(module: &'c Module<'c>, rw: &mut Rewriter<'c>) {
    for op in module.op().find_all(ops::linalg::GENERIC) {
        if let Some(order) = new_order(op) {
            renumber(op, &order, rw);
        }
    }
}

/// The old loop at each new position; `None` if already in order, or if the body has `linalg.index`.
fn new_order(op: Op) -> Option<Vec<usize>> {
    let (maps, parallel) = (linalg::indexing_maps(op)?, linalg::parallel_loops(op)?);
    if op.num_results() != 1 || parallel.iter().all(|p| *p) || !op.find_all(ops::linalg::INDEX).is_empty() {
        return None;
    }
    let out = maps.last()?;
    let mut order = out.is_projected_permutation().then(|| out.dim_positions())??;
    if !order.iter().all(|d| parallel[*d]) {
        return None;
    }
    // The reductions in the order in which the first input that has them all is laid out.
    let rest: Vec<usize> = (0..parallel.len()).filter(|d| !order.contains(d)).collect();
    let laid_out = maps.iter().filter_map(|m| m.is_projected_permutation().then(|| m.dim_positions())?);
    let laid_out = laid_out.map(|dims| dims.into_iter().filter(|d| rest.contains(d)).collect::<Vec<_>>());
    order.extend(laid_out.into_iter().find(|dims| dims.len() == rest.len()).unwrap_or(rest));
    (!order.iter().enumerate().all(|(new, old)| new == *old)).then_some(order)
}

fn renumber<'c>(op: Op<'c>, order: &[usize], rw: &mut Rewriter<'c>) {
    let cx = op.context();
    let position = |old: usize| order.iter().position(|o| *o == old).unwrap_or(old);
    let positions: Vec<usize> = (0..order.len()).map(position).collect();
    let rename = AffineMap::select(cx, order.len(), &positions);
    let maps = linalg::indexing_maps(op).unwrap_or_default();
    let maps: Vec<Attr> = maps.into_iter().map(|m| m.compose(rename).to_attr()).collect();
    let kinds = op.attr("iterator_types").and_then(|a| a.as_array()).unwrap_or_default();
    let kinds: Vec<Attr> = order.iter().map(|old| kinds[*old]).collect();
    rw.set_attr(op, "indexing_maps", Attr::array(cx, &maps));
    rw.set_attr(op, "iterator_types", Attr::array(cx, &kinds));
}
