//! `linalg.pack` and `linalg.unpack`: tiled layouts and back, with padding and other orders.

use super::case::{Case, by};
use crate::host_tensor::Dtype;
use crate::text::{Program, list};

/// Shape, inner dimensions, tiles, outer order.
type Layout = (&'static [usize], &'static [usize], &'static [usize], &'static [usize]);

const LAYOUTS: &[Layout] = &[
    (&[16, 32], &[0, 1], &[4, 8], &[]),
    (&[16, 32], &[1, 0], &[8, 4], &[]),
    (&[16, 32], &[0, 1], &[4, 8], &[1, 0]),
    (&[13, 30], &[0, 1], &[4, 8], &[]),
    (&[17, 7], &[0], &[8], &[]),
    (&[3, 12, 8], &[2, 1], &[4, 3], &[1, 0, 2]),
    (&[1, 65], &[1], &[16], &[]),
];

pub(super) fn cases() -> Vec<Case> {
    let mut out = vec![];
    for layout in LAYOUTS {
        out.push(pack(layout, Dtype::F32));
        out.push(unpack(layout));
        out.push(round_trip(layout));
    }
    out.push(pack(&LAYOUTS[0], Dtype::Int(32)));
    out.push(pack(&LAYOUTS[3], Dtype::F16));
    out
}

fn packed((shape, inner, tiles, order): &Layout) -> Vec<usize> {
    let mut outer = shape.to_vec();
    for (d, t) in inner.iter().zip(*tiles) {
        outer[*d] = outer[*d].div_ceil(*t);
    }
    let mut out: Vec<_> = if order.is_empty() { outer } else { order.iter().map(|d| outer[*d]).collect() };
    out.extend_from_slice(tiles);
    out
}

fn attributes((_, inner, tiles, order): &Layout) -> String {
    let order = if order.is_empty() { String::new() } else { format!("outer_dims_perm = [{}] ", list(order)) };
    format!("{order}inner_dims_pos = [{}] inner_tiles = [{}]", list(inner), list(tiles))
}

fn name(what: &str, layout: &Layout) -> String {
    let (shape, inner, tiles, order) = layout;
    let order = if order.is_empty() { String::new() } else { format!("_{}", by(order)) };
    format!("packs/{what}/{}/{}_{}{order}", by(shape), by(inner), by(tiles))
}

fn write_pack(p: &mut Program, layout: &Layout, x: &crate::text::Value) -> crate::text::Value {
    let e = p.empty(x.dtype, &packed(layout));
    let padding = p.constant(x.dtype, if x.dtype.is_float() { "0.5" } else { "7" });
    let text = format!(
        "linalg.pack {} padding_value({} : {}) {} into {} : {} -> {}",
        x.name,
        padding.name,
        x.dtype,
        attributes(layout),
        e.name,
        x.ty(),
        e.ty()
    );
    p.op(x.dtype, e.shape(), &text)
}

fn write_unpack(p: &mut Program, layout: &Layout, x: &crate::text::Value) -> crate::text::Value {
    let e = p.empty(x.dtype, layout.0);
    let text = format!("linalg.unpack {} {} into {} : {} -> {}", x.name, attributes(layout), e.name, x.ty(), e.ty());
    p.op(x.dtype, layout.0, &text)
}

fn pack(layout: &Layout, dtype: Dtype) -> Case {
    let mut p = Program::new();
    let x = p.input(dtype, layout.0);
    let r = write_pack(&mut p, layout, &x);
    Case::new(format!("{}/{dtype}", name("pack", layout)), p, &[&r]).may_copy()
}

fn unpack(layout: &Layout) -> Case {
    let mut p = Program::new();
    let x = p.f32(&packed(layout));
    let r = write_unpack(&mut p, layout, &x);
    Case::new(name("unpack", layout), p, &[&r]).may_copy()
}

/// Packs, applies a function elementwise, unpacks.
fn round_trip(layout: &Layout) -> Case {
    let mut p = Program::new();
    let x = p.f32(layout.0);
    let y = write_pack(&mut p, layout, &x);
    let z = p.pointwise(Dtype::F32, &[&y], "%s = math.exp %a : f32");
    let r = write_unpack(&mut p, layout, &z);
    Case::new(name("round_trip", layout), p, &[&r]).may_copy()
}
