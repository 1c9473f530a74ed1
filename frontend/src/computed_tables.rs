//! Elements of a computed table are computed where they are read.
//!
//! Before / after:
//!
//! ```text
//! %t = generic ins(%bytes, %scales) : [32000, 4096]      %y = generic ins(%tokens) {
//! %y = generic ins(%tokens) {                              %i = index_cast %token
//!   %i = index_cast %token                                 %b = extract %bytes[%i, %d]
//!   %e = extract %t[%i, %d]                                %s = extract %scales[%i]
//! }                                                        %e = what computes an element of %b and %s
//!                                                        }
//! ```
//!
//! A model that stores its embeddings in few bits dequantises all of them, and reads the lines of a few tokens. Elementwise fusion
//! does not see the read: its place is a number of the body.
//!
//! Requires: no dispatches yet. Ensures: the same values.
//! Limits: tables that are computed of constants, element by element, by arithmetic alone (a table of sines that is read often is
//! computed once); known sizes.

use crate::{linalg, stored_order};
use monopour_ir::{Block, DYNAMIC, Diagnostics, InsertionPoint, Module, Op, OpSpec, Rewriter, Value, ops};
use std::collections::HashMap;
use tracing::trace;

/// Rewrites all reads of such tables in `module`.
///
/// # Errors
/// None of its own; what MLIR's op builders report.
pub(crate) fn run<'c>(module: &'c Module<'c>, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
    for read in module.op().find_all(ops::tensor::EXTRACT) {
        let inside = read.parent().is_some_and(|parent| parent.is(ops::linalg::GENERIC));
        if let Some(table) = Table::of(read.operand(0)).filter(|_| inside) {
            trace!(target: "fuse", "{}: computes the elements of a table that it reads", read.location());
            rw.set_point(InsertionPoint::Before(read));
            let element = table.element(read, rw)?;
            rw.replace_op(read, &[element]);
        }
    }
    Ok(())
}

/// A table, by what computes and moves its elements.
struct Table<'c> {
    /// Reshapes and transposes, the last one first.
    moves: Vec<Op<'c>>,
    maker: Op<'c>,
}

impl<'c> Table<'c> {
    fn of(table: Value<'c>) -> Option<Self> {
        let (mut moves, mut value) = (vec![], table);
        loop {
            let op = value.defining_op()?;
            let is_known = |value: Value| value.ty().shape().is_some_and(|shape| !shape.contains(&DYNAMIC));
            if !is_known(value) {
                return None;
            }
            if stored_order::is_computed(op) {
                let (maps, inputs) = (linalg::indexing_maps(op)?, linalg::num_inputs(op));
                let plain = maps.iter().all(|map| map.is_projected_permutation()) && maps.last()?.is_permutation();
                let cheap = op.body()?.ops().iter().all(|op| op.dialect() != "math");
                let fits = plain && cheap && op.num_results() == 1 && op.body()?.arg(inputs).is_unused();
                return fits.then_some(Self { moves, maker: op });
            }
            let moved = linalg::is_data_movement(op) && linalg::num_inputs(op) == 1;
            let turns = moved && linalg::indexing_maps(op)?.iter().all(|map| map.is_permutation());
            let reshapes = op.is(ops::tensor::COLLAPSE_SHAPE) || op.is(ops::tensor::EXPAND_SHAPE);
            if !turns && !reshapes {
                return None;
            }
            moves.push(op);
            value = op.operand(0);
        }
    }

    /// The element that is read, of the constants.
    fn element(&self, read: Op<'c>, rw: &mut Rewriter<'c>) -> Result<Value<'c>, Diagnostics> {
        let mut at = read.operands()[1..].to_vec();
        for op in &self.moves {
            at = match op.name() {
                ops::tensor::COLLAPSE_SHAPE => apart(*op, &at, rw)?,
                ops::tensor::EXPAND_SHAPE => together(*op, &at, rw)?,
                _ => {
                    let maps = linalg::indexing_maps(*op).unwrap_or_default();
                    let dims = maps.iter().map(|map| map.dim_positions().unwrap_or_default()).collect::<Vec<_>>();
                    selected(&dims[0], &loops(&dims[1], &at))
                }
            };
        }
        let maps = linalg::indexing_maps(self.maker).unwrap_or_default();
        let dims: Vec<Vec<usize>> = maps.iter().map(|map| map.dim_positions().unwrap_or_default()).collect();
        let (inputs, loc) = (linalg::num_inputs(self.maker), self.maker.location());
        let at = loops(&dims[inputs], &at);
        let body: Block<'c> = self.maker.body().expect("invariant: a generic has a body");
        let mut known: HashMap<Value<'c>, Value<'c>> = HashMap::new();
        for (input, dims) in dims[..inputs].iter().enumerate() {
            let (source, arg) = (self.maker.operand(input), body.arg(input));
            if source.ty().shape().is_none() {
                known.insert(arg, source);
            } else if !arg.is_unused() {
                let spec = OpSpec::new(ops::tensor::EXTRACT, loc).operands(&[source]);
                let spec = spec.operands(&selected(dims, &at)).results(&[arg.ty()]);
                known.insert(arg, rw.create(spec)?.result(0));
            }
        }
        for op in body.ops() {
            let value = |v: Value<'c>| known.get(&v).copied().unwrap_or(v);
            if op.is(ops::linalg::YIELD) {
                return Ok(value(op.operand(0)));
            }
            if op.is(ops::linalg::INDEX) {
                let dim = op.attr("dim").and_then(|dim| dim.as_int()).and_then(|dim| usize::try_from(dim).ok());
                known.insert(op.result(0), at[dim.expect("invariant: the dimension of linalg.index")]);
                continue;
            }
            let copy = rw.clone_op(op, value);
            rw.insert(copy);
            known.extend(op.results().into_iter().zip(copy.results()));
        }
        unreachable!("invariant: a body of linalg yields")
    }
}

/// The loops of an op that writes by a permutation, where its result is at `at`.
fn loops<'c>(written: &[usize], at: &[Value<'c>]) -> Vec<Value<'c>> {
    let of = |l: usize| written.iter().position(|d| *d == l).expect("invariant: a permutation");
    (0..at.len()).map(|l| at[of(l)]).collect()
}

fn selected<'c>(dims: &[usize], loops: &[Value<'c>]) -> Vec<Value<'c>> {
    dims.iter().map(|d| loops[*d]).collect()
}

/// The groups of a reshape's dimensions.
fn groups(reshape: Op) -> Vec<Vec<usize>> {
    let groups = reshape.attr("reassociation").and_then(|a| a.as_array()).unwrap_or_default();
    let dims = |group: monopour_ir::Attr| group.as_ints().unwrap_or_default().into_iter().map(|d| d as usize).collect();
    groups.into_iter().map(dims).collect()
}

/// The place in the operand of a collapse.
fn apart<'c>(collapse: Op<'c>, at: &[Value<'c>], rw: &mut Rewriter<'c>) -> Result<Vec<Value<'c>>, Diagnostics> {
    let shape = collapse.operand(0).ty().shape().unwrap_or_default();
    let mut places = vec![];
    for (group, at) in groups(collapse).iter().zip(at) {
        let Some((_, inner)) = group.split_first() else { continue };
        let (mut rest, mut last) = (*at, vec![]);
        for dim in inner.iter().rev() {
            last.push(by(ops::arith::REMUI, rest, shape[*dim], collapse, rw)?);
            rest = by(ops::arith::DIVUI, rest, shape[*dim], collapse, rw)?;
        }
        places.push(rest);
        places.extend(last.into_iter().rev());
    }
    // Of a scalar's dimensions of one element each.
    while places.len() < shape.len() {
        places.push(rw.const_index(0, collapse.location()));
    }
    Ok(places)
}

/// The place in the operand of an expansion.
fn together<'c>(expansion: Op<'c>, at: &[Value<'c>], rw: &mut Rewriter<'c>) -> Result<Vec<Value<'c>>, Diagnostics> {
    let shape = expansion.result(0).ty().shape().unwrap_or_default();
    let mut places = vec![];
    for group in groups(expansion) {
        let Some((first, inner)) = group.split_first() else { continue };
        let mut place = at[*first];
        for dim in inner {
            let whole = by(ops::arith::MULI, place, shape[*dim], expansion, rw)?;
            let spec = OpSpec::new(ops::arith::ADDI, expansion.location()).operands(&[whole, at[*dim]]);
            place = rw.create(spec.results(&[place.ty()]))?.result(0);
        }
        places.push(place);
    }
    Ok(places)
}

fn by<'c>(
    name: &str,
    value: Value<'c>,
    number: i64,
    near: Op<'c>,
    rw: &mut Rewriter<'c>,
) -> Result<Value<'c>, Diagnostics> {
    let number = rw.const_index(number, near.location());
    let spec = OpSpec::new(name, near.location()).operands(&[value, number]).results(&[value.ty()]);
    Ok(rw.create(spec)?.result(0))
}
