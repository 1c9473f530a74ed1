//! Associative ops that reductions are made of: recognised in a body, written between registers and between lanes.

use super::super::code::Code;
use super::super::model::TileOp;
use monopour_ir::{Attr, Diagnostics, Op, OpSpec, Type, Value};

/// The op that adds a value to a result, and the result's element type.
#[derive(Clone, Copy, Debug)]
pub(super) struct Combine {
    op: Op,
    pub(super) element: Type,
}

/// Ops that are associative and commutative (floats: up to rounding), with an element that changes nothing.
const ASSOCIATIVE: [&str; 15] = [
    "arith.addf",
    "arith.mulf",
    "arith.maximumf",
    "arith.minimumf",
    "arith.maxnumf",
    "arith.minnumf",
    "arith.addi",
    "arith.muli",
    "arith.maxsi",
    "arith.maxui",
    "arith.minsi",
    "arith.minui",
    "arith.andi",
    "arith.ori",
    "arith.xori",
];

/// One per output, if every result is `combine(result, value)` with values that depend on no result.
pub(super) fn of_reduction(op: &TileOp) -> Option<Vec<Combine>> {
    let body = op.body?;
    let end = body.terminator()?;
    (0..op.outputs().len())
        .map(|o| {
            let result = body.arg(op.num_inputs + o);
            let combine = end.operand(o).defining_op().filter(|d| d.block() == Some(body))?;
            let known = ASSOCIATIVE.contains(&combine.name()) && combine.num_operands() == 2;
            // Its only use: no value depends on it, and no partial result leaves the body otherwise.
            let once = result.uses().len() == 1 && combine.operands().iter().filter(|v| **v == result).count() == 1;
            let yielded = combine.result(0).uses().len() == 1;
            let element = result.ty();
            (known && once && yielded && (element.is_float() || element.integer_width().is_some()))
                .then_some(Combine { op: combine, element })
        })
        .collect()
}

impl Combine {
    /// `combine(a, b)`.
    pub(super) fn apply(&self, code: &mut Code, a: Value, b: Value) -> Result<Value, Diagnostics> {
        let attrs = self.op.attrs();
        let mut spec = OpSpec::new(self.op.name(), self.op.location()).operands(&[a, b]).results(&[a.ty()]);
        for (name, value) in &attrs {
            spec = spec.attr(name, *value);
        }
        Ok(code.create(spec)?.result(0))
    }

    /// The lanes of a vector as one value, halves onto halves.
    pub(super) fn lanes(&self, code: &mut Code, value: Value, lanes: u32) -> Result<Value, Diagnostics> {
        let mut parts: Vec<Value> = (0..lanes).map(|l| code.extract(value, l)).collect();
        while parts.len() > 1 {
            let half = parts.split_off(parts.len() / 2);
            parts = parts.iter().zip(&half).map(|(a, b)| self.apply(code, *a, *b)).collect::<Result<_, _>>()?;
        }
        Ok(parts[0])
    }

    /// The element that changes nothing. Where the op drops NaNs this is an infinity: the result's first value takes part anyway.
    pub(super) fn identity(&self, code: &mut Code) -> Value {
        let ty = self.element;
        let attr = match ty.integer_width() {
            Some(width) => Attr::int(ty, integer_identity(self.op.name(), width)),
            None => float_identity(self.op.name(), ty),
        };
        let spec = OpSpec::new("arith.constant", self.op.location()).results(&[ty]).attr("value", attr);
        code.create(spec).expect("invariant: a constant fits its type").result(0)
    }
}

fn integer_identity(name: &str, width: u32) -> i64 {
    let smallest = if width >= 64 { i64::MIN } else { -(1i64 << (width - 1)) };
    match name {
        "arith.muli" => 1,
        "arith.maxsi" => smallest,
        // The largest: all bits but the sign.
        "arith.minsi" => -1 - smallest,
        "arith.minui" | "arith.andi" => -1,
        _ => 0,
    }
}

fn float_identity(name: &str, ty: Type) -> Attr {
    let value = match name {
        "arith.mulf" => 1.0,
        "arith.maximumf" | "arith.maxnumf" => f64::NEG_INFINITY,
        "arith.minimumf" | "arith.minnumf" => f64::INFINITY,
        // Adding 0 would lose the sign of a sum of negative zeros.
        _ => -0.0,
    };
    Attr::float(ty, value)
}
