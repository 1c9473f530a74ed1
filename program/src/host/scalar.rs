//! The scalar ops of host code, with their types.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::HostType;

/// The types of an op's operands and result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// An integer to one of its type.
    IntUnary,
    /// Two integers of a type to one of it.
    IntBinary,
    /// Two integers of a type to a truth value.
    IntCompare,
    /// A float to one of its type.
    FloatUnary,
    /// Two floats of a type to one of it.
    FloatBinary,
    /// Three floats of a type to one of it.
    FloatTernary,
    /// Two floats of a type to a truth value.
    FloatCompare,
    /// A float to a truth value.
    FloatTest,
    /// A float and an integer of 64 bits to a float of the first's type.
    FloatPower,
    /// A truth value and two values of a type to one of it.
    Select,
    /// An integer to a wider one.
    IntWiden,
    /// An integer to a narrower one.
    IntNarrow,
    /// A float to a wider one.
    FloatWiden,
    /// A float to a narrower one, or one of the same width.
    FloatNarrow,
    /// An integer to a float.
    IntToFloat,
    /// A float to an integer.
    FloatToInt,
    /// A value to one of the same width.
    Bits,
}

impl Rule {
    /// Whether an op of this rule may have these operands and this result.
    pub fn allows(self, operands: &[HostType], result: HostType) -> bool {
        let int = |ty: HostType| ty.is_int();
        let float = |ty: HostType| !ty.is_int();
        match (self, operands) {
            (Rule::IntUnary, [a]) => int(*a) && *a == result,
            (Rule::IntBinary, [a, b]) => int(*a) && a == b && *a == result,
            (Rule::IntCompare, [a, b]) => int(*a) && a == b && result == HostType::BOOL,
            (Rule::FloatUnary, [a]) => float(*a) && *a == result,
            (Rule::FloatBinary, [a, b]) => float(*a) && a == b && *a == result,
            (Rule::FloatTernary, [a, b, c]) => float(*a) && a == b && a == c && *a == result,
            (Rule::FloatCompare, [a, b]) => float(*a) && a == b && result == HostType::BOOL,
            (Rule::FloatTest, [a]) => float(*a) && result == HostType::BOOL,
            (Rule::FloatPower, [a, b]) => float(*a) && *b == HostType::WORD && *a == result,
            (Rule::Select, [c, a, b]) => *c == HostType::BOOL && a == b && *a == result,
            (Rule::IntWiden, [a]) => int(*a) && int(result) && a.bits() < result.bits(),
            (Rule::IntNarrow, [a]) => int(*a) && int(result) && a.bits() > result.bits(),
            (Rule::FloatWiden, [a]) => float(*a) && float(result) && a.bits() < result.bits(),
            (Rule::FloatNarrow, [a]) => float(*a) && float(result) && *a != result && a.bits() >= result.bits(),
            (Rule::IntToFloat, [a]) => int(*a) && float(result),
            (Rule::FloatToInt, [a]) => float(*a) && int(result),
            (Rule::Bits, [a]) => a.bits() == result.bits(),
            _ => false,
        }
    }
}

/// Declares the ops once: the enum, their names and rules.
macro_rules! scalar_ops {
    ($($name:ident = $text:literal $rule:ident;)*) => {
        /// A scalar op; named and defined as MLIR's, unless its name says otherwise.
        // The order is the wire format: new ops are added at the end.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum ScalarOp {
            $(#[doc = concat!("`", $text, "`")] $name),*
        }

        impl ScalarOp {
            /// All ops, in declaration order.
            pub const ALL: &[ScalarOp] = &[$(ScalarOp::$name),*];

            /// The name: MLIR's, with the predicate of a comparison.
            pub const fn name(self) -> &'static str {
                match self { $(ScalarOp::$name => $text),* }
            }

            /// The types of operands and result.
            pub const fn rule(self) -> Rule {
                match self { $(ScalarOp::$name => Rule::$rule),* }
            }
        }
    };
}

scalar_ops! {
    AddI = "arith.addi" IntBinary;
    SubI = "arith.subi" IntBinary;
    MulI = "arith.muli" IntBinary;
    MulHighS = "arith.mulsi_extended.high" IntBinary;
    MulHighU = "arith.mului_extended.high" IntBinary;
    DivS = "arith.divsi" IntBinary;
    DivU = "arith.divui" IntBinary;
    CeilDivS = "arith.ceildivsi" IntBinary;
    CeilDivU = "arith.ceildivui" IntBinary;
    FloorDivS = "arith.floordivsi" IntBinary;
    RemS = "arith.remsi" IntBinary;
    RemU = "arith.remui" IntBinary;
    And = "arith.andi" IntBinary;
    Or = "arith.ori" IntBinary;
    Xor = "arith.xori" IntBinary;
    Shl = "arith.shli" IntBinary;
    ShrS = "arith.shrsi" IntBinary;
    ShrU = "arith.shrui" IntBinary;
    MaxS = "arith.maxsi" IntBinary;
    MaxU = "arith.maxui" IntBinary;
    MinS = "arith.minsi" IntBinary;
    MinU = "arith.minui" IntBinary;
    AbsI = "math.absi" IntUnary;
    Ctlz = "math.ctlz" IntUnary;
    Cttz = "math.cttz" IntUnary;
    Ctpop = "math.ctpop" IntUnary;
    CmpEq = "arith.cmpi.eq" IntCompare;
    CmpNe = "arith.cmpi.ne" IntCompare;
    CmpSlt = "arith.cmpi.slt" IntCompare;
    CmpSle = "arith.cmpi.sle" IntCompare;
    CmpSgt = "arith.cmpi.sgt" IntCompare;
    CmpSge = "arith.cmpi.sge" IntCompare;
    CmpUlt = "arith.cmpi.ult" IntCompare;
    CmpUle = "arith.cmpi.ule" IntCompare;
    CmpUgt = "arith.cmpi.ugt" IntCompare;
    CmpUge = "arith.cmpi.uge" IntCompare;
    Select = "arith.select" Select;
    ExtS = "arith.extsi" IntWiden;
    ExtU = "arith.extui" IntWiden;
    TruncI = "arith.trunci" IntNarrow;
    Bitcast = "arith.bitcast" Bits;
    SToF = "arith.sitofp" IntToFloat;
    UToF = "arith.uitofp" IntToFloat;
    FToS = "arith.fptosi" FloatToInt;
    FToU = "arith.fptoui" FloatToInt;
    ExtF = "arith.extf" FloatWiden;
    TruncF = "arith.truncf" FloatNarrow;
    AddF = "arith.addf" FloatBinary;
    SubF = "arith.subf" FloatBinary;
    MulF = "arith.mulf" FloatBinary;
    DivF = "arith.divf" FloatBinary;
    RemF = "arith.remf" FloatBinary;
    NegF = "arith.negf" FloatUnary;
    MaximumF = "arith.maximumf" FloatBinary;
    MinimumF = "arith.minimumf" FloatBinary;
    MaxNumF = "arith.maxnumf" FloatBinary;
    MinNumF = "arith.minnumf" FloatBinary;
    CmpOeq = "arith.cmpf.oeq" FloatCompare;
    CmpOgt = "arith.cmpf.ogt" FloatCompare;
    CmpOge = "arith.cmpf.oge" FloatCompare;
    CmpOlt = "arith.cmpf.olt" FloatCompare;
    CmpOle = "arith.cmpf.ole" FloatCompare;
    CmpOne = "arith.cmpf.one" FloatCompare;
    CmpOrd = "arith.cmpf.ord" FloatCompare;
    CmpUeq = "arith.cmpf.ueq" FloatCompare;
    CmpFUgt = "arith.cmpf.ugt" FloatCompare;
    CmpFUge = "arith.cmpf.uge" FloatCompare;
    CmpFUlt = "arith.cmpf.ult" FloatCompare;
    CmpFUle = "arith.cmpf.ule" FloatCompare;
    CmpUne = "arith.cmpf.une" FloatCompare;
    CmpUno = "arith.cmpf.uno" FloatCompare;
    Fma = "math.fma" FloatTernary;
    AbsF = "math.absf" FloatUnary;
    Ceil = "math.ceil" FloatUnary;
    Floor = "math.floor" FloatUnary;
    Trunc = "math.trunc" FloatUnary;
    Round = "math.round" FloatUnary;
    RoundEven = "math.roundeven" FloatUnary;
    Sqrt = "math.sqrt" FloatUnary;
    Rsqrt = "math.rsqrt" FloatUnary;
    Cbrt = "math.cbrt" FloatUnary;
    Exp = "math.exp" FloatUnary;
    Exp2 = "math.exp2" FloatUnary;
    ExpM1 = "math.expm1" FloatUnary;
    Log = "math.log" FloatUnary;
    Log2 = "math.log2" FloatUnary;
    Log10 = "math.log10" FloatUnary;
    Log1p = "math.log1p" FloatUnary;
    Sin = "math.sin" FloatUnary;
    Cos = "math.cos" FloatUnary;
    Tan = "math.tan" FloatUnary;
    Asin = "math.asin" FloatUnary;
    Acos = "math.acos" FloatUnary;
    Atan = "math.atan" FloatUnary;
    Sinh = "math.sinh" FloatUnary;
    Cosh = "math.cosh" FloatUnary;
    Tanh = "math.tanh" FloatUnary;
    Asinh = "math.asinh" FloatUnary;
    Acosh = "math.acosh" FloatUnary;
    Atanh = "math.atanh" FloatUnary;
    Erf = "math.erf" FloatUnary;
    Erfc = "math.erfc" FloatUnary;
    Atan2 = "math.atan2" FloatBinary;
    Pow = "math.powf" FloatBinary;
    CopySign = "math.copysign" FloatBinary;
    FPowI = "math.fpowi" FloatPower;
    Clamp = "math.clampf" FloatTernary;
    IsNan = "math.isnan" FloatTest;
    IsInf = "math.isinf" FloatTest;
    IsFinite = "math.isfinite" FloatTest;
    IsNormal = "math.isnormal" FloatTest;
}

impl ScalarOp {
    /// The op of this name.
    pub fn parse(name: &str) -> Option<ScalarOp> {
        static NAMES: LazyLock<HashMap<&'static str, ScalarOp>> =
            LazyLock::new(|| ScalarOp::ALL.iter().map(|op| (op.name(), *op)).collect());
        NAMES.get(name).copied()
    }

    /// Whether some operands end the run.
    pub const fn may_trap(self) -> bool {
        self.divides() || matches!(self, ScalarOp::Shl | ScalarOp::ShrS | ScalarOp::ShrU)
    }

    /// Whether it divides integers.
    pub const fn divides(self) -> bool {
        matches!(
            self,
            ScalarOp::DivS
                | ScalarOp::DivU
                | ScalarOp::CeilDivS
                | ScalarOp::CeilDivU
                | ScalarOp::FloorDivS
                | ScalarOp::RemS
                | ScalarOp::RemU
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn ops_have_distinct_names() {
        assert_eq!(ScalarOp::ALL.iter().map(|op| op.name()).collect::<HashSet<_>>().len(), ScalarOp::ALL.len());
        for op in ScalarOp::ALL {
            assert_eq!(ScalarOp::parse(op.name()), Some(*op));
        }
    }

    #[test]
    fn types_must_fit() {
        let (i32, i64) = (HostType::Int(32), HostType::WORD);
        assert!(ScalarOp::AddI.rule().allows(&[i32, i32], i32));
        assert!(!ScalarOp::AddI.rule().allows(&[i32, i64], i32));
        assert!(!ScalarOp::AddI.rule().allows(&[i32], i32));
        assert!(!ScalarOp::AddF.rule().allows(&[i32, i32], i32));
        assert!(ScalarOp::CmpSlt.rule().allows(&[i64, i64], HostType::BOOL));
        assert!(!ScalarOp::ExtS.rule().allows(&[i64], i64));
        assert!(ScalarOp::TruncF.rule().allows(&[HostType::F32], HostType::Bf16));
        assert!(ScalarOp::Bitcast.rule().allows(&[HostType::F32], i32));
        assert!(!ScalarOp::Bitcast.rule().allows(&[HostType::F64], i32));
    }
}
