//! Branches between blocks: an indicator goes with each memref that becomes a block argument.
//!
//! ```text
//! cf.cond_br %c, ^a(%m : memref<4xf32>), ^b    ==>    %t = arith.andi %own, %c
//!                                                     %1 = bufferization.dealloc (%base) if (%t) retain (%m)
//!                                                     %n = arith.xori %c, %true
//!                                                     %e = arith.andi %own, %n
//!                                                     bufferization.dealloc (%base) if (%e)
//!                                                     cf.cond_br %c, ^a(%m, %1 : memref<4xf32>, i1), ^b
//! ```

use monopour_ir::ops;
use std::collections::HashMap;

use monopour_ir::control_flow::{Traits, successor_operands};
use monopour_ir::typed::arith::CmpIPredicate;
use monopour_ir::{Attr, Diagnostics, Op, OpSpec, Value};

use super::OwnershipModel;
use crate::state::{State, unpassable};

/// `BranchOpInterface` with one successor.
pub(super) struct Branch;

impl OwnershipModel for Branch {
    fn describes(&self, _op: Op, traits: Traits) -> bool {
        traits.is_branch()
    }

    fn process<'c>(&self, op: Op<'c>, state: &mut State<'c, '_>) -> Result<Op<'c>, Diagnostics> {
        let freeable = state.freeable(op)?;
        let indicators = state.dealloc(op, &freeable, Some(0))?;
        for (value, indicator) in &indicators.retained {
            state.take_over(op, *value, *indicator);
        }
        pass_on(op, 0, &indicators.forwarded, state)?;
        Ok(op)
    }
}

/// Appends indicators to the operands of a successor.
fn pass_on<'c>(
    op: Op<'c>,
    successor: usize,
    indicators: &[Value<'c>],
    state: &mut State<'c, '_>,
) -> Result<(), Diagnostics> {
    if indicators.is_empty() {
        return Ok(());
    }
    let mut operands = successor_operands(op, successor).ok_or_else(|| unpassable(op))?.of(op);
    operands.extend(indicators);
    state.rewriter().set_successor_operands(op, successor, &operands);
    Ok(())
}

/// `cf.cond_br` and `cf.switch`: the frees depend on the successor.
pub(super) struct ConditionalBranch;

impl OwnershipModel for ConditionalBranch {
    fn process<'c>(&self, op: Op<'c>, state: &mut State<'c, '_>) -> Result<Op<'c>, Diagnostics> {
        let freeable = state.freeable(op)?;
        let count = op.successors().len();
        let mut taken = Vec::with_capacity(count);
        let mut by_value: HashMap<Value, Vec<(usize, Value)>> = HashMap::new();
        let mut passed = Vec::with_capacity(count);
        let mut lists = Vec::with_capacity(count);
        for successor in 0..count {
            let is_taken = condition(op, successor, &taken, state)?;
            taken.push(is_taken);
            let mut adapted = freeable.clone();
            for indicator in &mut adapted.conditions {
                *indicator = and(op, *indicator, is_taken, state)?;
            }
            let indicators = state.dealloc(op, &adapted, Some(successor))?;
            lists.push(indicators.retained.iter().map(|(value, _)| *value).collect::<Vec<_>>());
            for (value, indicator) in indicators.retained {
                let of_value = by_value.entry(value).or_default();
                // One memref may be forwarded and live: its first result counts.
                if of_value.last().is_none_or(|(last, _)| *last != successor) {
                    of_value.push((successor, indicator));
                }
            }
            passed.push(indicators.forwarded);
        }
        // In the order of the last successor, as in upstream.
        for value in lists.into_iter().rev().flatten() {
            let Some(of_value) = by_value.remove(&value) else { continue };
            let indicator = merged(op, &of_value, &taken, state)?;
            state.take_over(op, value, indicator);
        }
        for (successor, indicators) in passed.iter().enumerate() {
            pass_on(op, successor, indicators, state)?;
        }
        Ok(op)
    }
}

/// Whether a successor is taken. `earlier`: the same for the earlier successors.
fn condition<'c>(
    op: Op<'c>,
    successor: usize,
    earlier: &[Value<'c>],
    state: &mut State<'c, '_>,
) -> Result<Value<'c>, Diagnostics> {
    if op.is(ops::cf::COND_BR) {
        return if successor == 0 { Ok(op.operand(0)) } else { not(op, op.operand(0), state) };
    }
    let cases = op.attr("case_values").map_or(vec![], integers);
    let flag = op.operand(0);
    // The default comes first: none of the cases.
    if let Some(case) = successor.checked_sub(1).and_then(|i| cases.get(i)) {
        return equals(op, flag, *case, state);
    }
    debug_assert!(earlier.is_empty(), "the default of a switch is its first successor");
    let mut any = None;
    for case in &cases {
        let is_case = equals(op, flag, *case, state)?;
        any = Some(match any {
            None => is_case,
            Some(before) => state.before(op).binary(ops::arith::ORI, before, is_case, op.location())?,
        });
    }
    match (any, op.block()) {
        (Some(any), _) => not(op, any, state),
        (None, Some(block)) => Ok(state.constant(block, true)),
        (None, None) => Err(unpassable(op).into()),
    }
}

fn integers<'c>(cases: Attr<'c>) -> Vec<Attr<'c>> {
    let ty = cases.value_type().element();
    cases.as_ints().unwrap_or_default().into_iter().map(|case| Attr::int(ty, case)).collect()
}

fn equals<'c>(
    op: Op<'c>,
    flag: Value<'c>,
    case: Attr<'c>,
    state: &mut State<'c, '_>,
) -> Result<Value<'c>, Diagnostics> {
    let loc = op.location();
    let number =
        state.create_before(op, OpSpec::new(ops::arith::CONSTANT, loc).results(&[flag.ty()]).attr("value", case))?;
    let bit = state.bit();
    let spec = OpSpec::new(ops::arith::CMPI, loc)
        .operands(&[flag, number.result(0)])
        .results(&[bit])
        .attr("predicate", CmpIPredicate::Eq.to_attr(op.context()));
    Ok(state.create_before(op, spec)?.result(0))
}

fn not<'c>(op: Op<'c>, condition: Value<'c>, state: &mut State<'c, '_>) -> Result<Value<'c>, Diagnostics> {
    let block = op.block().ok_or_else(|| unpassable(op))?;
    let always = state.constant(block, true);
    state.before(op).binary(ops::arith::XORI, condition, always, op.location())
}

fn and<'c>(op: Op<'c>, a: Value<'c>, b: Value<'c>, state: &mut State<'c, '_>) -> Result<Value<'c>, Diagnostics> {
    state.before(op).binary(ops::arith::ANDI, a, b, op.location())
}

/// The indicator of a memref that several successors may retain: that of the taken one.
fn merged<'c>(
    op: Op<'c>,
    of_value: &[(usize, Value<'c>)],
    taken: &[Value<'c>],
    state: &mut State<'c, '_>,
) -> Result<Value<'c>, Diagnostics> {
    let mut later = of_value.iter().rev();
    let Some((_, mut indicator)) = later.next().copied() else { return Err(unpassable(op).into()) };
    for (successor, own) in later {
        let spec = OpSpec::new(ops::arith::SELECT, op.location())
            .operands(&[taken[*successor], *own, indicator])
            .results(&[indicator.ty()]);
        indicator = state.create_before(op, spec)?.result(0);
    }
    Ok(indicator)
}
