//! Unsigned integers in ops of TOSA, before [`super::super::signs`] takes the sign from the types.
//!
//! Before / after:
//!
//! ```text
//! %f = tosa.cast %x : (tensor<4xui8>) -> tensor<4xf32>     %f = arith.uitofp %x : tensor<4xui8> to tensor<4xf32>
//! ```
//!
//! TOSA itself has unsigned types for rescales, whose attributes say the sign, and for ops that move elements: other
//! ops would read them as signed ones.
//! Ensures: such types are in constants, rescales, and ops to which the sign is nothing.

use super::super::verify;
use super::DIALECT;
use monopour_ir::{Diagnostics, InsertionPoint, Module, Op, OpSpec, Rewriter, Type, WalkOrder, ops};

/// Ops that do the same whatever the sign, or have attributes for it.
const TAKE_ANY: [&str; 19] = [
    ops::tosa::BITWISE_AND,
    ops::tosa::BITWISE_NOT,
    ops::tosa::BITWISE_OR,
    ops::tosa::BITWISE_XOR,
    ops::tosa::CONCAT,
    ops::tosa::COND_IF,
    ops::tosa::CONST,
    ops::tosa::EQUAL,
    ops::tosa::GATHER,
    ops::tosa::IDENTITY,
    ops::tosa::PAD,
    ops::tosa::RESCALE,
    ops::tosa::RESHAPE,
    ops::tosa::REVERSE,
    ops::tosa::SCATTER,
    ops::tosa::SELECT,
    ops::tosa::SLICE,
    ops::tosa::TILE,
    ops::tosa::TRANSPOSE,
];
/// The same, with bodies.
const WITH_BODIES: [&str; 2] = [ops::tosa::WHILE_LOOP, ops::tosa::YIELD];
const HELP: &str = "cast or rescale it to a signed type before: TOSA has unsigned integers for rescales alone";

/// Makes casts of unsigned integers ops of `arith`.
///
/// # Errors
/// F0002 for an op that would read them as signed ones.
pub(in super::super) fn run(module: &Module) -> Result<(), Diagnostics> {
    let mut rw = Rewriter::new(module.context());
    for op in module.op().find_all(ops::tosa::CAST) {
        cast(op, &mut rw)?;
    }
    let all = module.op().nested(WalkOrder::Pre).into_iter();
    let takes_any = |op: &Op| TAKE_ANY.contains(&op.name()) || WITH_BODIES.contains(&op.name());
    let refused = all.filter(|op| op.dialect() == DIALECT && !takes_any(op) && has_unsigned(*op)).map(|op| {
        let message = format!("op '{}' is not supported on unsigned integers", op.name());
        verify::error("F0002", op, message, HELP)
    });
    let refused = Diagnostics(refused.collect());
    if refused.has_errors() { Err(refused) } else { Ok(()) }
}

fn cast<'c>(op: Op<'c>, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
    let (from, ty) = (op.operand(0), op.result(0).ty());
    let [width, to] = [from.ty(), ty].map(|ty| ty.element().integer_width());
    let unsigned = [from.ty(), ty].map(is_unsigned);
    let name = match (unsigned, width, to) {
        ([false, false], ..) | (_, Some(1), _) | (_, _, Some(1)) | (_, None, _) => return Ok(()),
        ([true, _], Some(_), None) => ops::arith::UITOFP,
        ([true, _], Some(width), Some(to)) if to > width => ops::arith::EXTUI,
        ([false, true], Some(width), Some(to)) if to > width => ops::arith::EXTSI,
        (_, Some(width), Some(to)) if to < width => ops::arith::TRUNCI,
        _ => {
            rw.replace_op(op, &[from]);
            return Ok(());
        }
    };
    rw.set_point(InsertionPoint::Before(op));
    let made = rw.create(OpSpec::new(name, op.location()).operands(&[from]).results(&[ty]))?;
    rw.replace_op(op, &[made.result(0)]);
    Ok(())
}

fn has_unsigned(op: Op) -> bool {
    op.operands().into_iter().chain(op.results()).any(|value| is_unsigned(value.ty()))
}

fn is_unsigned(ty: Type) -> bool {
    ty.element().to_string().starts_with("ui")
}
