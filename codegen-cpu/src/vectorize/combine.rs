//! What a reduction does with its accumulator: one op that may be applied in any order.

use super::nest::Nest;
use monopour_ir::{Attr, Op, Type, Value};

/// One output's combining op.
#[derive(Clone, Copy, Debug)]
pub(super) struct Combiner {
    /// `arith.addf` or the like.
    pub(super) op: Op,
    /// What is combined with the accumulator: a value of the body, or of outside.
    pub(super) term: Value,
}

/// Ops that may be regrouped and whose accumulator may take part more than once.
const IDEMPOTENT: [&str; 10] = [
    "arith.maximumf",
    "arith.minimumf",
    "arith.maxnumf",
    "arith.minnumf",
    "arith.maxsi",
    "arith.maxui",
    "arith.minsi",
    "arith.minui",
    "arith.andi",
    "arith.ori",
];

impl Combiner {
    /// Whether lanes may start from the accumulator itself.
    pub(super) fn is_idempotent(&self) -> bool {
        IDEMPOTENT.contains(&self.op.name())
    }

    /// What lanes start from otherwise.
    pub(super) fn neutral(&self) -> Attr {
        let ty = self.ty();
        match self.op.name() {
            // A sum of negative zeros is one.
            "arith.addf" => Attr::float(ty, -0.0),
            "arith.mulf" => Attr::float(ty, 1.0),
            "arith.muli" => Attr::int(ty, 1),
            _ => Attr::int(ty, 0),
        }
    }

    /// Type of the accumulator.
    pub(super) fn ty(&self) -> Type {
        self.op.result(0).ty()
    }
}

/// The combiners of all outputs; `None` if some output is computed in another way.
pub(super) fn of(nest: &Nest) -> Option<Vec<Combiner>> {
    let yielded = nest.yielded();
    (0..nest.outputs.len()).map(|i| combiner(nest, i, *yielded.get(i)?)).collect()
}

fn combiner(nest: &Nest, output: usize, yielded: Value) -> Option<Combiner> {
    let accumulator = nest.output_arg(output);
    let op = yielded.defining_op().filter(|op| op.block() == Some(nest.body))?;
    let regroups = IDEMPOTENT.contains(&op.name())
        || matches!(op.name(), "arith.addf" | "arith.mulf" | "arith.addi" | "arith.muli" | "arith.xori");
    let once = accumulator.uses().len() == 1 && yielded.uses().len() == 1;
    let side = op.operands().iter().position(|v| *v == accumulator)?;
    (regroups && once && op.num_operands() == 2).then(|| Combiner { op, term: op.operand(1 - side) })
}
