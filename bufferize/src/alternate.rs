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
//! (`loop_copies.rs`), and nothing is allocated in the loop. The region before the condition of a `scf.while` hands the second
//! tensor on as it does the first.
//!
//! Requires: functions on tensors, before bufferization. Ensures: the same values.
//! Limits: `scf.for`, and `scf.while` whose condition forwards its tensors in their order; tensors of the argument's size, which
//! dispatches make in a `tensor.empty` from the argument, not in the argument's place (`own_tiles.rs`); initial values that nothing
//! uses within the loop or behind it; all other tensors that the loop carries are yielded as they are.

use monopour_ir::{
    Block, DYNAMIC, Diagnostics, InsertionPoint, Location, Op, OpSpec, Region, Rewriter, Type, Value, ops,
};
use tracing::trace;

use crate::own_tiles::own_tiles;

/// Operands of `scf.for` before the initial values.
const BOUNDS: usize = 3;
/// Operands of `scf.condition` before those that it forwards.
const CONDITION: usize = 1;

/// Gives loops of a function second buffers; returns how many.
///
/// # Errors
/// MLIR's, for an op that does not build.
pub(crate) fn run(function: Op) -> Result<usize, Diagnostics> {
    let mut rw = Rewriter::new(function.context());
    let mut count = 0;
    for op in [ops::scf::FOR, ops::scf::WHILE].into_iter().flat_map(|name| function.find_all(name)) {
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
    init: Value<'c>,
}

/// The block whose yield begins the next iteration, and its number of arguments that the loop does not carry.
fn repeated<'c>(op: Op<'c>) -> Option<(Block<'c>, usize)> {
    if op.is(ops::scf::FOR) {
        return Some((op.body()?, 1));
    }
    let [before, after] = op.regions()[..] else { return None };
    let (before, after) = (before.entry()?, after.entry()?);
    let forwarded = before.terminator()?.operands().split_off(CONDITION);
    let is_own = |(at, value): (usize, &Value)| !value.ty().is_tensor() || before.args().get(at) == Some(value);
    let are_carried = before.args().iter().enumerate().all(|(at, argument)| {
        let is_handed_on = forwarded.get(at) == Some(argument);
        !argument.ty().is_tensor() || is_handed_on
    });
    (forwarded.iter().enumerate().all(is_own) && are_carried).then_some((after, 0))
}

/// The makers of a loop that can alternate; `None` if some other tensor that it carries is in the way.
fn alternating<'c>(op: Op<'c>) -> Option<Vec<Maker<'c>>> {
    let (body, first) = repeated(op)?;
    let end = body.terminator()?;
    let inits = op.operands().split_off(if op.is(ops::scf::FOR) { BOUNDS } else { 0 });
    let mut found = Vec::new();
    for (number, init) in inits.into_iter().enumerate().filter(|(_, init)| init.ty().is_tensor()) {
        let (argument, yielded) = (body.args().get(number + first).copied()?, end.operand(number));
        if argument == yielded {
            continue;
        }
        found.push(maker(op, (body, argument), yielded, init).filter(|_| is_dead(op, init))?);
    }
    Some(found)
}

/// The dispatch of the body that makes the value in a new tensor, and reads the argument.
fn maker<'c>(
    op: Op<'c>,
    (body, argument): (Block<'c>, Value<'c>),
    yielded: Value<'c>,
    init: Value<'c>,
) -> Option<Maker<'c>> {
    let forall = yielded.defining_op().filter(|op| op.is(ops::scf::FORALL) && op.block() == Some(body))?;
    let operand = forall.num_operands() - forall.num_results() + yielded.result_index()?;
    let used = forall.operand(operand);
    let is_new = used.defining_op().is_some_and(|op| op.is(ops::tensor::EMPTY));
    let carried = Carried { argument, init };
    let is_alike = used.ty() == argument.ty()
        && used.ty() == init.ty()
        && used.ty().static_size_bytes().is_none_or(|bytes| bytes > 0)
        && carried.has_size_of(used);
    let is_read = argument.uses().iter().any(|used| used.op.is_inside(forall));
    // What each tile reads where it writes is made in the argument's buffer.
    let is_in_place = own_tiles(forall).iter().any(|tile| tile.used.index == operand && tile.value == argument);
    // Another value of the loop may be the argument, too.
    let is_handed_on = argument.uses().iter().any(|used| Some(used.op) == body.terminator());
    let yields = yielded.uses().iter().filter(|used| Some(used.op) == body.terminator()).count();
    let alternates = is_new && is_alike && is_read && !is_in_place && !is_handed_on && yields == 1;
    (alternates && op.block().is_some()).then_some(Maker { op: forall, operand, argument, init })
}

/// A tensor that a loop carries, of one shape if what is yielded has that of the argument.
struct Carried<'c> {
    argument: Value<'c>,
    init: Value<'c>,
}

/// What a dynamic size is equal to.
#[derive(PartialEq, Eq)]
enum Size<'c> {
    Value(Value<'c>),
    /// Of this dimension.
    Of(Value<'c>, usize),
}

impl<'c> Carried<'c> {
    /// Whether a new tensor has the sizes of the argument, whose types are equal.
    fn has_size_of(&self, new: Value<'c>) -> bool {
        let shape = new.ty().shape().unwrap_or_default();
        let dynamic = shape.iter().enumerate().filter(|(_, size)| **size == DYNAMIC);
        dynamic.into_iter().all(|(at, _)| self.size(new, at) == self.size(self.argument, at))
    }

    fn size(&self, mut tensor: Value<'c>, mut at: usize) -> Size<'c> {
        loop {
            if tensor == self.argument {
                tensor = self.init;
            }
            let Some(op) = tensor.defining_op() else { return Size::Of(tensor, at) };
            if op.is(ops::scf::FORALL) {
                let number = tensor.result_index().unwrap_or(0);
                tensor = op.operand(op.num_operands() - op.num_results() + number);
                continue;
            }
            if !op.is(ops::tensor::EMPTY) {
                return Size::Of(tensor, at);
            }
            let shape = tensor.ty().shape().unwrap_or_default();
            let before = shape[..at].iter().filter(|size| **size == DYNAMIC).count();
            let size = op.operand(before);
            let Some(dim) = size.defining_op().filter(|op| op.is(ops::tensor::DIM)) else { return Size::Value(size) };
            let Some(of) = dim.operand(1).constant_int().and_then(|of| usize::try_from(of).ok()) else {
                return Size::Value(size);
            };
            (tensor, at) = (dim.operand(0), of);
        }
    }
}

/// Whether nothing uses the initial value of a loop behind it, and nothing but its sizes is used inside of it.
fn is_dead<'c>(op: Op<'c>, value: Value<'c>) -> bool {
    value.block() == op.block()
        && value.uses().iter().all(|used| {
            let at = used.op.beside(op);
            // The loop itself uses it once.
            let is_init = used.op == op;
            let is_size_inside = at == Some(op) && used.op.is(ops::tensor::DIM);
            is_init || is_size_inside || at.is_some_and(|other| other != op && other.is_before_in_block(op))
        })
        && value.uses().iter().filter(|used| used.op == op).count() == 1
}

/// The loop with a new tensor more for each maker.
fn extend<'c>(rw: &mut Rewriter<'c>, op: Op<'c>, makers: &[Maker<'c>]) -> Result<(), Diagnostics> {
    let (Some((body, _)), loc) = (repeated(op), op.location()) else { return Ok(()) };
    let Some(end) = body.terminator() else { return Ok(()) };
    rw.set_point(InsertionPoint::Before(op));
    let (mut operands, mut yielded) = (op.operands(), end.operands());
    let mut types: Vec<_> = op.results().iter().map(|result| result.ty()).collect();
    for maker in makers {
        let ty = maker.argument.ty();
        let sizes = sizes(rw, maker.init, loc)?;
        let spec = OpSpec::new(ops::tensor::EMPTY, loc).operands(&sizes).results(&[ty]);
        operands.push(rw.create(spec)?.result(0));
        types.push(ty);
        yielded.push(maker.argument);
    }
    for maker in makers {
        let second = rw.add_block_arg(body, maker.argument.ty(), loc);
        rw.set_operand(maker.op, maker.operand, second);
    }
    if let Some(before) = op.regions().first().and_then(|region| region.entry()).filter(|before| *before != body) {
        let condition = before.terminator().filter(|end| end.is(ops::scf::CONDITION));
        let mut forwarded = condition.map(|end| end.operands()).unwrap_or_default();
        forwarded.extend(makers.iter().map(|maker| rw.add_block_arg(before, maker.argument.ty(), loc)));
        condition.into_iter().for_each(|end| rw.set_operands(end, &forwarded));
    }
    rw.set_operands(end, &yielded);
    let mut spec = OpSpec::new(op.name(), loc).operands(&operands).results(&types).attrs(&op.attrs());
    for _ in op.regions() {
        spec = spec.region(Region::new());
    }
    rw.set_point(InsertionPoint::Before(op));
    let new = rw.create(spec)?;
    for (to, from) in new.regions().into_iter().zip(op.regions()) {
        rw.take_region(to, from);
    }
    let results = new.results();
    rw.replace_op(op, &results[..results.len() - makers.len()]);
    Ok(())
}

/// The dynamic sizes of a tensor.
fn sizes<'c>(rw: &mut Rewriter<'c>, of: Value<'c>, loc: Location<'c>) -> Result<Vec<Value<'c>>, Diagnostics> {
    let shape = of.ty().shape().unwrap_or_default();
    let dynamic = shape.into_iter().enumerate().filter(|(_, size)| *size == DYNAMIC);
    let mut size = |at: usize| {
        let position = rw.const_index(at as i64, loc);
        let index = Type::index(rw.context());
        rw.create(OpSpec::new(ops::tensor::DIM, loc).operands(&[of, position]).results(&[index])).map(|op| op.result(0))
    };
    dynamic.into_iter().map(|(at, _)| size(at)).collect()
}
