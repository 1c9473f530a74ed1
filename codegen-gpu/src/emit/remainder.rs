//! The remainder of a division of f32, by integers.
//!
//! Drivers compute `x - y trunc(x / y)`, whose quotient is rounded: the difference is of no use from 2^24 on, infinite numbers
//! give NaN, and denormals may be flushed. Here mantissas are divided, eight bits of the quotient at a time, so that the result
//! is exact: the loop runs once for quotients below 2^9.

use super::module::{Ex, Kernel, Shape};
use naga::{BinaryOperator as B, MathFunction as M, RelationalFunction, ScalarKind, Statement};

/// Bits of a mantissa that are stored.
const MANTISSA: u32 = 23;
/// Bits of the quotient per step: a remainder of 24 bits and these fit a word.
const STEP: u32 = 8;
const INFINITY: u32 = 0x7f80_0000;
const SIGN: u32 = 0x8000_0000;

/// `x - y trunc(x / y)`, exactly, with the sign of `x`; NaN for infinite `x` and for zeros `y`.
pub(super) fn remainder(k: &mut Kernel, x: Ex, y: Ex, shape: Shape) -> Ex {
    let mut w = Words { k, lanes: shape.lanes };
    let [signed, divisor] = [x, y].map(|e| w.k.bitcast(e, ScalarKind::Uint));
    let (whole, divisor) = (w.with(B::And, signed, !SIGN), w.with(B::And, divisor, !SIGN));
    let ((exponent, mantissa), (scale, by)) = (w.split(whole), w.split(divisor));
    let rest = w.divided((mantissa, exponent), (by, scale));
    let magnitude = w.joined(rest, scale);
    let sign = w.with(B::And, signed, SIGN);
    let bits = w.k.binary(B::InclusiveOr, magnitude, sign);
    let value = w.k.bitcast(bits, ScalarKind::Float);
    // Infinite divisors, too.
    let is_less = w.k.binary(B::Less, whole, divisor);
    let value = w.k.select(is_less, x, value);
    let (endless, undefined, zero) =
        (w.with(B::GreaterEqual, whole, INFINITY), w.with(B::Greater, divisor, INFINITY), w.with(B::Equal, divisor, 0));
    let wrong = w.k.binary(B::InclusiveOr, endless, undefined);
    let wrong = w.k.binary(B::InclusiveOr, wrong, zero);
    let nan = w.all(f32::NAN.to_bits());
    let nan = w.k.bitcast(nan, ScalarKind::Float);
    w.k.select(wrong, nan, value)
}

/// Builds arithmetic on words, one for each lane.
struct Words<'k, 'c> {
    k: &'k mut Kernel<'c>,
    lanes: u32,
}

impl Words<'_, '_> {
    fn all(&mut self, value: u32) -> Ex {
        let value = self.k.u32(value);
        self.k.splat(value, self.lanes)
    }

    fn with(&mut self, operator: B, a: Ex, constant: u32) -> Ex {
        let constant = self.all(constant);
        self.k.binary(operator, a, constant)
    }

    /// Exponent and mantissa: a denormal has the exponent of the least normal numbers.
    fn split(&mut self, magnitude: Ex) -> (Ex, Ex) {
        let (exponent, fraction) =
            (self.with(B::ShiftRight, magnitude, MANTISSA), self.with(B::And, magnitude, (1 << MANTISSA) - 1));
        let normal = self.with(B::InclusiveOr, fraction, 1 << MANTISSA);
        let (is_denormal, one) = (self.with(B::Equal, exponent, 0), self.all(1));
        (self.k.math(M::Max, &[exponent, one]), self.k.select(is_denormal, fraction, normal))
    }

    /// The remainder of one mantissa by another, at the exponent of the latter.
    fn divided(&mut self, (mantissa, exponent): (Ex, Ex), (by, scale): (Ex, Ex)) -> Ex {
        let ty = self.k.plane_type(Shape { scalar: naga::Scalar::U32, lanes: self.lanes });
        let (rest, left) = (self.k.local(ty), self.k.local(ty));
        let one = self.all(1);
        let by = self.k.math(M::Max, &[by, one]);
        let first = self.k.binary(B::Modulo, mantissa, by);
        self.k.store(rest, first);
        // The bits of the quotient that are left.
        let larger = self.k.math(M::Max, &[exponent, scale]);
        let bits = self.k.binary(B::Subtract, larger, scale);
        self.k.store(left, bits);

        self.k.open_block();
        let (value, bits, step) = (self.k.load(rest), self.k.load(left), self.all(STEP));
        let runs = self.with(B::Greater, bits, 0);
        let runs = self.any(runs);
        let mut reject = naga::Block::new();
        reject.push(Statement::Break, naga::Span::UNDEFINED);
        self.k.push(Statement::If { condition: runs, accept: naga::Block::new(), reject });
        let step = self.k.math(M::Min, &[bits, step]);
        let shifted = self.k.binary(B::ShiftLeft, value, step);
        let value = self.k.binary(B::Modulo, shifted, by);
        self.k.store(rest, value);
        let bits = self.k.binary(B::Subtract, bits, step);
        self.k.store(left, bits);
        let body = self.k.close_block();
        self.k.push(Statement::Loop { body, continuing: naga::Block::new(), break_if: None });
        self.k.load(rest)
    }

    fn any(&mut self, condition: Ex) -> Ex {
        if self.lanes == 1 {
            return condition;
        }
        self.k.add(naga::Expression::Relational { fun: RelationalFunction::Any, argument: condition })
    }

    /// The bits of `rest` at this exponent: shifted to the place of the highest bit, or as far as the least exponent allows.
    fn joined(&mut self, rest: Ex, exponent: Ex) -> Ex {
        let zeros = self.k.math(M::CountLeadingZeros, &[rest]);
        let (room, below) = (self.with(B::Subtract, zeros, 31 - MANTISSA), self.with(B::Subtract, exponent, 1));
        let shift = self.k.math(M::Min, &[room, below]);
        let mantissa = self.k.binary(B::ShiftLeft, rest, shift);
        let field = self.k.binary(B::Subtract, below, shift);
        let field = self.with(B::ShiftLeft, field, MANTISSA);
        // The mantissa's highest bit adds one to a normal number's exponent.
        let bits = self.k.binary(B::Add, mantissa, field);
        let (is_zero, zero) = (self.with(B::Equal, rest, 0), self.all(0));
        self.k.select(is_zero, zero, bits)
    }
}
