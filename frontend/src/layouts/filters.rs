//! Puts the channels of depthwise filters last, where tasks have channels side by side (`channel_lanes.rs`).

use crate::import::WeightTable;
use crate::narrow::constants::{constant, permuted};
use crate::{kernel_cpu, linalg, products};
use monopour_ir::{AffineMap, Attr, Diagnostics, InsertionPoint, Module, Op, OpSpec, Rewriter, Type, ops};
use monopour_program::{CpuTarget, DType};

/// Lays out the filters of a module; `weights` gets them.
///
/// # Errors
/// What MLIR's op builders report.
pub(super) fn run<'c>(
    module: &'c Module<'c>,
    weights: &mut WeightTable,
    cpu: &CpuTarget,
    rw: &mut Rewriter<'c>,
) -> Result<(), Diagnostics> {
    let of_lanes = |op: &Op| kernel_cpu::channel_lanes(*op, cpu).is_some();
    for op in module.op().find_all(ops::linalg::GENERIC).into_iter().filter(of_lanes) {
        let filter = products::convolution_loops(op).map_or(0, |found| 1 - found.input);
        let (Some((stored, attr)), Some(mut maps)) = (constant(op.operand(filter)), linalg::indexing_maps(op)) else {
            continue;
        };
        let channel = products::convolution_loops(op).and_then(|found| found.depth.last().copied());
        let (Some(own), Some(shape)) = (maps[filter].dim_positions(), attr.value_type().shape()) else { continue };
        let mut order: Vec<usize> = (0..own.len()).collect();
        order.sort_by_key(|d| Some(own[*d]) == channel);
        let element = attr.value_type().element();
        let dtype = DType::parse(&element.to_string()).filter(|_| !order.is_sorted());
        let (Some(dtype), Some(size)) = (dtype, element.element_size_bytes()) else { continue };
        let Some(bytes) = weights.bytes_of(attr) else { continue };
        let bytes = permuted(&bytes, &shape, &order, size as usize);
        let extents: Vec<i64> = order.iter().map(|d| shape[*d]).collect();
        let ty = Type::tensor(&extents, element, None);
        let Some(made) = weights.derive(attr, "channels_last", dtype, ty, bytes) else { continue };
        rw.set_point(InsertionPoint::Before(stored));
        let spec = OpSpec::new(ops::arith::CONSTANT, stored.location()).results(&[ty]).attr("value", made);
        let made = rw.create(spec)?.result(0);
        rw.set_operand(op, filter, made);
        let dims: Vec<usize> = order.iter().map(|d| own[*d]).collect();
        maps[filter] = AffineMap::select(op.context(), maps[filter].num_dims(), &dims);
        let maps: Vec<Attr> = maps.into_iter().map(AffineMap::to_attr).collect();
        rw.set_attr(op, "indexing_maps", Attr::array(op.context(), &maps));
    }
    Ok(())
}
