//! Buffers on the host: a handle, and offset, sizes and strides as numbers.

use crate::error;
use monopour_ir::ops;
use monopour_ir::{Attr, Builder, DYNAMIC, Diagnostics, Location, MemRefType, Op, OpSpec, Type, Value};

/// An `i64` of host code, static or computed.
#[derive(Clone, Copy)]
pub(crate) enum Num<'c> {
    /// Known.
    Const(i64),
    /// Computed.
    Value(Value<'c>),
}

impl<'c> Num<'c> {
    /// The number as a value.
    pub(crate) fn value(self, b: &mut Builder<'c>, loc: Location<'c>) -> Value<'c> {
        match self {
            Num::Const(value) => number(b, value, loc),
            Num::Value(value) => value,
        }
    }

    /// A sum.
    pub(crate) fn plus(self, other: Num<'c>, b: &mut Builder<'c>, loc: Location<'c>) -> Result<Num<'c>, Diagnostics> {
        match (self, other) {
            (Num::Const(0), n) | (n, Num::Const(0)) => Ok(n),
            (Num::Const(l), Num::Const(r)) => Ok(Num::Const(l.wrapping_add(r))),
            (l, r) => binary(b, ops::arith::ADDI, l, r, loc),
        }
    }

    /// A product.
    pub(crate) fn times(self, other: Num<'c>, b: &mut Builder<'c>, loc: Location<'c>) -> Result<Num<'c>, Diagnostics> {
        match (self, other) {
            (Num::Const(1), n) | (n, Num::Const(1)) => Ok(n),
            (Num::Const(0), _) | (_, Num::Const(0)) => Ok(Num::Const(0)),
            (Num::Const(l), Num::Const(r)) => Ok(Num::Const(l.wrapping_mul(r))),
            (l, r) => binary(b, ops::arith::MULI, l, r, loc),
        }
    }

    /// The lesser of numbers that are not negative.
    pub(crate) fn min(self, other: Num<'c>, b: &mut Builder<'c>, loc: Location<'c>) -> Result<Num<'c>, Diagnostics> {
        match (self, other) {
            (Num::Const(l), Num::Const(r)) => Ok(Num::Const(l.min(r))),
            (l, r) => binary(b, ops::arith::MINUI, l, r, loc),
        }
    }

    /// The greater of numbers that are not negative.
    pub(crate) fn max(self, other: Num<'c>, b: &mut Builder<'c>, loc: Location<'c>) -> Result<Num<'c>, Diagnostics> {
        match (self, other) {
            (Num::Const(l), Num::Const(r)) => Ok(Num::Const(l.max(r))),
            (l, r) => binary(b, ops::arith::MAXUI, l, r, loc),
        }
    }

    /// A quotient of numbers that are not negative, rounded up.
    pub(crate) fn ceil_div(
        self,
        other: Num<'c>,
        b: &mut Builder<'c>,
        loc: Location<'c>,
    ) -> Result<Num<'c>, Diagnostics> {
        match (self, other) {
            (n, Num::Const(1)) => Ok(n),
            (Num::Const(l), Num::Const(r)) if r > 0 => Ok(Num::Const(l.div_euclid(r) + i64::from(l.rem_euclid(r) > 0))),
            (l, r) => binary(b, ops::arith::CEILDIVUI, l, r, loc),
        }
    }
}

fn binary<'c>(
    b: &mut Builder<'c>,
    name: &str,
    l: Num<'c>,
    r: Num<'c>,
    loc: Location<'c>,
) -> Result<Num<'c>, Diagnostics> {
    let operands = [l.value(b, loc), r.value(b, loc)];
    let ty = Type::integer(b.context(), 64);
    Ok(Num::Value(b.create(OpSpec::new(name, loc).operands(&operands).results(&[ty]))?.result(0)))
}

/// A constant `i64`.
pub(crate) fn number<'c>(b: &mut Builder<'c>, value: i64, loc: Location<'c>) -> Value<'c> {
    let ty = Type::integer(b.context(), 64);
    b.constant(Attr::int(ty, value), ty, loc)
}

/// A buffer on the host: a handle, and the layout of a value in it.
#[derive(Clone)]
pub(crate) struct Buffer<'c> {
    pub(crate) handle: Value<'c>,
    /// Bytes before the base.
    pub(crate) base: Num<'c>,
    /// Elements from the base to the first one.
    pub(crate) offset: Num<'c>,
    pub(crate) sizes: Vec<Num<'c>>,
    pub(crate) strides: Vec<Num<'c>>,
    /// A base of unstated extent: all elements from there on.
    pub(crate) whole: bool,
}

impl<'c> Buffer<'c> {
    /// A buffer at the start of its handle with the layout of `memref`; `sizes` are its dynamic sizes.
    pub(crate) fn fresh(
        b: &mut Builder<'c>,
        loc: Location<'c>,
        handle: Value<'c>,
        memref: &MemRefType<'c>,
        sizes: &[Num<'c>],
    ) -> Result<Buffer<'c>, Diagnostics> {
        let mut open = sizes.iter().copied();
        let known =
            |size: &i64| if *size == DYNAMIC { open.next().unwrap_or(Num::Const(0)) } else { Num::Const(*size) };
        let sizes: Vec<Num> = memref.shape.iter().map(known).collect();
        let mut stride = Num::Const(1);
        let mut strides = vec![];
        for size in sizes.iter().rev() {
            strides.push(stride);
            stride = stride.times(*size, b, loc)?;
        }
        strides.reverse();
        Ok(Buffer { handle, base: Num::Const(0), offset: Num::Const(0), sizes, strides, whole: false })
    }

    /// Number of elements.
    pub(crate) fn elements(&self, b: &mut Builder<'c>, loc: Location<'c>) -> Result<Num<'c>, Diagnostics> {
        self.sizes.iter().try_fold(Num::Const(1), |product, size| product.times(*size, b, loc))
    }

    /// Bytes of the elements, which are contiguous.
    pub(crate) fn bytes(&self, b: &mut Builder<'c>, op: Op<'c>, ty: Type<'c>) -> Result<Num<'c>, Diagnostics> {
        self.elements(b, op.location())?.times(Num::Const(width(op, ty)?), b, op.location())
    }

    /// Bytes from the handle to the first element.
    pub(crate) fn start(&self, b: &mut Builder<'c>, op: Op<'c>, ty: Type<'c>) -> Result<Num<'c>, Diagnostics> {
        let loc = op.location();
        let offset = self.offset.times(Num::Const(width(op, ty)?), b, loc)?;
        self.base.plus(offset, b, loc)
    }

    /// The numbers that carry a value of type `ty` through control flow: handle, base, dynamic offset, sizes and strides.
    pub(crate) fn flatten(&self, b: &mut Builder<'c>, loc: Location<'c>, memref: &MemRefType<'c>) -> Vec<Value<'c>> {
        let mut out = vec![self.handle, self.base.value(b, loc)];
        if memref.offset == DYNAMIC {
            out.push(self.offset.value(b, loc));
        }
        let open = |known: &[i64], nums: &[Num<'c>]| -> Vec<Num<'c>> {
            known.iter().zip(nums).filter(|(k, _)| **k == DYNAMIC).map(|(_, n)| *n).collect()
        };
        let sizes = open(&memref.shape, &self.sizes);
        let strides = open(&memref.strides, &self.strides);
        out.extend(sizes.into_iter().chain(strides).map(|n| n.value(b, loc)));
        out
    }

    /// Count of the numbers of [`Buffer::flatten`].
    pub(crate) fn flat_len(memref: &MemRefType) -> usize {
        let open = memref.shape.iter().chain(&memref.strides).filter(|d| **d == DYNAMIC).count();
        2 + usize::from(memref.offset == DYNAMIC) + open
    }

    /// The reverse of [`Buffer::flatten`].
    pub(crate) fn unflatten(values: &[Value<'c>], memref: &MemRefType<'c>) -> Buffer<'c> {
        let mut rest = values[2..].iter().copied();
        let mut known = |n: &i64| match *n {
            DYNAMIC => Num::Value(rest.next().expect("invariant: flatten made one per open number")),
            n => Num::Const(n),
        };
        let offset = known(&memref.offset);
        let sizes = memref.shape.iter().map(&mut known).collect();
        let strides = memref.strides.iter().map(&mut known).collect();
        Buffer { handle: values[0], base: Num::Value(values[1]), offset, sizes, strides, whole: false }
    }
}

/// Bytes of an element.
pub(crate) fn width(op: Op, ty: Type) -> Result<i64, Diagnostics> {
    let bytes = ty.element_size_bytes().and_then(|bytes| i64::try_from(bytes).ok());
    bytes.ok_or_else(|| error::not_contiguous(op, &ty.to_string()).into())
}
