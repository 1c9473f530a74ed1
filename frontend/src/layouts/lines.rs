//! Convolutions of lines, such as audio, as convolutions of images of one row.
//!
//! Before / after:
//!
//! ```text
//! %r = generic (o, x, c, j)                         %r = generic (o, y, x, c, j)
//!        %line[c, x * 2 + j] : [512, 3199]                 %line[c, y, x * 2 + j] : [512, 1, 3199]
//!        %w[o, c, j]         : [512, 512, 3]               %w[o, c, j]            : [512, 512, 3]
//!        %r[o, x]            : [512, 1599]                 %r[o, y, x]            : [512, 1, 1599]
//! ```
//!
//! What is around them and works on lines alone (pointwise ops, pads, convolutions by windows of one element, depthwise ones)
//! follows; reshapes are at the borders. Images then get their layouts as all others do.
//!
//! Requires: fills and `tensor.empty` of one use. Ensures: the same values.
//! Limits: known sizes; constant filters.

use crate::collapse_lines::{collapsed, expanded};
use crate::linalg;
use crate::products::{contraction_loops, convolution_loops};
use monopour_ir::typed::linalg::{IteratorType, iterator_types, iterator_types_attr};
use monopour_ir::{
    AffineExpr, AffineExprKind, AffineMap, Attr, Diagnostics, InsertionPoint, Module, Op, Rewriter, Type, Value, ops,
};
use std::collections::{HashMap, HashSet};

/// Multiplications for each element of a result that gain more than other layouts of it and of what is read cost.
const LEAST_WORK: i64 = 180;

/// Gives all such lines in `module` a row.
///
/// # Errors
/// None of its own; what MLIR's op builders report.
pub(super) fn run<'c>(module: &'c Module<'c>, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
    let mut lines = Lines::default();
    for op in module.op().find_all(ops::linalg::GENERIC) {
        if is_heavy(op) {
            lines.add(op);
        }
    }
    while let Some(value) = lines.new.pop() {
        let readers = value.uses().into_iter().map(|use_| use_.op);
        for op in value.defining_op().into_iter().chain(readers) {
            if follows(op) {
                lines.add(op);
            }
        }
    }
    lines.rewrite(rw)
}

/// Whether a convolution of lines gains by another layout. Depthwise ones do not sum over channels.
fn is_heavy(op: Op) -> bool {
    let Some(found) = convolution_loops(op).filter(|found| is_of_lines(op) && found.image.len() == 1) else {
        return false;
    };
    let extents = linalg::loop_extents(op).unwrap_or_default();
    let sums: i64 = found.k.iter().chain(&found.window).map(|d| extents[*d].max(1)).product();
    found.depth.is_empty() && found.channels.len() == 1 && sums >= LEAST_WORK
}

/// Whether an op does with a row what it does without.
fn follows(op: Op) -> bool {
    match op.name() {
        ops::linalg::FILL | ops::tensor::EMPTY => true,
        ops::tensor::INSERT_SLICE | ops::tensor::EXTRACT_SLICE => true,
        ops::linalg::GENERIC if linalg::is_elementwise(op) => true,
        ops::linalg::GENERIC => is_of_lines(op),
        _ => false,
    }
}

/// Whether an op is a convolution of `[.., channels, places]` with a constant filter.
fn is_of_lines(op: Op) -> bool {
    let stored = |i: usize| op.operand(i).defining_op().is_some_and(|def| def.is(ops::arith::CONSTANT));
    if let Some(found) = convolution_loops(op) {
        let out = linalg::indexing_maps(op).and_then(|maps| maps.last()?.dim_positions()).unwrap_or_default();
        let channels = out.iter().rev().nth(1).is_some_and(|d| found.channels.contains(d) || found.depth.contains(d));
        return found.image.len() == 1 && found.image.last() == out.last() && channels && stored(1 - found.input);
    }
    let Some((found, maps)) = contraction_loops(op).zip(linalg::indexing_maps(op)) else { return false };
    let [[m], [n], [k]] = [&found.m[..], &found.n[..], &found.k[..]] else { return false };
    let of = |i: usize| maps[i].dim_positions();
    let pointwise = of(found.lhs) == Some(vec![*m, *k]) && of(1 - found.lhs) == Some(vec![*k, *n]);
    pointwise && of(2) == Some(vec![*m, *n]) && stored(found.lhs)
}

/// Lines, and the ops that get a row.
#[derive(Default)]
struct Lines<'c> {
    /// In program order of their discovery, with the operands that are lines.
    ops: Vec<(Op<'c>, Vec<usize>)>,
    known: HashSet<Op<'c>>,
    values: Vec<Value<'c>>,
    /// Those of `values` whose makers and readers were not yet asked.
    new: Vec<Value<'c>>,
}

impl<'c> Lines<'c> {
    fn add(&mut self, op: Op<'c>) {
        if self.known.contains(&op) {
            return;
        }
        let Some(lines) = lines_of(op) else { return };
        self.known.insert(op);
        let operands = lines.iter().map(|i| op.operand(*i)).chain(op.results());
        for value in operands {
            if !self.values.contains(&value) {
                self.values.push(value);
                self.new.push(value);
            }
        }
        self.ops.push((op, lines));
    }

    fn rewrite(&self, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
        for (op, lines) in &self.ops {
            match op.name() {
                ops::linalg::GENERIC => with_row(*op, lines, rw),
                ops::tensor::INSERT_SLICE | ops::tensor::EXTRACT_SLICE => slice_with_row(*op, rw),
                _ => (),
            }
        }
        let inside: HashMap<Op, &Vec<usize>> = self.ops.iter().map(|(op, lines)| (*op, lines)).collect();
        for value in &self.values {
            let rank = value.ty().shape().map_or(0, |shape| shape.len());
            let row = typed_with_row(*value);
            let is_line = |op: Op, index: usize| inside.get(&op).is_some_and(|lines| lines.contains(&index));
            let (lines, others): (Vec<_>, Vec<_>) =
                value.uses().into_iter().partition(|used| is_line(used.op, used.index));
            match (value.defining_op(), value.as_block_arg()) {
                (Some(op), _) => rw.set_point(InsertionPoint::After(op)),
                (None, Some((block, _))) => rw.set_point(InsertionPoint::Start(block)),
                (None, None) => unreachable!("invariant: a value is a result or an argument"),
            }
            if value.defining_op().is_some_and(|op| inside.contains_key(&op)) {
                rw.set_type(*value, row);
                if !others.is_empty() {
                    let plain = collapsed(*value, rank - 1, rw)?;
                    others.into_iter().for_each(|used| rw.set_operand(used.op, used.index, plain));
                }
            } else {
                let image = expanded(*value, row, rank - 1, rw)?;
                lines.into_iter().for_each(|used| rw.set_operand(used.op, used.index, image));
            }
        }
        Ok(())
    }
}

/// The operands of an op that get a row if its results do; none of an op that reads places in another way.
fn lines_of(op: Op) -> Option<Vec<usize>> {
    let rank = op.get_result(0)?.ty().as_tensor()?.shape.len();
    let of_lines = |value: Value| value.ty().as_tensor().is_some_and(|ty| ty.shape.len() == rank);
    let known = |value: Value| value.ty().shape().is_none_or(|shape| shape.iter().all(|size| *size > 0));
    if !(2..=3).contains(&rank) || !op.operands().into_iter().chain(op.results()).all(known) {
        return None;
    }
    match op.name() {
        ops::tensor::EMPTY => return Some(vec![]),
        ops::linalg::FILL => return Some(vec![1]),
        ops::tensor::EXTRACT_SLICE | ops::tensor::INSERT_SLICE => {
            let lines: Vec<usize> = (0..op.num_operands()).collect();
            return lines.iter().all(|i| of_lines(op.operand(*i))).then_some(lines);
        }
        _ => (),
    }
    let (maps, inputs) = (linalg::indexing_maps(op)?, linalg::num_inputs(op));
    let place = *maps[inputs].dim_positions()?.last()?;
    if !op.find_all(ops::linalg::INDEX).is_empty() || !maps[inputs..].iter().all(|map| *map == maps[inputs]) {
        return None;
    }
    let mut lines = vec![];
    for (i, map) in maps.iter().enumerate() {
        let results = map.results();
        let reads = |e: &AffineExpr| e.dims().contains(&place);
        match results.iter().filter(|e| reads(e)).count() {
            0 => (),
            1 if results.len() == 1 && matches!(results[0].kind(), AffineExprKind::Dim(_)) => (),
            1 if results.last().is_some_and(reads) && of_lines(op.operand(i)) => lines.push(i),
            _ => return None,
        }
    }
    Some(lines)
}

/// Gives a generic a loop of one iteration, the row, in front of that of the places.
fn with_row<'c>(op: Op<'c>, lines: &[usize], rw: &mut Rewriter<'c>) {
    let (cx, maps) = (op.context(), linalg::indexing_maps(op).expect("invariant: a generic has maps"));
    let out = maps[linalg::num_inputs(op)];
    let places = out.dim_positions().expect("invariant: asked before");
    let row = *places.last().expect("invariant: asked before");
    let mut kinds = iterator_types(op).unwrap_or_default();
    let old = kinds.len();
    kinds.insert(row, IteratorType::Parallel);
    let names: Vec<AffineExpr> = (0..old).map(|d| AffineExpr::dim(cx, d + usize::from(d >= row))).collect();
    let renaming = AffineMap::of(cx, old + 1, &names);
    let maps: Vec<Attr> = (maps.iter().enumerate())
        .map(|(i, map)| {
            let mut results = map.compose(renaming).results();
            if lines.contains(&i) {
                results.insert(results.len() - 1, AffineExpr::dim(cx, row));
            }
            AffineMap::of(cx, old + 1, &results).to_attr()
        })
        .collect();
    rw.set_attr(op, "indexing_maps", Attr::array(cx, &maps));
    rw.set_attr(op, "iterator_types", iterator_types_attr(cx, &kinds));
}

fn slice_with_row<'c>(op: Op<'c>, rw: &mut Rewriter<'c>) {
    for (name, of_row) in [("static_offsets", 0), ("static_sizes", 1), ("static_strides", 1)] {
        let mut list = op.attr(name).and_then(|a| a.as_ints()).unwrap_or_default();
        list.insert(list.len() - 1, of_row);
        rw.set_attr(op, name, Attr::dense_i64(op.context(), &list));
    }
}

/// The type of a line as an image of one row.
fn typed_with_row<'c>(value: Value<'c>) -> Type<'c> {
    let mut shape = value.ty().shape().unwrap_or_default();
    shape.insert(shape.len() - 1, 1);
    Type::tensor(&shape, value.ty().element(), None)
}
