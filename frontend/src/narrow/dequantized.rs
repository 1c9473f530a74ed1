//! Products of dequantised factors: the integers are multiplied, and their sums are scaled.
//!
//! ```text
//! %a = generic ins(%x : u8) { mulf(subf(uitofp %x, z), s) }    %p = generic ins(%x, %w : u8, i8) { addi(%o, muli(extui, extsi)) }
//! %b = generic ins(%w : i8, %t) { mulf(sitofp %w, %t) }        %r = generic ins(%p, %shares, %scales) {
//! %r = generic ins(%a, %b) { addf(%o, mulf(%i, %j)) }            mulf(sitofp(addi(%p, -z * sum w)), %scales) }
//! ```
//!
//! A model quantised as QuantizeLinear and DequantizeLinear around float ops multiplies floats otherwise. The sum of integers
//! is exact; the one of floats rounds each term. onnxruntime joins the same ops.
//! A product of floats and dequantised weights takes the weights as integers too, and scales its result.
//! Limits: a factor with one scale and zero point, and a constant one with a scale for each of its rows or columns; at most
//! [`MOST_TERMS`] terms.

use super::constants::constant;
use super::factor::{Factor, Narrow, filled, of_element};
use super::{Indexed, Narrowing};
use crate::{linalg, products};
use monopour_ir::typed::linalg::{Operands, generic};
use monopour_ir::{Attr, Block, Builder, Diagnostics, InsertionPoint, Op, OpSpec, Region, Type, Value};
use monopour_ir::{bodies, ops};
use monopour_program::DType;

/// Products of elements of 8 bits less their zero points whose sum 32 bits hold.
const MOST_TERMS: i64 = 1 << 15;
/// Fewest rows that share converted weights.
const MIN_ROWS: i64 = 4;

/// The scales of a factor.
#[derive(Clone, PartialEq, Debug)]
enum Scales {
    One(f32),
    /// One for each index of a dimension.
    Each(Vec<f32>, usize),
}

/// Elements of 8 bits less a zero point, times a scale.
struct Scaled<'c> {
    factor: Narrow<'c>,
    zero: i64,
    scales: Scales,
}

impl<'c> Narrowing<'c, '_> {
    /// Multiplies the integers of a product of dequantised factors. Returns whether it did.
    pub(super) fn dequantized(&mut self, op: Op<'c>) -> Result<bool, Diagnostics> {
        for (given, constant) in [(0, 1), (1, 0)] {
            if self.by_constant(op, given, constant)? {
                return Ok(true);
            }
        }
        for constant in [0, 1] {
            if self.of_weights(op, constant)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Multiplies the integers of one factor, where the other is no dequantised one: `s * sum(x * (q - z))`. Code generation
    /// converts them while it packs them, and no dequantised weights are in memory.
    fn of_weights(&mut self, op: Op<'c>, weights: usize) -> Result<bool, Diagnostics> {
        let (Some(found), Some(empty)) = (products::contraction_loops(op), starts_at_zero(op)) else {
            return Ok(false);
        };
        let extents = linalg::loop_extents(op).unwrap_or_default();
        // Fewer rows stream the weights, and dequantise them on the way.
        let (rows, columns) = if found.lhs == weights { (&found.n, &found.m) } else { (&found.m, &found.n) };
        if !rows.iter().any(|d| extents[*d] >= MIN_ROWS) || columns.is_empty() {
            return Ok(false);
        }
        let Some(Scaled { factor, zero, scales }) = self.scaled(op.operand(weights), false)? else { return Ok(false) };
        let Some(scales) = result_scales(op, weights, 1.0, scales) else { return Ok(false) };
        let loc = op.location();
        self.rw.set_point(InsertionPoint::Before(op));
        let filled = self.fill(loc, Attr::float(Type::f32(op.context()), 0.0), op.result(0).ty(), &empty.operands())?;
        let product = self.converted_product(op, filled, weights, (factor, zero))?;
        let rest = self.scale(op, (product, empty), None, scales)?;
        self.rw.replace_op(op, &[rest]);
        Ok(true)
    }

    /// The product with the integers of one factor, less their zero point, converted to floats, added to `start`.
    fn converted_product(
        &mut self,
        op: Op<'c>,
        start: Value<'c>,
        weights: usize,
        (factor, zero): (Narrow<'c>, i64),
    ) -> Result<Value<'c>, Diagnostics> {
        let (loc, f32) = (op.location(), Type::f32(op.context()));
        self.rw.set_point(InsertionPoint::Before(op));
        let value = Attr::float(f32, zero as f64);
        let spec = OpSpec::new(ops::arith::CONSTANT, loc).results(&[f32]).attr("value", value);
        let zero_point = self.rw.create(spec)?.result(0);
        let mut inputs = [op.operand(0), op.operand(1)];
        inputs[weights] = factor.value;
        let conversion = if factor.extension == ops::arith::EXTSI { ops::arith::SITOFP } else { ops::arith::UITOFP };
        self.product_of(op, inputs, start, [ops::arith::MULF, ops::arith::ADDF], &|b, n, element| {
            if n != weights {
                return Ok(element);
            }
            let float = b.create(OpSpec::new(conversion, loc).operands(&[element]).results(&[f32]))?.result(0);
            let less = OpSpec::new(ops::arith::SUBF, loc).operands(&[float, zero_point]).results(&[f32]);
            if zero == 0 { Ok(float) } else { Ok(b.create(less)?.result(0)) }
        })
    }

    /// The sums of products of two inputs, with the loops of `op`. `factor` makes a factor of an input's element.
    fn product_of(
        &mut self,
        op: Op<'c>,
        inputs: [Value<'c>; 2],
        filled: Value<'c>,
        [multiply, add]: [&str; 2],
        factor: &dyn Fn(&mut Builder<'c>, usize, Value<'c>) -> Result<Value<'c>, Diagnostics>,
    ) -> Result<Value<'c>, Diagnostics> {
        let (loc, ty) = (op.location(), filled.ty().element());
        let types = inputs.map(|input| input.ty().element());
        let block = Block::new(&[(types[0], loc), (types[1], loc), (ty, loc)]);
        let mut b = Builder::new(op.context(), InsertionPoint::End(block));
        let factors = [factor(&mut b, 0, block.arg(0))?, factor(&mut b, 1, block.arg(1))?];
        let product = b.create(OpSpec::new(multiply, loc).operands(&factors).results(&[ty]))?.result(0);
        let sum = b.create(OpSpec::new(add, loc).operands(&[block.arg(2), product]).results(&[ty]))?.result(0);
        b.create(OpSpec::new(ops::linalg::YIELD, loc).operands(&[sum]))?;
        let body = Region::new();
        body.append(block);
        let maps = linalg::indexing_maps(op).unwrap_or_default();
        let kinds = op.attr("iterator_types").expect("invariant: a generic has iterators");
        let operands = Operands { inputs: &inputs, outputs: &[filled] };
        Ok(self.rw.create(generic(loc, operands, &maps, kinds, body))?.result(0))
    }

    /// Computes the dequantised filter of a depthwise convolution, whose products stay floats, here and not in each run; a
    /// dequantised image stays in its bytes, and is converted while it is read.
    pub(super) fn depthwise(&mut self, op: Op<'c>) -> Result<(), Diagnostics> {
        let Some(found) = products::convolution_loops(op).filter(|found| found.channels.is_empty()) else {
            return Ok(());
        };
        let image = self.scaled(op.operand(found.input), false)?;
        let image = image.and_then(|image| match image.scales {
            Scales::One(scale) => Some((image.factor, image.zero, scale)),
            Scales::Each(..) => None,
        });
        let times = image.map_or(1.0, |(_, _, scale)| scale);
        let filter = 1 - found.input;
        let Some(floats) = self.filter_floats(op.operand(filter), times)? else { return Ok(()) };
        self.rw.set_operand(op, filter, floats);
        let Some((factor, zero, _)) = image else { return Ok(()) };
        let product = self.converted_product(op, op.operand(2), found.input, (factor, zero))?;
        self.rw.replace_op(op, &[product]);
        Ok(())
    }

    /// The floats that a constant filter of dequantised bytes is, times a number.
    fn filter_floats(&mut self, filter: Value<'c>, times: f32) -> Result<Option<Value<'c>>, Diagnostics> {
        let Some(Scaled { factor, zero, scales }) = self.scaled(filter, false)? else { return Ok(None) };
        let Some((stored, value)) = constant(factor.value) else { return Ok(None) };
        let (Some(bytes), Some(shape)) = (self.weights.bytes_of(value), factor.value.ty().shape()) else {
            return Ok(None);
        };
        let signed = factor.extension == ops::arith::EXTSI;
        let float = |(i, byte): (usize, &u8)| {
            let number = (if signed { i64::from(*byte as i8) } else { i64::from(*byte) }) - zero;
            let scale = match &scales {
                Scales::One(scale) => *scale,
                Scales::Each(each, dim) => {
                    let inside: i64 = shape[dim + 1..].iter().product();
                    each[i / inside as usize % each.len()]
                }
            };
            (number as f32 * (scale * times)).to_le_bytes()
        };
        let floats = bytes.iter().enumerate().flat_map(float).collect();
        let ty = of_element(factor.value, Type::f32(self.rw.context()));
        let Some(attr) = self.weights.derive(value, "floats", DType::F32, ty, floats) else { return Ok(None) };
        self.beside(stored, attr, ty).map(Some)
    }

    fn by_constant(&mut self, op: Op<'c>, given: usize, constant: usize) -> Result<bool, Diagnostics> {
        let Some(empty) = starts_at_zero(op).filter(|_| is_short(op)) else { return Ok(false) };
        let Some(x) = self.scaled(op.operand(given), false)? else { return Ok(false) };
        let (Some(w), Scales::One(scale)) = (self.scaled(op.operand(constant), false)?, &x.scales) else {
            return Ok(false);
        };
        let scale = *scale;
        let stored = |v: Value| v.defining_op().is_some_and(|def| def.is(ops::arith::CONSTANT));
        if stored(x.factor.value) || !stored(w.factor.value) {
            return Ok(false);
        }
        let weights = match w.zero {
            0 => w.factor,
            zero => {
                let factor = Factor { source: w.factor.value, extension: w.factor.extension, zero };
                let Some(value) = self.less_zero(&factor)? else { return Ok(false) };
                Narrow::signed(value)
            }
        };
        let x = match self.has_signs(&weights) {
            true => self.scaled(op.operand(given), true)?.unwrap_or(x),
            false => x,
        };
        let shares = match x.zero {
            0 => None,
            // Zero points are at most 255.
            zero => match self.sums(op, constant, &weights, -(zero as i32))? {
                Some(shares) => Some(shares),
                None => return Ok(false),
            },
        };
        let Some(scales) = result_scales(op, constant, scale, w.scales) else { return Ok(false) };
        let factors = if given == 0 { [x.factor, weights] } else { [weights, x.factor] };
        let product = self.integers(op, empty, factors)?;
        let rest = self.scale(op, (product, empty), shares, scales)?;
        self.rw.replace_op(op, &[rest]);
        Ok(true)
    }

    /// The product of the integers.
    fn integers(&mut self, op: Op<'c>, empty: Op<'c>, factors: [Narrow<'c>; 2]) -> Result<Value<'c>, Diagnostics> {
        let (loc, i32) = (op.location(), Type::integer(op.context(), 32));
        let ty = of_element(op.result(0), i32);
        self.rw.set_point(InsertionPoint::Before(op));
        let filled = self.fill(loc, Attr::int(i32, 0), ty, &empty.operands())?;
        let (inputs, names) = (factors.map(|factor| factor.value), factors.map(|factor| factor.extension));
        let product = self.product_of(op, inputs, filled, [ops::arith::MULI, ops::arith::ADDI], &|b, n, element| {
            Ok(b.create(OpSpec::new(names[n], loc).operands(&[element]).results(&[i32]))?.result(0))
        })?;
        self.lay_out(product.defining_op().expect("invariant: a result of an op"))?;
        Ok(product)
    }

    /// The sums, with the zero point's shares, as scaled floats.
    fn scale(
        &mut self,
        op: Op<'c>,
        (product, empty): (Value<'c>, Op<'c>),
        shares: Option<Indexed<'c>>,
        scales: Scales,
    ) -> Result<Value<'c>, Diagnostics> {
        let (cx, loc, ty) = (op.context(), op.location(), op.result(0).ty());
        let is_float = product.ty().element().is_float();
        let (i32, f32, rank) = (Type::integer(cx, 32), Type::f32(cx), ty.shape().map_or(0, |shape| shape.len()));
        let mut inputs = vec![(product, (0..rank).collect())];
        inputs.extend(shares.clone());
        let one = match scales {
            Scales::One(scale) => Some(scale),
            Scales::Each(scales, dim) => {
                let vector = Type::tensor(&[scales.len() as i64], f32, None);
                let elements: String = scales.iter().map(|s| format!("{:08X}", s.to_bits().swap_bytes())).collect();
                let Some(attr) = Attr::parse(cx, &format!("dense<\"0x{elements}\"> : {vector}")) else {
                    return Ok(product);
                };
                let spec = OpSpec::new(ops::arith::CONSTANT, loc).results(&[vector]).attr("value", attr);
                self.rw.set_point(InsertionPoint::Before(op));
                inputs.push((self.rw.create(spec)?.result(0), vec![dim]));
                None
            }
        };
        self.pointwise(InsertionPoint::Before(op), (&inputs, ty, &empty.operands()), loc, |b, elements| {
            let mut sum = elements[0];
            if shares.is_some() {
                let with_share = OpSpec::new(ops::arith::ADDI, loc).operands(&[sum, elements[1]]).results(&[i32]);
                sum = b.create(with_share)?.result(0);
            }
            let float = match is_float {
                true => sum,
                false => b.create(OpSpec::new(ops::arith::SITOFP, loc).operands(&[sum]).results(&[f32]))?.result(0),
            };
            let scale = match one {
                Some(scale) => b.constant(Attr::float(f32, scale.into()), f32, loc),
                None => elements[elements.len() - 1],
            };
            Ok(b.create(OpSpec::new(ops::arith::MULF, loc).operands(&[float, scale]).results(&[f32]))?.result(0))
        })
    }

    /// The integers behind a dequantised value, also behind padding by 0 and reshapes; without a sign if that is asked for
    /// and can be.
    fn scaled(&mut self, value: Value<'c>, unsigned: bool) -> Result<Option<Scaled<'c>>, Diagnostics> {
        let Some(op) = value.defining_op() else { return Ok(None) };
        match op.name() {
            ops::linalg::GENERIC => {
                let Some(scaled) = self.scaled_by(op) else { return Ok(None) };
                if !unsigned {
                    return Ok(Some(scaled));
                }
                let (factor, zero) = self.unsigned(scaled.factor, scaled.zero)?;
                Ok(Some(Scaled { factor, zero, ..scaled }))
            }
            ops::tensor::COLLAPSE_SHAPE | ops::tensor::EXPAND_SHAPE => {
                let Some(scaled) = self.scaled(op.operand(0), unsigned)? else { return Ok(None) };
                let first = |v: Value| v.ty().shape().and_then(|shape| shape.first().copied());
                let kept = match scaled.scales {
                    Scales::One(_) => true,
                    // The first dimension stays what it is.
                    Scales::Each(_, dim) => dim == 0 && first(op.operand(0)) == first(op.result(0)),
                };
                let Some(factor) = Some(scaled.factor).filter(|_| kept) else { return Ok(None) };
                Ok(Some(Scaled { factor: self.reshaped(op, factor)?, ..scaled }))
            }
            ops::tensor::INSERT_SLICE => {
                let Some(scaled) = self.scaled(op.operand(0), unsigned)?.filter(|s| matches!(s.scales, Scales::One(_)))
                else {
                    return Ok(None);
                };
                if filled(op.operand(1)).and_then(|(number, _)| bodies::constant(number)) != Some(0.0) {
                    return Ok(None);
                }
                let factor = self.pad(op, scaled.factor, scaled.zero)?;
                Ok(factor.map(|factor| Scaled { factor, ..scaled }))
            }
            _ => Ok(None),
        }
    }

    /// `(element - zero) * scale` of a whole tensor of 8 bits.
    fn scaled_by(&self, op: Op<'c>) -> Option<Scaled<'c>> {
        let yielded =
            op.body().filter(|_| op.num_results() == 1 && linalg::is_elementwise(op))?.terminator()?.operand(0);
        let product = yielded.defining_op().filter(|def| def.is(ops::arith::MULF))?;
        let (element, scale) = (product.operand(0), product.operand(1));
        let difference = element.defining_op().filter(|def| def.is(ops::arith::SUBF));
        let (element, zero) = match difference {
            Some(def) => (def.operand(0), self.integer(op, def.operand(1))?),
            None => (element, 0),
        };
        let (element, extension) = converted(element)?;
        let (block, input) = element.as_block_arg()?;
        if op.body() != Some(block) || !linalg::whole_inputs(op).contains(&input) {
            return None;
        }
        let scales = match bodies::constant(scale) {
            Some(scale) => Scales::One(scale as f32),
            None => {
                let (operand, dims) = self.operand(op, scale)?;
                let &[dim] = &dims[..] else { return None };
                let bytes = self.weights.bytes_of(operand.defining_op()?.attr("value")?)?;
                let floats = bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
                Scales::Each(floats.collect(), dim)
            }
        };
        Some(Scaled { factor: Narrow { value: op.operand(input), extension }, zero, scales })
    }

    /// A float that is an integer, the same for all elements.
    fn integer(&self, op: Op<'c>, value: Value<'c>) -> Option<i64> {
        if let Some(number) = bodies::constant(value) {
            return (number.fract() == 0.0 && number.abs() <= 255.0).then_some(number as i64);
        }
        // Zero points of rows that are all 0.
        let (operand, _) = self.operand(op, converted(value)?.0)?;
        let bytes = self.weights.bytes_of(operand.defining_op()?.attr("value")?)?;
        bytes.iter().all(|byte| *byte == 0).then_some(0)
    }

    /// The constant operand that a value is an element of, and the loops that index it.
    fn operand(&self, op: Op<'c>, value: Value<'c>) -> Option<(Value<'c>, Vec<usize>)> {
        let (_, input) = value.as_block_arg().filter(|(block, _)| op.body() == Some(*block))?;
        let operand = op.operand(input);
        let constant = operand.defining_op().filter(|def| def.is(ops::arith::CONSTANT));
        let dims = linalg::indexing_maps(op)?.get(input)?.dim_positions()?;
        constant.map(|_| (operand, dims))
    }
}

/// The element of 8 bits that is converted to a float, and the extension that reads it as an integer.
fn converted(value: Value) -> Option<(Value, &'static str)> {
    let op = value.defining_op()?;
    let extension = match op.name() {
        ops::arith::SITOFP => ops::arith::EXTSI,
        ops::arith::UITOFP => ops::arith::EXTUI,
        _ => return None,
    };
    (op.operand(0).ty().integer_width() == Some(8)).then(|| (op.operand(0), extension))
}

/// The empty tensor under a product that begins at 0.
fn starts_at_zero(op: Op) -> Option<Op> {
    filled(op.operand(2)).filter(|(number, _)| bodies::constant(*number) == Some(0.0)).map(|(_, empty)| empty)
}

/// Whether few enough terms are summed. Depthwise convolutions are not: their floats are faster.
fn is_short(op: Op) -> bool {
    let (Some(extents), Some(parallel)) = (linalg::loop_extents(op), linalg::parallel_loops(op)) else { return false };
    let known = extents.iter().zip(&parallel).filter(|(_, parallel)| !**parallel).map(|(extent, _)| *extent);
    let terms = known.fold(1i64, |terms, extent| if extent < 0 { i64::MAX } else { terms.saturating_mul(extent) });
    terms <= MOST_TERMS && products::convolution_loops(op).is_none_or(|found| found.depth.is_empty())
}

/// The scales of a product's elements, along a dimension of its result.
fn result_scales(op: Op, constant: usize, scale: f32, scales: Scales) -> Option<Scales> {
    // Of other scales the product may be one that no term has.
    let product = |other: f32| Some(scale * other).filter(|product| product.is_normal());
    let (values, dim) = match scales {
        Scales::One(other) => return product(other).map(Scales::One),
        Scales::Each(values, dim) => (values, dim),
    };
    let maps = linalg::indexing_maps(op)?;
    let of_loop = *maps[constant].dim_positions()?.get(dim)?;
    let place = maps[2].dim_positions()?.iter().position(|d| *d == of_loop)?;
    Some(Scales::Each(values.into_iter().map(product).collect::<Option<_>>()?, place))
}
