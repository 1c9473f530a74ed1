//! Builder of arithmetic on values of one shape, scalar or vector.

use crate::Compiler;
use monopour_contract::attributes;
use monopour_ir::conversion::ConversionRewriter;
use monopour_ir::ops;
use monopour_ir::typed::arith::{CmpFPredicate, CmpIPredicate};
use monopour_ir::{Attr, Context, Location, Op, OpSpec, Type, Value};

/// Builds the value of a function of `operands`.
pub(crate) type Expand = for<'c> fn(&mut Emit<'c, '_>, &[Value<'c>]) -> Value<'c>;

/// Emits ops in front of the expanded op. Every value has the shape of its result.
pub(crate) struct Emit<'c, 'a> {
    rewriter: &'a mut ConversionRewriter<'c>,
    loc: Location<'c>,
    compiler: Compiler,
    /// Type of the function's result.
    pub(crate) ty: Type<'c>,
}

impl<'c, 'a> Emit<'c, 'a> {
    pub(crate) fn before(op: Op<'c>, rewriter: &'a mut ConversionRewriter<'c>, compiler: Compiler) -> Self {
        Self { rewriter, loc: op.location(), ty: op.result(0).ty(), compiler }
    }
}

impl<'c> Emit<'c, '_> {
    fn cx(&self) -> Context<'c> {
        self.ty.context()
    }

    /// The op `name` on `operands`, of type `ty`.
    pub(crate) fn op(&mut self, name: &str, operands: &[Value<'c>], ty: Type<'c>) -> Value<'c> {
        let spec = OpSpec::new(name, self.loc).operands(operands).results(&[ty]);
        self.rewriter.create(spec).expect("op of matching types builds").result(0)
    }

    /// This shape with element type `element`.
    pub(crate) fn over(&self, element: Type<'c>) -> Type<'c> {
        self.ty.as_vector().map_or(element, |v| Type::vector(&v.shape, element))
    }

    /// This shape with element type f64.
    pub(crate) fn f64(&self) -> Type<'c> {
        self.over(Type::f64(self.cx()))
    }

    /// This shape with element type f32.
    pub(crate) fn single(&self) -> Type<'c> {
        self.over(Type::f32(self.cx()))
    }

    /// This shape with integers of `bits`.
    pub(crate) fn integer(&self, bits: u32) -> Type<'c> {
        self.over(Type::integer(self.cx(), bits))
    }

    fn i32(&self) -> Type<'c> {
        self.integer(32)
    }

    fn splat(&mut self, attr: Attr<'c>, ty: Type<'c>) -> Value<'c> {
        let spec = OpSpec::new(ops::arith::CONSTANT, self.loc).results(&[ty.element()]).attr("value", attr);
        let scalar = self.rewriter.create(spec).expect("constant of its own type builds").result(0);
        if ty.is_vector() { self.op(ops::vector::BROADCAST, &[scalar], ty) } else { scalar }
    }

    /// A constant of float type `ty`.
    pub(crate) fn constant(&mut self, value: f64, ty: Type<'c>) -> Value<'c> {
        self.splat(Attr::float(ty.element(), value), ty)
    }

    /// A constant of the result's type.
    pub(crate) fn c(&mut self, value: f64) -> Value<'c> {
        self.constant(value, self.ty)
    }

    fn i64(&self) -> Type<'c> {
        self.over(Type::integer(self.cx(), 64))
    }

    fn int(&mut self, value: i64) -> Value<'c> {
        let ty = self.i32();
        self.int_of(value, ty)
    }

    pub(crate) fn int_of(&mut self, value: i64, ty: Type<'c>) -> Value<'c> {
        self.splat(Attr::int(ty.element(), value), ty)
    }

    /// An op of `arith` or `math` whose result has the type of its first operand.
    pub(crate) fn same(&mut self, name: &str, operands: &[Value<'c>]) -> Value<'c> {
        self.op(name, operands, operands[0].ty())
    }

    /// As [`Emit::same`], marked as [`attributes::NORMAL`].
    pub(crate) fn normal(&mut self, name: &str, operand: Value<'c>) -> Value<'c> {
        let spec = OpSpec::new(name, self.loc).operands(&[operand]).results(&[operand.ty()]);
        let spec = spec.attr(attributes::NORMAL, Attr::unit(self.cx()));
        self.rewriter.create(spec).expect("op of matching types builds").result(0)
    }

    /// `a + b`.
    pub(crate) fn add(&mut self, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        self.same(ops::arith::ADDF, &[a, b])
    }

    /// `a - b`.
    pub(crate) fn sub(&mut self, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        self.same(ops::arith::SUBF, &[a, b])
    }

    /// `a * b`.
    pub(crate) fn mul(&mut self, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        self.same(ops::arith::MULF, &[a, b])
    }

    /// `a / b`.
    pub(crate) fn div(&mut self, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        self.same(ops::arith::DIVF, &[a, b])
    }

    /// `a * k`.
    pub(crate) fn scale(&mut self, a: Value<'c>, k: f64) -> Value<'c> {
        let k = self.constant(k, a.ty());
        self.mul(a, k)
    }

    /// `a + k`.
    pub(crate) fn plus(&mut self, a: Value<'c>, k: f64) -> Value<'c> {
        let k = self.constant(k, a.ty());
        self.add(a, k)
    }

    /// `-a`.
    pub(crate) fn neg(&mut self, a: Value<'c>) -> Value<'c> {
        self.same(ops::arith::NEGF, &[a])
    }

    /// `|a|`.
    pub(crate) fn abs(&mut self, a: Value<'c>) -> Value<'c> {
        self.same(ops::math::ABSF, &[a])
    }

    /// The magnitude of `a` with the sign of `b`.
    pub(crate) fn copysign(&mut self, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        self.same(ops::math::COPYSIGN, &[a, b])
    }

    /// Compares; the predicate is false on NaN, but for [`CmpFPredicate::Une`].
    pub(crate) fn compare(&mut self, predicate: CmpFPredicate, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        let ty = self.over(Type::integer(self.cx(), 1));
        let attr = predicate.to_attr(self.cx());
        let spec = OpSpec::new(ops::arith::CMPF, self.loc).operands(&[a, b]).results(&[ty]).attr("predicate", attr);
        self.rewriter.create(spec).expect("comparison of equal types builds").result(0)
    }

    /// Compares with a constant.
    pub(crate) fn compare_c(&mut self, predicate: CmpFPredicate, a: Value<'c>, k: f64) -> Value<'c> {
        let k = self.constant(k, a.ty());
        self.compare(predicate, a, k)
    }

    /// Both conditions.
    pub(crate) fn and(&mut self, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        self.same(ops::arith::ANDI, &[a, b])
    }

    /// Either condition.
    pub(crate) fn or(&mut self, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        self.same(ops::arith::ORI, &[a, b])
    }

    /// `condition ? a : b`, lane by lane.
    pub(crate) fn select(&mut self, condition: Value<'c>, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        self.op(ops::arith::SELECT, &[condition, a, b], a.ty())
    }

    /// Whether the sign bit of the f32 or f64 `a` is set.
    pub(crate) fn sign_bit(&mut self, a: Value<'c>) -> Value<'c> {
        let bits = if a.ty().element().float_width() == Some(64) { self.i64() } else { self.i32() };
        let zero = self.int_of(0, bits);
        let bits = self.op(ops::arith::BITCAST, &[a], bits);
        self.compare_int(CmpIPredicate::Slt, bits, zero)
    }

    /// A comparison of integers.
    pub(crate) fn compare_int(&mut self, predicate: CmpIPredicate, a: Value<'c>, b: Value<'c>) -> Value<'c> {
        let (ty, attr) = (self.integer(1), predicate.to_attr(self.cx()));
        let spec = OpSpec::new(ops::arith::CMPI, self.loc).operands(&[a, b]).results(&[ty]).attr("predicate", attr);
        self.rewriter.create(spec).expect("comparison of equal types builds").result(0)
    }

    /// `c0 + x (c1 + x (..))`.
    pub(crate) fn polynomial(&mut self, x: Value<'c>, coefficients: &[f64]) -> Value<'c> {
        let (last, rest) = coefficients.split_last().expect("a polynomial has a coefficient");
        let mut sum = self.constant(*last, x.ty());
        for c in rest.iter().rev() {
            let c = self.constant(*c, x.ty());
            sum = self.same(ops::math::FMA, &[sum, x, c]);
        }
        sum
    }

    /// f32 to f64.
    pub(crate) fn extend(&mut self, a: Value<'c>) -> Value<'c> {
        let ty = self.f64();
        self.op(ops::arith::EXTF, &[a], ty)
    }

    /// f64 to f32.
    pub(crate) fn truncate(&mut self, a: Value<'c>) -> Value<'c> {
        self.op(ops::arith::TRUNCF, &[a], self.ty)
    }

    /// The f64 `a`, opaque to the reassociation of [`Compiler::Loose`]. `k` is a whole number below 2^52: the last of its
    /// bits is 0, which the compiler does not know.
    pub(crate) fn settled(&mut self, a: Value<'c>, k: Value<'c>) -> Value<'c> {
        if self.compiler == Compiler::Exact {
            return a;
        }
        let wide = self.i64();
        let (bits, others) = (self.op(ops::arith::BITCAST, &[a], wide), self.op(ops::arith::BITCAST, &[k], wide));
        let one = self.int_of(1, wide);
        let nothing = self.same(ops::arith::ANDI, &[others, one]);
        let bits = self.same(ops::arith::ORI, &[bits, nothing]);
        self.op(ops::arith::BITCAST, &[bits], a.ty())
    }

    /// `2^n` for an integral f32 `n` between -126 and 127.
    pub(crate) fn power_of_two(&mut self, n: Value<'c>) -> Value<'c> {
        let ty = self.i32();
        let n = self.op(ops::arith::FPTOSI, &[n], ty);
        let (bias, shift) = (self.int(127), self.int(23));
        let biased = self.same(ops::arith::ADDI, &[n, bias]);
        let bits = self.same(ops::arith::SHLI, &[biased, shift]);
        self.op(ops::arith::BITCAST, &[bits], self.ty)
    }
    /// `2^n` for an integral f64 `n` between -1022 and 1023.
    pub(crate) fn double_power_of_two(&mut self, n: Value<'c>) -> Value<'c> {
        let (narrow, wide) = (self.i32(), self.i64());
        let n = self.op(ops::arith::FPTOSI, &[n], narrow);
        let bias = self.int(1023);
        let biased = self.same(ops::arith::ADDI, &[n, bias]);
        let biased = self.op(ops::arith::EXTSI, &[biased], wide);
        let shift = self.int_of(52, wide);
        let bits = self.same(ops::arith::SHLI, &[biased, shift]);
        self.op(ops::arith::BITCAST, &[bits], self.ty)
    }

    /// The f64 `a` without the lower half of its bits: its square is exact.
    pub(crate) fn upper_half(&mut self, a: Value<'c>) -> Value<'c> {
        let wide = self.i64();
        let bits = self.op(ops::arith::BITCAST, &[a], wide);
        let mask = self.int_of(-1 << 32, wide);
        let bits = self.same(ops::arith::ANDI, &[bits, mask]);
        self.op(ops::arith::BITCAST, &[bits], a.ty())
    }

    /// Exponent, as f64, and mantissa in `[1, 2)` of a normal positive f64.
    pub(crate) fn split_double(&mut self, x: Value<'c>) -> (Value<'c>, Value<'c>) {
        let (narrow, wide) = (self.i32(), self.i64());
        let bits = self.op(ops::arith::BITCAST, &[x], wide);
        let shift = self.int_of(52, wide);
        let field = self.same(ops::arith::SHRUI, &[bits, shift]);
        let field = self.op(ops::arith::TRUNCI, &[field], narrow);
        let bias = self.int(1023);
        let exponent = self.same(ops::arith::SUBI, &[field, bias]);
        let exponent = self.op(ops::arith::SITOFP, &[exponent], self.ty);
        let mask = self.int_of((1 << 52) - 1, wide);
        let fraction = self.same(ops::arith::ANDI, &[bits, mask]);
        let one = self.int_of(1023 << 52, wide);
        let bits = self.same(ops::arith::ORI, &[fraction, one]);
        (exponent, self.op(ops::arith::BITCAST, &[bits], self.ty))
    }
}
