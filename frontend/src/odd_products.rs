//! Products whose lines no vector divides, on software adapters: of padded factors, to a padded result.
//!
//! Before / after:
//!
//! ```text
//! %f = fill outs(1023x1019)                       %x = insert_slice %a into (fill(0) outs(1024x1024))
//! %r = matmul ins(%a: 1023x1021, %b: 1021x1019)   %y = insert_slice %b into (fill(0) outs(1024x1024))
//!      outs(%f)                                   %p = matmul ins(%x, %y) outs(fill outs(1024x1024))
//!                                                 %r = extract_slice %p[0, 0] [1023, 1019]
//! ```
//!
//! A load of one element costs there half of one of eight: such a product takes twice the time of one whose lines are whole vectors,
//! the copies two fifths of that. An op that finishes the product reads the padded result as it is. The zeros around the factors
//! are filled once, before the first run (`borders.rs`).
//!
//! Requires: products are named (`specialize.rs`), those that are joined are joined. Ensures: a sum has more terms, all 0.
//! Limits: f32, static sizes, a filled destination; padded tensors of at most [`MOST_BYTES`]; products of so many multiplications
//! that the copies pay ([`WORK_PER_ELEMENT`]); none beside reductions of rows, with which they may be an attention.

use crate::{linalg, rows, specialize};
use monopour_ir::typed::Slice;
use monopour_ir::typed::tensor::{extract_slice, insert_slice};
use monopour_ir::{
    Attr, DYNAMIC, Diagnostics, InsertionPoint, Location, Module, Op, OpSpec, Rewriter, Type, Value, ops,
};
use monopour_program::GpuDescription;
use tracing::trace;

/// Elements of the widest access.
const LANES: i64 = 8;
/// Multiplications for each element of the padded tensors: one of them costs 0.055 ns more where elements are loaded singly, a
/// copied element takes 4 to 8 ns, on lavapipe.
const WORK_PER_ELEMENT: i64 = 150;
/// Bytes of a padded tensor.
const MOST_BYTES: i64 = 64 << 20;

/// Pads products where that pays; returns their number.
///
/// # Errors
/// None of its own; what MLIR's op builders report.
pub(crate) fn run<'c>(
    module: &'c Module<'c>,
    gpu: &GpuDescription,
    rw: &mut Rewriter<'c>,
) -> Result<usize, Diagnostics> {
    if !gpu.is_cpu_adapter() {
        return Ok(0);
    }
    let mut count = 0;
    for op in module.op().find_all(ops::linalg::MATMUL) {
        if let Some(product) = Product::of(op) {
            trace!(target: "fuse", "{}: a product of padded factors: no vector divides its lines", op.location());
            product.pad(rw)?;
            count += 1;
        }
    }
    Ok(count)
}

/// A product to be padded.
struct Product<'c> {
    op: Op<'c>,
    /// The destination's value.
    initial: Value<'c>,
}

impl<'c> Product<'c> {
    fn of(op: Op<'c>) -> Option<Self> {
        let types = [op.operand(0), op.operand(1), op.result(0)].map(Value::ty);
        if types.iter().any(|ty| ty.element() != Type::f32(op.context())) {
            return None;
        }
        let shapes = types.map(Type::shape);
        let [Some(left), Some(right), Some(result)] = shapes else { return None };
        let all = [left, right, result];
        if all.iter().flatten().any(|extent| *extent == DYNAMIC || *extent <= 0) {
            return None;
        }
        let count = |shape: &Vec<i64>| shape.iter().fold(1i64, |n, extent| n.saturating_mul(whole(*extent)));
        let is_odd = all.iter().any(|shape| shape.last().is_some_and(|extent| extent % LANES != 0));
        let sizes: Vec<i64> = all.iter().map(count).collect();
        let work = count(&all[2]).checked_mul(linalg::matmul_reduction(op)?)?;
        let is_small = |n: &i64| *n <= MOST_BYTES / 4;
        let pays = sizes.iter().all(is_small) && work / WORK_PER_ELEMENT > sizes.iter().sum::<i64>();
        let fill = linalg::destination(op, 0).defining_op().filter(|def| def.is(ops::linalg::FILL))?;
        (is_odd && pays && !is_beside_rows(op)).then(|| Self { op, initial: fill.operand(0) })
    }

    fn pad(&self, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
        let (op, loc) = (self.op, self.op.location());
        rw.set_point(InsertionPoint::Before(op));
        let element = op.result(0).ty().element();
        let zero = OpSpec::new(ops::arith::CONSTANT, loc).results(&[element]).attr("value", Attr::float(element, 0.0));
        let zero = rw.create(zero)?.result(0);
        let factors = [padded(op.operand(0), zero, loc, rw)?, padded(op.operand(1), zero, loc, rw)?];
        let out = filled(op.result(0).ty(), self.initial, loc, rw)?;
        let product = rw.clone_op(op, |v| v);
        rw.insert(product);
        for (index, value) in factors.into_iter().chain([out]).enumerate() {
            rw.set_operand(product, index, value);
        }
        rw.set_type(product.result(0), out.ty());
        let shape = op.result(0).ty().shape().expect("invariant: its sizes are static");
        let part = Slice::fixed(&vec![0; shape.len()], &shape);
        let result = rw.create(extract_slice(loc, product.result(0), &part, op.result(0).ty()))?.result(0);
        rw.replace_op(op, &[result]);
        Ok(())
    }
}

/// Whether rows are reduced of the result or of what is computed of it, or a factor is computed of such a reduction's result.
fn is_beside_rows(op: Op) -> bool {
    linalg::neighbours(op, 2).into_iter().any(|near| rows::reduced_rows(near).is_some())
}

/// The next whole number of vectors.
fn whole(extent: i64) -> i64 {
    extent.saturating_add(LANES - 1) / LANES * LANES
}

/// A new tensor of whole vectors that has this value everywhere.
fn filled<'c>(
    ty: Type<'c>,
    value: Value<'c>,
    loc: Location<'c>,
    rw: &mut Rewriter<'c>,
) -> Result<Value<'c>, Diagnostics> {
    let shape: Vec<i64> = ty.shape().unwrap_or_default().into_iter().map(whole).collect();
    let ty = Type::tensor(&shape, ty.element(), None);
    let empty = rw.create(OpSpec::new(ops::tensor::EMPTY, loc).results(&[ty]))?.result(0);
    Ok(specialize::fill(value, empty, loc, rw)?.result(0))
}

/// A tensor within one of whole vectors.
fn padded<'c>(
    value: Value<'c>,
    zero: Value<'c>,
    loc: Location<'c>,
    rw: &mut Rewriter<'c>,
) -> Result<Value<'c>, Diagnostics> {
    let shape = value.ty().shape().unwrap_or_default();
    if shape.iter().all(|extent| extent % LANES == 0) {
        return Ok(value);
    }
    let around = filled(value.ty(), zero, loc, rw)?;
    let place = Slice::fixed(&vec![0; shape.len()], &shape);
    Ok(rw.create(insert_slice(loc, value, around, &place))?.result(0))
}
