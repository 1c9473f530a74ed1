//! Predicates of comparisons, of floats or of integers.

use super::DataType;
pub use monopour_ir::typed::arith::{CmpFPredicate as CmpF, CmpIPredicate as CmpI};
use monopour_ir::{Attr, Context};

/// The predicate of a comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Predicate {
    /// Of `arith.cmpi`.
    Int(CmpI),
    /// Of `arith.cmpf`.
    Float(CmpF),
}

impl From<CmpI> for Predicate {
    fn from(predicate: CmpI) -> Self {
        Self::Int(predicate)
    }
}

impl From<CmpF> for Predicate {
    fn from(predicate: CmpF) -> Self {
        Self::Float(predicate)
    }
}

impl Predicate {
    /// Whether the first number is equal; NaN is not.
    pub fn equal(dtype: DataType) -> Self {
        Self::of(dtype, CmpF::Oeq, [CmpI::Eq, CmpI::Eq])
    }
    /// Whether the first number is less; NaN is not.
    pub fn less(dtype: DataType) -> Self {
        Self::of(dtype, CmpF::Olt, [CmpI::Slt, CmpI::Ult])
    }
    /// Whether the first number is less or equal; NaN is not.
    pub fn less_or_equal(dtype: DataType) -> Self {
        Self::of(dtype, CmpF::Ole, [CmpI::Sle, CmpI::Ule])
    }
    /// Whether the first number is greater; NaN is not.
    pub fn greater(dtype: DataType) -> Self {
        Self::of(dtype, CmpF::Ogt, [CmpI::Sgt, CmpI::Ugt])
    }
    /// Whether the first number is greater or equal; NaN is not.
    pub fn greater_or_equal(dtype: DataType) -> Self {
        Self::of(dtype, CmpF::Oge, [CmpI::Sge, CmpI::Uge])
    }

    /// The predicate of floats, or of integers with and without a sign; a truth value has none.
    fn of(dtype: DataType, float: CmpF, [signed, unsigned]: [CmpI; 2]) -> Self {
        match dtype {
            _ if dtype.is_float() => float.into(),
            _ if dtype.is_unsigned() || dtype == DataType::Bool => unsigned.into(),
            _ => signed.into(),
        }
    }

    pub(super) fn to_attr(self, cx: Context<'_>) -> Attr<'_> {
        match self {
            Self::Int(predicate) => predicate.to_attr(cx),
            Self::Float(predicate) => predicate.to_attr(cx),
        }
    }
}
