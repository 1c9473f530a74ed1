//! Gives rows between reshapes the dimensions that they have before and behind.
//!
//! Before / after, of heads `h` that are groups `g` of several `r`:
//!
//! ```text
//! %c = tensor.collapse_shape %s : [g, r, i, j] -> [h, i, j]     %m[g, r, i] = max over j of %s[g, r, i, j]
//! %m[h, i] = max over j of %c[h, i, j]                          %p[g, r, i, j] = exp(%s - %m)
//! %p[h, i, j] = exp(%c - %m)                                    ..
//! ..
//! %e = tensor.expand_shape %w : [h, i, j] -> [g, r, i, j]
//! ```
//!
//! Products of grouped heads, as PyTorch exports them, repeat keys and values and have all heads as one dimension. Fusion
//! reads what is repeated as it is, and so gives the products two dimensions; the softmax between them keeps one, and
//! [`crate::attention`] would not join the three.
//! Requires: generics of one result, which nothing else reads, and heads of a known number.
//! Ensures: the same values.

use crate::collapse_lines::dynamic_sizes;
use crate::linalg;
use monopour_ir::typed::linalg::{Operands, fill, generic, iterator_types};
use monopour_ir::{
    AffineMap, Block, CANONICALIZE_PROGRAM, DYNAMIC, Diagnostics, InsertionPoint, Module, Op, OpSpec, Region, Rewriter,
    Type, Value, ops, run_passes,
};
use std::collections::HashMap;

/// Rewrites all such ops of `module`.
///
/// # Errors
/// None of its own; what MLIR's op builders report.
pub(crate) fn run<'c>(module: &'c Module<'c>, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
    let mut is_changed = false;
    for reshape in module.op().find_all(ops::tensor::EXPAND_SHAPE) {
        if let Some(rows) = Rows::of(reshape) {
            rows.rewrite(reshape, rw)?;
            is_changed = true;
        }
    }
    // Without the destinations that they had.
    if is_changed { run_passes(module.op(), &format!("builtin.module({CANONICALIZE_PROGRAM},cse)")) } else { Ok(()) }
}

/// Ops with a loop that becomes several.
struct Rows<'c> {
    /// The sizes that the loop is cut into.
    sizes: Vec<i64>,
    /// The ops, each with its loop.
    ops: Vec<(Op<'c>, usize)>,
    /// The reshapes before them, each with the dimension.
    before: HashMap<Value<'c>, usize>,
}

impl<'c> Rows<'c> {
    /// The ops before a reshape of their last result, up to reshapes the other way.
    fn of(reshape: Op<'c>) -> Option<Self> {
        let (dim, sizes) = cut(reshape.operand(0), reshape.result(0))?;
        let mut found = Self { sizes, ops: vec![], before: HashMap::new() };
        found.visit(reshape.operand(0), dim)?;
        let is_own = |op: Op<'c>| op == reshape || found.ops.iter().any(|(own, _)| *own == op);
        let is_private = found.ops.iter().all(|(op, _)| op.result(0).uses().iter().all(|used| is_own(used.op)));
        let reduces = |op: Op| linalg::parallel_loops(op).is_some_and(|loops| loops.contains(&false));
        let has_rows = found.ops.iter().any(|(op, _)| reduces(*op));
        (is_private && has_rows && !found.before.is_empty()).then_some(found)
    }

    /// Collects what computes a value, of which a dimension is cut.
    fn visit(&mut self, value: Value<'c>, dim: usize) -> Option<()> {
        let op = value.defining_op()?;
        if op.is(ops::tensor::COLLAPSE_SHAPE) {
            let (at, sizes) = cut(value, op.operand(0))?;
            let is_same = (at, &sizes) == (dim, &self.sizes) && *self.before.entry(value).or_insert(dim) == dim;
            return is_same.then_some(());
        }
        let maps = linalg::indexing_maps(op).filter(|_| op.is(ops::linalg::GENERIC) && op.num_results() == 1)?;
        let dims: Vec<Vec<usize>> = maps.iter().map(|map| map.dim_positions()).collect::<Option<_>>()?;
        let is_plain =
            maps.iter().all(|map| map.is_projected_permutation()) && op.find_all(ops::linalg::INDEX).is_empty();
        let along = dims.last()?[dim];
        if !is_plain || !linalg::parallel_loops(op)?[along] {
            return None;
        }
        if let Some((_, known)) = self.ops.iter().find(|(own, _)| *own == op) {
            return (*known == along).then_some(());
        }
        let inputs = linalg::num_inputs(op);
        let made = op.operand(inputs).defining_op()?;
        if !made.is(ops::tensor::EMPTY) && !made.is(ops::linalg::FILL) {
            return None;
        }
        for (input, dims) in dims.iter().enumerate().take(inputs) {
            if let Some(at) = dims.iter().position(|d| *d == along) {
                self.visit(op.operand(input), at)?;
            }
        }
        // Behind what it reads.
        self.ops.push((op, along));
        Some(())
    }

    fn rewrite(&self, reshape: Op<'c>, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
        let mut new: HashMap<Value, Value> = HashMap::new();
        for value in self.before.keys() {
            let source = value.defining_op().expect("invariant: it is a reshape").operand(0);
            new.insert(*value, source);
        }
        for (op, along) in &self.ops {
            let result = self.rewrite_op(*op, *along, &new, rw)?;
            new.insert(op.result(0), result);
        }
        rw.replace_op(reshape, &[new[&reshape.operand(0)]]);
        for (op, _) in self.ops.iter().rev() {
            rw.erase(*op);
        }
        Ok(())
    }

    fn rewrite_op(
        &self,
        op: Op<'c>,
        along: usize,
        new: &HashMap<Value<'c>, Value<'c>>,
        rw: &mut Rewriter<'c>,
    ) -> Result<Value<'c>, Diagnostics> {
        let (cx, loc, added) = (op.context(), op.location(), self.sizes.len() - 1);
        let maps = linalg::indexing_maps(op).expect("invariant: it is a generic");
        let kinds = iterator_types(op).expect("invariant: it is a generic");
        let loops = |d: usize| match d {
            d if d == along => (along..=along + added).collect(),
            d => vec![if d > along { d + added } else { d }],
        };
        let renamed = |map: &AffineMap| {
            let dims = map.dim_positions().expect("invariant: it was asked");
            AffineMap::select(cx, kinds.len() + added, &dims.into_iter().flat_map(loops).collect::<Vec<_>>())
        };
        let maps: Vec<AffineMap> = maps.iter().map(renamed).collect();
        let parallel = linalg::parallel_loops(op).expect("invariant: it is a generic");
        let parallel: Vec<bool> =
            (0..kinds.len()).flat_map(|d| vec![parallel[d]; if d == along { added + 1 } else { 1 }]).collect();
        let inputs = linalg::num_inputs(op);
        let values: Vec<Value> = op.operands()[..inputs].iter().map(|v| new.get(v).copied().unwrap_or(*v)).collect();
        rw.set_point(InsertionPoint::Before(op));
        let output = self.output(op, along, rw)?;
        let region = Region::new();
        rw.take_region(region, op.region(0));
        let operands = Operands { inputs: &values, outputs: &[output] };
        Ok(rw.create(generic(loc, operands, &maps, linalg::iterators(cx, &parallel), region))?.result(0))
    }

    /// The destination of an op, with the dimensions.
    fn output(&self, op: Op<'c>, along: usize, rw: &mut Rewriter<'c>) -> Result<Value<'c>, Diagnostics> {
        let (loc, old) = (op.location(), op.operand(linalg::num_inputs(op)));
        let dims = linalg::indexing_maps(op).and_then(|maps| maps.last()?.dim_positions());
        let at = dims.and_then(|dims| dims.iter().position(|d| *d == along)).expect("invariant: the loop is parallel");
        let mut shape = old.ty().shape().expect("invariant: a tensor");
        shape.splice(at..=at, self.sizes.iter().copied());
        let element = old.ty().element();
        let filled = old.defining_op().filter(|made| made.is(ops::linalg::FILL));
        let sizes = dynamic_sizes(filled.map_or(old, |fill| fill.operand(1)), rw)?;
        let empty = OpSpec::new(ops::tensor::EMPTY, loc).operands(&sizes);
        let empty = rw.create(empty.results(&[Type::tensor(&shape, element, None)]))?.result(0);
        let Some(filled) = filled else { return Ok(empty) };
        let (body, region) = (Block::new(&[(element, loc); 2]), Region::new());
        region.append(body);
        let made = rw.create(fill(loc, filled.operand(0), empty, region))?;
        rw.set_point(InsertionPoint::End(body));
        rw.create(OpSpec::new(ops::linalg::YIELD, loc).operands(&[body.arg(0)]))?;
        rw.set_point(InsertionPoint::Before(op));
        Ok(made.result(0))
    }
}

/// The dimension of `whole` that is several of `parts`, and their sizes, known and of more than one element; the others are the
/// same.
fn cut<'c>(whole: Value<'c>, parts: Value<'c>) -> Option<(usize, Vec<i64>)> {
    let (whole, parts) = (whole.ty().shape()?, parts.ty().shape()?);
    let added = parts.len().checked_sub(whole.len()).filter(|added| *added > 0)?;
    let dim = (0..whole.len()).find(|d| {
        let sizes = &parts[*d..=*d + added];
        whole[*d] != DYNAMIC
            && whole[..*d] == parts[..*d]
            && whole[*d + 1..] == parts[*d + added + 1..]
            && sizes.iter().try_fold(1i64, |all, size| all.checked_mul(*size)) == Some(whole[*d])
            && sizes.iter().all(|size| *size > 1)
    })?;
    Some((dim, parts[dim..=dim + added].to_vec()))
}
