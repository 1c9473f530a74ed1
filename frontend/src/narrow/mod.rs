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
//! x86's `vpdpbusd` (VNNI) multiplies elements of 8 bits if one factor has a sign and the other has none. Where both have one,
//! the one that is computed gets 128 more, as its zero point does: on every x86, so that kernels are the same but for the target.
//! The dequantised filter of a depthwise convolution, which stays a product of floats, is computed here too, and its image
//! converted where it is read.
//! Limits: elementwise factors, also behind padding and reshapes.
//!
//! The files: `factor` (what a factor is), `constants` (those that are computed), `dequantized` (products of scaled factors),
//! `unsigned` (factors that lose their sign).

pub(crate) mod constants;
mod dequantized;
mod factor;
mod unsigned;

use crate::import::WeightTable;
use crate::{linalg, products, stored_order};
use factor::{Factor, Narrow, Raw, Zero, filled, fits_i16, of_element};
use monopour_ir::typed::linalg::{IteratorType, Operands, fill, generic, iterator_types_attr};
use monopour_ir::{
    AffineMap, Attr, Block, Builder, Diagnostics, InsertionPoint, Location, Module, Op, OpSpec, Region, Rewriter, Type,
    Value, run_passes,
};
use monopour_ir::{bodies, ops};
use monopour_program::CpuTarget;
use std::collections::HashMap;

/// Narrows the factors of all products of 32-bit integers and of dequantised floats; `weights` gets constants that are computed here.
///
/// # Errors
/// None of its own; what MLIR's op builders report.
pub fn run(module: &Module, weights: &mut WeightTable, cpu: &CpuTarget) -> Result<(), Diagnostics> {
    run_passes(module.op(), "builtin.module(func.func(linalg-generalize-named-ops))")?;
    let one_sign = cpu.arch == "x86_64";
    let (mut rw, done, unsigned) = (Rewriter::new(module.context()), HashMap::new(), HashMap::new());
    // A transpose hides weights from the product.
    stored_order::run(module, &mut rw)?;
    let mut narrowing = Narrowing { weights, rw, done, one_sign, unsigned };
    for op in module.op().find_all(ops::linalg::GENERIC) {
        if is_product(op, |ty| ty.integer_width() == Some(32)) {
            narrowing.product(op)?;
        } else if is_product(op, |ty| ty == Type::f32(module.context())) && !narrowing.dequantized(op)? {
            narrowing.depthwise(op)?;
        }
    }
    Ok(())
}

/// Whether an op is a product of operands of one type.
fn is_product<'c>(op: Op<'c>, is: impl Fn(Type<'c>) -> bool) -> bool {
    op.num_operands() == 3
        && op.operands().iter().all(|value| is(value.ty().element()))
        && (products::contraction_loops(op).is_some() || products::convolution_loops(op).is_some())
}

/// A value, and the dimensions of a result that index it.
type Indexed<'c> = (Value<'c>, Vec<usize>);

struct Narrowing<'c, 'a> {
    weights: &'a mut WeightTable,
    rw: Rewriter<'c>,
    /// What each value is in fewer bits.
    done: HashMap<Value<'c>, Option<Narrow<'c>>>,
    /// Whether factors of 8 bits multiply faster if one of them has no sign.
    one_sign: bool,
    /// Elements with a sign, and those with 128 more.
    unsigned: HashMap<Value<'c>, Value<'c>>,
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

    /// Leaves the zero point out of a factor that meets constants, and takes its share off the result. Returns whether it did.
    fn less_sums(&mut self, op: Op<'c>, given: usize, constant: usize) -> Result<bool, Diagnostics> {
        let Some(raw) = self.raw(op.operand(given), false)? else { return Ok(false) };
        let Some(weights) = self.narrow(op.operand(constant))? else { return Ok(false) };
        let raw = match self.has_signs(&weights) {
            true => self.raw(op.operand(given), true)?.unwrap_or(raw),
            false => raw,
        };
        if raw.zero == Zero::Constant(0) {
            return Ok(false);
        }
        let empty = filled(op.operand(2)).map(|(_, empty)| empty);
        let (Some(empty), Some(sums)) = (empty, self.sums(op, constant, &weights, 1)?) else { return Ok(false) };
        let factors = if given == 0 { [raw.factor, weights] } else { [weights, raw.factor] };
        self.set_factors(op, factors)?;
        self.subtract(op, empty, sums, raw.zero)?;
        Ok(true)
    }

    /// Takes `zero * sums` off the result of a product.
    fn subtract(
        &mut self,
        op: Op<'c>,
        empty: Op<'c>,
        (sums, places): Indexed<'c>,
        zero: Zero<'c>,
    ) -> Result<(), Diagnostics> {
        let (loc, product, i32) = (op.location(), op.result(0), Type::integer(op.context(), 32));
        let (ty, readers) = (product.ty(), product.uses());
        let rank = ty.shape().map_or(0, |shape| shape.len());
        let mut inputs = vec![(product, (0..rank).collect()), (sums, places)];
        if let Zero::Tensor(zero, _) = zero {
            inputs.push((zero, vec![]));
        }
        let rest =
            self.pointwise(InsertionPoint::After(op), (&inputs, ty, &empty.operands()), loc, |b, elements| {
                let zero = match zero {
                    Zero::Constant(zero) => b.constant(Attr::int(i32, zero), i32, loc),
                    Zero::Tensor(_, extension) => {
                        b.create(OpSpec::new(extension, loc).operands(&[elements[2]]).results(&[i32]))?.result(0)
                    }
                };
                let share = OpSpec::new(ops::arith::MULI, loc).operands(&[elements[1], zero]).results(&[i32]);
                let share = b.create(share)?.result(0);
                let rest = OpSpec::new(ops::arith::SUBI, loc).operands(&[elements[0], share]).results(&[i32]);
                Ok(b.create(rest)?.result(0))
            })?;
        readers.into_iter().for_each(|reader| self.rw.set_operand(reader.op, reader.index, rest));
        Ok(())
    }

    /// A pointwise op on inputs with the dimensions of the result that index them.
    fn pointwise(
        &mut self,
        point: InsertionPoint<'c>,
        (inputs, ty, sizes): (&[Indexed<'c>], Type<'c>, &[Value<'c>]),
        loc: Location<'c>,
        body: impl FnOnce(&mut Builder<'c>, &[Value<'c>]) -> Result<Value<'c>, Diagnostics>,
    ) -> Result<Value<'c>, Diagnostics> {
        let (cx, rank) = (ty.context(), ty.shape().map_or(0, |shape| shape.len()));
        let types: Vec<_> = inputs.iter().map(|(v, _)| (v.ty().element(), loc)).chain([(ty.element(), loc)]).collect();
        let block = Block::new(&types);
        let mut b = Builder::new(cx, InsertionPoint::End(block));
        let value = body(&mut b, &block.args()[..inputs.len()])?;
        b.create(OpSpec::new(ops::linalg::YIELD, loc).operands(&[value]))?;
        let region = Region::new();
        region.append(block);
        let maps = inputs.iter().map(|(_, dims)| AffineMap::select(cx, rank, dims));
        let maps: Vec<AffineMap> = maps.chain([AffineMap::identity(cx, rank)]).collect();
        let kinds = iterator_types_attr(cx, &vec![IteratorType::Parallel; rank]);
        self.rw.set_point(point);
        let out = self.rw.create(OpSpec::new(ops::tensor::EMPTY, loc).operands(sizes).results(&[ty]))?;
        self.rw.set_point(InsertionPoint::After(out));
        let values: Vec<Value> = inputs.iter().map(|(v, _)| *v).collect();
        let spec = generic(loc, Operands { inputs: &values, outputs: &[out.result(0)] }, &maps, kinds, region);
        Ok(self.rw.create(spec)?.result(0))
    }

    /// The elements of 8 bits behind a value, without a sign if that is asked for and can be, and the zero point that is
    /// taken off them.
    fn raw(&mut self, value: Value<'c>, unsigned: bool) -> Result<Option<Raw<'c>>, Diagnostics> {
        let Some(op) = value.defining_op() else { return Ok(None) };
        match op.name() {
            ops::linalg::GENERIC => {
                let Some(raw) = Raw::of(op) else { return Ok(None) };
                let Zero::Constant(zero) = raw.zero else { return Ok(Some(raw)) };
                let (factor, zero) = if unsigned { self.unsigned(raw.factor, zero)? } else { (raw.factor, zero) };
                Ok(Some(Raw { factor, zero: Zero::Constant(zero) }))
            }
            ops::tensor::COLLAPSE_SHAPE | ops::tensor::EXPAND_SHAPE => {
                let Some(raw) = self.raw(op.operand(0), unsigned)? else { return Ok(None) };
                Ok(Some(Raw { factor: self.reshaped(op, raw.factor)?, ..raw }))
            }
            ops::tensor::INSERT_SLICE => {
                let Some(raw) = self.raw(op.operand(0), unsigned)? else { return Ok(None) };
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
                match self.narrow(op.operand(0))? {
                    Some(source) => Some(self.reshaped(op, source)?),
                    None => None,
                }
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
        if !fits_i16(yielded) {
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
        // Dequantised floats are padded by 0.
        let number = |v: Value| v.constant_int().or_else(|| (bodies::constant(v) == Some(0.0)).then_some(0));
        let fill = filled(op.operand(1)).and_then(|(value, empty)| Some((number(value)?, empty)));
        let Some((value, empty)) = fill else { return Ok(None) };
        let (low, high) = source.holds();
        let Some(value) = value.checked_add(zero).filter(|value| (low..=high).contains(value)) else { return Ok(None) };
        let element = source.value.ty().element();
        // The attribute of signless integers takes signed ones.
        let bits = element.integer_width().unwrap_or(16);
        let value = if value >> (bits - 1) > 0 { value - (1 << bits) } else { value };
        let ty = of_element(op.result(0), element);
        self.rw.set_point(InsertionPoint::Before(op));
        let filled = self.fill(op.location(), Attr::int(element, value), ty, &empty.operands())?;
        let rw = &mut self.rw;
        let copy = rw.clone_op(op, |v| v);
        rw.insert(copy);
        rw.set_operand(copy, 0, source.value);
        rw.set_operand(copy, 1, filled);
        rw.set_type(copy.result(0), ty);
        Ok(Some(Narrow { value: copy.result(0), ..source }))
    }

    /// A filled tensor, at the point of the rewriter.
    fn fill(
        &mut self,
        loc: Location<'c>,
        number: Attr<'c>,
        ty: Type<'c>,
        sizes: &[Value<'c>],
    ) -> Result<Value<'c>, Diagnostics> {
        let (rw, element) = (&mut self.rw, ty.element());
        let spec = OpSpec::new(ops::arith::CONSTANT, loc).results(&[element]).attr("value", number);
        let number = rw.create(spec)?.result(0);
        let empty = rw.create(OpSpec::new(ops::tensor::EMPTY, loc).operands(sizes).results(&[ty]))?.result(0);
        let block = Block::new(&[(element, loc), (element, loc)]);
        let mut b = Builder::new(ty.context(), InsertionPoint::End(block));
        b.create(OpSpec::new(ops::linalg::YIELD, loc).operands(&[block.arg(0)]))?;
        let region = Region::new();
        region.append(block);
        Ok(rw.create(fill(loc, number, empty, region))?.result(0))
    }

    /// The same reshape, of a constant computed here.
    fn reshaped(&mut self, op: Op<'c>, source: Narrow<'c>) -> Result<Narrow<'c>, Diagnostics> {
        let ty = of_element(op.result(0), source.value.ty().element());
        if let Some(value) = self.constant_of_type(source.value, ty)? {
            return Ok(Narrow { value, ..source });
        }
        let rw = &mut self.rw;
        rw.set_point(InsertionPoint::Before(op));
        let copy = rw.clone_op(op, |v| v);
        rw.insert(copy);
        rw.set_operand(copy, 0, source.value);
        rw.set_type(copy.result(0), ty);
        Ok(Narrow { value: copy.result(0), ..source })
    }
}
