//! Drops kernels for rows of whole vectors that access memory as the kernels for all sizes do.
//!
//! Before: `scf.if %fits { scf.forall .. @main_dispatch_0_whole } else { scf.forall .. @main_dispatch_0 }`
//! After: `scf.forall .. @main_dispatch_0`
//! Requires: distributed kernels, whose calls are not lowered yet.

use super::KernelReport;
use super::boundary::Border;
use monopour_contract::attributes;
use monopour_ir::ops;
use monopour_ir::{Module, Op, Rewriter, Value, WalkOrder};

/// Drops the kernels, their dispatches and their reports.
pub(super) fn drop_equal(module: &Module, done: &mut Vec<(KernelReport, Border)>) {
    let mut rw = Rewriter::new(module.context());
    let symbols = module.symbols();
    let general = |name: &str| {
        let whole = symbols.get(name).copied()?;
        let general = whole.attr(attributes::GENERAL)?.as_string()?.to_owned();
        Some((whole, symbols.get(&general).copied()?))
    };
    done.retain(|(entry, _)| {
        let Some((whole, general)) = general(&entry.name) else { return true };
        if accesses(whole) != accesses(general) {
            return true;
        }
        for call in calls(module, &entry.name) {
            take_general(&mut rw, call);
        }
        rw.erase(whole);
        false
    });
}

/// Number of the accesses of each kind: accesses of single elements are more.
fn accesses(kernel: Op) -> [usize; 4] {
    let names = kernel.nested(WalkOrder::Pre).into_iter().map(Op::name).collect::<Vec<_>>();
    [ops::memref::LOAD, ops::memref::STORE, ops::vector::LOAD, ops::vector::STORE]
        .map(|name| names.iter().filter(|n| **n == name).count())
}

fn calls<'c>(module: &'c Module<'c>, name: &str) -> Vec<Op<'c>> {
    module.op().find_all(ops::func::CALL).into_iter().filter(|call| call.callee() == Some(name)).collect()
}

/// Replaces the condition around a call's dispatch by the other dispatch.
fn take_general<'c>(rw: &mut Rewriter<'c>, call: Op<'c>) {
    let Some(branch) = call.ancestor(ops::scf::IF) else { return };
    let otherwise = branch.regions().get(1).and_then(|region| region.entry());
    let dispatch = otherwise.and_then(|block| block.first_op()).filter(|op| op.is(ops::scf::FORALL));
    let Some(dispatch) = dispatch else { return };
    rw.move_before(dispatch, branch);
    let condition = branch.operand(0);
    rw.erase(branch);
    erase_unused(rw, condition);
}

/// Erases the arithmetic that computes a value, as far as nothing else uses it.
fn erase_unused<'c>(rw: &mut Rewriter<'c>, value: Value<'c>) {
    let unused = value.defining_op().filter(|op| value.is_unused() && op.dialect() == "arith");
    if let Some(op) = unused {
        let operands = op.operands();
        rw.erase(op);
        operands.into_iter().for_each(|operand| erase_unused(rw, operand));
    }
}
