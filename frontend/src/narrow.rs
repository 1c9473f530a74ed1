//! Keeps the factors of integer products as narrow as they are, for CPUs.
//!
//! Before / after:
//!
//! ```text
//! %a = generic ins(%x : i8) { subi(extui %x, 128) } : i32     %a = generic ins(%x : i8) { trunci(subi(extui %x, 128)) } : i16
//! %b = generic ins(%w : i8) { extsi %w } : i32                %r = generic ins(%a, %w : i16, i8) {
//! %r = generic ins(%a, %b : i32, i32) {                         addi(%o, muli(extsi %i, extsi %f)) }
//!   addi(%o, muli(%i, %f)) }
//! ```
//!
//! A quantised model's factors are elements of 8 bits less a zero point: 16 bits hold them. Code generation multiplies pairs of
//! 16 bits at twice the speed of floats, a product of 32 bits takes twice their time; and the extended weights are four times
//! the bytes of the stored ones.
//! A constant less a constant zero point is computed here, as 8 bits where they hold it, else 16. A factor that meets
//! constants stays in its 8 bits: sum((x - z) * w) = sum(x * w) - z * sum(w), and the last sums are constants too.
//! A constant filter's input channels are laid out side by side.
//! Limits: elementwise factors, also behind padding and reshapes.

use crate::import::WeightTable;
use crate::{linalg, products};
use monopour_ir::ops;
use monopour_ir::typed::linalg::{IteratorType, Operands, generic, iterator_types_attr};
use monopour_ir::{
    AffineMap, Attr, Block, Builder, Diagnostics, InsertionPoint, Module, Op, OpSpec, Region, Rewriter, Type, Value,
};
use monopour_program::DType;
use std::collections::HashMap;

/// Narrows the factors of all products of 32-bit integers; `weights` gets constants that are computed here.
///
/// # Errors
/// None of its own; what MLIR's op builders report.
pub fn run(module: &Module, weights: &mut WeightTable) -> Result<(), Diagnostics> {
    let mut narrowing = Narrowing { weights, rw: Rewriter::new(module.context()), done: HashMap::new() };
    for op in module.op().find_all(ops::linalg::GENERIC) {
        if is_product(op) {
            narrowing.product(op)?;
        }
    }
    Ok(())
}

fn is_product(op: Op) -> bool {
    let is_i32 = |value: &Value| value.ty().element().integer_width() == Some(32);
    op.num_operands() == 3
        && op.operands().iter().all(is_i32)
        && (products::contraction_loops(op).is_some() || products::convolution_loops(op).is_some())
}

/// Smallest and largest value, both included.
type Range = (i64, i64);

const I16: Range = (i16::MIN as i64, i16::MAX as i64);

/// A factor in fewer bits.
#[derive(Clone, Copy)]
struct Narrow<'c> {
    value: Value<'c>,
    /// `arith.extsi` or `arith.extui`.
    extension: &'static str,
}

impl<'c> Narrow<'c> {
    fn signed(value: Value<'c>) -> Self {
        Self { value, extension: ops::arith::EXTSI }
    }

    /// Values that the elements can have.
    fn holds(&self) -> Range {
        let bits = self.value.ty().element().integer_width().unwrap_or(32);
        if self.extension == ops::arith::EXTUI {
            (0, (1 << bits) - 1)
        } else {
            (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
        }
    }
}

struct Narrowing<'c, 'a> {
    weights: &'a mut WeightTable,
    rw: Rewriter<'c>,
    /// What each value is in fewer bits.
    done: HashMap<Value<'c>, Option<Narrow<'c>>>,
}

impl<'c> Narrowing<'c, '_> {
    /// Narrows both factors, or none: the instructions take pairs of one type.
    fn product(&mut self, op: Op<'c>) -> Result<(), Diagnostics> {
        for (given, constant) in [(0, 1), (1, 0)] {
            if self.less_sums(op, given, constant)? {
                return Ok(());
            }
        }
        let (Some(a), Some(b)) = (self.narrow(op.operand(0))?, self.narrow(op.operand(1))?) else { return Ok(()) };
        self.set_factors(op, [a, b])
    }

    fn set_factors(&mut self, op: Op<'c>, factors: [Narrow<'c>; 2]) -> Result<(), Diagnostics> {
        let body = op.body().expect("invariant: a generic has a body");
        for (input, factor) in factors.into_iter().enumerate() {
            let (arg, wide) = (body.arg(input), body.arg(input).ty());
            self.rw.set_operand(op, input, factor.value);
            let first = body.first_op().expect("invariant: the body multiplies");
            let readers = arg.uses();
            self.rw.set_type(arg, factor.value.ty().element());
            self.rw.set_point(InsertionPoint::Before(first));
            let spec = OpSpec::new(factor.extension, op.location()).operands(&[arg]).results(&[wide]);
            let extended = self.rw.create(spec)?.result(0);
            readers.into_iter().for_each(|reader| self.rw.set_operand(reader.op, reader.index, extended));
        }
        self.lay_out(op)
    }

    /// Lays out the constant filter of a convolution such that its input channels are side by side: they are what instructions
    /// add up.
    fn lay_out(&mut self, op: Op<'c>) -> Result<(), Diagnostics> {
        let Some(found) = products::convolution_loops(op) else { return Ok(()) };
        let (filter, &[channels]) = (1 - found.input, &found.k[..]) else { return Ok(()) };
        let constant = op.operand(filter).defining_op().filter(|def| def.is(ops::arith::CONSTANT));
        let Some((constant, value)) = constant.and_then(|def| Some((def, def.attr("value")?))) else { return Ok(()) };
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
        self.rw.set_point(InsertionPoint::Before(constant));
        let spec = OpSpec::new(ops::arith::CONSTANT, op.location()).results(&[ty]).attr("value", attr);
        let made = self.rw.create(spec)?.result(0);
        self.rw.set_operand(op, filter, made);
        let dims: Vec<usize> = order.iter().map(|d| own[*d]).collect();
        maps[filter] = AffineMap::select(op.context(), maps[filter].num_dims(), &dims);
        let maps: Vec<Attr> = maps.into_iter().map(AffineMap::to_attr).collect();
        self.rw.set_attr(op, "indexing_maps", Attr::array(op.context(), &maps));
        Ok(())
    }

    /// Leaves the zero point out of a factor that meets constants, and takes its share off the result. Returns whether it did.
    fn less_sums(&mut self, op: Op<'c>, given: usize, constant: usize) -> Result<bool, Diagnostics> {
        let Some(raw) = self.raw(op.operand(given))?.filter(|raw| raw.zero != Zero::Constant(0)) else {
            return Ok(false);
        };
        let Some(weights) = self.narrow(op.operand(constant))? else { return Ok(false) };
        let fill = op.operand(2).defining_op().filter(|def| linalg::is_structured(*def));
        let empty =
            fill.and_then(|fill| fill.operands().last()?.defining_op()).filter(|def| def.is(ops::tensor::EMPTY));
        let (Some(empty), Some(sums)) = (empty, self.sums(op, constant, &weights)?) else { return Ok(false) };
        let factors = if given == 0 { [raw.factor, weights] } else { [weights, raw.factor] };
        self.set_factors(op, factors)?;
        self.subtract(op, empty, sums, raw.zero)?;
        Ok(true)
    }

    /// The sums of a constant factor over the reductions, and the dimensions of the result that they belong to.
    fn sums(
        &mut self,
        op: Op<'c>,
        input: usize,
        factor: &Narrow<'c>,
    ) -> Result<Option<(Value<'c>, Vec<usize>)>, Diagnostics> {
        let definition = factor.value.defining_op().filter(|def| def.is(ops::arith::CONSTANT));
        let Some((definition, value)) = definition.and_then(|def| Some((def, def.attr("value")?))) else {
            return Ok(None);
        };
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
        let size = factor.value.ty().element().integer_width().unwrap_or(8) as usize / 8;
        let signed = factor.extension == ops::arith::EXTSI;
        let element = |b: &[u8]| match (size, signed) {
            (1, true) => i32::from(b[0] as i8),
            (1, false) => i32::from(b[0]),
            _ => i32::from(i16::from_le_bytes([b[0], b[1]])),
        };
        let extents: Vec<i64> = kept.iter().map(|d| shape[*d]).collect();
        let count = usize::try_from(extents.iter().product::<i64>()).unwrap_or(0);
        let mut sums = vec![0i32; count];
        for (i, bytes) in bytes.chunks_exact(size).enumerate() {
            let mut left = i as i64;
            let (mut at, mut step) = (0, 1);
            for (d, extent) in shape.iter().enumerate().rev() {
                let index = left % extent;
                left /= extent;
                if kept.contains(&d) {
                    at += index * step;
                    step *= extent;
                }
            }
            sums[at as usize] = sums[at as usize].wrapping_add(element(bytes));
        }
        let ty = Type::tensor(&extents, Type::integer(op.context(), 32), None);
        let elements = sums.into_iter().flat_map(i32::to_le_bytes).collect();
        let Some(attr) = self.weights.derive(value, "sums", DType::I32, ty, elements) else { return Ok(None) };
        self.rw.set_point(InsertionPoint::Before(definition));
        let spec = OpSpec::new(ops::arith::CONSTANT, op.location()).results(&[ty]).attr("value", attr);
        Ok(Some((self.rw.create(spec)?.result(0), places)))
    }

    /// Takes `zero * sums` off the result of a product.
    fn subtract(
        &mut self,
        op: Op<'c>,
        empty: Op<'c>,
        (sums, places): (Value<'c>, Vec<usize>),
        zero: Zero<'c>,
    ) -> Result<(), Diagnostics> {
        let (cx, loc, product) = (op.context(), op.location(), op.result(0));
        let (ty, readers) = (product.ty(), product.uses());
        let rank = ty.shape().map_or(0, |shape| shape.len());
        let rw = &mut self.rw;
        rw.set_point(InsertionPoint::After(op));
        let out = rw.create(OpSpec::new(ops::tensor::EMPTY, loc).operands(&empty.operands()).results(&[ty]))?;
        rw.set_point(InsertionPoint::After(out));
        let mut inputs = vec![product, sums];
        let mut maps = vec![AffineMap::identity(cx, rank), AffineMap::select(cx, rank, &places)];
        if let Zero::Tensor(zero, _) = zero {
            inputs.push(zero);
            maps.push(AffineMap::select(cx, rank, &[]));
        }
        maps.push(AffineMap::identity(cx, rank));
        let args: Vec<_> = inputs.iter().chain([&product]).map(|v| (v.ty().element(), loc)).collect();
        let body = Block::new(&args);
        let mut b = Builder::new(cx, InsertionPoint::End(body));
        let i32 = Type::integer(cx, 32);
        let zero = match zero {
            Zero::Constant(zero) => b.constant(Attr::int(i32, zero), i32, loc),
            Zero::Tensor(_, extension) => {
                b.create(OpSpec::new(extension, loc).operands(&[body.arg(2)]).results(&[i32]))?.result(0)
            }
        };
        let share = OpSpec::new(ops::arith::MULI, loc).operands(&[body.arg(1), zero]).results(&[i32]);
        let share = b.create(share)?.result(0);
        let rest = OpSpec::new(ops::arith::SUBI, loc).operands(&[body.arg(0), share]).results(&[i32]);
        let rest = b.create(rest)?.result(0);
        b.create(OpSpec::new(ops::linalg::YIELD, loc).operands(&[rest]))?;
        let region = Region::new();
        region.append(body);
        let kinds = iterator_types_attr(cx, &vec![IteratorType::Parallel; rank]);
        let spec = generic(loc, Operands { inputs: &inputs, outputs: &[out.result(0)] }, &maps, kinds, region);
        let rest = rw.create(spec)?.result(0);
        readers.into_iter().for_each(|reader| rw.set_operand(reader.op, reader.index, rest));
        Ok(())
    }

    /// The elements of 8 bits behind a value, and the zero point that is taken off them.
    fn raw(&mut self, value: Value<'c>) -> Result<Option<Raw<'c>>, Diagnostics> {
        let Some(op) = value.defining_op() else { return Ok(None) };
        match op.name() {
            ops::linalg::GENERIC => Ok(Raw::of(op)),
            ops::tensor::COLLAPSE_SHAPE | ops::tensor::EXPAND_SHAPE => {
                let Some(raw) = self.raw(op.operand(0))? else { return Ok(None) };
                Ok(Some(Raw { factor: self.reshape(op, raw.factor), ..raw }))
            }
            ops::tensor::INSERT_SLICE => {
                let Some(raw) = self.raw(op.operand(0))? else { return Ok(None) };
                let Zero::Constant(zero) = raw.zero else { return Ok(None) };
                let factor = self.pad(op, raw.factor, zero)?;
                Ok(factor.map(|factor| Raw { factor, ..raw }))
            }
            _ => Ok(None),
        }
    }

    /// The value in at most 16 bits, if these hold it.
    fn narrow(&mut self, value: Value<'c>) -> Result<Option<Narrow<'c>>, Diagnostics> {
        if let Some(known) = self.done.get(&value) {
            return Ok(*known);
        }
        let found = match value.defining_op() {
            Some(op) if op.is(ops::linalg::GENERIC) => self.elementwise(op)?,
            Some(op) if op.is(ops::tensor::INSERT_SLICE) => match self.narrow(op.operand(0))? {
                Some(source) => self.pad(op, source, 0)?,
                None => None,
            },
            Some(op) if matches!(op.name(), ops::tensor::COLLAPSE_SHAPE | ops::tensor::EXPAND_SHAPE) => {
                self.narrow(op.operand(0))?.map(|source| self.reshape(op, source))
            }
            _ => None,
        };
        self.done.insert(value, found);
        Ok(found)
    }

    fn elementwise(&mut self, op: Op<'c>) -> Result<Option<Narrow<'c>>, Diagnostics> {
        let yielded = op.body().filter(|_| op.num_results() == 1 && linalg::is_elementwise(op));
        let Some(yielded) = yielded.and_then(|body| body.terminator()).map(|done| done.operand(0)) else {
            return Ok(None);
        };
        if !range(yielded).is_some_and(|(low, high)| I16.0 <= low && high <= I16.1) {
            return Ok(None);
        }
        if let Some(factor) = Factor::of(op, yielded) {
            if factor.zero == 0 {
                return Ok(Some(Narrow { value: factor.source, extension: factor.extension }));
            }
            if let Some(constant) = self.less_zero(&factor)? {
                return Ok(Some(Narrow::signed(constant)));
            }
        }
        self.recreate(op)
    }

    /// A constant less its zero point.
    fn less_zero(&mut self, factor: &Factor<'c>) -> Result<Option<Value<'c>>, Diagnostics> {
        let constant = factor.source.defining_op().filter(|op| op.is(ops::arith::CONSTANT));
        let Some((op, value)) = constant.and_then(|op| Some((op, op.attr("value")?))) else { return Ok(None) };
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
        self.rw.set_point(InsertionPoint::Before(op));
        let spec = OpSpec::new(ops::arith::CONSTANT, op.location()).results(&[ty]).attr("value", attr);
        Ok(Some(self.rw.create(spec)?.result(0)))
    }

    /// The same op with a result of 16 bits.
    fn recreate(&mut self, op: Op<'c>) -> Result<Option<Narrow<'c>>, Diagnostics> {
        let (last, element) = (op.num_operands() - 1, Type::integer(op.context(), 16));
        let Some(empty) = op.operand(last).defining_op().filter(|def| def.is(ops::tensor::EMPTY)) else {
            return Ok(None);
        };
        let rw = &mut self.rw;
        rw.set_point(InsertionPoint::Before(op));
        let ty = of_element(op.result(0), element);
        let spec = OpSpec::new(ops::tensor::EMPTY, op.location()).operands(&empty.operands()).results(&[ty]);
        let empty = rw.create(spec)?.result(0);
        let copy = rw.clone_op(op, |v| v);
        rw.insert(copy);
        rw.set_operand(copy, last, empty);
        rw.set_type(copy.result(0), ty);
        let body = copy.body().expect("invariant: a generic has a body");
        rw.set_type(body.arg(last), element);
        let done = body.terminator().expect("invariant: a body ends with a yield");
        rw.set_point(InsertionPoint::Before(done));
        let spec = OpSpec::new(ops::arith::TRUNCI, op.location()).operands(&[done.operand(0)]).results(&[element]);
        let truncated = rw.create(spec)?.result(0);
        rw.set_operand(done, 0, truncated);
        Ok(Some(Narrow::signed(copy.result(0))))
    }

    /// The same padding, an insertion into a fill, of a factor that has `zero` more than its value; `None` if its type does
    /// not hold what fills.
    fn pad(&mut self, op: Op<'c>, source: Narrow<'c>, zero: i64) -> Result<Option<Narrow<'c>>, Diagnostics> {
        let fill = op.operand(1).defining_op().filter(|def| def.is(ops::linalg::FILL));
        let Some((fill, value)) = fill.and_then(|fill| Some((fill, fill.operand(0).constant_int()?))) else {
            return Ok(None);
        };
        let Some(empty) = fill.operand(1).defining_op().filter(|def| def.is(ops::tensor::EMPTY)) else {
            return Ok(None);
        };
        let (low, high) = source.holds();
        let Some(value) = value.checked_add(zero).filter(|value| (low..=high).contains(value)) else { return Ok(None) };
        let (rw, element) = (&mut self.rw, source.value.ty().element());
        // The attribute of signless integers takes signed ones.
        let bits = element.integer_width().unwrap_or(16);
        let value = if value >> (bits - 1) > 0 { value - (1 << bits) } else { value };
        let ty = of_element(op.result(0), element);
        rw.set_point(InsertionPoint::Before(op));
        let spec = OpSpec::new(ops::arith::CONSTANT, op.location()).results(&[element]);
        let number = rw.create(spec.attr("value", Attr::int(element, value)))?.result(0);
        let spec = OpSpec::new(ops::tensor::EMPTY, op.location()).operands(&empty.operands()).results(&[ty]);
        let empty = rw.create(spec)?.result(0);
        let filled = rw.clone_op(fill, |v| v);
        rw.insert(filled);
        rw.set_operands(filled, &[number, empty]);
        rw.set_type(filled.result(0), ty);
        let body = filled.body().expect("invariant: a fill has a body");
        body.args().into_iter().for_each(|arg| rw.set_type(arg, element));
        let copy = rw.clone_op(op, |v| v);
        rw.insert(copy);
        rw.set_operand(copy, 0, source.value);
        rw.set_operand(copy, 1, filled.result(0));
        rw.set_type(copy.result(0), ty);
        Ok(Some(Narrow { value: copy.result(0), ..source }))
    }

    fn reshape(&mut self, op: Op<'c>, source: Narrow<'c>) -> Narrow<'c> {
        let rw = &mut self.rw;
        rw.set_point(InsertionPoint::Before(op));
        let copy = rw.clone_op(op, |v| v);
        rw.insert(copy);
        rw.set_operand(copy, 0, source.value);
        rw.set_type(copy.result(0), of_element(op.result(0), source.value.ty().element()));
        Narrow { value: copy.result(0), ..source }
    }
}

/// A zero point.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Zero<'c> {
    Constant(i64),
    /// A tensor of rank 0, and how its element is extended.
    Tensor(Value<'c>, &'static str),
}

/// A factor of 8 bits with its zero point.
struct Raw<'c> {
    factor: Narrow<'c>,
    zero: Zero<'c>,
}

impl<'c> Raw<'c> {
    /// Of an elementwise op that extends a whole tensor, and takes off one number.
    fn of(op: Op<'c>) -> Option<Self> {
        let yielded =
            op.body().filter(|_| op.num_results() == 1 && linalg::is_elementwise(op))?.terminator()?.operand(0);
        let difference = yielded.defining_op().filter(|def| def.is(ops::arith::SUBI))?;
        let (minuend, name) = extension(difference.operand(0))?;
        let (block, input) = minuend.as_block_arg()?;
        if op.body() != Some(block) || !linalg::whole_inputs(op).contains(&input) {
            return None;
        }
        let subtrahend = difference.operand(1);
        let zero = match range(subtrahend)? {
            (low, high) if low == high => Zero::Constant(low),
            _ => {
                let (zero, name) = extension(subtrahend)?;
                let (block, input) = zero.as_block_arg().filter(|(block, _)| op.body() == Some(*block))?;
                let scalar = block.parent_op()?.operand(input);
                Zero::Tensor(Some(scalar).filter(|v| v.ty().shape().is_some_and(|shape| shape.is_empty()))?, name)
            }
        };
        Some(Self { factor: Narrow { value: op.operand(input), extension: name }, zero })
    }
}

/// A whole tensor of 8 bits, extended, less a constant zero point.
struct Factor<'c> {
    source: Value<'c>,
    extension: &'static str,
    /// 0 without one.
    zero: i64,
}

impl<'c> Factor<'c> {
    fn of(op: Op<'c>, value: Value<'c>) -> Option<Self> {
        if let Some(Raw { factor, zero: Zero::Constant(zero) }) = Raw::of(op) {
            return Some(Self { source: factor.value, extension: factor.extension, zero });
        }
        let (arg, name) = extension(value)?;
        let (block, input) = arg.as_block_arg()?;
        let whole = op.body() == Some(block) && linalg::whole_inputs(op).contains(&input);
        whole.then(|| Self { source: op.operand(input), extension: name, zero: 0 })
    }
}

/// Elements of `size` bytes of a tensor of that shape, its dimensions in another order.
fn permuted(bytes: &[u8], shape: &[i64], order: &[usize], size: usize) -> Vec<u8> {
    let shape: Vec<usize> = shape.iter().map(|extent| usize::try_from(*extent).unwrap_or(0)).collect();
    let mut strides = vec![size; shape.len()];
    (1..shape.len()).rev().for_each(|d| strides[d - 1] = strides[d] * shape[d]);
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = vec![0; order.len()];
    while out.len() < bytes.len() {
        let first: usize = order.iter().zip(&at).map(|(d, at)| strides[*d] * at).sum();
        out.extend_from_slice(&bytes[first..first + size]);
        for (at, d) in at.iter_mut().zip(order).rev() {
            *at += 1;
            if *at < shape[*d] {
                break;
            }
            *at = 0;
        }
    }
    out
}

/// The type of a tensor with other elements.
fn of_element<'c>(tensor: Value<'c>, element: Type<'c>) -> Type<'c> {
    Type::tensor(&tensor.ty().shape().unwrap_or_default(), element, None)
}

/// The 8 bits that a value extends, and the op that does.
fn extension(value: Value) -> Option<(Value, &'static str)> {
    let op = value.defining_op()?;
    let name = [ops::arith::EXTSI, ops::arith::EXTUI].into_iter().find(|name| op.is(name))?;
    (op.operand(0).ty().integer_width() == Some(8)).then(|| (op.operand(0), name))
}

/// The values that constants, elements of 8 bits and differences of these can have; `None` for others.
fn range(value: Value) -> Option<Range> {
    if let Some(constant) = value.constant_int() {
        return Some((constant, constant));
    }
    if let Some((narrow, name)) = extension(value) {
        let unsigned = name == ops::arith::EXTUI;
        return Some(match narrow.constant_int() {
            Some(constant) if unsigned => (constant & 0xff, constant & 0xff),
            Some(constant) => (constant, constant),
            None if unsigned => (0, 255),
            None => (-128, 127),
        });
    }
    let op = value.defining_op().filter(|op| op.is(ops::arith::SUBI))?;
    let ((a, b), (c, d)) = (range(op.operand(0))?, range(op.operand(1))?);
    Some((a.checked_sub(d)?, b.checked_sub(c)?))
}
