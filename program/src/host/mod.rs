//! The host function as data: typed register code, for places without native code and for files that are not trusted.
//!
//! ```text
//! ^0:
//!   %4:i64 = input(0)
//!   arg(%4, 0, 200704)
//!   arg(%5, 0, 2560)
//!   dispatch(0, 4, 1, 1)
//!   %6:i1 = arith.cmpi.slt %5, 3
//!   if %6 then ^1
//! ```
//! The set of ops is closed: calls of the runtime's functions, `if`, `for`, `while`, and scalar ops. A register is defined
//! once, by a constant, an op or an argument of a block, and may be read where that definition comes before, in the same
//! block or in one around it. [`HostCode::verify`] checks that once; the interpreter relies on it.
//! Every op has a result for every operand, or ends the run: a division by zero, of the smallest number by -1, and a shift
//! by the width or more do.

mod floats;
mod scalar;
mod text;
mod verify;

use serde::{Deserialize, Serialize};

pub use monopour_contract::RuntimeFunction;
pub use scalar::{Rule, ScalarOp};
pub use verify::HostScope;

/// Deepest nesting of blocks: the interpreter recurses.
pub const MAX_HOST_DEPTH: usize = 200;

/// A register, by its position: those of the constants come first, then those of [`HostCode::registers`].
pub type Register = u32;
/// A block, by its position.
pub type BlockId = u32;

/// The type of a register. A value is the low bits of 64, the others being zero; `index` is an integer of 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostType {
    /// An integer without sign, of 1 to 64 bits.
    Int(u8),
    /// IEEE half precision.
    F16,
    /// The upper half of an IEEE single.
    Bf16,
    /// IEEE single precision.
    F32,
    /// IEEE double precision.
    F64,
}

impl HostType {
    /// A truth value.
    pub const BOOL: HostType = HostType::Int(1);
    /// A number of the runtime's functions.
    pub const WORD: HostType = HostType::Int(64);

    /// Width in bits.
    pub const fn bits(self) -> u8 {
        match self {
            HostType::Int(bits) => bits,
            HostType::F16 | HostType::Bf16 => 16,
            HostType::F32 => 32,
            HostType::F64 => 64,
        }
    }

    /// Whether values are integers.
    pub const fn is_int(self) -> bool {
        matches!(self, HostType::Int(_))
    }

    /// The bits that a value may have.
    pub const fn mask(self) -> u64 {
        match self.bits() {
            0 => 0,
            bits if bits >= 64 => u64::MAX,
            bits => (1 << bits) - 1,
        }
    }
}

/// A host function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostCode {
    /// Constants: the first registers.
    pub constants: Vec<HostConstant>,
    /// Types of the other registers.
    pub registers: Vec<HostType>,
    /// The blocks; the first is the function's body. A block comes after the one that it is in.
    pub blocks: Vec<HostBlock>,
    /// Source locations of ops that may end the run.
    pub locations: Vec<String>,
}

/// A constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HostConstant {
    /// Its type.
    pub ty: HostType,
    /// Its value.
    pub bits: u64,
}

/// A list of ops that run in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostBlock {
    /// Registers that the op around it sets.
    pub arguments: Vec<Register>,
    /// The ops.
    pub ops: Vec<HostOp>,
    /// Of a loop's first block: whether the loop goes on.
    pub condition: Option<Register>,
    /// The values that it gives to the op around it.
    pub results: Vec<Register>,
}

/// An op.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HostOp {
    /// Calls the runtime.
    Call {
        /// The function.
        #[serde(with = "function")]
        function: RuntimeFunction,
        /// Its arguments but for the context.
        arguments: Vec<Register>,
        /// Where its result goes.
        result: Option<Register>,
    },
    /// Computes.
    Scalar {
        /// The operation.
        op: ScalarOp,
        /// Its operands.
        operands: Vec<Register>,
        /// Where its result goes.
        result: Register,
        /// Its location in [`HostCode::locations`], if it may end the run.
        location: Option<u32>,
    },
    /// Runs one block, or none.
    If {
        /// Which one.
        condition: Register,
        /// The block for true.
        then: BlockId,
        /// The block for false; without it there are no results.
        otherwise: Option<BlockId>,
        /// The results of the block that ran.
        results: Vec<Register>,
    },
    /// Runs a block for each number from `lower` on that is less than `upper`.
    For {
        /// Whether the numbers have no sign.
        is_unsigned: bool,
        /// The first number.
        lower: Register,
        /// The end, exclusive.
        upper: Register,
        /// The difference of two numbers; one that is not positive ends the run.
        step: Register,
        /// The first values that the loop carries.
        inits: Vec<Register>,
        /// The block; its arguments are the number and the values.
        body: BlockId,
        /// The values after the last number.
        results: Vec<Register>,
        /// Its location in [`HostCode::locations`].
        location: Option<u32>,
    },
    /// Runs `before`, and while its condition holds `after` and `before` again.
    While {
        /// The first arguments of `before`.
        inits: Vec<Register>,
        /// Its results are the arguments of `after`, and those of the op.
        before: BlockId,
        /// Its results are the arguments of `before`.
        after: BlockId,
        /// The last results of `before`.
        results: Vec<Register>,
    },
}

impl HostCode {
    /// Whether there is no function.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Number of ops.
    pub fn ops_len(&self) -> usize {
        self.blocks.iter().map(|block| block.ops.len()).sum()
    }

    /// Number of registers.
    pub fn registers_len(&self) -> usize {
        self.constants.len() + self.registers.len()
    }

    /// The type of a register, if it exists.
    pub fn type_of(&self, register: Register) -> Option<HostType> {
        let at = register as usize;
        match self.constants.get(at) {
            Some(constant) => Some(constant.ty),
            None => self.registers.get(at - self.constants.len()).copied(),
        }
    }

    /// A source location; empty if it is not known.
    pub fn location(&self, location: Option<u32>) -> &str {
        location.and_then(|at| self.locations.get(at as usize)).map_or("", String::as_str)
    }
}

/// A function of the runtime by its position in [`RuntimeFunction::ALL`].
mod function {
    use monopour_contract::RuntimeFunction;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(function: &RuntimeFunction, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u8(*function as u8)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<RuntimeFunction, D::Error> {
        let at = u8::deserialize(from)?;
        let found = RuntimeFunction::ALL.get(usize::from(at)).copied();
        found.ok_or_else(|| D::Error::custom(format!("runtime function {at}")))
    }
}
