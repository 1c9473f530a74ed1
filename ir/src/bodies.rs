//! The scalar bodies of attention, as fusion recognizes them and as kernels compute them:
//!
//! ```text
//! out + a * b                        products of queries and keys, and of weights and values
//! exp(x - m), exp(x - guarded(m))    powers of scores relative to their maximum
//! p / d, p * d                       weights; d depends on the sum of powers alone
//! ```
//!
//! `guarded(m)` is `m`, and 0 where `m` is negative infinity.
//!
//! And of reductions of any kind: `combine(out, a)`, `combine(combine(out, a), b)`, by an associative op.

use crate::typed::arith::CmpFPredicate;
use crate::{Associative, Block, Op, Type, Value, ops};
use std::collections::BTreeSet;

/// The body `out + a * b` of a sum of products; `out` is the last argument, and no factor depends on it.
#[derive(Clone, Copy, Debug)]
pub struct MultiplyAdd<'c> {
    /// The factors.
    pub factors: [Value<'c>; 2],
}

impl<'c> MultiplyAdd<'c> {
    /// The body's factors; `None` for another body.
    pub fn of(body: Block<'c>) -> Option<Self> {
        let terms = Self::chain_of(body)?;
        (terms.len() == 1).then(|| terms[0])
    }

    /// The products of the body `((out + a * b) + c * d) + ..`, in order; `None` for another body.
    pub fn chain_of(body: Block<'c>) -> Option<Vec<Self>> {
        Self::chain_of_result(body, 0).filter(|_| yielded(body).is_some())
    }

    /// As [`Self::chain_of`], of one of several results, of which each has its own `out`.
    pub fn chain_of_result(body: Block<'c>, result: usize) -> Option<Vec<Self>> {
        let end = body.terminator()?;
        let inputs = body.num_args().checked_sub(end.num_operands())?;
        let last = inputs + result;
        let free =
            |value: &Value<'c>| arguments(body, *value).is_some_and(|found| found.range(inputs..).next().is_none());
        let mut terms = vec![];
        let mut sum = (result < end.num_operands()).then(|| end.operand(result))?;
        while terms.is_empty() || sum != body.arg(last) {
            let add = sum.defining_op().filter(|op| op.is(ops::arith::ADDF) && op.block() == Some(body))?;
            let is_product = |value: &Value<'c>| {
                let factors = value.defining_op().filter(|op| op.is(ops::arith::MULF))?.operands();
                factors.iter().all(free).then(|| [factors[0], factors[1]])
            };
            let (left, right) = (add.operand(0), add.operand(1));
            let (factors, rest) = match (is_product(&left), is_product(&right)) {
                (_, Some(factors)) if right != body.arg(last) => (factors, left),
                (Some(factors), _) => (factors, right),
                _ => return None,
            };
            terms.push(Self { factors });
            sum = rest;
        }
        terms.reverse();
        Some(terms)
    }
}

/// The body `exp(x - m)` or `exp(x - guarded(m))`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Power {
    /// Position of the argument `x`.
    pub score: usize,
    /// Position of the argument `m`.
    pub most: usize,
    /// Whether `m` is guarded.
    pub guarded: bool,
}

impl Power {
    /// The body as a power; `None` for another body.
    pub fn of(body: Block) -> Option<Self> {
        let exp = yielded(body)?.defining_op().filter(|op| op.is(ops::math::EXP))?;
        let difference = exp.operand(0).defining_op().filter(|op| op.is(ops::arith::SUBF))?;
        let score = argument(body, difference.operand(0))?;
        let shift = difference.operand(1);
        if let Some(most) = argument(body, shift) {
            return (most != score).then_some(Self { score, most, guarded: false });
        }
        let select = shift.defining_op().filter(|op| op.is(ops::arith::SELECT))?;
        let test = select.operand(0).defining_op()?;
        let most = argument(body, select.operand(2))?;
        let is_least = CmpFPredicate::of(test) == Some(CmpFPredicate::Oeq)
            && other(test, select.operand(2)).and_then(constant) == Some(f64::NEG_INFINITY);
        let guarded = test.is(ops::arith::CMPF) && is_least && constant(select.operand(1)) == Some(0.0);
        (guarded && most != score).then_some(Self { score, most, guarded })
    }
}

/// The body `p / d` or `p * d`, where `d` depends on the sum alone, or 0 where that is NaN ([`Quotient::drops_nan`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quotient {
    /// Position of the argument `p`.
    pub power: usize,
    /// Position of the sum.
    pub sum: usize,
    /// Whether a power of 0 over a sum of 0 is NaN.
    pub is_plain: bool,
    /// Whether it is 0 where it would be NaN, or, of a softmax the same, where the sum is NaN or 0: `select(q != q, 0, q)`,
    /// `select(!(sum > 0), 0, q)`.
    pub drops_nan: bool,
}

impl Quotient {
    /// The body as a quotient; `None` for another body.
    pub fn of(body: Block) -> Option<Self> {
        Self::of_value(body, yielded(body)?)
    }

    /// A value of a body as a quotient.
    pub fn of_value(body: Block, value: Value) -> Option<Self> {
        let op = value.defining_op()?;
        if op.is(ops::arith::SELECT) {
            let test = op.operand(0).defining_op().filter(|test| test.is(ops::arith::CMPF))?;
            let found = Self::of_value(body, op.operand(2)).filter(|_| constant(op.operand(1)) == Some(0.0))?;
            let is_meant = match CmpFPredicate::of(test)? {
                CmpFPredicate::Uno => test.operands().iter().all(|side| *side == op.operand(2)),
                CmpFPredicate::Ule => test.operand(0) == body.arg(found.sum) && constant(test.operand(1)) == Some(0.0),
                _ => false,
            };
            return is_meant.then_some(Self { drops_nan: true, ..found });
        }
        let sides = match op.name() {
            ops::arith::DIVF => vec![(op.operand(0), op.operand(1))],
            ops::arith::MULF => vec![(op.operand(0), op.operand(1)), (op.operand(1), op.operand(0))],
            _ => return None,
        };
        let is_plain = body.ops().iter().all(|op| {
            matches!(op.name(), ops::arith::DIVF | ops::arith::MULF | ops::arith::CONSTANT) || op.is_terminator()
        });
        sides.into_iter().find_map(|(power, divisor)| {
            let power = argument(body, power)?;
            let read = arguments(body, divisor)?;
            let sum = *read.first().filter(|_| read.len() == 1)?;
            (sum != power).then_some(Self { power, sum, is_plain, drops_nan: false })
        })
    }
}

/// The arguments of a body, by position, from which a value is computed by `arith` and `math` ops; `None` where other ops
/// take part.
pub fn arguments<'c>(body: Block<'c>, value: Value<'c>) -> Option<BTreeSet<usize>> {
    let mut found = BTreeSet::new();
    let mut next = vec![value];
    while let Some(value) = next.pop() {
        if let Some(position) = argument(body, value) {
            found.insert(position);
            continue;
        }
        let Some(op) = value.defining_op().filter(|op| op.block() == Some(body)) else { continue };
        if !matches!(op.dialect(), "arith" | "math") {
            return None;
        }
        next.extend(op.operands());
    }
    Some(found)
}

/// The position of the f16 argument of a body that a value is the extension of, if it is one.
pub fn extended_half(body: Block, value: Value) -> Option<usize> {
    let extension = value.defining_op().filter(|op| op.is(ops::arith::EXTF))?;
    let half = extension.operand(0);
    argument(body, half).filter(|_| half.ty() == Type::f16(half.ty().context()))
}

/// The associative op by which a body combines the old value of a result, an argument, with others, of which none depends
/// on it. It may combine several, one after the other; the op is the last one. `None` where the old value, what is combined
/// with it so far, or the result has other readers.
pub fn combination<'c>(body: Block<'c>, result: usize) -> Option<Op<'c>> {
    let end = body.terminator().filter(|end| result < end.num_operands())?;
    let old = body.arg(body.num_args().checked_sub(end.num_operands())? + result);
    let last = end.operand(result).defining_op().filter(|op| op.block() == Some(body))?;
    let is_read_once = old.uses().len() == 1 && last.result(0).uses().len() == 1;
    (Associative::of(last).is_some() && is_read_once && accumulates(last, old)).then_some(last)
}

/// Whether an op combines a value with an old one, or with what ops of its name have combined with it before.
fn accumulates<'c>(op: Op<'c>, old: Value<'c>) -> bool {
    let operands = op.operands();
    let of_old = operands.iter().filter(|value| **value == old).count();
    let earlier = |value: &Value<'c>| {
        let before = value.defining_op().filter(|before| before.name() == op.name() && before.block() == op.block());
        before.is_some_and(|before| value.uses().len() == 1 && accumulates(before, old))
    };
    of_old == 1 || (of_old == 0 && operands.iter().any(earlier))
}

/// The number that a value is, if it is a constant.
pub fn constant(value: Value) -> Option<f64> {
    let op = value.defining_op().filter(|op| op.is(ops::arith::CONSTANT))?;
    op.attr("value")?.as_float()
}

fn yielded(body: Block<'_>) -> Option<Value<'_>> {
    let end = body.terminator()?;
    (end.num_operands() == 1).then(|| end.operand(0))
}

fn argument<'c>(body: Block<'c>, value: Value<'c>) -> Option<usize> {
    value.as_block_arg().filter(|(block, _)| *block == body).map(|(_, position)| position)
}

/// The other operand of a binary op that has `value` once.
fn other<'c>(op: Op<'c>, value: Value<'c>) -> Option<Value<'c>> {
    match (op.operand(0) == value, op.operand(1) == value) {
        (true, false) => Some(op.operand(1)),
        (false, true) => Some(op.operand(0)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Context, Module};

    /// The result of `read` on the body of a function of f32 arguments.
    fn of<T: std::fmt::Debug>(args: usize, text: &str, read: impl Fn(Block) -> T) -> T {
        of_types(&vec!["f32"; args], text, read)
    }

    fn of_types<T: std::fmt::Debug>(args: &[&str], text: &str, read: impl Fn(Block) -> T) -> T {
        Context::scope(|cx| {
            let args: Vec<String> = args.iter().enumerate().map(|(i, ty)| format!("%{i}: {ty}")).collect();
            let source = format!("func.func @f({}) -> f32 {{\n{text}\nreturn %r : f32\n}}", args.join(", "));
            let module = Module::parse(cx, source.as_bytes(), "bodies").expect("the text parses");
            read(module.functions()[0].body().expect("the function has a body"))
        })
    }

    #[test]
    fn sums_of_products() {
        let factors = |text: &str| {
            of(3, text, |body| {
                MultiplyAdd::of(body).map(|found| found.factors.map(|f| arguments(body, f).unwrap_or_default()))
            })
        };
        let sets = |a: &[usize], b: &[usize]| Some([a, b].map(|s| s.iter().copied().collect::<BTreeSet<usize>>()));
        let plain = "%m = arith.mulf %0, %1 : f32\n%r = arith.addf %m, %2 : f32";
        assert_eq!(factors(plain), sets(&[0], &[1]));
        let nested = "%e = math.exp %1 : f32\n%x = arith.addf %0, %e : f32\n%m = arith.mulf %x, %1 : f32\n%r = arith.addf %2, %m : f32";
        assert_eq!(factors(nested), sets(&[0, 1], &[1]));
        for other in [
            "%m = arith.mulf %0, %2 : f32\n%r = arith.addf %m, %2 : f32",
            "%m = arith.mulf %0, %1 : f32\n%r = arith.addf %m, %0 : f32",
            "%m = arith.addf %0, %1 : f32\n%r = arith.addf %m, %2 : f32",
            "%m = arith.mulf %0, %1 : f32\n%r = arith.mulf %m, %2 : f32",
        ] {
            assert_eq!(factors(other), None, "{other}");
        }
    }

    const LEAST: &str = "%n = arith.constant 0xFF800000 : f32\n%z = arith.constant 0.0 : f32\n";

    #[test]
    fn powers_of_differences() {
        let power = |text: &str| of(2, &format!("{LEAST}{text}"), Power::of);
        let plain = "%d = arith.subf %1, %0 : f32\n%r = math.exp %d : f32";
        assert_eq!(power(plain), Some(Power { score: 1, most: 0, guarded: false }));
        let with = |test: &str| format!("{test}\n%d = arith.subf %0, %m : f32\n%r = math.exp %d : f32");
        let guarded = with("%c = arith.cmpf oeq, %1, %n : f32\n%m = arith.select %c, %z, %1 : f32");
        assert_eq!(power(&guarded), Some(Power { score: 0, most: 1, guarded: true }));
        for other in [
            with("%c = arith.cmpf olt, %1, %n : f32\n%m = arith.select %c, %z, %1 : f32"),
            with("%c = arith.cmpf oeq, %1, %z : f32\n%m = arith.select %c, %z, %1 : f32"),
            with("%c = arith.cmpf oeq, %1, %n : f32\n%m = arith.select %c, %1, %z : f32"),
            with("%m = arith.addf %1, %1 : f32"),
            "%d = arith.subf %0, %0 : f32\n%r = math.exp %d : f32".to_owned(),
            "%d = arith.subf %0, %1 : f32\n%r = math.exp2 %d : f32".to_owned(),
        ] {
            assert_eq!(power(&other), None, "{other}");
        }
    }

    #[test]
    fn quotients_by_a_sum() {
        let quotient = |text: &str| of(2, &format!("{LEAST}{text}"), Quotient::of);
        assert_eq!(
            quotient("%r = arith.divf %0, %1 : f32"),
            Some(Quotient { power: 0, sum: 1, is_plain: true, drops_nan: false })
        );
        let product = "%i = arith.divf %z, %0 : f32\n%r = arith.mulf %i, %1 : f32";
        assert_eq!(quotient(product), Some(Quotient { power: 1, sum: 0, is_plain: true, drops_nan: false }));
        let guarded =
            "%c = arith.cmpf oeq, %1, %z : f32\n%d = arith.select %c, %n, %1 : f32\n%r = arith.divf %0, %d : f32";
        assert_eq!(quotient(guarded), Some(Quotient { power: 0, sum: 1, is_plain: false, drops_nan: false }));
        let dropped =
            |test: &str| format!("%q = arith.divf %0, %1 : f32\n{test} : f32\n%r = arith.select %c, %z, %q : f32");
        for test in ["%c = arith.cmpf uno, %q, %q", "%c = arith.cmpf ule, %1, %z"] {
            let found = Quotient { power: 0, sum: 1, is_plain: false, drops_nan: true };
            assert_eq!(quotient(&dropped(test)), Some(found), "{test}");
        }
        for test in ["%c = arith.cmpf uno, %0, %q", "%c = arith.cmpf ole, %1, %z", "%c = arith.cmpf ule, %0, %z"] {
            assert_eq!(quotient(&dropped(test)), None, "{test}");
        }
        for other in ["%r = arith.divf %0, %0 : f32", "%r = arith.divf %0, %z : f32", "%r = arith.subf %0, %1 : f32"] {
            assert_eq!(quotient(other), None, "{other}");
        }
    }

    #[test]
    fn extensions_of_f16_arguments() {
        let half = |text: &str| {
            of_types(&["f32", "f16", "bf16"], text, |body| yielded(body).and_then(|value| extended_half(body, value)))
        };
        assert_eq!(half("%r = arith.extf %1 : f16 to f32"), Some(1));
        for other in [
            "%r = arith.addf %0, %0 : f32",
            "%r = arith.extf %2 : bf16 to f32",
            "%h = arith.addf %1, %1 : f16\n%r = arith.extf %h : f16 to f32",
        ] {
            assert_eq!(half(other), None, "{other}");
        }
    }

    #[test]
    fn combinations_of_several_terms() {
        let found = |text: &str| of(2, text, |body| combination(body, 0).map(|op| op.name().to_owned()));
        for (text, name) in [
            ("%r = arith.addf %0, %1 : f32", "arith.addf"),
            ("%e = math.exp %0 : f32\n%r = arith.maximumf %1, %e : f32", "arith.maximumf"),
            ("%e = math.exp %0 : f32\n%s = arith.addf %1, %0 : f32\n%r = arith.addf %e, %s : f32", "arith.addf"),
        ] {
            assert_eq!(found(text), Some(name.to_owned()), "{text}");
        }
        for other in [
            "%r = arith.subf %1, %0 : f32",
            "%r = arith.addf %1, %1 : f32",
            "%e = math.exp %1 : f32\n%r = arith.addf %0, %e : f32",
            "%e = math.exp %1 : f32\n%r = arith.addf %1, %e : f32",
            "%s = arith.mulf %1, %0 : f32\n%r = arith.addf %s, %0 : f32",
            "%s = arith.addf %1, %0 : f32\n%r = arith.addf %s, %s : f32",
        ] {
            assert_eq!(found(other), None, "{other}");
        }
    }
}
