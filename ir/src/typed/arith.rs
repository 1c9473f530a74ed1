//! Comparisons of the dialect `arith`: their predicates, as enums.

use crate::{Attr, Context, Op};

/// Defines the predicates of one op; upstream's numbers are their positions.
macro_rules! predicates {
    ($(#[$doc:meta])* $name:ident { $($(#[$case_doc:meta])* $case:ident,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum $name {
            $($(#[$case_doc])* $case,)*
        }

        impl $name {
            /// All predicates, in the order of upstream's numbers.
            pub const ALL: &[Self] = &[$(Self::$case),*];

            /// The predicate of a comparison; `None` for another op.
            pub fn of(op: Op) -> Option<Self> {
                let number = op.attr("predicate")?.as_int()?;
                Self::ALL.get(usize::try_from(number).ok()?).copied()
            }
            /// The attribute `predicate`.
            pub fn to_attr(self, cx: Context<'_>) -> Attr<'_> {
                Attr::i64(cx, self as i64)
            }
        }
    };
}

predicates! {
    /// Predicates of `arith.cmpi`.
    CmpIPredicate {
        /// Equal.
        Eq,
        /// Not equal.
        Ne,
        /// Signed less.
        Slt,
        /// Signed less or equal.
        Sle,
        /// Signed greater.
        Sgt,
        /// Signed greater or equal.
        Sge,
        /// Unsigned less.
        Ult,
        /// Unsigned less or equal.
        Ule,
        /// Unsigned greater.
        Ugt,
        /// Unsigned greater or equal.
        Uge,
    }
}

impl CmpIPredicate {
    /// Whether the operands are compared as unsigned numbers.
    pub fn is_unsigned(self) -> bool {
        matches!(self, Self::Ult | Self::Ule | Self::Ugt | Self::Uge)
    }
    /// Whether two numbers compare so; of fewer than 64 bits they are extended by their sign.
    pub fn holds(self, a: i64, b: i64) -> bool {
        let (ua, ub) = (a.cast_unsigned(), b.cast_unsigned());
        match self {
            Self::Eq => a == b,
            Self::Ne => a != b,
            Self::Slt => a < b,
            Self::Sle => a <= b,
            Self::Sgt => a > b,
            Self::Sge => a >= b,
            Self::Ult => ua < ub,
            Self::Ule => ua <= ub,
            Self::Ugt => ua > ub,
            Self::Uge => ua >= ub,
        }
    }
}

predicates! {
    /// Predicates of `arith.cmpf`: ordered ones are false on NaN, unordered ones true.
    CmpFPredicate {
        /// False.
        AlwaysFalse,
        /// Ordered and equal.
        Oeq,
        /// Ordered and greater.
        Ogt,
        /// Ordered and greater or equal.
        Oge,
        /// Ordered and less.
        Olt,
        /// Ordered and less or equal.
        Ole,
        /// Ordered and not equal.
        One,
        /// Ordered: neither is NaN.
        Ord,
        /// Unordered or equal.
        Ueq,
        /// Unordered or greater.
        Ugt,
        /// Unordered or greater or equal.
        Uge,
        /// Unordered or less.
        Ult,
        /// Unordered or less or equal.
        Ule,
        /// Unordered or not equal.
        Une,
        /// Unordered: one is NaN.
        Uno,
        /// True.
        AlwaysTrue,
    }
}
