//! Copies of values with their dimensions in another order.

use crate::collapse_lines::dynamic_sizes;
use monopour_ir::typed::linalg::{IteratorType, Operands, generic, iterator_types_attr};
use monopour_ir::{
    AffineMap, Block, Builder, Diagnostics, InsertionPoint, Location, Op, OpSpec, Region, Rewriter, Type, Value, ops,
};

/// Puts what comes next behind the op that makes a value.
pub(super) fn behind<'c>(value: Value<'c>, rw: &mut Rewriter<'c>) {
    match (value.defining_op(), value.as_block_arg()) {
        (Some(op), _) => rw.set_point(InsertionPoint::After(op)),
        (None, Some((block, _))) => rw.set_point(InsertionPoint::Start(block)),
        (None, None) => unreachable!("invariant: a value is a result or an argument"),
    }
}

/// A copy of `source` under the shape `shape`; `maps` index both. Unknown sizes are those of `sized`.
///
/// # Errors
/// What MLIR's op builders report.
pub(super) fn copy<'c>(
    source: Value<'c>,
    shape: &[i64],
    maps: &[AffineMap<'c>; 2],
    sized: Value<'c>,
    rw: &mut Rewriter<'c>,
) -> Result<Value<'c>, Diagnostics> {
    let (cx, element) = (rw.context(), source.ty().element());
    let loc = sized.defining_op().map_or(Location::unknown(cx), Op::location);
    let sizes = dynamic_sizes(sized, rw)?;
    let spec = OpSpec::new(ops::tensor::EMPTY, loc).operands(&sizes);
    let empty = rw.create(spec.results(&[Type::tensor(shape, element, None)]))?;
    let (body, region) = (Block::new(&[(element, loc), (element, loc)]), Region::new());
    Builder::new(cx, InsertionPoint::End(body))
        .create(OpSpec::new(ops::linalg::YIELD, loc).operands(&[body.arg(0)]))?;
    region.append(body);
    let kinds = iterator_types_attr(cx, &vec![IteratorType::Parallel; maps[0].num_dims()]);
    let operands = Operands { inputs: &[source], outputs: &[empty.result(0)] };
    Ok(rw.create(generic(loc, operands, maps, kinds, region))?.result(0))
}
