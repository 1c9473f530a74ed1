//! Lets a run end in the middle of a counted loop of the host function.
//!
//! Before / after:
//!
//! ```mlir
//! scf.for %i = %a to %b step %s {        scf.while (%i = %a) : (i64) -> i64 {
//!   ..                                     %less = arith.cmpi slt, %i, %b
//! }                                        %ok = func.call @monopour_rt_ok(%cx)     (and as a truth value, %goes)
//!                                          %both = arith.andi %less, %goes
//!                                          scf.condition(%both) %i
//!                                        } do {
//!                                        ^bb0(%i: i64):
//!                                          ..
//!                                          %next = arith.addi %i, %s
//!                                          scf.yield %next
//!                                        }
//! ```
//!
//! After an error every call of the runtime does nothing, and a cancelled run has to end: a loop of a billion trips must not go
//! on with calls that do nothing. A call takes a nanosecond or two; the host function as data counts its steps itself.
//!
//! Requires: a scheduled host function, whose first argument is the run's context; before it is cut. Kernels are left as they are.
//! Ensures: every loop of the host function asks, before each trip, whether the run goes on; its results are otherwise the same.

use monopour_contract::RuntimeFunction;
use monopour_ir::ops;
use monopour_ir::typed::arith::CmpIPredicate;
use monopour_ir::{
    Attr, Block, Diagnostics, InsertionPoint, Location, Module, Op, OpSpec, Region, Rewriter, Type, Value, WalkOrder,
};

/// Rewrites the counted loops of the function `host` of `module`.
///
/// # Errors
/// None on verified IR; MLIR's diagnostics otherwise.
pub(crate) fn run(module: &Module, host: &str) -> Result<(), Diagnostics> {
    let Some(func) = module.symbol(host) else { return Ok(()) };
    let Some(run) = func.body().and_then(|body| body.args().first().copied()) else { return Ok(()) };
    let loops: Vec<Op> = func.nested(WalkOrder::Post).into_iter().filter(|op| op.is(ops::scf::FOR)).collect();
    if loops.is_empty() {
        return Ok(());
    }
    let mut rw = Rewriter::new(module.context());
    if module.symbol(RuntimeFunction::Ok.name()).is_none() {
        declare(&mut rw, module.body())?;
    }
    loops.into_iter().try_for_each(|counted| rewrite(&mut rw, counted, run))
}

/// Declares the function that says whether the run goes on.
fn declare<'c>(rw: &mut Rewriter<'c>, module: Block<'c>) -> Result<(), Diagnostics> {
    let cx = rw.context();
    let word = Type::integer(cx, 64);
    rw.set_point(InsertionPoint::End(module));
    let spec = OpSpec::new(ops::func::FUNC, Location::unknown(cx))
        .attr("sym_name", Attr::string(cx, RuntimeFunction::Ok.name()))
        .attr("function_type", Attr::ty(Type::function(cx, &[word], &[word])))
        .attr("sym_visibility", Attr::string(cx, "private"))
        .region(Region::new());
    rw.create(spec)?;
    Ok(())
}

/// Rewrites one loop of a run.
fn rewrite<'c>(rw: &mut Rewriter<'c>, counted: Op<'c>, run: Value<'c>) -> Result<(), Diagnostics> {
    let (cx, loc) = (rw.context(), counted.location());
    let (upper, step) = (counted.operand(1), counted.operand(2));
    let mut inits = counted.operands();
    inits.drain(1..3);
    let types: Vec<Type> = inits.iter().map(|value| value.ty()).collect();

    let before = Block::new(&types.iter().map(|ty| (*ty, loc)).collect::<Vec<_>>());
    rw.set_point(InsertionPoint::End(before));
    let predicate = if counted.attr("unsignedCmp").is_some() { CmpIPredicate::Ult } else { CmpIPredicate::Slt };
    let truth = Type::integer(cx, 1);
    let compare = |operands: [Value<'c>; 2], predicate: CmpIPredicate| {
        let spec = OpSpec::new(ops::arith::CMPI, loc).attr("predicate", predicate.to_attr(cx));
        spec.operands(&operands).results(&[truth])
    };
    let less = rw.create(compare([before.args()[0], upper], predicate))?.result(0);
    let callee = Attr::symbol(cx, RuntimeFunction::Ok.name());
    let asked = OpSpec::new(ops::func::CALL, loc).attr("callee", callee).operands(&[run]);
    let asked = rw.create(asked.results(&[Type::integer(cx, 64)]))?.result(0);
    let goes = rw.create(OpSpec::new(ops::arith::TRUNCI, loc).operands(&[asked]).results(&[truth]))?.result(0);
    let both = rw.create(OpSpec::new(ops::arith::ANDI, loc).operands(&[less, goes]).results(&[truth]))?.result(0);
    let passed: Vec<Value> = std::iter::once(both).chain(before.args()).collect();
    rw.create(OpSpec::new(ops::scf::CONDITION, loc).operands(&passed))?;

    let body = counted.body().expect("a loop has a body: verified");
    let end = body.ops().pop().expect("a block has a terminator: verified");
    rw.set_point(InsertionPoint::Before(end));
    let counter = body.args()[0];
    let next = OpSpec::new(ops::arith::ADDI, loc).operands(&[counter, step]).results(&[counter.ty()]);
    let next = rw.create(next)?.result(0);
    let yielded: Vec<Value> = std::iter::once(next).chain(end.operands()).collect();
    rw.set_operands(end, &yielded);

    let (first, second) = (Region::new(), Region::new());
    first.append(before);
    rw.take_region(second, counted.regions()[0]);
    rw.set_point(InsertionPoint::Before(counted));
    let spec = OpSpec::new(ops::scf::WHILE, loc).operands(&inits).results(&types).region(first).region(second);
    let results = rw.create(spec)?.results();
    rw.replace_op(counted, &results[1..]);
    Ok(())
}
