//! How the ops of `scf` and `affine`, and `memref.alloca_scope`, forward memrefs between their regions.

use monopour_ir::ops;
use monopour_ir::typed::affine;
use monopour_ir::{Op, Value};

/// The receiver of forwarded memrefs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target<'c> {
    /// The region of an operation with this number.
    Region(Op<'c>, usize),
    /// The results of an operation.
    Results(Op<'c>),
    /// The caller of the function.
    Caller,
}

/// The memrefs that an operation forwards into its regions, or a terminator out of one.
#[derive(Clone, Debug)]
pub(super) struct RegionFlow<'c> {
    pub(super) sources: Vec<Value<'c>>,
    /// For each target, the values that receive the sources.
    pub(super) targets: Vec<(Target<'c>, Vec<Value<'c>>)>,
}

fn memrefs<'c>(values: Vec<Value<'c>>) -> Vec<Value<'c>> {
    values.into_iter().filter(|v| v.ty().is_memref()).collect()
}

fn arguments<'c>(op: Op<'c>, region: usize) -> (Target<'c>, Vec<Value<'c>>) {
    let args = op.regions().get(region).and_then(|r| r.entry()).map_or(vec![], |b| b.args());
    (Target::Region(op, region), memrefs(args))
}

fn results<'c>(op: Op<'c>) -> (Target<'c>, Vec<Value<'c>>) {
    (Target::Results(op), memrefs(op.results()))
}

/// How an operation enters its regions, or a terminator leaves one; `None` if unknown.
pub(super) fn flow_of<'c>(op: Op<'c>) -> Option<RegionFlow<'c>> {
    if op.is_terminator() { leaving(op) } else { entering(op) }
}

fn entering<'c>(op: Op<'c>) -> Option<RegionFlow<'c>> {
    let (sources, targets) = match op.name() {
        ops::scf::IF
        | ops::scf::INDEX_SWITCH
        | ops::scf::EXECUTE_REGION
        | ops::affine::IF
        | ops::memref::ALLOCA_SCOPE => (vec![], (0..op.num_regions()).map(|r| arguments(op, r)).collect()),
        ops::scf::FOR => (memrefs(op.operands().split_off(3)), vec![arguments(op, 0), results(op)]),
        ops::affine::FOR => (
            memrefs(op.operands().split_off(affine::For::of(op)?.init_positions().start)),
            vec![arguments(op, 0), results(op)],
        ),
        ops::scf::WHILE => (memrefs(op.operands()), vec![arguments(op, 0)]),
        _ => return None,
    };
    Some(RegionFlow { sources, targets })
}

fn leaving<'c>(op: Op<'c>) -> Option<RegionFlow<'c>> {
    let parent = op.parent()?;
    let (sources, targets) = match (op.name(), parent.name()) {
        (ops::func::RETURN, _) => (op.operands(), vec![(Target::Caller, vec![])]),
        (ops::scf::YIELD, ops::scf::IF | ops::scf::INDEX_SWITCH | ops::scf::EXECUTE_REGION)
        | (ops::affine::YIELD, ops::affine::IF)
        | (ops::memref::ALLOCA_SCOPE_RETURN, ops::memref::ALLOCA_SCOPE) => (op.operands(), vec![results(parent)]),
        (ops::scf::YIELD, ops::scf::FOR) | (ops::affine::YIELD, ops::affine::FOR) => {
            (op.operands(), vec![arguments(parent, 0), results(parent)])
        }
        (ops::scf::YIELD, ops::scf::WHILE) => (op.operands(), vec![arguments(parent, 0)]),
        (ops::scf::CONDITION, ops::scf::WHILE) => {
            (op.operands().split_off(1), vec![arguments(parent, 1), results(parent)])
        }
        _ => return None,
    };
    Some(RegionFlow { sources: memrefs(sources), targets })
}
