//! SSA values and their uses.

use crate::ops;
use crate::{AffineExprKind, Block, Op, Type, Value};
use mlir_sys::{MlirOpOperand, MlirValue};
use smallvec::SmallVec;
use std::mem::MaybeUninit;

/// One operand slot that reads a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Use<'c> {
    /// The op that has the operand.
    pub op: Op<'c>,
    /// Position among its operands.
    pub index: usize,
}

impl<'c> Value<'c> {
    /// The values that a shim function lists: it takes a capacity, writes up to that many, and returns their number.
    pub(crate) fn list(read: impl Fn(isize, *mut MlirValue) -> isize) -> SmallVec<[Self; 8]> {
        let mut few = MaybeUninit::<[Self; 8]>::uninit();
        let count = read(8, few.as_mut_ptr().cast()) as usize;
        if count <= 8 {
            // SAFETY: `count` values were written, and a value is laid out like its handle.
            return unsafe { SmallVec::from_buf_and_len_unchecked(few, count) };
        }
        let mut out: SmallVec<[Self; 8]> = SmallVec::with_capacity(count);
        let written = read(out.capacity() as isize, out.as_mut_ptr().cast()) as usize;
        assert_eq!(written, count, "nothing changed meanwhile");
        // SAFETY: as above.
        unsafe { out.set_len(count) };
        out
    }
    /// The type.
    pub fn ty(self) -> Type<'c> {
        Type::from_raw(c!(mlirValueGetType(self.raw())))
    }
    /// The op whose result this is.
    pub fn defining_op(self) -> Option<Op<'c>> {
        c!(mlirValueIsAOpResult(self.raw())).then(|| Op::from_raw(c!(mlirOpResultGetOwner(self.raw()))))
    }
    /// Position among the results of its op.
    pub fn result_index(self) -> Option<usize> {
        c!(mlirValueIsAOpResult(self.raw())).then(|| c!(mlirOpResultGetResultNumber(self.raw())) as usize)
    }
    /// Block and position, for a block argument.
    pub fn as_block_arg(self) -> Option<(Block<'c>, usize)> {
        if !c!(mlirValueIsABlockArgument(self.raw())) {
            return None;
        }
        let block = Block::from_raw(c!(mlirBlockArgumentGetOwner(self.raw())));
        Some((block, c!(mlirBlockArgumentGetArgNumber(self.raw())) as usize))
    }
    /// The block in which the value is defined.
    pub fn block(self) -> Option<Block<'c>> {
        match self.defining_op() {
            Some(op) => op.block(),
            None => self.as_block_arg().map(|(b, _)| b),
        }
    }
    /// All uses, oldest first (MLIR stores them newest first).
    pub fn uses(self) -> Vec<Use<'c>> {
        let mut out = Vec::new();
        let mut operand: MlirOpOperand = c!(mlirValueGetFirstUse(self.raw()));
        while !c!(mlirOpOperandIsNull(operand)) {
            let op = Op::from_raw(c!(mlirOpOperandGetOwner(operand)));
            out.push(Use { op, index: c!(mlirOpOperandGetOperandNumber(operand)) as usize });
            operand = c!(mlirOpOperandGetNextUse(operand));
        }
        out.reverse();
        out
    }
    /// The use, if there is exactly one.
    pub fn only_use(self) -> Option<Use<'c>> {
        let operand: MlirOpOperand = c!(mlirValueGetFirstUse(self.raw()));
        if c!(mlirOpOperandIsNull(operand)) || !c!(mlirOpOperandIsNull(c!(mlirOpOperandGetNextUse(operand)))) {
            return None;
        }
        let op = Op::from_raw(c!(mlirOpOperandGetOwner(operand)));
        Some(Use { op, index: c!(mlirOpOperandGetOperandNumber(operand)) as usize })
    }
    /// Whether the value has no uses.
    pub fn is_unused(self) -> bool {
        c!(mlirOpOperandIsNull(c!(mlirValueGetFirstUse(self.raw()))))
    }
    /// The integer of an `arith.constant` that defines this value.
    pub fn constant_int(self) -> Option<i64> {
        let op = self.defining_op()?;
        if op.name() != ops::arith::CONSTANT {
            return None;
        }
        op.attr("value")?.as_int()
    }
    /// A constant that an index is at most; `None` for one that is not a constant or a minimum with one, or that may be
    /// negative.
    pub fn upper_bound(self) -> Option<i64> {
        if let Some(known) = self.constant_int() {
            return Some(known);
        }
        let op = self.defining_op()?;
        let bound = match op.name() {
            ops::affine::MIN => {
                let results = op.attr("map")?.as_affine_map()?.results();
                let known = results.into_iter().filter_map(|e| match e.kind() {
                    AffineExprKind::Constant(bound) => Some(bound),
                    _ => None,
                });
                known.min()
            }
            ops::arith::MINSI | ops::arith::MINUI => op.operands().into_iter().filter_map(Value::upper_bound).min(),
            _ => None,
        };
        bound.filter(|bound| *bound >= 0)
    }
}
