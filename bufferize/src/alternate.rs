//! Let a loop that makes its next tensor anew alternate between two buffers.
//!
//! ```text
//! scf.for .. iter_args(%a = %x) {                        %e = tensor.empty()
//!   %e = tensor.empty()                                  scf.for .. iter_args(%a = %x, %s = %e) {
//!   %p = scf.forall .. shared_outs(%e) { .. %a .. }  ==>   %p = scf.forall .. shared_outs(%s) { .. %a .. }
//!   scf.yield %p                                           scf.yield %p, %a
//! }                                                      }
//! ```
//!
//! Each iteration would allocate a buffer, and free that of its argument. On the right side the two exchange buffers
//! (`loop_copies.rs`), and nothing is allocated in the loop.
//!
//! Requires: functions on tensors, before bufferization. Ensures: the same values.
//! Limits: `scf.for`; tensors of static size that dispatches make in a `tensor.empty` from the argument, not in the argument's
//! place (`own_tiles.rs`); initial values that nothing uses within the loop or behind it; all other tensors that the loop carries
//! are yielded as they are.

use monopour_ir::{Block, Diagnostics, InsertionPoint, Op, OpSpec, Region, Rewriter, Value, ops};
use tracing::trace;

use crate::own_tiles::own_tiles;

/// Operands of `scf.for` before the initial values.
const BOUNDS: usize = 3;

/// Gives loops of a function second buffers; returns how many.
///
/// # Errors
/// MLIR's, for an op that does not build.
pub(crate) fn run(function: Op) -> Result<usize, Diagnostics> {
    let mut rw = Rewriter::new(function.context());
    let mut count = 0;
    for op in function.find_all(ops::scf::FOR) {
        let Some(found) = alternating(op).filter(|found| !found.is_empty()) else { continue };
        trace!(target: "bufferize", "{}: {} tensors alternate between two buffers", op.location(), found.len());
        count += found.len();
        extend(&mut rw, op, &found)?;
    }
    Ok(count)
}

/// A dispatch that makes the next value of an argument.
struct Maker<'c> {
    op: Op<'c>,
    /// The position of the operand that is a new tensor.
    operand: usize,
    argument: Value<'c>,
}

/// The makers of a loop that can alternate; `None` if some other tensor that it carries is in the way.
fn alternating<'c>(op: Op<'c>) -> Option<Vec<Maker<'c>>> {
    let body = op.body()?;
    let end = body.terminator()?;
    let mut found = Vec::new();
    for number in 0..op.num_results() {
        let (argument, yielded) = (body.arg(number + 1), end.operand(number));
        if !argument.ty().is_tensor() || argument == yielded {
            continue;
        }
        found.push(maker(op, body, argument, yielded).filter(|_| is_dead(op, op.operand(BOUNDS + number)))?);
    }
    Some(found)
}

/// The dispatch of the body that makes the value in a new tensor, and reads the argument.
fn maker<'c>(op: Op<'c>, body: Block<'c>, argument: Value<'c>, yielded: Value<'c>) -> Option<Maker<'c>> {
    let forall = yielded.defining_op().filter(|op| op.is(ops::scf::FORALL) && op.block() == Some(body))?;
    let operand = forall.num_operands() - forall.num_results() + yielded.result_index()?;
    let used = forall.operand(operand);
    let is_new = used.defining_op().is_some_and(|op| op.is(ops::tensor::EMPTY));
    let is_alike = used.ty() == argument.ty() && used.ty().static_size_bytes().is_some_and(|bytes| bytes > 0);
    let is_read = argument.uses().iter().any(|used| used.op.is_inside(forall));
    // What each tile reads where it writes is made in the argument's buffer.
    let is_in_place = own_tiles(forall).iter().any(|tile| tile.used.index == operand && tile.value == argument);
    // Another value of the loop may be the argument, too.
    let is_handed_on = argument.uses().iter().any(|used| Some(used.op) == body.terminator());
    let yields = yielded.uses().iter().filter(|used| Some(used.op) == body.terminator()).count();
    let alternates = is_new && is_alike && is_read && !is_in_place && !is_handed_on && yields == 1;
    (alternates && op.block().is_some()).then_some(Maker { op: forall, operand, argument })
}

/// Whether nothing uses the initial value of a loop inside of it or behind it.
fn is_dead<'c>(op: Op<'c>, value: Value<'c>) -> bool {
    value.block() == op.block()
        && value.uses().iter().all(|used| {
            let mut at = Some(used.op);
            while let Some(other) = at.filter(|other| other.block() != op.block()) {
                at = other.parent();
            }
            // The loop itself uses it once.
            let is_init = used.op == op;
            is_init || at.is_some_and(|other| other != op && other.is_before_in_block(op))
        })
        && value.uses().iter().filter(|used| used.op == op).count() == 1
}

/// The loop with a new tensor more for each maker.
fn extend<'c>(rw: &mut Rewriter<'c>, op: Op<'c>, makers: &[Maker<'c>]) -> Result<(), Diagnostics> {
    let (Some(body), loc) = (op.body(), op.location()) else { return Ok(()) };
    let Some(end) = body.terminator() else { return Ok(()) };
    rw.set_point(InsertionPoint::Before(op));
    let (mut operands, mut yielded) = (op.operands(), end.operands());
    let mut types: Vec<_> = op.results().iter().map(|result| result.ty()).collect();
    for maker in makers {
        let ty = maker.argument.ty();
        operands.push(rw.create(OpSpec::new(ops::tensor::EMPTY, loc).results(&[ty]))?.result(0));
        types.push(ty);
        yielded.push(maker.argument);
    }
    for maker in makers {
        let second = rw.add_block_arg(body, maker.argument.ty(), loc);
        rw.set_operand(maker.op, maker.operand, second);
    }
    rw.set_operands(end, &yielded);
    let spec = OpSpec::new(ops::scf::FOR, loc).operands(&operands).results(&types).attrs(&op.attrs());
    rw.set_point(InsertionPoint::Before(op));
    let new = rw.create(spec.region(Region::new()))?;
    rw.take_region(new.region(0), op.region(0));
    let results = new.results();
    rw.replace_op(op, &results[..results.len() - makers.len()]);
    Ok(())
}
