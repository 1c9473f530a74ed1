//! Structured control flow of `scf` to blocks and branches of `cf`.
//!
//! ```text
//! %r = scf.for %i = %lb to %ub step %st                 cf.br ^head(%lb, %x : index, f32)
//!     iter_args(%a = %x) -> (f32) {                    ^head(%i: index, %a: f32):
//!   ..                                                   %p = arith.cmpi slt, %i, %ub : index
//!   scf.yield %b : f32                         ==>       cf.cond_br %p, ^body, ^rest
//! }                                                    ^body:
//! ..                                                     ..
//!                                                        %n = arith.addi %i, %st : index
//!                                                        cf.br ^head(%n, %b : index, f32)
//!                                                      ^rest:
//!                                                        ..
//! ```
//!
//! Operands are read in their original types: converting the blocks' types is left to the patterns of `cf`.
//! `scf.parallel` becomes a nest of `scf.for` first. Limits: no `scf.forall`.

use monopour_ir::conversion::{
    ConversionRewriter, ConversionStats, ConversionTarget, Declined, Mode, PatternSet, convert as run,
};
use monopour_ir::{
    Attr, Block, Context, Diagnostics, InsertionPoint, Location, Op, OpParts, OpSpec, OpTemplate, Region, Type, Value,
};
use smallvec::SmallVec;
use std::rc::Rc;

/// Templates of the ops created for every loop and choice.
struct Templates<'c> {
    branch: OpTemplate<'c>,
    /// Forwards no operands to either successor.
    conditional: OpTemplate<'c>,
    signed_less: OpTemplate<'c>,
    unsigned_less: OpTemplate<'c>,
    add: OpTemplate<'c>,
    i1: Type<'c>,
}

impl<'c> Templates<'c> {
    fn new(cx: Context<'c>) -> Self {
        let spec = |name| OpSpec::new(name, Location::unknown(cx));
        let template = |spec| OpTemplate::new(cx, spec).expect("no types are inferred");
        let less = |predicate| template(spec("arith.cmpi").attr("predicate", Attr::i64(cx, predicate)));
        let nothing = Attr::dense_i32(cx, &[1, 0, 0]);
        Self {
            branch: template(spec("cf.br")),
            conditional: template(spec("cf.cond_br").attr("operandSegmentSizes", nothing)),
            signed_less: less(SIGNED_LESS),
            unsigned_less: less(UNSIGNED_LESS),
            add: template(spec("arith.addi")),
            i1: Type::integer(cx, 1),
        }
    }
    fn branch(
        &self,
        rw: &mut ConversionRewriter<'c>,
        at: InsertionPoint<'c>,
        to: Block<'c>,
        values: &[Value<'c>],
        loc: Location<'c>,
    ) -> Op<'c> {
        rw.set_point(at);
        rw.create_like(&self.branch, loc, OpParts { operands: values, successors: &[to], ..OpParts::default() })
    }
    /// A conditional branch to blocks without arguments.
    fn conditional(
        &self,
        rw: &mut ConversionRewriter<'c>,
        condition: Value<'c>,
        to: [Block<'c>; 2],
        loc: Location<'c>,
    ) {
        let parts = OpParts { operands: &[condition], successors: &to, ..OpParts::default() };
        rw.create_like(&self.conditional, loc, parts);
    }
    /// A terminator that forwards values becomes a branch that does.
    fn replace_end(&self, rw: &mut ConversionRewriter<'c>, end: Op<'c>, to: Block<'c>) {
        rw.turn_into(end, &self.branch, &[], &[to]);
    }
}

/// All patterns.
pub fn patterns<'c>(cx: Context<'c>) -> PatternSet<'c, 'c> {
    let mut set = PatternSet::new();
    add_patterns(&mut set, cx);
    set.confine();
    set
}

/// Adds the patterns to others.
pub fn add_patterns<'c>(set: &mut PatternSet<'c, '_>, cx: Context<'c>) {
    type Convert = for<'c> fn(&Templates<'c>, Op<'c>, &mut ConversionRewriter<'c>) -> Result<(), Declined>;
    let templates = Rc::new(Templates::new(cx));
    let all: [(&str, Convert); 6] = [
        ("scf.for", convert_for),
        ("scf.if", convert_if),
        ("scf.while", convert_while),
        ("scf.index_switch", convert_index_switch),
        ("scf.execute_region", convert_execute_region),
        ("scf.parallel", |_, op, rw| convert_parallel(op, rw)),
    ];
    for (name, convert) in all {
        let templates = templates.clone();
        set.add_op_fn(name, move |op, rw| convert(&templates, op, rw));
    }
}

/// Nothing of `scf` may remain.
pub fn target<'c>() -> ConversionTarget<'c, 'static> {
    let mut target = ConversionTarget::new();
    target.illegal_dialect("scf");
    target
}

/// Converts a module in place, fully.
pub fn convert(module: Op) -> Result<ConversionStats, Diagnostics> {
    run(module, &target(), &patterns(module.context()), Mode::Full)
}

/// The terminator of a region, which forwards its results.
fn end_of<'c>(region: Region<'c>) -> Op<'c> {
    let last = region.last().expect("the region has a block: verified");
    last.last_op().expect("a block of scf ends in a terminator: verified")
}

/// A conditional branch; each successor with its operands.
fn conditional<'c>(
    rw: &mut ConversionRewriter<'c>,
    condition: Value<'c>,
    then: (Block<'c>, &[Value<'c>]),
    other: (Block<'c>, &[Value<'c>]),
    loc: Location<'c>,
) -> Result<Op<'c>, Declined> {
    let count = |values: &[Value<'c>]| i32::try_from(values.len()).expect("operands fit 32 bits");
    let sizes = Attr::dense_i32(rw.context(), &[1, count(then.1), count(other.1)]);
    let spec = OpSpec::new("cf.cond_br", loc).operands(&[condition]).operands(then.1).operands(other.1);
    Ok(rw.create(spec.successor(then.0).successor(other.0).attr("operandSegmentSizes", sizes))?)
}

/// The loop's attributes for LLVM move to the back edge.
fn copy_loop_attrs<'c>(rw: &mut ConversionRewriter<'c>, from: Op<'c>, to: Op<'c>) {
    for (name, value) in from.discardable_attrs() {
        if name.starts_with("llvm.") {
            rw.set_attr(to, name, value);
        }
    }
}

/// `slt` and `ult` of `arith.cmpi`.
const SIGNED_LESS: i64 = 2;
const UNSIGNED_LESS: i64 = 6;

fn convert_for<'c>(made: &Templates<'c>, op: Op<'c>, rw: &mut ConversionRewriter<'c>) -> Result<(), Declined> {
    let (mut operands, loc) = (op.operand_values(), op.location());
    let [lower, upper, step] = operands[..3] else { unreachable!("scf.for has bounds and a step: verified") };
    let (before, rest) = rw.split_block(op);
    let region = op.region(0);
    let end = end_of(region);
    // The body's first block keeps its arguments and becomes the header; its ops follow.
    let head = region.entry().expect("scf.for has a body: verified");
    let args = head.arg_values();
    let (head, body) = rw.split_block(head.first_op().expect("a body holds a terminator"));
    rw.set_point(InsertionPoint::End(head));
    let less = if op.attr("unsignedCmp").is_some() { &made.unsigned_less } else { &made.signed_less };
    let compare = OpParts { operands: &[args[0], upper], results: &[made.i1], ..OpParts::default() };
    let goes_on = rw.create_like(less, loc, compare).result(0);
    made.conditional(rw, goes_on, [body, rest], loc);
    rw.set_point(InsertionPoint::Before(end));
    let add = OpParts { operands: &[args[0], step], results: &[lower.ty()], ..OpParts::default() };
    let next = rw.create_like(&made.add, loc, add).result(0);
    let back = rw.turn_into(end, &made.branch, &[next], &[head]);
    copy_loop_attrs(rw, op, back);
    rw.inline_region_before(region, rest);
    // The initial values follow the step.
    operands[2] = lower;
    made.branch(rw, InsertionPoint::End(before), head, &operands[2..], loc);
    rw.replace_op(op, &args[1..]);
    Ok(())
}

/// With results, a block of their own takes them and branches to the rest.
fn convert_if<'c>(made: &Templates<'c>, op: Op<'c>, rw: &mut ConversionRewriter<'c>) -> Result<(), Declined> {
    let loc = op.location();
    let (before, rest) = rw.split_block(op);
    let mut join = rest;
    if op.num_results() > 0 {
        let args: SmallVec<[_; 4]> = (0..op.num_results()).map(|i| (op.result(i).ty(), loc)).collect();
        join = rw.create_block_before(rest, &args);
        made.branch(rw, InsertionPoint::End(join), rest, &[], loc);
    }
    let (then_region, else_region) = (op.region(0), op.region(1));
    let then = then_region.entry().expect("scf.if has a then block: verified");
    let other = else_region.entry().unwrap_or(join);
    made.replace_end(rw, end_of(then_region), join);
    if other != join {
        made.replace_end(rw, end_of(else_region), join);
    }
    rw.inline_regions_before(&[then_region, else_region], join);
    rw.set_point(InsertionPoint::End(before));
    made.conditional(rw, op.operand(0), [then, other], loc);
    if join == rest {
        rw.erase(op);
    } else {
        rw.replace_op(op, &join.arg_values());
    }
    Ok(())
}

fn convert_while<'c>(made: &Templates<'c>, op: Op<'c>, rw: &mut ConversionRewriter<'c>) -> Result<(), Declined> {
    let loc = op.location();
    let (block, rest) = rw.split_block(op);
    let (before_region, after_region) = (op.region(0), op.region(1));
    let before = before_region.entry().expect("scf.while has a before block: verified");
    let after = after_region.entry().expect("scf.while has an after block: verified");
    let condition = end_of(before_region);
    let (goes_on, values) = (condition.operand(0), condition.operands()[1..].to_vec());
    // No block for a second region that only forwards its arguments.
    let is_do_while = after.first_op().is_some_and(|first| first.is_terminator() && first.operands() == after.args());
    let mut back_to = before;
    if !is_do_while {
        let end = end_of(after_region);
        let back = rw.turn_into(end, &made.branch, &[], &[before]);
        copy_loop_attrs(rw, op, back);
        back_to = after;
    }
    rw.set_point(InsertionPoint::Before(condition));
    let leave = conditional(rw, goes_on, (back_to, &values), (rest, &[]), condition.location())?;
    rw.erase(condition);
    if is_do_while {
        copy_loop_attrs(rw, op, leave);
    }
    if is_do_while {
        rw.inline_region_before(before_region, rest);
    } else {
        rw.inline_regions_before(&[before_region, after_region], rest);
    }
    made.branch(rw, InsertionPoint::End(block), before, &op.operands(), loc);
    rw.replace_op(op, &values);
    Ok(())
}

fn convert_index_switch<'c>(made: &Templates<'c>, op: Op<'c>, rw: &mut ConversionRewriter<'c>) -> Result<(), Declined> {
    let (cx, loc) = (rw.context(), op.location());
    let cases = op.attr("cases").and_then(|cases| cases.as_ints()).expect("scf.index_switch has cases: verified");
    if cases.iter().any(|case| i32::try_from(*case).is_err()) {
        return Err(Declined::no_match("a case does not fit the 32 bits of cf.switch"));
    }
    let (before, rest) = rw.split_block(op);
    let results: Vec<Value> = op.results().iter().map(|r| rw.add_block_arg(rest, r.ty(), loc)).collect();
    let regions = op.regions();
    let mut blocks = Vec::with_capacity(regions.len());
    // The default region is the first, its block the last, and the first successor.
    for region in regions[1..].iter().chain(&regions[..1]) {
        blocks.push(region.entry().expect("every case has a block: verified"));
        made.replace_end(rw, end_of(*region), rest);
        rw.inline_region_before(*region, rest);
    }
    rw.set_point(InsertionPoint::End(before));
    let flag_ty = Type::integer(cx, 32);
    let flag = OpSpec::new("arith.index_cast", loc).operands(&[op.operand(0)]).results(&[flag_ty]);
    let flag = rw.create(flag)?.result(0);
    let mut spec = OpSpec::new("cf.switch", loc).operands(&[flag]).successor(blocks[cases.len()]);
    for block in &blocks[..cases.len()] {
        spec = spec.successor(*block);
    }
    if !cases.is_empty() {
        spec = spec.attr("case_values", case_values(cx, &cases));
    }
    spec = spec.attr("case_operand_segments", Attr::dense_i32(cx, &vec![0; cases.len()]));
    rw.create(spec.attr("operandSegmentSizes", Attr::dense_i32(cx, &[1, 0, 0])))?;
    rw.replace_op(op, &results);
    Ok(())
}

fn case_values<'c>(cx: Context<'c>, cases: &[i64]) -> Attr<'c> {
    let list: Vec<String> = cases.iter().map(i64::to_string).collect();
    let text = format!("dense<[{}]> : vector<{}xi32>", list.join(", "), cases.len());
    Attr::parse(cx, &text).expect("integers of 32 bits")
}

fn convert_execute_region<'c>(
    made: &Templates<'c>,
    op: Op<'c>,
    rw: &mut ConversionRewriter<'c>,
) -> Result<(), Declined> {
    let loc = op.location();
    let (before, rest) = rw.split_block(op);
    let results: Vec<Value> = op.results().iter().map(|r| rw.add_block_arg(rest, r.ty(), loc)).collect();
    let entry = op.body().expect("scf.execute_region has a block: verified");
    for block in op.region(0).blocks() {
        if let Some(end) = block.terminator().filter(|end| end.is("scf.yield")) {
            made.replace_end(rw, end, rest);
        }
    }
    rw.inline_region_before(op.region(0), rest);
    made.branch(rw, InsertionPoint::End(before), entry, &[], loc);
    rw.replace_op(op, &results);
    Ok(())
}

/// A nest of loops, one per dimension, which are converted later.
fn convert_parallel<'c>(op: Op<'c>, rw: &mut ConversionRewriter<'c>) -> Result<(), Declined> {
    let (loc, operands) = (op.location(), op.operands());
    let body = op.body().expect("scf.parallel has a body: verified");
    let rank = body.num_args();
    let (bounds, mut carried) = (&operands[..3 * rank], operands[3 * rank..].to_vec());
    let types: Vec<Type> = carried.iter().map(|value| value.ty()).collect();
    let mut loops: Vec<Op> = Vec::with_capacity(rank);
    for i in 0..rank {
        let mut args = vec![(bounds[i].ty(), loc)];
        args.extend(types.iter().map(|ty| (*ty, loc)));
        let (region, inner) = (Region::new(), Block::new(&args));
        region.append(inner);
        let spec = OpSpec::new("scf.for", loc).operands(&[bounds[i], bounds[rank + i], bounds[2 * rank + i]]);
        let made = rw.create(spec.operands(&carried).results(&types).region(region))?;
        loops.push(made);
        carried = inner.args()[1..].to_vec();
        rw.replace_all_uses(body.arg(i), inner.arg(0));
        rw.set_point(InsertionPoint::End(inner));
    }
    let innermost = loops[rank - 1].body().expect("just made");
    let end = end_of(op.region(0));
    for inner in body.ops() {
        if inner != end {
            rw.move_to_end(inner, innermost);
        }
    }
    let mut reduced = Vec::with_capacity(types.len());
    for (i, so_far) in carried.into_iter().enumerate() {
        reduced.push(inline_reduction(end, i, so_far, innermost, rw));
    }
    for made in loops.iter().rev() {
        rw.set_point(InsertionPoint::End(made.body().expect("just made")));
        rw.create(OpSpec::new("scf.yield", loc).operands(&reduced))?;
        reduced = made.results();
    }
    rw.replace_op(op, &reduced);
    Ok(())
}

/// Moves the ops of a reduction to the end of a block; returns the reduced value.
fn inline_reduction<'c>(
    end: Op<'c>,
    index: usize,
    so_far: Value<'c>,
    to: Block<'c>,
    rw: &mut ConversionRewriter<'c>,
) -> Value<'c> {
    let block = end.region(index).entry().expect("a reduction has a block: verified");
    rw.replace_all_uses(block.arg(0), so_far);
    rw.replace_all_uses(block.arg(1), end.operand(index));
    let result = block.terminator().expect("a reduction returns: verified").operand(0);
    for op in block.ops() {
        if !op.is_terminator() {
            rw.move_to_end(op, to);
        }
    }
    // The reduction may return one of its arguments, which are replaced by now.
    result
}
