//! Expands scalar ops that some devices lack into ops that all have.
//!
//! Before / after:
//!
//! ```text
//! %y = math.ipowi %x, %n : i32            products by squaring
//! %y = math.fpowi %x, %c3 : f32, i32      %s = arith.mulf %x, %x; %y = arith.mulf %s, %x
//! %y = arith.remf %a, %b : f16            arith.extf, arith.remf : f32, arith.truncf
//! %y = arith.truncf %x : f64 to bf16      through f32, rounded once
//! %y = math.isnormal %x : f32             %a = math.absf %x; least normal number <= %a < infinity
//! %s, %c = math.sincos %x : f32           %s = math.sin %x; %c = math.cos %x
//! ```
//!
//! Requires: ops on scalars. A negative exponent of an integer gives 0 unless the base is 1 or -1.

use monopour_ir::ops;
use monopour_ir::typed::arith::{CmpFPredicate, CmpIPredicate};
use monopour_ir::{Attr, Diagnostics, InsertionPoint, Location, Module, Op, OpSpec, Rewriter, Type, Value, WalkOrder};

/// Expands the ops of `module`.
///
/// # Errors
/// MLIR's, none for verified IR.
pub(super) fn run(module: &Module) -> Result<(), Diagnostics> {
    let mut rw = Rewriter::new(module.context());
    let scalars = |op: &Op| matches!(op.dialect(), "arith" | "math") && op.num_results() > 0 && op.num_operands() > 0;
    for op in module.op().nested(WalkOrder::Pre).into_iter().filter(scalars) {
        rw.set_point(InsertionPoint::Before(op));
        let at = &mut At { rw: &mut rw, loc: op.location() };
        let values = if is_scalar(op) && op.is(ops::math::SINCOS) {
            vec![at.same(ops::math::SIN, &op.operands())?, at.same(ops::math::COS, &op.operands())?]
        } else {
            let Some(expand) = expansion(op) else { continue };
            vec![expand(at, op)?]
        };
        rw.replace_op(op, &values);
    }
    Ok(())
}

type Expand = for<'c> fn(&mut At<'c, '_>, Op<'c>) -> Result<Value<'c>, Diagnostics>;

fn is_scalar(op: Op) -> bool {
    op.operand(0).ty().shape().is_none()
}

fn expansion(op: Op) -> Option<Expand> {
    let (from, to) = (op.operand(0).ty(), op.result(0).ty());
    if !is_scalar(op) {
        return None;
    }
    let half = |ty: Type| ty.float_width() == Some(16);
    let brain = |ty: Type| half(ty) && ty != Type::f16(ty.context());
    Some(match op.name() {
        ops::math::IPOWI => integer_power,
        ops::math::FPOWI if half(to) => in_single,
        ops::math::FPOWI => float_power,
        ops::math::ISNORMAL => is_normal,
        ops::arith::REMF if half(to) => in_single,
        ops::math::FMA if brain(to) => in_single,
        ops::arith::TRUNCF if half(to) && from.float_width() == Some(64) => rounded_once,
        ops::arith::EXTF if brain(from) && to.float_width() == Some(64) => in_two_steps,
        _ => return None,
    })
}

/// Creates ops at one insertion point.
struct At<'c, 'r> {
    rw: &'r mut Rewriter<'c>,
    loc: Location<'c>,
}

impl<'c> At<'c, '_> {
    fn op(&mut self, name: &str, operands: &[Value<'c>], ty: Type<'c>) -> Result<Value<'c>, Diagnostics> {
        Ok(self.rw.create(OpSpec::new(name, self.loc).operands(operands).results(&[ty]))?.result(0))
    }
    /// An op whose result has the type of its first operand.
    fn same(&mut self, name: &str, operands: &[Value<'c>]) -> Result<Value<'c>, Diagnostics> {
        self.op(name, operands, operands[0].ty())
    }
    fn constant(&mut self, value: Attr<'c>, ty: Type<'c>) -> Result<Value<'c>, Diagnostics> {
        Ok(self.rw.create(OpSpec::new(ops::arith::CONSTANT, self.loc).results(&[ty]).attr("value", value))?.result(0))
    }
    fn int(&mut self, value: i64, ty: Type<'c>) -> Result<Value<'c>, Diagnostics> {
        self.constant(Attr::int(ty, value), ty)
    }
    fn float(&mut self, value: f64, ty: Type<'c>) -> Result<Value<'c>, Diagnostics> {
        self.constant(Attr::float(ty, value), ty)
    }
    fn cmpi(&mut self, predicate: CmpIPredicate, a: Value<'c>, b: Value<'c>) -> Result<Value<'c>, Diagnostics> {
        self.compare(ops::arith::CMPI, predicate.to_attr(a.ty().context()), a, b)
    }
    fn cmpf(&mut self, predicate: CmpFPredicate, a: Value<'c>, b: Value<'c>) -> Result<Value<'c>, Diagnostics> {
        self.compare(ops::arith::CMPF, predicate.to_attr(a.ty().context()), a, b)
    }
    fn compare(
        &mut self,
        name: &str,
        predicate: Attr<'c>,
        a: Value<'c>,
        b: Value<'c>,
    ) -> Result<Value<'c>, Diagnostics> {
        let spec = OpSpec::new(name, self.loc).operands(&[a, b]).results(&[Type::integer(a.ty().context(), 1)]);
        Ok(self.rw.create(spec.attr("predicate", predicate))?.result(0))
    }
    fn select(&mut self, condition: Value<'c>, a: Value<'c>, b: Value<'c>) -> Result<Value<'c>, Diagnostics> {
        self.op(ops::arith::SELECT, &[condition, a, b], a.ty())
    }
}

/// `base` to the power of a magnitude, which is read as unsigned.
fn power<'c>(at: &mut At<'c, '_>, base: Value<'c>, magnitude: Value<'c>) -> Result<Value<'c>, Diagnostics> {
    let ty = magnitude.ty();
    let bits = ty.integer_width().unwrap_or(64);
    let multiply = if base.ty().is_float() { ops::arith::MULF } else { ops::arith::MULI };
    let one = if base.ty().is_float() { at.float(1.0, base.ty())? } else { at.int(1, base.ty())? };
    let zero = at.int(0, ty)?;
    let (mut result, mut square) = (one, base);
    for bit in 0..bits {
        let mask = at.int((1u64 << bit).cast_signed(), ty)?;
        let masked = at.same(ops::arith::ANDI, &[magnitude, mask])?;
        let absent = at.cmpi(CmpIPredicate::Eq, masked, zero)?;
        let product = at.same(multiply, &[result, square])?;
        result = at.select(absent, result, product)?;
        if bit + 1 < bits {
            square = at.same(multiply, &[square, square])?;
        }
    }
    Ok(result)
}

/// `base` to the power of a known number, by squaring.
fn known_power<'c>(at: &mut At<'c, '_>, base: Value<'c>, exponent: u64) -> Result<Value<'c>, Diagnostics> {
    let multiply = if base.ty().is_float() { ops::arith::MULF } else { ops::arith::MULI };
    let (mut result, mut square, mut rest) = (None, base, exponent);
    while rest != 0 {
        if rest & 1 == 1 {
            result = Some(match result {
                Some(result) => at.same(multiply, &[result, square])?,
                None => square,
            });
        }
        rest >>= 1;
        if rest != 0 {
            square = at.same(multiply, &[square, square])?;
        }
    }
    match result {
        Some(result) => Ok(result),
        None if base.ty().is_float() => at.float(1.0, base.ty()),
        None => at.int(1, base.ty()),
    }
}

/// The magnitude of an exponent, and whether it is negative.
fn magnitude<'c>(at: &mut At<'c, '_>, exponent: Value<'c>) -> Result<(Value<'c>, Value<'c>), Diagnostics> {
    let zero = at.int(0, exponent.ty())?;
    let negative = at.cmpi(CmpIPredicate::Slt, exponent, zero)?;
    let opposite = at.same(ops::arith::SUBI, &[zero, exponent])?;
    Ok((at.select(negative, opposite, exponent)?, negative))
}

fn integer_power<'c>(at: &mut At<'c, '_>, op: Op<'c>) -> Result<Value<'c>, Diagnostics> {
    let (base, exponent) = (op.operand(0), op.operand(1));
    if let Some(known) = exponent.constant_int().and_then(|e| u64::try_from(e).ok()) {
        return known_power(at, base, known);
    }
    let (magnitude, negative) = magnitude(at, exponent)?;
    let product = power(at, base, magnitude)?;
    // -1, 0 and 1 are the bases whose power of the magnitude is right as it is.
    let (one, three, zero) = (at.int(1, base.ty())?, at.int(3, base.ty())?, at.int(0, base.ty())?);
    let above = at.same(ops::arith::ADDI, &[base, one])?;
    let unit = at.cmpi(CmpIPredicate::Ult, above, three)?;
    let fraction = at.select(unit, product, zero)?;
    at.select(negative, fraction, product)
}

fn float_power<'c>(at: &mut At<'c, '_>, op: Op<'c>) -> Result<Value<'c>, Diagnostics> {
    let (base, exponent) = (op.operand(0), op.operand(1));
    let one = at.float(1.0, base.ty())?;
    if let Some(known) = exponent.constant_int() {
        let product = known_power(at, base, known.unsigned_abs())?;
        return if known < 0 { at.same(ops::arith::DIVF, &[one, product]) } else { Ok(product) };
    }
    let (magnitude, negative) = magnitude(at, exponent)?;
    let product = power(at, base, magnitude)?;
    let inverse = at.same(ops::arith::DIVF, &[one, product])?;
    at.select(negative, inverse, product)
}

/// The same op in f32, its result rounded.
fn in_single<'c>(at: &mut At<'c, '_>, op: Op<'c>) -> Result<Value<'c>, Diagnostics> {
    let (single, to) = (Type::f32(op.context()), op.result(0).ty());
    let mut operands = vec![];
    for operand in op.operands() {
        let wide = if operand.ty().is_float() { at.op(ops::arith::EXTF, &[operand], single)? } else { operand };
        operands.push(wide);
    }
    let wide = at.rw.create(OpSpec::new(op.name(), at.loc).operands(&operands).results(&[single]))?;
    let mut value = wide.result(0);
    if wide.is(ops::math::FPOWI) {
        value = float_power(at, wide)?;
        at.rw.erase(wide);
    }
    at.op(ops::arith::TRUNCF, &[value], to)
}

fn in_two_steps<'c>(at: &mut At<'c, '_>, op: Op<'c>) -> Result<Value<'c>, Diagnostics> {
    let single = at.op(ops::arith::EXTF, &[op.operand(0)], Type::f32(op.context()))?;
    at.op(ops::arith::EXTF, &[single], op.result(0).ty())
}

/// f64 to 16 bits through an f32 that is rounded to odd: it has more than two bits beyond the result's, and its last one says
/// that something was left over, so the second rounding decides as one rounding of the f64 would.
fn rounded_once<'c>(at: &mut At<'c, '_>, op: Op<'c>) -> Result<Value<'c>, Diagnostics> {
    let (x, cx) = (op.operand(0), op.context());
    let (single, word) = (Type::f32(cx), Type::integer(cx, 32));
    let nearest = at.op(ops::arith::TRUNCF, &[x], single)?;
    let wide = at.op(ops::arith::EXTF, &[nearest], x.ty())?;
    let (size, wide_size) = (at.same(ops::math::ABSF, &[x])?, at.same(ops::math::ABSF, &[wide])?);
    let above = at.cmpf(CmpFPredicate::Ogt, wide_size, size)?;
    let bits = at.op(ops::arith::BITCAST, &[nearest], word)?;
    let one = at.int(1, word)?;
    let lower = at.same(ops::arith::SUBI, &[bits, one])?;
    let toward_zero = at.select(above, lower, bits)?;
    let odd = at.same(ops::arith::ORI, &[toward_zero, one])?;
    let inexact = at.cmpf(CmpFPredicate::Une, wide, x)?;
    let bits = at.select(inexact, odd, toward_zero)?;
    let single = at.op(ops::arith::BITCAST, &[bits], single)?;
    at.op(ops::arith::TRUNCF, &[single], op.result(0).ty())
}

fn is_normal<'c>(at: &mut At<'c, '_>, op: Op<'c>) -> Result<Value<'c>, Diagnostics> {
    let x = op.operand(0);
    let least = match x.ty().float_width() {
        Some(64) => f64::MIN_POSITIVE,
        Some(16) if x.ty() == Type::f16(op.context()) => 2f64.powi(-14),
        _ => f64::from(f32::MIN_POSITIVE),
    };
    let (least, infinity) = (at.float(least, x.ty())?, at.float(f64::INFINITY, x.ty())?);
    let size = at.same(ops::math::ABSF, &[x])?;
    let large = at.cmpf(CmpFPredicate::Oge, size, least)?;
    let finite = at.cmpf(CmpFPredicate::Olt, size, infinity)?;
    at.same(ops::arith::ANDI, &[large, finite])
}
