//! Factors that lose their sign.
//!
//! ```text
//! %x = generic { .. } : i8                       %x = generic { .. } : i8
//! %r = product of extsi %x less z, and %w        %u = generic ins(%x) { xori(%x, -128) }       // 128 more, without a sign
//! %s = generic ins(%x)                           %r = product of extui %u less (z + 128), and %w
//!                                                %v = generic ins(%u) { xori(%u, -128) }; %s = generic ins(%v)
//! ```
//!
//! So `%x` has one reader, and fuses with it; other readers undo the change element by element.
//! Limits: what a pointwise op computes.

use super::Narrowing;
use super::factor::{Narrow, of_element};
use crate::linalg;
use monopour_ir::{Attr, Diagnostics, InsertionPoint, Op, OpSpec, Type, Value, ops};

impl<'c> Narrowing<'c, '_> {
    /// Whether a factor is one of 8 bits with a sign, and its product better had one without.
    pub(super) fn has_signs(&self, factor: &Narrow<'c>) -> bool {
        self.one_sign && factor.holds() == (-128, 127)
    }

    /// The factor and its zero point with 128 more, if it is computed and has a sign; else both as they are.
    pub(super) fn unsigned(&mut self, factor: Narrow<'c>, zero: i64) -> Result<(Narrow<'c>, i64), Diagnostics> {
        if factor.holds() != (-128, 127) {
            return Ok((factor, zero));
        }
        let value = match self.unsigned.get(&factor.value) {
            Some(known) => Some(*known),
            None => self.make_unsigned(factor.value)?,
        };
        let Some(value) = value else { return Ok((factor, zero)) };
        Ok((Narrow { value, extension: ops::arith::EXTUI }, zero + 128))
    }

    fn make_unsigned(&mut self, value: Value<'c>) -> Result<Option<Value<'c>>, Diagnostics> {
        let pointwise = |op: &Op| op.is(ops::linalg::GENERIC) && op.num_results() == 1 && linalg::is_elementwise(*op);
        let Some(definition) = value.defining_op().filter(pointwise) else { return Ok(None) };
        let empty = definition.operands().last().and_then(|out| out.defining_op());
        let Some(empty) = empty.filter(|def| def.is(ops::tensor::EMPTY)) else { return Ok(None) };
        let (readers, sizes) = (value.uses(), empty.operands());
        let unsigned = self.flip_sign(definition, value, &sizes)?;
        let after = unsigned.defining_op().expect("invariant: it was made here");
        for reader in readers {
            let back = self.flip_sign(after, unsigned, &sizes)?;
            self.rw.set_operand(reader.op, reader.index, back);
            self.unsigned.insert(back, unsigned);
        }
        self.unsigned.insert(value, unsigned);
        Ok(Some(unsigned))
    }

    /// The elements with their highest bit flipped: 128 more of those with a sign, 128 less of those without.
    fn flip_sign(&mut self, after: Op<'c>, value: Value<'c>, sizes: &[Value<'c>]) -> Result<Value<'c>, Diagnostics> {
        let (loc, i8) = (after.location(), Type::integer(after.context(), 8));
        let ty = of_element(value, i8);
        let rank = ty.shape().map_or(0, |shape| shape.len());
        self.pointwise(
            InsertionPoint::After(after),
            (&[(value, (0..rank).collect())], ty, sizes),
            loc,
            |b, elements| {
                let bit = b.constant(Attr::int(i8, -128), i8, loc);
                let spec = OpSpec::new(ops::arith::XORI, loc).operands(&[elements[0], bit]).results(&[i8]);
                Ok(b.create(spec)?.result(0))
            },
        )
    }
}
