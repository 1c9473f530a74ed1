//! Constants that are computed here: factors less their zero points, their sums, filters in another layout.

use super::factor::{Factor, Narrow, of_element};
use super::{Indexed, Narrowing};
use crate::{linalg, products};
use monopour_ir::ops;
use monopour_ir::{AffineMap, Attr, Diagnostics, InsertionPoint, Op, OpSpec, Type, Value};
use monopour_program::DType;
use std::borrow::Cow;

impl<'c> Narrowing<'c, '_> {
    /// A constant's elements under another shape, if the value is one.
    pub(super) fn constant_of_type(
        &mut self,
        value: Value<'c>,
        ty: Type<'c>,
    ) -> Result<Option<Value<'c>>, Diagnostics> {
        let Some((op, attr)) = constant(value) else { return Ok(None) };
        let Some(bytes) = self.weights.bytes_of(attr).map(|bytes| bytes.into_owned()) else { return Ok(None) };
        let dtype = if ty.element().integer_width() == Some(8) { DType::I8 } else { DType::I16 };
        let Some(attr) = self.weights.derive(attr, "reshaped", dtype, ty, bytes) else { return Ok(None) };
        self.beside(op, attr, ty).map(Some)
    }

    /// A constant before the one that it is computed of.
    pub(super) fn beside(&mut self, op: Op<'c>, attr: Attr<'c>, ty: Type<'c>) -> Result<Value<'c>, Diagnostics> {
        self.rw.set_point(InsertionPoint::Before(op));
        let spec = OpSpec::new(ops::arith::CONSTANT, op.location()).results(&[ty]).attr("value", attr);
        Ok(self.rw.create(spec)?.result(0))
    }

    /// Lays out the constant filter of a convolution such that its input channels are side by side: they are what instructions
    /// add up.
    pub(super) fn lay_out(&mut self, op: Op<'c>) -> Result<(), Diagnostics> {
        let Some(found) = products::convolution_loops(op) else { return Ok(()) };
        let (filter, &[channels]) = (1 - found.input, &found.k[..]) else { return Ok(()) };
        let Some((stored, value)) = constant(op.operand(filter)) else { return Ok(()) };
        let Some(mut maps) = linalg::indexing_maps(op) else { return Ok(()) };
        let (Some(own), Some(shape)) = (maps[filter].dim_positions(), value.value_type().shape()) else {
            return Ok(());
        };
        let mut order: Vec<usize> = (0..own.len()).collect();
        order.sort_by_key(|d| own[*d] == channels);
        let element = value.value_type().element();
        let size = element.integer_width().unwrap_or(8) as usize / 8;
        let Some(bytes) = self.weights.bytes_of(value).filter(|_| !order.is_sorted()) else { return Ok(()) };
        let elements = permuted(&bytes, &shape, &order, size);
        let extents: Vec<i64> = order.iter().map(|d| shape[*d]).collect();
        let ty = Type::tensor(&extents, element, None);
        let dtype = if size == 1 { DType::I8 } else { DType::I16 };
        let Some(attr) = self.weights.derive(value, "channels_last", dtype, ty, elements) else { return Ok(()) };
        let made = self.beside(stored, attr, ty)?;
        self.rw.set_operand(op, filter, made);
        let dims: Vec<usize> = order.iter().map(|d| own[*d]).collect();
        maps[filter] = AffineMap::select(op.context(), maps[filter].num_dims(), &dims);
        let maps: Vec<Attr> = maps.into_iter().map(AffineMap::to_attr).collect();
        self.rw.set_attr(op, "indexing_maps", Attr::array(op.context(), &maps));
        Ok(())
    }

    /// The sums of a constant factor over the reductions, `times` a number, and the dimensions of the result that they belong
    /// to.
    pub(super) fn sums(
        &mut self,
        op: Op<'c>,
        input: usize,
        factor: &Narrow<'c>,
        times: i32,
    ) -> Result<Option<Indexed<'c>>, Diagnostics> {
        let Some((definition, value)) = constant(factor.value) else { return Ok(None) };
        let (Some(maps), Some(parallel)) = (linalg::indexing_maps(op), linalg::parallel_loops(op)) else {
            return Ok(None);
        };
        let dims = [input, 2].map(|operand| maps[operand].dim_positions());
        let ([Some(own), Some(result)], Some(shape)) = (dims, factor.value.ty().shape()) else { return Ok(None) };
        let all = (0..parallel.len()).filter(|d| !parallel[*d]).all(|d| own.contains(&d));
        let kept: Vec<usize> = (0..own.len()).filter(|d| parallel[own[*d]]).collect();
        let places = kept.iter().map(|d| result.iter().position(|r| *r == own[*d])).collect::<Option<Vec<_>>>();
        let (Some(places), true) = (places, all) else { return Ok(None) };
        let Some(bytes) = self.weights.bytes_of(value) else { return Ok(None) };
        let wide = factor.value.ty().element().integer_width().is_some_and(|bits| bits > 8);
        let sums = match (wide, factor.extension == ops::arith::EXTSI) {
            (false, true) => line_sums(&bytes, &shape, &kept, |[b]| i32::from(b as i8)),
            (false, false) => line_sums(&bytes, &shape, &kept, |[b]| i32::from(b)),
            (true, _) => line_sums(&bytes, &shape, &kept, |b| i32::from(i16::from_le_bytes(b))),
        };
        let extents: Vec<i64> = kept.iter().map(|d| shape[*d]).collect();
        let ty = Type::tensor(&extents, Type::integer(op.context(), 32), None);
        let elements = sums.into_iter().flat_map(|sum| sum.wrapping_mul(times).to_le_bytes()).collect();
        let Some(attr) = self.weights.derive(value, "sums", DType::I32, ty, elements) else { return Ok(None) };
        Ok(Some((self.beside(definition, attr, ty)?, places)))
    }

    /// A constant less its zero point.
    pub(super) fn less_zero(&mut self, factor: &Factor<'c>) -> Result<Option<Value<'c>>, Diagnostics> {
        let Some((op, value)) = constant(factor.source) else { return Ok(None) };
        let Some(bytes) = self.weights.bytes_of(value) else { return Ok(None) };
        let unsigned = factor.extension == ops::arith::EXTUI;
        let of = |byte: u8| (if unsigned { i64::from(byte) } else { i64::from(byte as i8) }) - factor.zero;
        let (least, most) = bytes.iter().fold((0, 0), |(least, most), b| (of(*b).min(least), of(*b).max(most)));
        let narrow = i8::try_from(least).is_ok() && i8::try_from(most).is_ok();
        let (dtype, elements): (_, Vec<u8>) = match narrow {
            true => (DType::I8, bytes.iter().map(|b| of(*b) as u8).collect()),
            false => (DType::I16, bytes.iter().flat_map(|b| (of(*b) as i16).to_le_bytes()).collect()),
        };
        let ty = of_element(factor.source, Type::integer(op.context(), if narrow { 8 } else { 16 }));
        let Some(attr) = self.weights.derive(value, &format!("less_{}", factor.zero), dtype, ty, elements) else {
            return Ok(None);
        };
        self.beside(op, attr, ty).map(Some)
    }
}

/// The op and attribute of a constant.
pub(crate) fn constant<'c>(value: Value<'c>) -> Option<(Op<'c>, Attr<'c>)> {
    let op = value.defining_op().filter(|op| op.is(ops::arith::CONSTANT))?;
    Some((op, op.attr("value")?))
}

/// The elements of a constant, in whatever shape it is read.
pub(crate) fn stored(mut value: Value) -> Option<Attr> {
    while let Some(op) =
        value.defining_op().filter(|op| op.is(ops::tensor::EXPAND_SHAPE) || op.is(ops::tensor::COLLAPSE_SHAPE))
    {
        value = op.operand(0);
    }
    constant(value).map(|(_, attr)| attr)
}

/// The elements of `size` bytes, of a tensor of `whole` extents, that are within `part` from its first one on.
pub(crate) fn beginning<'b>(bytes: &'b [u8], whole: &[i64], part: &[i64], size: usize) -> Cow<'b, [u8]> {
    let extent = |n: &i64| usize::try_from(*n).unwrap_or(0);
    let (Some((_, inner)), Some((count, rest))) = (whole.split_first(), part.split_first()) else {
        return bytes.into();
    };
    let step = inner.iter().map(extent).product::<usize>() * size;
    let bytes = &bytes[..extent(count) * step];
    if inner == rest || step == 0 {
        return bytes.into();
    }
    let lines = bytes.chunks_exact(step).flat_map(|line| beginning(line, inner, rest, size).into_owned());
    lines.collect::<Vec<u8>>().into()
}

/// Elements of `size` bytes of a tensor of that shape, its dimensions in another order.
pub(crate) fn permuted(bytes: &[u8], shape: &[i64], order: &[usize], size: usize) -> Vec<u8> {
    let shape: Vec<usize> = shape.iter().map(|extent| usize::try_from(*extent).unwrap_or(0)).collect();
    let mut strides = vec![size; shape.len()];
    (1..shape.len()).rev().for_each(|d| strides[d - 1] = strides[d] * shape[d]);
    let mut out = Vec::with_capacity(bytes.len());
    let Some((last, outer)) = order.split_last() else { return bytes.to_vec() };
    let mut at = vec![0; outer.len()];
    while out.len() < bytes.len() {
        let first: usize = outer.iter().zip(&at).map(|(d, at)| strides[*d] * at).sum();
        let line = (0..shape[*last]).map(|i| first + i * strides[*last]);
        match size {
            _ if strides[*last] == size => out.extend_from_slice(&bytes[first..first + shape[*last] * size]),
            1 => out.extend(line.map(|from| bytes[from])),
            _ => line.for_each(|from| out.extend_from_slice(&bytes[from..from + size])),
        }
        for (at, d) in at.iter_mut().zip(outer).rev() {
            *at += 1;
            if *at < shape[*d] {
                break;
            }
            *at = 0;
        }
    }
    out
}

/// Sums of the elements, row by row, of a tensor of that shape over all dimensions but those `kept`, in order.
fn line_sums<const N: usize>(
    bytes: &[u8],
    shape: &[i64],
    kept: &[usize],
    element: impl Fn([u8; N]) -> i32,
) -> Vec<i32> {
    let extents: Vec<usize> = shape.iter().map(|extent| usize::try_from(*extent).unwrap_or(0)).collect();
    // From one sum to the next along each dimension; all of one that is summed have the same.
    let (mut strides, mut count) = (vec![0; extents.len()], 1);
    for d in kept.iter().rev() {
        strides[*d] = count;
        count *= extents[*d];
    }
    let mut sums = vec![0i32; count];
    let line = extents.last().copied().unwrap_or(1);
    for (i, line) in bytes.chunks_exact((N * line).max(1)).enumerate() {
        let outer = extents.iter().zip(&strides).rev().skip(1);
        let at = outer.fold((0, i), |(at, left), (extent, stride)| (at + left % extent * stride, left / extent)).0;
        let elements = line.as_chunks::<N>().0.iter().map(|bytes| element(*bytes));
        match strides.last() {
            Some(1..) => sums[at..].iter_mut().zip(elements).for_each(|(sum, e)| *sum = sum.wrapping_add(e)),
            _ => sums[at] = elements.fold(sums[at], i32::wrapping_add),
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::line_sums;

    #[test]
    fn sums_are_over_the_other_dimensions() {
        // Of 2x3x2 elements 0..12.
        let bytes: Vec<u8> = (0..12).collect();
        let of = |kept: &[usize]| line_sums(&bytes, &[2, 3, 2], kept, |[b]| i32::from(b));
        assert_eq!(of(&[]), [66]);
        assert_eq!(of(&[0]), [15, 51]);
        assert_eq!(of(&[1]), [14, 22, 30]);
        assert_eq!(of(&[2]), [30, 36]);
        assert_eq!(of(&[0, 2]), [6, 9, 24, 27]);
        assert_eq!(of(&[0, 1]), [1, 5, 9, 13, 17, 21]);
        assert_eq!(of(&[0, 1, 2]), (0..12).collect::<Vec<_>>());
        let pairs = line_sums(&[1, 0, 255, 255, 0, 1, 2, 0], &[2, 2], &[0], |b| i32::from(i16::from_le_bytes(b)));
        assert_eq!(pairs, [0, 258]);
        assert_eq!(line_sums(&[], &[3, 0], &[0], |[b]| i32::from(b)), [0, 0, 0]);
        assert_eq!(line_sums(&[7], &[], &[], |[b]| i32::from(b)), [7]);
    }
}
