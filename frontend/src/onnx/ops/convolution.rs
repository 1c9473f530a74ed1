//! Convolutions, of any number of dimensions and groups.

use crate::onnx::operand::Operand;
use crate::onnx::symbolic::Dim;
use crate::onnx::{Builder, Expr, Failure, NodeContext, Registry, Results, fold};
use monopour_ir::ops;
use std::rc::Rc;

pub(super) fn register(registry: &mut Registry) {
    registry.op("Conv", 1, conv, "");
}

/// Windows along each dimension of an image.
#[derive(Clone, Debug)]
pub(super) struct Windows {
    /// Size of the window.
    pub kernel: Vec<i64>,
    /// Step between windows.
    pub strides: Vec<i64>,
    /// Step within a window.
    pub dilations: Vec<i64>,
    /// Elements added before the first.
    pub before: Vec<Dim>,
    /// Elements added after the last.
    pub after: Vec<Dim>,
    /// Number of windows.
    pub count: Vec<Dim>,
}

impl Windows {
    /// Of a node's attributes, over an image of that shape.
    pub fn of(cx: &NodeContext, kernel: Vec<i64>, image: &[Dim]) -> Result<Self, Failure> {
        let rank = kernel.len();
        if image.len() != rank {
            return Err(format!("windows of {rank} dimensions over an image of {}", image.len()).into());
        }
        let (strides, dilations) = (at_least(cx, "strides", rank, 1)?, at_least(cx, "dilations", rank, 1)?);
        if kernel.iter().any(|k| *k < 1) {
            return Err(format!("a window of {kernel:?}").into());
        }
        let mut out = Self { kernel, strides, dilations, before: vec![], after: vec![], count: vec![] };
        let pads = cx.ints_of("pads", 2 * rank, 0)?;
        let (auto, ceil) = (cx.string("auto_pad", "NOTSET")?, cx.flag("ceil_mode", false)?);
        for (d, size) in image.iter().enumerate() {
            let pads = (Dim::constant(pads[d]), Dim::constant(pads[rank + d]));
            out.add(d, size, (&auto, ceil), pads)?;
        }
        Ok(out)
    }

    /// Elements that a window spans.
    fn span(&self, d: usize) -> i64 {
        (self.kernel[d] - 1) * self.dilations[d] + 1
    }

    fn add(&mut self, d: usize, size: &Dim, (auto, ceil): (&str, bool), pads: (Dim, Dim)) -> Result<(), Failure> {
        let (span, stride) = (self.span(d), self.strides[d]);
        let zero = Dim::default();
        let (before, after, count) = match auto {
            "SAME_UPPER" | "SAME_LOWER" => {
                let count = size.ceil_div(stride).unwrap_or_default();
                let total = count.plus(-1).times(stride).plus(span).sub(size).at_least(&zero);
                let half = total.floor_div(&2.into()).unwrap_or_default();
                let rest = total.sub(&half);
                if auto == "SAME_UPPER" { (half, rest, count) } else { (rest, half, count) }
            }
            "NOTSET" | "" | "VALID" => {
                let (before, after) = if auto == "VALID" { (zero.clone(), zero) } else { pads };
                let padded = size.add(&before).add(&after);
                let free = padded.plus(-span);
                let count = free.floor_div(&stride.into()).unwrap_or_default().plus(1);
                if ceil { rounded_up(size, (before, after), &free, stride, &count) } else { (before, after, count) }
            }
            other => return Err(format!("attribute 'auto_pad' is '{other}'").into()),
        };
        self.before.push(before);
        self.after.push(after);
        self.count.push(count);
        Ok(())
    }

    /// Whether nothing is added.
    pub fn is_bare(&self) -> bool {
        self.before.iter().chain(&self.after).all(|d| d.is(0))
    }

    /// The operand, whose last dimensions are the image, with the padding.
    pub fn pad<'c>(&self, b: &mut Builder<'c>, x: &Operand<'c>, number: f64) -> Result<Operand<'c>, Failure> {
        if self.is_bare() {
            return Ok(x.clone());
        }
        let plain = vec![Dim::default(); x.rank() - self.kernel.len()];
        let element = b.element(x.dtype)?;
        let number = b.number(element, number);
        b.padded(x, &[&plain[..], &self.before].concat(), &[&plain[..], &self.after].concat(), number)
    }

    /// Windows and a filter of known numbers without the first and last taps that meet padding alone, as those of DeepLab's dilated
    /// convolutions on small images do; `None` where there are none.
    fn without_taps_of_padding<'c>(&self, image: &[Dim], filter: &Operand<'c>) -> Option<(Self, Operand<'c>)> {
        let tensor = filter.tensor().filter(|tensor| tensor.elements() > 0)?;
        let mut cut = self.clone();
        let mut first = vec![0; self.kernel.len()];
        for (d, size) in image.iter().enumerate() {
            let constants = [size, &self.before[d], &self.after[d], &self.count[d]].map(Dim::as_constant);
            let [Some(size), Some(before), Some(after), Some(count)] = constants else { continue };
            let (step, taps) = (self.dilations[d], 0..self.kernel[d]);
            // The first window whose tap is not in front of the image; sizes of a model may be of any size.
            let meets = |tap: &i64| {
                let place = i128::from(*tap) * i128::from(step) - i128::from(before);
                let stride = i128::from(self.strides[d]);
                let window = ((stride - 1 - place) / stride).max(0);
                window < i128::from(count) && window * stride + place < i128::from(size)
            };
            let Some((from, to)) = taps.clone().find(meets).zip(taps.rev().find(meets)) else { continue };
            let behind = (self.kernel[d] - 1 - to).checked_mul(step).and_then(|cut| after.checked_sub(cut));
            let front = from.checked_mul(step).and_then(|cut| before.checked_sub(cut));
            if let Some((before, after)) = front.zip(behind).filter(|(before, after)| *before >= 0 && *after >= 0) {
                (cut.before[d], cut.after[d]) = (before.into(), after.into());
                (first[d], cut.kernel[d]) = (from, to + 1 - from);
            }
        }
        // An infinite weight makes NaNs of padding.
        if cut.kernel == self.kernel || !tensor.to_f64()?.into_iter().all(f64::is_finite) {
            return None;
        }
        let strides = fold::strides(&tensor.shape);
        let offset = first.iter().zip(&strides[2..]).map(|(tap, stride)| tap * stride).sum();
        let shape = [&tensor.shape[..2], &cut.kernel].concat();
        Some((cut, Operand::constant(Rc::new(fold::picked(tensor, &shape, &strides, offset)?))))
    }

    /// The index of an image in terms of the loops over windows and within one.
    pub fn index(&self, d: usize, window: usize, within: usize) -> Expr {
        Expr::Sum(vec![(window, self.strides[d]), (within, self.dilations[d])], 0)
    }
}

/// One more window where elements are left over that are not all padding.
fn rounded_up(size: &Dim, pads: (Dim, Dim), free: &Dim, stride: i64, count: &Dim) -> (Dim, Dim, Dim) {
    let (before, after) = pads;
    let up = free.ceil_div(stride).unwrap_or_default().plus(1);
    // The last window starts within the image or the padding before it.
    let most = size.add(&before).plus(-1).floor_div(&stride.into()).unwrap_or_default().plus(1);
    let up = up.at_most(&most);
    let missing = up.sub(count).times(stride);
    let rest = free.modulo(&stride.into()).unwrap_or_default();
    let more = missing.sub(&rest).at_least(&Dim::default());
    (before, after.add(&more), up)
}

/// The sizes of a filter's window.
pub(super) fn kernel(cx: &NodeContext, w: &Operand) -> Result<Vec<i64>, Failure> {
    let sizes: Option<Vec<i64>> = w.shape[2..].iter().map(Dim::as_constant).collect();
    let sizes = sizes.ok_or("its filter is of unknown size")?;
    match cx.extents("kernel_shape")? {
        Some(given) if given != sizes => {
            Err(format!("attribute 'kernel_shape' is {given:?}, the filter {sizes:?}").into())
        }
        _ => Ok(sizes),
    }
}

fn conv<'c>(b: &mut Builder<'c>, cx: &NodeContext<'_, 'c>) -> Results<'c> {
    let (x, w) = (cx.operand(0)?, cx.operand(1)?);
    if x.rank() < 3 || w.rank() != x.rank() || x.dtype != w.dtype {
        return Err("its image and filter are not of one type and rank, at least 3".into());
    }
    let windows = Windows::of(cx, kernel(cx, w)?, &x.shape[2..])?;
    let cut = windows.without_taps_of_padding(&x.shape[2..], w);
    let (windows, w) = cut.as_ref().map_or((&windows, w), |(windows, w)| (windows, w));
    let padded = windows.pad(b, x, 0.0)?;
    let result = convolve(b, &padded, w, windows, cx.int("group", 1)?)?;
    Ok(vec![add_bias(b, result, cx.optional(2))?])
}

/// A number per channel added.
pub(super) fn add_bias<'c>(
    b: &mut Builder<'c>,
    x: Operand<'c>,
    bias: Option<&Operand<'c>>,
) -> Result<Operand<'c>, Failure> {
    let Some(bias) = bias else { return Ok(x) };
    let bias = per_channel(b, bias, x.rank())?;
    let name = if x.dtype.is_float() { ops::arith::ADDF } else { ops::arith::ADDI };
    b.elementwise(&[&x, &bias], x.dtype, |b, e| b.binary(name, e[0], e[1]))
}

/// Numbers of channels as an operand of an image of that rank.
pub(super) fn per_channel<'c>(b: &mut Builder<'c>, x: &Operand<'c>, rank: usize) -> Result<Operand<'c>, Failure> {
    if x.rank() != 1 {
        return Err("its operand per channel is not of rank 1".into());
    }
    match rank {
        // A vector has one channel.
        1 if x.shape[0].is(1) => Ok(x.clone()),
        0 | 1 => Err(no_channels(rank)),
        _ => {
            let mut shape = vec![Dim::constant(1); rank - 1];
            shape[0] = x.shape[0].clone();
            b.reshaped(x, &shape)
        }
    }
}

pub(super) fn no_channels(rank: usize) -> Failure {
    format!("an operand of rank {rank} has no channels").into()
}

fn check_channels(image: &Dim, filters: &Dim) -> Result<(), Failure> {
    match (image.as_constant(), filters.as_constant()) {
        (Some(a), Some(b)) if a != b => Err(format!("its image has {a} channels, its filters {b}").into()),
        _ => Ok(()),
    }
}

/// One side of a convolution: the shape that it is viewed as, and its index in each dimension.
#[derive(Default)]
struct Side {
    shape: Vec<Dim>,
    index: Vec<Expr>,
}

impl Side {
    fn push(&mut self, size: &Dim, index: Expr) {
        self.shape.push(size.clone());
        self.index.push(index);
    }
}

/// The number of filters of one group.
fn filters_of_group(x: &Operand, w: &Operand, groups: i64) -> Result<Dim, Failure> {
    check_channels(&x.shape[1], &w.shape[1].times(groups))?;
    let per_group = (groups > 0).then(|| w.shape[0].exact_quotient(&Dim::constant(groups))).flatten();
    Ok(per_group.ok_or("its filters are not a multiple of its groups")?)
}

/// The sums of products of windows of an image, already padded, and filters.
///
/// Loops: image, group, filter of the group, windows; then channel of the group and within windows. Groups of one channel,
/// or with one filter, have no loop for it.
pub(super) fn convolve<'c>(
    b: &mut Builder<'c>,
    x: &Operand<'c>,
    w: &Operand<'c>,
    windows: &Windows,
    groups: i64,
) -> Result<Operand<'c>, Failure> {
    let rank = windows.kernel.len();
    let (channels, filters, by) = (&w.shape[1], &w.shape[0], Dim::constant(groups));
    let per_group = filters_of_group(x, w, groups)?;
    let mut loops = 0;
    let mut next = || {
        loops += 1;
        loops - 1
    };
    let (mut image, mut filter, mut result) = (Side::default(), Side::default(), (vec![], vec![]));
    let mut add = |result: &mut (Vec<Dim>, Vec<usize>), size: &Dim, sides: [Option<&mut Side>; 2]| {
        let at = next();
        result.0.push(size.clone());
        result.1.push(at);
        sides.into_iter().flatten().for_each(|side| side.push(size, Expr::Loop(at)));
        at
    };
    // One image is no loop.
    if !x.shape[0].is(1) {
        add(&mut result, &x.shape[0], [Some(&mut image), None]);
    }
    if groups > 1 {
        add(&mut result, &by, [Some(&mut image), Some(&mut filter)]);
    }
    if !per_group.is(1) {
        add(&mut result, &per_group, [None, Some(&mut filter)]);
    }
    let first = windows.count.iter().map(|count| add(&mut result, count, [None, None])).min().unwrap_or(0);
    if groups == 1 || !channels.is(1) {
        let at = next();
        image.push(channels, Expr::Loop(at));
        filter.push(channels, Expr::Loop(at));
    }
    for d in 0..rank {
        // A window of one element, read one after the other, is no loop: the op is a matrix product.
        if windows.kernel[d] == 1 && windows.strides[d] == 1 {
            image.push(&x.shape[2 + d], Expr::Loop(first + d));
        } else {
            let at = next();
            image.push(&x.shape[2 + d], windows.index(d, first + d, at));
            filter.push(&windows.kernel[d].into(), Expr::Loop(at));
        }
    }
    let images = x.shape[0].clone();
    let (x, w) = (b.reshaped(x, &image.shape)?, b.reshaped(w, &filter.shape)?);
    let operands = [(b.value(&x)?, image.index), (b.value(&w)?, filter.index)];
    let product = b.products(operands, loops, x.dtype, (&result.0, &result.1))?;
    let shape = [&[images, filters.clone()][..], &windows.count].concat();
    b.reshaped(&product, &shape)
}

/// The numbers of an attribute, none less than its default.
pub(super) fn at_least(cx: &NodeContext, name: &str, count: usize, default: i64) -> Result<Vec<i64>, Failure> {
    let given = cx.ints_of(name, count, default)?;
    if given.iter().all(|v| *v >= default) { Ok(given) } else { Err(format!("attribute '{name}' is {given:?}").into()) }
}
