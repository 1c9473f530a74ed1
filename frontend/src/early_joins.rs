//! Computes with the parts of a tensor before they are put together.
//!
//! Before / after, of a token in front of the patches of an image, and what is added to each place:
//!
//! ```text
//! %j = [%token, %patches]                            %a = generic ins(%token, %places[0] [1]) { addf }
//! %x = generic ins(%j, %places) { addf }             %b = generic ins(%patches, %places[1] [196]) { addf }
//!                                                    %x = [%a, %b]
//! ```
//!
//! `[..]` are insertions into a `tensor.empty` (`tensor.concat`). What makes a part takes the op in, and writes to where the part
//! goes; before, a part that is an input was copied, and the whole tensor was read and written again. So are the tokens of two
//! streams put together and scaled for an attention.
//!
//! Requires: joins that nothing but one pointwise op reads; parts that nothing else reads, or that are inputs or constants.
//! Ensures: the same values.
//! Limits: known sizes; few parts.

use crate::joins::{Join, is_reshape};
use crate::linalg;
use monopour_ir::typed::{Slice, tensor};
use monopour_ir::{AffineMap, Diagnostics, InsertionPoint, Module, Op, OpSpec, Rewriter, Type, Value, ops};

/// Most parts: each is an op of its own.
const MOST_PARTS: usize = 4;

/// Rewrites all such ops of `module`.
///
/// # Errors
/// None of its own; what MLIR's op builders report.
pub(crate) fn run<'c>(module: &'c Module<'c>, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
    for op in module.op().find_all(ops::tensor::INSERT_SLICE) {
        let mut found = Reader::of(op);
        while let Some(reader) = found {
            found = Reader::of(reader.rewrite(rw)?);
        }
    }
    Ok(())
}

/// A pointwise op that alone reads a join.
struct Reader<'c> {
    join: Join<'c>,
    op: Op<'c>,
    input: usize,
    maps: Vec<AffineMap<'c>>,
    /// The loop along which the parts lie.
    axis: usize,
}

impl<'c> Reader<'c> {
    /// That of the join which ends with an insertion.
    fn of(last: Op<'c>) -> Option<Self> {
        let join = Join::of(last).filter(|join| !join.is_dynamic() && join.parts.len() <= MOST_PARTS)?;
        let used = join.value().only_use()?;
        let (op, input) = (used.op, used.index);
        let is_plain = linalg::reads_elementwise(op, input) && op.num_results() == 1 && !linalg::is_data_movement(op);
        let maps = linalg::indexing_maps(op).filter(|_| is_plain && op.is(ops::linalg::GENERIC))?;
        let is_new = linalg::destination(op, 0).defining_op().is_some_and(|def| def.is(ops::tensor::EMPTY));
        let overwrites = op.body().is_some_and(|body| body.arg(linalg::num_inputs(op)).is_unused());
        let is_known = op.operands().iter().all(|value| {
            !value.ty().is_tensor() || value.ty().shape().is_some_and(|shape| shape.iter().all(|size| *size > 0))
        });
        let axis = *maps[input].dim_positions().filter(|_| maps[input].is_permutation())?.get(join.axis)?;
        let fits = is_new && overwrites && is_known && join.parts.iter().all(|(part, _)| may_be_changed(*part));
        fits.then_some(Self { join, op, input, maps, axis })
    }

    /// Computes with each part; returns the last insertion of the results.
    fn rewrite(self, rw: &mut Rewriter<'c>) -> Result<Op<'c>, Diagnostics> {
        let (op, loc) = (self.op, self.op.location());
        rw.set_point(InsertionPoint::Before(op));
        let empty = OpSpec::new(ops::tensor::EMPTY, loc).results(&[op.result(0).ty()]);
        let mut whole = rw.create(empty)?.result(0);
        for (part, place) in &self.join.parts {
            let range = [place.offsets[self.join.axis].number(), place.sizes[self.join.axis].number()];
            let copy = rw.clone_op(op, |value| value);
            for i in 0..op.num_operands() {
                let value = match i {
                    _ if i == self.input => *part,
                    _ if i == linalg::num_inputs(op) => {
                        let ty = self.part(i, range).1;
                        rw.create(OpSpec::new(ops::tensor::EMPTY, loc).results(&[ty]))?.result(0)
                    }
                    _ => self.slice(i, range, rw)?,
                };
                rw.set_operand(copy, i, value);
            }
            let (slice, ty) = self.part(linalg::num_inputs(op), range);
            rw.set_type(copy.result(0), ty);
            rw.insert(copy);
            whole = rw.create(tensor::insert_slice(loc, copy.result(0), whole, &slice))?.result(0);
        }
        rw.replace_op(op, &[whole]);
        self.join.erase(rw);
        Ok(whole.defining_op().expect("invariant: there is a part"))
    }

    /// What a part reads of another input.
    fn slice(&self, i: usize, range: [i64; 2], rw: &mut Rewriter<'c>) -> Result<Value<'c>, Diagnostics> {
        let value = self.op.operand(i);
        if !self.maps[i].dim_positions().is_some_and(|dims| dims.contains(&self.axis)) {
            return Ok(value);
        }
        let (slice, ty) = self.part(i, range);
        Ok(rw.create(tensor::extract_slice(self.op.location(), value, &slice, ty))?.result(0))
    }

    /// The slice of an operand that a range of the loop indexes, and its type.
    fn part(&self, i: usize, [from, size]: [i64; 2]) -> (Slice<'c>, Type<'c>) {
        let ty = self.op.operand(i).ty();
        let mut shape = ty.shape().unwrap_or_default();
        let mut offsets = vec![0; shape.len()];
        let dims = self.maps[i].dim_positions().unwrap_or_default();
        if let Some(at) = dims.iter().position(|d| *d == self.axis) {
            (offsets[at], shape[at]) = (from, size);
        }
        (Slice::fixed(&offsets, &shape), Type::tensor(&shape, ty.element(), None))
    }
}

/// Whether nothing but the join reads what makes a part, or it must be copied in any case.
fn may_be_changed(part: Value) -> bool {
    let mut value = part;
    while let Some(op) = value.defining_op() {
        if op.is(ops::arith::CONSTANT) {
            return true;
        }
        if value.only_use().is_none() {
            return false;
        }
        if !is_reshape(op) {
            return true;
        }
        value = op.operand(0);
    }
    true
}
