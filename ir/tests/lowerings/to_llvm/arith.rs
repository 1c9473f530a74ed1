//! `arith` to the LLVM dialect.

use super::{ConversionPattern, Declined, Templates, convert_type, copy_discardable_attrs, parse_attr, template};
use monopour_ir::conversion::{Adaptor, ConversionRewriter, PatternSet, TypeConverter};
use monopour_ir::{Attr, Context, Op, OpParts, OpSpec, OpTemplate, Type};
use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

/// The attribute that a conversion keeps, renamed or moved to another dialect.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Carry {
    Nothing,
    Overflow,
    FastMath,
    /// Under the same name, if present.
    Same(&'static str),
    /// As `Same`; refused with a rounding mode.
    SameUnlessRounded(&'static str),
}

/// Ops of one result of their operands' type, operand for operand.
const BINARY: &[(&str, &str, Carry)] = &[
    ("arith.addi", "llvm.add", Carry::Overflow),
    ("arith.subi", "llvm.sub", Carry::Overflow),
    ("arith.muli", "llvm.mul", Carry::Overflow),
    ("arith.shli", "llvm.shl", Carry::Overflow),
    ("arith.divsi", "llvm.sdiv", Carry::Same("isExact")),
    ("arith.divui", "llvm.udiv", Carry::Same("isExact")),
    ("arith.shrsi", "llvm.ashr", Carry::Same("isExact")),
    ("arith.shrui", "llvm.lshr", Carry::Same("isExact")),
    ("arith.remsi", "llvm.srem", Carry::Nothing),
    ("arith.remui", "llvm.urem", Carry::Nothing),
    ("arith.andi", "llvm.and", Carry::Nothing),
    ("arith.ori", "llvm.or", Carry::Nothing),
    ("arith.xori", "llvm.xor", Carry::Nothing),
    ("arith.maxsi", "llvm.intr.smax", Carry::Nothing),
    ("arith.minsi", "llvm.intr.smin", Carry::Nothing),
    ("arith.maxui", "llvm.intr.umax", Carry::Nothing),
    ("arith.minui", "llvm.intr.umin", Carry::Nothing),
    ("arith.addf", "llvm.fadd", Carry::FastMath),
    ("arith.subf", "llvm.fsub", Carry::FastMath),
    ("arith.mulf", "llvm.fmul", Carry::FastMath),
    ("arith.divf", "llvm.fdiv", Carry::FastMath),
    ("arith.remf", "llvm.frem", Carry::FastMath),
    ("arith.negf", "llvm.fneg", Carry::FastMath),
    ("arith.maximumf", "llvm.intr.maximum", Carry::FastMath),
    ("arith.minimumf", "llvm.intr.minimum", Carry::FastMath),
    ("arith.maxnumf", "llvm.intr.maxnum", Carry::FastMath),
    ("arith.minnumf", "llvm.intr.minnum", Carry::FastMath),
];

/// Ops whose result has a type of its own.
const CAST: &[(&str, &str, Carry)] = &[
    ("arith.extsi", "llvm.sext", Carry::Nothing),
    ("arith.extui", "llvm.zext", Carry::Nothing),
    ("arith.trunci", "llvm.trunc", Carry::Overflow),
    // The LLVM ops have no such flags: they stay the attributes that they were.
    ("arith.extf", "llvm.fpext", Carry::Same("fastmath")),
    ("arith.truncf", "llvm.fptrunc", Carry::SameUnlessRounded("fastmath")),
    ("arith.sitofp", "llvm.sitofp", Carry::Nothing),
    ("arith.uitofp", "llvm.uitofp", Carry::Nothing),
    ("arith.fptosi", "llvm.fptosi", Carry::Nothing),
    ("arith.fptoui", "llvm.fptoui", Carry::Nothing),
    ("arith.bitcast", "llvm.bitcast", Carry::Nothing),
];

/// The attributes of `arith` as those of the LLVM dialect, looked up by identity.
struct Flags<'c> {
    /// The first is the default, which is not set.
    overflow: [(Attr<'c>, Attr<'c>); 4],
    fast_math_none: Attr<'c>,
    fast_math: RefCell<Vec<(Attr<'c>, Attr<'c>)>>,
}

impl<'c> Flags<'c> {
    fn new(cx: Context<'c>) -> Self {
        let i32_ty = Type::integer(cx, 32);
        let entry = |text, bits| (parse_attr(cx, text), Attr::int(i32_ty, bits));
        let overflow = [
            entry("#arith.overflow<none>", 0),
            entry("#arith.overflow<nsw>", 1),
            entry("#arith.overflow<nuw>", 2),
            entry("#arith.overflow<nsw, nuw>", 3),
        ];
        let fast_math_none = parse_attr(cx, "#arith.fastmath<none>");
        Self { overflow, fast_math_none, fast_math: RefCell::default() }
    }
    /// The index of the op's overflow flags.
    fn overflow(&self, op: Op<'c>) -> usize {
        let flags = op.attr("overflowFlags");
        self.overflow.iter().position(|entry| Some(entry.0) == flags).unwrap_or(0)
    }
    /// The attribute for the new op, unless it is the default.
    fn fast_math(&self, op: Op<'c>) -> Option<Attr<'c>> {
        let flags = op.attr("fastmath").filter(|flags| *flags != self.fast_math_none)?;
        let mut known = self.fast_math.borrow_mut();
        if let Some(entry) = known.iter().find(|entry| entry.0 == flags) {
            return Some(entry.1);
        }
        // Once per combination: the flags have the same names in both dialects.
        let same = parse_attr(op.context(), &flags.to_string().replace("#arith", "#llvm"));
        known.push((flags, same));
        Some(same)
    }
}

/// Replaces one op by one op.
struct OneToOne<'c, 'p> {
    from: &'static str,
    to: &'static str,
    /// One per combination of overflow flags, built on first use.
    made: [OnceCell<OpTemplate<'c>>; 4],
    carry: Carry,
    flags: Rc<Flags<'c>>,
    /// Set if the result's type is not that of the first operand.
    converter: Option<&'p TypeConverter<'c, 'p>>,
}

impl<'c> OneToOne<'c, '_> {
    /// The template for the overflow flags with this index.
    fn template(&self, op: Op<'c>, which: usize) -> &OpTemplate<'c> {
        self.made[which].get_or_init(|| {
            let plain = template(op.context(), self.to);
            if which == 0 {
                return plain;
            }
            plain.with_property("overflowFlags", self.flags.overflow[which].1).expect("the flags of the LLVM dialect")
        })
    }
}

impl<'c> ConversionPattern<'c> for OneToOne<'c, '_> {
    fn root(&self) -> &str {
        self.from
    }
    fn name(&self) -> String {
        format!("{} to {}", self.from, self.to)
    }
    fn rewrite(&self, op: Op<'c>, adaptor: &Adaptor<'c, '_>, rw: &mut ConversionRewriter<'c>) -> Result<(), Declined> {
        let ty = match self.converter {
            None => adaptor.operand(0).ty(),
            Some(converter) => convert_type(converter, op.result(0).ty())?,
        };
        if matches!(self.carry, Carry::SameUnlessRounded(_)) && op.attr("roundingmode").is_some() {
            return Err(Declined::no_match("a rounding mode needs a constrained intrinsic"));
        }
        let which = if self.carry == Carry::Overflow { self.flags.overflow(op) } else { 0 };
        let parts = OpParts { operands: adaptor.operands(), results: &[ty], ..OpParts::default() };
        let new = rw.create_like(self.template(op, which), op.location(), parts);
        match self.carry {
            Carry::Nothing | Carry::Overflow => {}
            Carry::FastMath => set_fast_math(&self.flags, rw, op, new),
            Carry::Same(name) | Carry::SameUnlessRounded(name) => {
                if let Some(value) = op.attr(name) {
                    rw.set_attr(new, name, value);
                }
            }
        }
        copy_discardable_attrs(rw, op, new);
        rw.replace_op(op, &[new.result(0)]);
        Ok(())
    }
}

fn set_fast_math<'c>(flags: &Flags<'c>, rw: &mut ConversionRewriter<'c>, from: Op<'c>, to: Op<'c>) {
    if let Some(value) = flags.fast_math(from) {
        rw.set_attr(to, "fastmathFlags", value);
    }
}

/// Adds the patterns of `arith`.
pub fn add_arith<'c, 'p>(set: &mut PatternSet<'c, 'p>, cx: Context<'c>, converter: &'p TypeConverter<'c, 'p>) {
    let flags = Rc::new(Flags::new(cx));
    let all = BINARY.iter().map(|one| (one, None)).chain(CAST.iter().map(|one| (one, Some(converter))));
    for (&(from, to, carry), converter) in all {
        set.add(OneToOne { from, to, made: Default::default(), carry, flags: flags.clone(), converter });
    }
    add_constant(set, converter);
    add_select(set, cx, flags.clone());
    add_compare(set, flags);
    add_index_casts(set, cx, converter);
    add_extended(set, cx);
}

fn add_constant<'c, 'p>(set: &mut PatternSet<'c, 'p>, converter: &'p TypeConverter<'c, 'p>) {
    set.add_fn("arith.constant", move |op, _, rw| {
        let ty = convert_type(converter, op.result(0).ty())?;
        let value = op.attr("value").expect("arith.constant has a value: verified");
        let new = rw.create(OpSpec::new("llvm.mlir.constant", op.location()).results(&[ty]).attr("value", value))?;
        copy_discardable_attrs(rw, op, new);
        rw.replace_op(op, &[new.result(0)]);
        Ok(())
    });
}

fn add_select<'c>(set: &mut PatternSet<'c, '_>, cx: Context<'c>, flags: Rc<Flags<'c>>) {
    let made = template(cx, "llvm.select");
    set.add_fn("arith.select", move |op, adaptor, rw| {
        let ty = adaptor.operand(1).ty();
        let parts = OpParts { operands: adaptor.operands(), results: &[ty], ..OpParts::default() };
        let new = rw.create_like(&made, op.location(), parts);
        set_fast_math(&flags, rw, op, new);
        copy_discardable_attrs(rw, op, new);
        rw.replace_op(op, &[new.result(0)]);
        Ok(())
    });
}

/// The predicates have the same numbers in both dialects.
fn add_compare<'c>(set: &mut PatternSet<'c, '_>, flags: Rc<Flags<'c>>) {
    for (from, to) in [("arith.cmpi", "llvm.icmp"), ("arith.cmpf", "llvm.fcmp")] {
        let flags = flags.clone();
        let made = Templates::default();
        set.add_fn(from, move |op, adaptor, rw| {
            let ty = op.result(0).ty();
            let predicate = op.attr("predicate").expect("a comparison has a predicate: verified");
            let spec = || OpSpec::new(to, op.location()).attr("predicate", predicate);
            let parts = OpParts { operands: adaptor.operands(), results: &[ty], ..OpParts::default() };
            let new = rw.create_like(&made.get(predicate, op.context(), spec), op.location(), parts);
            if to == "llvm.fcmp" {
                set_fast_math(&flags, rw, op, new);
            }
            rw.replace_op(op, &[new.result(0)]);
            Ok(())
        });
    }
}

/// The value itself if `index` has the same width.
fn add_index_casts<'c, 'p>(set: &mut PatternSet<'c, 'p>, cx: Context<'c>, converter: &'p TypeConverter<'c, 'p>) {
    for (from, extend) in [("arith.index_cast", "llvm.sext"), ("arith.index_castui", "llvm.zext")] {
        let (extend, truncate) = (template(cx, extend), template(cx, "llvm.trunc"));
        set.add_fn(from, move |op, adaptor, rw| {
            let (value, ty) = (adaptor.operand(0), convert_type(converter, op.result(0).ty())?);
            let (Some(old), Some(new)) = (value.ty().element().integer_width(), ty.element().integer_width()) else {
                return Err(Declined::no_match("not a cast of integers"));
            };
            if old == new {
                rw.replace_op(op, &[value]);
                return Ok(());
            }
            let made = if old < new { &extend } else { &truncate };
            let parts = OpParts { operands: &[value], results: &[ty], ..OpParts::default() };
            let cast = rw.create_like(made, op.location(), parts);
            rw.replace_op(op, &[cast.result(0)]);
            Ok(())
        });
    }
}

/// Additions and multiplications that keep all bits.
fn add_extended<'c>(set: &mut PatternSet<'c, '_>, cx: Context<'c>) {
    set.add_fn("arith.addui_extended", move |op, adaptor, rw| {
        let (sum, carry) = (adaptor.operand(0).ty(), op.result(1).ty());
        let ty = super::pack(cx, &[sum, carry]);
        let spec = OpSpec::new("llvm.intr.uadd.with.overflow", op.location());
        let both = rw.create(spec.operands(adaptor.operands()).results(&[ty]))?.result(0);
        let values = super::func::unpack(rw, both, &[sum, carry], op)?;
        rw.replace_op(op, &values);
        Ok(())
    });
    for (from, extend) in [("arith.mulsi_extended", "llvm.sext"), ("arith.mului_extended", "llvm.zext")] {
        set.add_fn(from, move |op, adaptor, rw| {
            let ty = adaptor.operand(0).ty();
            let width = ty.integer_width().ok_or_else(|| Declined::no_match("not a scalar"))?;
            let wide = Type::integer(cx, 2 * width);
            let mut make = |name, operands: &[_], ty| -> Result<_, Declined> {
                let new = rw.create(OpSpec::new(name, op.location()).operands(operands).results(&[ty]))?;
                Ok(new.result(0))
            };
            let (lhs, rhs) = (make(extend, &[adaptor.operand(0)], wide)?, make(extend, &[adaptor.operand(1)], wide)?);
            let product = make("llvm.mul", &[lhs, rhs], wide)?;
            let low = make("llvm.trunc", &[product], ty)?;
            let distance = rw.create(OpSpec::new("llvm.mlir.constant", op.location()).results(&[wide]))?;
            rw.set_attr(distance, "value", Attr::int(wide, i64::from(width)));
            let mut make = |name, operands: &[_], ty| -> Result<_, Declined> {
                let new = rw.create(OpSpec::new(name, op.location()).operands(operands).results(&[ty]))?;
                Ok(new.result(0))
            };
            let shifted = make("llvm.lshr", &[product, distance.result(0)], wide)?;
            let high = make("llvm.trunc", &[shifted], ty)?;
            rw.replace_op(op, &[low, high]);
            Ok(())
        });
    }
}
