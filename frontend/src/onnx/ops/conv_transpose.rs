//! Transposed convolutions.
//!
//! With constant filters and strides, the elements of the result that lie a stride apart are a convolution of their own, by the
//! taps that meet them: one with `k = r + 2 t` of them for the elements `r`, `r + 2`, .. along a dimension of stride 2. So
//! nothing is multiplied with the zeros between an image's elements.
//!
//! ```text
//! 4 x 4, stride 2, 64 channels at 16 x 16:   four convolutions by 2 x 2, each to 16 x 16 elements of 32 x 32
//! ```
//!
//! Other ones (filters that are computed, more than [`MOST_PARTS`] parts, dilated windows) are convolutions of the image with zeros
//! between its elements.

use super::convolution::{Windows, add_bias, at_least, convolve, kernel};
use crate::onnx::operand::Operand;
use crate::onnx::symbolic::Dim;
use crate::onnx::tensor::Tensor;
use crate::onnx::{Builder, Failure, NodeContext, Registry, Results, fold};
use monopour_ir::ops;
use std::rc::Rc;
use std::slice;

pub(super) fn register(registry: &mut Registry) {
    registry.op("ConvTranspose", 1, conv_transpose, "");
}

/// Most convolutions that one op becomes.
const MOST_PARTS: i64 = 16;

/// What of a dimension of the result one of the convolutions makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Part {
    /// The first element, of which every other one is a multiple of the stride away.
    first: i64,
    /// The first tap, of which every other one is a multiple of the stride away, and how many.
    tap: i64,
    taps: i64,
    /// Elements that windows need in front of the image and behind it; less than 0 where they leave some out.
    before: i64,
    after: i64,
}

/// The parts of each dimension, and their sizes; `None` where padding depends on what is not known.
fn parts(image: &Dim, count: &Dim, (size, stride, pad): (i64, i64, i64)) -> Option<Vec<(Part, Dim)>> {
    let mut parts = vec![];
    for tap in 0..stride {
        // The element `y` is met by the taps `k` for which `y + pad - k` is a multiple of the stride: `stride * place`.
        let taps = (size - tap + stride - 1) / stride;
        let place = (pad - tap + stride - 1).div_euclid(stride);
        let last = count.plus(pad - 1 - tap).floor_div(&stride.into())?;
        let after = last.sub(image).plus(1).as_constant()?;
        let sized = last.plus(1 - place);
        let first = stride * place + tap - pad;
        if !sized.is(0) {
            parts.push((Part { first, tap, taps, before: taps - 1 - place, after }, sized));
        }
    }
    Some(parts)
}

fn conv_transpose<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let (x, w) = (cx.operand(0)?, cx.operand(1)?);
    if x.rank() < 3 || w.rank() != x.rank() || x.dtype != w.dtype {
        return Err("its image and filter are not of one type and rank, at least 3".into());
    }
    let (rank, groups) = (x.rank() - 2, cx.int("group", 1)?);
    let size = kernel(cx, w)?;
    if groups < 1 || size.iter().any(|k| *k < 1) {
        return Err(format!("{groups} groups of windows of {size:?}").into());
    }
    if w.shape[0].exact_quotient(&Dim::constant(groups)).is_none() {
        return Err("its channels are not a multiple of its groups".into());
    }
    let (strides, dilations) = (at_least(cx, "strides", rank, 1)?, at_least(cx, "dilations", rank, 1)?);
    let extra = at_least(cx, "output_padding", rank, 0)?;
    let pads = transposed_pads(cx, &x.shape[2..], &size, (&strides, &dilations, &extra))?;
    let mut count = vec![];
    for d in 0..rank {
        let full = x.shape[2 + d].plus(-1).times(strides[d]).plus((size[d] - 1) * dilations[d] + 1 + extra[d]);
        count.push(full.sub(&pads.0[d]).sub(&pads.1[d]));
    }
    let form = Transposed { x, w, groups, size: &size, strides: &strides, dilations: &dilations };
    if let Some(parts) = form.parts(&pads.0, &count) {
        return Ok(vec![form.in_parts(b, &parts, &count, cx.optional(2))?]);
    }
    let result = form.of_spread_image(b, &pads.0, &count)?;
    Ok(vec![add_bias(b, result, cx.optional(2))?])
}

struct Transposed<'c, 'a> {
    x: &'a Operand<'c>,
    w: &'a Operand<'c>,
    groups: i64,
    size: &'a [i64],
    strides: &'a [i64],
    dilations: &'a [i64],
}

impl<'c> Transposed<'c, '_> {
    /// The parts of each dimension, where these are few and nothing is in the way.
    fn parts(&self, pads: &[Dim], count: &[Dim]) -> Option<Vec<Vec<(Part, Dim)>>> {
        let number = self.strides.iter().try_fold(1, |parts: i64, stride| parts.checked_mul(*stride))?;
        let met = self.size.iter().zip(self.strides).all(|(size, stride)| size >= stride);
        let near = self.dilations.iter().zip(self.strides).all(|(dilation, stride)| *dilation == 1 || *stride == 1);
        let constant = self.w.tensor().is_some_and(|tensor| tensor.elements() > 0);
        if !(2..=MOST_PARTS).contains(&number) || !met || !near || !constant || self.dilations.iter().any(|d| *d > 1) {
            return None;
        }
        let of = |d: usize| {
            let pad = pads[d].as_constant().filter(|pad| (0..=i64::from(i32::MAX)).contains(pad))?;
            parts(&self.x.shape[2 + d], &count[d], (self.size[d], self.strides[d], pad))
        };
        (0..count.len()).map(of).collect()
    }

    fn in_parts(
        &self,
        b: &mut Builder<'c>,
        parts: &[Vec<(Part, Dim)>],
        count: &[Dim],
        bias: Option<&Operand<'c>>,
    ) -> Result<Operand<'c>, Failure> {
        let (x, rank) = (self.x, count.len());
        let most = |of: &dyn Fn(&Part) -> i64| -> Vec<i64> {
            parts.iter().map(|parts| parts.iter().map(|(part, _)| of(part)).max().unwrap_or(0)).collect()
        };
        // All parts read one padded image.
        let (before, after) = (most(&|part| part.before), most(&|part| part.after));
        let dims = |list: &[i64]| list.iter().map(|n| Dim::constant(*n)).collect::<Vec<_>>();
        let image = cut_or_pad(b, x, &self.windows(self.size.to_vec(), (&dims(&before), &dims(&after)), count))?;
        let filters = self.w.shape[1].times(self.groups);
        // One image is no dimension: the parts are put together without it.
        let front = if x.shape[0].is(1) { vec![] } else { vec![x.shape[0].clone()] };
        let shape = [&front[..], slice::from_ref(&filters), count].concat();
        let mut whole = b.empty(x.dtype, &shape)?;
        let steps: Vec<i64> = vec![1; shape.len() - rank].into_iter().chain(self.strides.iter().copied()).collect();
        for part in product(parts) {
            let sizes: Vec<Dim> = part.iter().map(|(_, size)| size.clone()).collect();
            let kernel: Vec<i64> = part.iter().map(|(part, _)| part.taps).collect();
            let from: Vec<Dim> = (0..rank).map(|d| Dim::constant(before[d] - part[d].0.before)).collect();
            let read = sizes.iter().zip(&kernel).map(|(size, taps)| size.plus(taps - 1));
            let read: Vec<Dim> = x.shape[..2].iter().cloned().chain(read).collect();
            let from = [vec![Dim::default(); 2], from].concat();
            let seen = b.slice(&image, &from, &read, &vec![1; x.rank()])?;
            let taps = self.taps(&part.iter().map(|(part, _)| *part).collect::<Vec<_>>())?;
            let windows = self.windows(kernel, (&[], &[]), &sizes);
            let made = convolve(b, &seen, &taps, &windows, self.groups)?;
            let made = add_bias(b, made, bias)?;
            let made = b.reshaped(&made, &[&front[..], slice::from_ref(&filters), &sizes].concat())?;
            let first = part.iter().map(|(part, _)| Dim::constant(part.first));
            let first: Vec<Dim> = vec![Dim::default(); shape.len() - rank].into_iter().chain(first).collect();
            whole = b.insert_by(&made, whole, &first, &steps)?;
        }
        let whole = Operand::value(x.dtype, shape, whole);
        b.reshaped(&whole, &[&[x.shape[0].clone(), filters][..], count].concat())
    }

    fn windows(&self, kernel: Vec<i64>, (before, after): (&[Dim], &[Dim]), count: &[Dim]) -> Windows {
        let ones = vec![1; kernel.len()];
        let (before, after) = (before.to_vec(), after.to_vec());
        Windows { kernel, strides: ones.clone(), dilations: ones, before, after, count: count.to_vec() }
    }

    /// The filter of a part, as of a convolution: filters first, their taps from the last one to the first.
    fn taps(&self, part: &[Part]) -> Result<Operand<'c>, Failure> {
        let tensor = self.w.tensor().ok_or("its filter is not constant")?;
        let own = fold::strides(&tensor.shape);
        let (channels, filters) = (tensor.shape[0] / self.groups, tensor.shape[1]);
        let mut shape = vec![self.groups, filters, channels];
        let mut strides = vec![channels * own[0], own[1], own[0]];
        let mut offset = 0;
        for (d, part) in part.iter().enumerate() {
            let stride = own[2 + d];
            shape.push(part.taps);
            strides.push(-self.strides[d] * stride);
            offset += (part.tap + self.strides[d] * (part.taps - 1)) * stride;
        }
        let picked = fold::picked(tensor, &shape, &strides, offset).ok_or("its filter is not of its size")?;
        let joined = [&[self.groups * filters, channels][..], &shape[3..]].concat();
        Ok(Operand::constant(Rc::new(Tensor { shape: joined, ..picked })))
    }

    /// The convolution of the image with zeros between its elements.
    fn of_spread_image(&self, b: &mut Builder<'c>, pads: &[Dim], count: &[Dim]) -> Result<Operand<'c>, Failure> {
        let spread = spread(b, self.x, self.strides)?;
        let mut windows = self.windows(self.size.to_vec(), (&[], &[]), count);
        windows.dilations = self.dilations.to_vec();
        for d in 0..count.len() {
            let reach = (self.size[d] - 1) * self.dilations[d];
            windows.before.push(pads[d].times(-1).plus(reach));
            windows.after.push(count[d].plus(reach).sub(&spread.shape[2 + d]).sub(&windows.before[d]));
        }
        let image = cut_or_pad(b, &spread, &windows)?;
        let filters = flipped(b, self.w, self.groups)?;
        convolve(b, &image, &filters, &windows, self.groups)
    }
}

/// Every choice of one part of each dimension.
fn product(parts: &[Vec<(Part, Dim)>]) -> Vec<Vec<(Part, Dim)>> {
    let Some((first, rest)) = parts.split_first() else { return vec![vec![]] };
    let rest = product(rest);
    let with =
        |part: &(Part, Dim)| rest.iter().map(|others| [&[part.clone()][..], others].concat()).collect::<Vec<_>>();
    first.iter().flat_map(with).collect()
}

/// Padding before and after the result: what it lacks of the full one.
fn transposed_pads(
    cx: &NodeContext,
    image: &[Dim],
    kernel: &[i64],
    (strides, dilations, extra): (&[i64], &[i64], &[i64]),
) -> Result<(Vec<Dim>, Vec<Dim>), Failure> {
    let rank = kernel.len();
    let auto = cx.string("auto_pad", "NOTSET")?;
    let given = cx.ints_of("pads", 2 * rank, 0)?;
    let wanted = cx.ints("output_shape")?;
    if wanted.as_ref().is_some_and(|wanted| wanted.len() < rank) {
        return Err(format!("attribute 'output_shape' is {wanted:?}").into());
    }
    let mut pads = (vec![], vec![]);
    for d in 0..rank {
        let full = image[d].plus(-1).times(strides[d]).plus((kernel[d] - 1) * dilations[d] + 1 + extra[d]);
        let size = match (&wanted, auto.as_str()) {
            (Some(wanted), _) => Some(Dim::constant(wanted[wanted.len() - rank + d])),
            (None, "SAME_UPPER" | "SAME_LOWER") => Some(image[d].times(strides[d])),
            _ => None,
        };
        let (before, after) = match size {
            Some(size) => {
                let total = full.sub(&size);
                let half = total.floor_div(&2.into()).unwrap_or_default();
                let rest = total.sub(&half);
                if auto == "SAME_UPPER" { (half, rest) } else { (rest, half) }
            }
            None if auto == "VALID" => (Dim::default(), Dim::default()),
            None => (Dim::constant(given[d]), Dim::constant(given[rank + d])),
        };
        pads.0.push(before);
        pads.1.push(after);
    }
    Ok(pads)
}

/// The image with zeros between its elements.
fn spread<'c>(b: &mut Builder<'c>, x: &Operand<'c>, strides: &[i64]) -> Result<Operand<'c>, Failure> {
    if strides.iter().all(|s| *s == 1) {
        return Ok(x.clone());
    }
    let mut shape = x.shape.clone();
    let mut steps = vec![1; x.rank()];
    for (d, stride) in strides.iter().enumerate() {
        shape[2 + d] = x.shape[2 + d].plus(-1).times(*stride).plus(1);
        steps[2 + d] = *stride;
    }
    let zeros = b.filled(x.dtype, &shape, 0.0)?;
    let value = b.insert_by(x, zeros, &vec![Dim::default(); x.rank()], &steps)?;
    Ok(Operand::value(x.dtype, shape, value))
}

/// Padding, or a slice where it is negative.
fn cut_or_pad<'c>(b: &mut Builder<'c>, x: &Operand<'c>, windows: &Windows) -> Result<Operand<'c>, Failure> {
    let zero = Dim::default();
    let cut = |pads: &[Dim]| pads.iter().map(|d| d.times(-1).at_least(&zero)).collect::<Vec<_>>();
    let (first, last) = (cut(&windows.before), cut(&windows.after));
    let mut part = x.clone();
    if first.iter().chain(&last).any(|d| !d.is(0)) {
        let from = [vec![zero.clone(); 2], first.clone()].concat();
        let sizes = x.shape[2..].iter().zip(first.iter().zip(&last)).map(|(size, (f, l))| size.sub(f).sub(l));
        let shape: Vec<Dim> = x.shape[..2].iter().cloned().chain(sizes).collect();
        part = b.slice(x, &from, &shape, &vec![1; x.rank()])?;
    }
    let added = |pads: &[Dim]| pads.iter().map(|d| d.at_least(&zero)).collect();
    Windows { before: added(&windows.before), after: added(&windows.after), ..windows.clone() }.pad(b, &part, 0.0)
}

/// Filters of a transposed convolution as those of a convolution: from channels first to filters first, reversed.
fn flipped<'c>(b: &mut Builder<'c>, w: &Operand<'c>, groups: i64) -> Result<Operand<'c>, Failure> {
    let by = Dim::constant(groups);
    let per_group = w.shape[0].exact_quotient(&by).ok_or("its channels are not a multiple of its groups")?;
    let joined = [&[w.shape[1].times(groups), per_group.clone()][..], &w.shape[2..]].concat();
    if let Some(tensor) = w.tensor() {
        let own = fold::strides(&tensor.shape);
        let channels = tensor.shape[0] / groups;
        let shape = [&[groups, tensor.shape[1], channels][..], &tensor.shape[2..]].concat();
        let taps = own[2..].iter().map(|stride| -stride);
        let strides: Vec<i64> = [channels * own[0], own[1], own[0]].into_iter().chain(taps).collect();
        let offset = own[2..].iter().zip(&tensor.shape[2..]).map(|(stride, size)| stride * (size - 1)).sum();
        if let Some(picked) = fold::picked(tensor, &shape, &strides, offset) {
            return b.reshaped(&Operand::constant(Rc::new(picked)), &joined);
        }
    }
    let apart = [&[by, per_group][..], &w.shape[1..]].concat();
    let apart = b.reshaped(w, &apart)?;
    let order: Vec<usize> = [0, 2, 1].into_iter().chain(3..apart.rank()).collect();
    let shape: Vec<Dim> = order.iter().map(|d| apart.shape[*d].clone()).collect();
    let source = b.value(&apart)?;
    let sizes = shape.clone();
    let made = super::slices::indexed(b, &apart, shape, |b, at| {
        let mut place = at.to_vec();
        for d in 3..at.len() {
            let last = b.index(&sizes[d].plus(-1))?;
            place[d] = b.binary(ops::arith::SUBI, last, at[d])?;
        }
        place.swap(1, 2);
        Ok((source, place))
    })?;
    b.reshaped(&made, &joined)
}
