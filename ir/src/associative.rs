//! Associative and commutative `arith` ops, as reductions combine by them.

use crate::ops;
use crate::{Attr, Op, Type};

/// A binary op that is associative and commutative (floats: up to rounding), with an identity element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Associative {
    identity: Identity,
    /// Whether combining an operand twice gives the same result.
    pub is_idempotent: bool,
    /// Whether a NaN is dropped for the other operand. The identity is an infinity then, which is not the reduction of NaNs alone.
    pub drops_nans: bool,
}

/// The identity element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Identity {
    /// Of floats the negative zero: adding 0 would lose the sign of a sum of negative zeros.
    Zero,
    One,
    /// All bits set.
    Ones,
    /// The least value, of floats an infinity.
    Least,
    /// The largest value, of floats an infinity; of integers as signed ones.
    Largest,
}

const OPS: [(&str, Identity); 15] = [
    (ops::arith::ADDF, Identity::Zero),
    (ops::arith::MULF, Identity::One),
    (ops::arith::MAXIMUMF, Identity::Least),
    (ops::arith::MINIMUMF, Identity::Largest),
    (ops::arith::MAXNUMF, Identity::Least),
    (ops::arith::MINNUMF, Identity::Largest),
    (ops::arith::ADDI, Identity::Zero),
    (ops::arith::MULI, Identity::One),
    (ops::arith::MAXSI, Identity::Least),
    (ops::arith::MAXUI, Identity::Zero),
    (ops::arith::MINSI, Identity::Largest),
    (ops::arith::MINUI, Identity::Ones),
    (ops::arith::ANDI, Identity::Ones),
    (ops::arith::ORI, Identity::Zero),
    (ops::arith::XORI, Identity::Zero),
];

impl Associative {
    /// The kind of an op; `None` for one that is not known to be associative.
    pub fn of(op: Op) -> Option<Self> {
        Self::named(op.name())
    }

    fn named(name: &str) -> Option<Self> {
        let (_, identity) = *OPS.iter().find(|(known, _)| *known == name)?;
        Some(Self {
            identity,
            is_idempotent: !matches!(
                name,
                ops::arith::ADDF | ops::arith::MULF | ops::arith::ADDI | ops::arith::MULI | ops::arith::XORI
            ),
            drops_nans: matches!(name, ops::arith::MAXNUMF | ops::arith::MINNUMF),
        })
    }

    /// The identity element of a float, integer or index type.
    pub fn identity<'c>(&self, ty: Type<'c>) -> Attr<'c> {
        if ty.is_float() { Attr::float(ty, self.float()) } else { Attr::int(ty, self.int(ty.integer_width())) }
    }

    fn float(self) -> f64 {
        match self.identity {
            Identity::Zero | Identity::Ones => -0.0,
            Identity::One => 1.0,
            Identity::Least => f64::NEG_INFINITY,
            Identity::Largest => f64::INFINITY,
        }
    }

    /// As an integer of `width` bits, or as an index.
    fn int(self, width: Option<u32>) -> i64 {
        let least = width.filter(|width| *width < 64).map_or(i64::MIN, |width| -(1i64 << (width - 1)));
        match self.identity {
            Identity::Zero => 0,
            Identity::One => 1,
            Identity::Ones => -1,
            Identity::Least => least,
            Identity::Largest => -1 - least,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Associative;

    fn kind(name: &str) -> Associative {
        Associative::named(name).unwrap_or_else(|| panic!("{name} is associative"))
    }

    #[test]
    fn identities_change_nothing() {
        for width in [1, 8, 16, 32, 63, 64] {
            let (least, largest) = (i64::MIN >> (64 - width), i64::MAX >> (64 - width));
            let of = |name| kind(name).int(Some(width));
            assert_eq!([of("arith.addi"), of("arith.ori"), of("arith.xori"), of("arith.maxui")], [0; 4]);
            assert_eq!((of("arith.muli"), of("arith.andi"), of("arith.minui")), (1, -1, -1));
            assert_eq!((of("arith.maxsi"), of("arith.minsi")), (least, largest), "i{width}");
        }
        assert_eq!(kind("arith.maxsi").int(None), i64::MIN);
        let float = |name| kind(name).float();
        assert!(float("arith.addf") == 0.0 && float("arith.addf").is_sign_negative());
        assert_eq!(
            (float("arith.mulf"), float("arith.maximumf"), float("arith.minnumf")),
            (1.0, -f64::INFINITY, f64::INFINITY)
        );
    }

    #[test]
    fn sums_and_products_are_not_idempotent() {
        assert!(["arith.maxnumf", "arith.andi", "arith.minui"].into_iter().all(|name| kind(name).is_idempotent));
        assert!(["arith.addf", "arith.muli", "arith.xori"].into_iter().all(|name| !kind(name).is_idempotent));
        assert!(kind("arith.minnumf").drops_nans && !kind("arith.minimumf").drops_nans);
        assert!(["arith.subi", "arith.divf", "arith.shli"].into_iter().all(|name| Associative::named(name).is_none()));
    }
}
