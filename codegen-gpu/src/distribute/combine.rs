//! Combining ops of reductions: matched in a body, emitted between registers and between lanes.

use super::code::Code;
use super::model::TileOp;
use monopour_ir::{Associative, Diagnostics, Op, OpSpec, Type, Value, bodies, ops};

/// The combining op, and the result's element type.
#[derive(Clone, Copy, Debug)]
pub(super) struct Combine<'c> {
    op: Op<'c>,
    kind: Associative,
    pub(super) element: Type<'c>,
}

/// One per output, if every result is `combine(result, value)`, or combined with several values, that depend on no result.
pub(super) fn of_reduction<'c>(op: &TileOp<'c>) -> Option<Vec<Combine<'c>>> {
    let body = op.body?;
    let combine = |result: usize| {
        let combine = bodies::combination(body, result)?;
        let (kind, element) = (Associative::of(combine)?, combine.result(0).ty());
        let is_number = element.is_float() || element.integer_width().is_some();
        is_number.then_some(Combine { op: combine, kind, element })
    };
    (0..op.outputs().len()).map(combine).collect()
}

impl<'c> Combine<'c> {
    /// `combine(a, b)`.
    pub(super) fn apply(&self, code: &mut Code<'c, '_>, a: Value<'c>, b: Value<'c>) -> Result<Value<'c>, Diagnostics> {
        Ok(code.rw.recreate(self.op, &[a, b], &[a.ty()])?.result(0))
    }

    /// Reduces the lanes of a vector by halving.
    pub(super) fn lanes(
        &self,
        code: &mut Code<'c, '_>,
        value: Value<'c>,
        lanes: u32,
    ) -> Result<Value<'c>, Diagnostics> {
        let mut parts: Vec<Value> = (0..lanes).map(|l| code.extract(value, l)).collect();
        while parts.len() > 1 {
            let half = parts.split_off(parts.len() / 2);
            parts = parts.iter().zip(&half).map(|(a, b)| self.apply(code, *a, *b)).collect::<Result<_, _>>()?;
        }
        Ok(parts[0])
    }

    /// The neutral element. Where the op drops NaNs it is an infinity: the result's initial value takes part anyway.
    pub(super) fn identity(&self, code: &mut Code<'c, '_>) -> Value<'c> {
        let ty = self.element;
        let identity = self.kind.identity(ty);
        let spec = OpSpec::new(ops::arith::CONSTANT, self.op.location()).results(&[ty]).attr("value", identity);
        code.create(spec).expect("invariant: a constant fits its type").result(0)
    }
}
