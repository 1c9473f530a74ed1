//! Distances between the elements of an operand along its loops: numbers, or values that the host passes.
//!
//! Before: `%x: memref<?x?xf32, strided<[?, 1]>>`, indexed by `(i, k)`.
//! After: `i` has the stride `%stride`, `k` 1.

use super::code::{Code, facts};
use monopour_ir::Value;

/// Elements between neighbours along a loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stride<'c> {
    Known(i64),
    Depends(Value<'c>),
}

impl<'c> Stride<'c> {
    pub(super) const ZERO: Self = Self::Known(0);

    pub(super) fn of(value: Value<'c>) -> Self {
        value.constant_int().map_or(Self::Depends(value), Self::Known)
    }
    pub(super) fn exact(&self) -> Option<i64> {
        match self {
            Self::Known(n) => Some(*n),
            Self::Depends(_) => None,
        }
    }
    /// Whether it is this number. One that depends on the sizes counts as none.
    pub(super) fn is(&self, number: i64) -> bool {
        self.exact() == Some(number)
    }
    /// It is a multiple of this.
    pub(super) fn divisor(&self) -> i64 {
        match self {
            Self::Known(n) => *n,
            Self::Depends(value) => facts(*value).divisor,
        }
    }
    /// A multiple.
    pub(super) fn times(&self, code: &mut Code<'c, '_>, n: i64) -> Self {
        match self {
            Self::Known(stride) => Self::Known(stride * n),
            Self::Depends(_) if n == 0 => Self::ZERO,
            Self::Depends(value) => Self::Depends(code.mul_const(*value, n)),
        }
    }
    pub(super) fn plus(&self, code: &mut Code<'c, '_>, other: &Self) -> Self {
        match (self, other) {
            (Self::Known(a), Self::Known(b)) => Self::Known(a + b),
            (Self::Known(0), _) => *other,
            (_, Self::Known(0)) => *self,
            _ => {
                let (a, b) = (self.value(code), other.value(code));
                Self::Depends(code.add(a, b))
            }
        }
    }
    pub(super) fn value(&self, code: &mut Code<'c, '_>) -> Value<'c> {
        match self {
            Self::Known(n) => code.c(*n),
            Self::Depends(value) => *value,
        }
    }
    /// The elements up to this position.
    pub(super) fn scale(&self, code: &mut Code<'c, '_>, position: Value<'c>) -> Value<'c> {
        match self {
            Self::Known(n) => code.mul_const(position, *n),
            Self::Depends(value) => code.mul(position, *value),
        }
    }
    /// `at`, this many strides on.
    pub(super) fn from(&self, code: &mut Code<'c, '_>, at: Value<'c>, strides: i64) -> Value<'c> {
        let distance = self.times(code, strides);
        match distance {
            Self::Known(n) => code.add_const(at, n),
            Self::Depends(distance) => code.add(at, distance),
        }
    }
}

/// An index in elements: a sum of the loops, each times its stride, and of a constant.
#[derive(Clone, Debug)]
pub(super) struct Linear<'c> {
    /// Per loop.
    pub(super) factors: Vec<Stride<'c>>,
    pub(super) constant: i64,
}

impl Linear<'_> {
    /// The index 0.
    pub(super) fn zero(loops: usize) -> Self {
        Self { factors: vec![Stride::ZERO; loops], constant: 0 }
    }
}
