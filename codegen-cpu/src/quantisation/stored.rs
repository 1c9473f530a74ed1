//! Rounded quotients that are stored in at most 16 bits: the dividend is bounded before, so that no quotient is infinite or NaN.
//!
//! ```text
//! %q = arith.divf %x, c : f32             %y = bounded %x, (low - z) c, (high - z) c
//! %n = math.roundeven %q : f32            %r = the quotient of %y and c
//! %m = arith.addf %n, z : f32             %t = addf %r, 1.5 2^23 : f32          // its last bits are the integer
//! %b = bounded %m, low, high              %i = trunci (addi (bitcast %t), z) : i32 to i8
//! %i = arith.fptoui %b : f32 to i8
//! %w = arith.uitofp %i : i8 to f32        %d = subf %t, 1.5 2^23 : f32
//! %d = arith.subf %w, z : f32
//! ```
//!
//! Division and rounding are monotone, and the new bounds have the old ones as their rounded quotients. The sign of a zero is
//! lost in an integer. A register takes 8 instructions of floats, where 14 are in the way of its quotient; they were a third of
//! the time of MobileNetV2 in 8 bits.
//! Limits: bounds and a zero point that are constants; CPUs with a fused multiply-add.

use super::{Maker, divisor, number};
use monopour_ir::{Attr, Op, OpSpec, Rewriter, Type, Value, ops};

/// 1.5 x 2^23: next to it floats are the integers, its own last 22 bits are 0, and it is even.
const ROUNDS: f32 = 12_582_912.0;
/// Largest integer of a bound or zero point.
const LARGEST: f32 = 65_536.0;

/// An integer of few bits that is a rounded quotient, plus a zero point, within bounds.
pub(super) struct Stored<'c> {
    op: Op<'c>,
    dividend: Value<'c>,
    divisor: f32,
    zero_point: f32,
    /// The maximum and the minimum in the order in which they are taken, and the dividend's bounds.
    bounds: Vec<(&'static str, f32)>,
}

impl<'c> Stored<'c> {
    /// Reads the ops before a conversion to an integer, which nothing else reads.
    pub(super) fn of(op: Op<'c>) -> Option<Self> {
        let alone = |value: Value<'c>| value.defining_op().filter(|_| value.only_use().is_some());
        let with_constant = |op: Op<'c>| (0..2).find_map(|i| Some((op.operand(1 - i), number(op.operand(i))? as f32)));
        let is_small = op.result(0).ty().integer_width().is_some_and(|width| width <= 16);
        let mut before = alone(op.operand(0)).filter(|_| is_small)?;
        let mut bounds = vec![];
        for _ in 0..2 {
            let name = [ops::arith::MAXNUMF, ops::arith::MINNUMF].into_iter().find(|name| before.is(name))?;
            let (value, bound) = with_constant(before)?;
            bounds.insert(0, (name, bound));
            before = alone(value)?;
        }
        let mut zero_point = 0.0;
        if before.is(ops::arith::ADDF) {
            let (value, added) = with_constant(before)?;
            (zero_point, before) = (added, alone(value)?);
        }
        let quotient = alone(before.operand(0)).filter(|_| before.is(ops::math::ROUNDEVEN))?;
        let divisor = Some(quotient).filter(|op| op.is(ops::arith::DIVF)).and_then(divisor)?;
        let is_integer = |number: f32| number.fract() == 0.0 && number.abs() <= LARGEST;
        for (_, bound) in &mut bounds {
            let number = *bound - zero_point;
            let plain = is_integer(*bound) && is_integer(zero_point) && divisor > 0.0;
            *bound = number * divisor;
            (plain && (*bound / divisor).round_ties_even() == number).then_some(())?;
        }
        let both = bounds[0].0 != bounds[1].0;
        both.then_some(Self { op, dividend: quotient.operand(0), divisor, zero_point, bounds })
    }

    pub(super) fn rewrite(&self, rw: &mut Rewriter<'c>) {
        let mut make = Maker::before(rw, self.op);
        let within = self.bounds.iter().fold(self.dividend, |x, (name, bound)| {
            let bound = make.number(*bound);
            make.float(name, &[x, bound])
        });
        let [_, _, quotient] = make.quotient(within, self.divisor);
        let steps = make.number(ROUNDS);
        let shifted = make.float(ops::arith::ADDF, &[quotient, steps]);
        let integer = self.integer(&mut make, shifted);
        let rounded = make.float(ops::arith::SUBF, &[shifted, steps]);
        let z = Some(self.zero_point).filter(|z| *z != 0.0).map(|z| make.number(z));
        let sum = z.map_or(rounded, |z| make.float(ops::arith::ADDF, &[rounded, z]));
        // What reads it as a float again, most often less the zero point.
        let back = if self.op.is(ops::arith::FPTOUI) { ops::arith::UITOFP } else { ops::arith::SITOFP };
        let readers = |value: Value<'c>| value.uses().into_iter().map(|use_| use_.op).collect::<Vec<_>>();
        for float in readers(self.op.result(0)).into_iter().filter(|op| op.is(back) && op.result(0).ty() == sum.ty()) {
            let lessens = |op: &Op| op.is(ops::arith::SUBF) && number(op.operand(1)) == Some(self.zero_point.into());
            for less in readers(float.result(0)).into_iter().filter(lessens) {
                rw.replace_op(less, &[rounded]);
            }
            rw.replace_op(float, &[sum]);
        }
        rw.replace_op(self.op, &[integer]);
    }

    /// The last bits of the shifted quotient, and the zero point.
    fn integer(&self, make: &mut Maker<'c, '_>, shifted: Value<'c>) -> Value<'c> {
        let i32 = Type::integer(make.f32.context(), 32);
        let mut bits = make.op(ops::arith::BITCAST, &[shifted], i32);
        if self.zero_point != 0.0 {
            let value = Attr::int(i32, self.zero_point as i64);
            let z = make.make(OpSpec::new(ops::arith::CONSTANT, make.loc).results(&[i32]).attr("value", value));
            bits = make.op(ops::arith::ADDI, &[bits, z], i32);
        }
        make.op(ops::arith::TRUNCI, &[bits], self.op.result(0).ty())
    }
}
