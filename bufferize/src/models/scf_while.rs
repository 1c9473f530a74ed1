//! `scf.while`: both regions carry memrefs; the condition forwards them.

use monopour_ir::conversion::{ConversionRewriter, Declined};
use monopour_ir::ops;
use monopour_ir::{Block, Diagnostics, InsertionPoint, Op, Value};

use crate::boundary::Callees;
use crate::buffer_type::BufferTypes;
use crate::op_model::{
    AliasModel, Buffers, LoopCarried, LoopTerminator, OpModel, OpModels, RegionInfo, RelationModel, UseModel,
};
use crate::rewriting::Rewriting;

pub(super) fn add(models: &mut OpModels) {
    models.add(ops::scf::WHILE, While);
    models.add(ops::scf::CONDITION, Condition);
}

/// The condition comes before the forwarded values.
const CONDITION: usize = 1;

/// The two blocks of a loop and their terminators.
struct Parts<'c> {
    before: Block<'c>,
    condition: Op<'c>,
    after: Block<'c>,
    yielded: Op<'c>,
}

fn parts<'c>(op: Op<'c>) -> Option<Parts<'c>> {
    let regions = op.regions();
    let (before, after) = (regions.first()?.entry()?, regions.get(1)?.entry()?);
    Some(Parts { before, condition: before.terminator()?, after, yielded: after.terminator()? })
}

struct While;

impl OpModel for While {
    fn use_of<'c>(&self, _op: Op<'c>, _operand: usize, _callees: &Callees<'c>) -> UseModel<'c> {
        UseModel::READ_WRITE
    }
    fn aliases<'c>(&self, op: Op<'c>, operand: usize, _callees: &Callees<'c>) -> Vec<AliasModel<'c>> {
        let Some(p) = parts(op) else { return vec![] };
        // A result of another type, or without an initial value at its position, is another buffer.
        let Some(result) = op.get_result(operand).filter(|r| r.ty() == op.operand(operand).ty()) else {
            return vec![];
        };
        let first = (p.before.arg(operand), p.condition.operand(operand + CONDITION));
        let second = (p.after.arg(operand), p.yielded.operand(operand));
        let relation = RelationModel::EquivalentIf { first, second: Some(second) };
        vec![AliasModel { relation, ..AliasModel::equivalent(result) }]
    }
    fn flows<'c>(&self, op: Op<'c>, operand: usize) -> Vec<Value<'c>> {
        parts(op).map(|p| p.before.arg(operand)).into_iter().collect()
    }
    fn region(&self, _op: Op, _region: usize) -> RegionInfo {
        RegionInfo { repetitive: true, ..RegionInfo::default() }
    }
    fn are_arguments_writable(&self, _op: Op, _region: usize) -> bool {
        true
    }
    fn region_branches(&self, _op: Op) -> Option<Vec<(usize, usize)>> {
        Some(vec![(0, 1), (1, 0)])
    }
    fn loop_carried<'c>(&self, op: Op<'c>) -> Vec<LoopCarried<'c>> {
        let Some(p) = parts(op) else { return vec![] };
        let own = |block: Block<'c>, position: usize, value: Value<'c>| {
            (position < block.num_args()).then(|| block.arg(position)).filter(|a| a.ty() == value.ty())
        };
        let of_condition = (CONDITION..p.condition.num_operands()).map(|index| {
            let position = index - CONDITION;
            let is_passed_back = position < p.after.num_args().min(p.yielded.num_operands());
            let other_region = is_passed_back.then(|| (p.after.arg(position), p.yielded.operand(position)));
            let argument = own(p.before, position, p.condition.operand(index));
            let from = LoopTerminator::Condition { other_region };
            LoopCarried { terminator: p.condition, index, position, argument, from }
        });
        let of_yield = (0..p.yielded.num_operands()).map(|index| {
            let argument = own(p.after, index, p.yielded.operand(index));
            LoopCarried {
                terminator: p.yielded,
                index,
                position: index,
                argument,
                from: LoopTerminator::AfterCondition,
            }
        });
        of_condition.chain(of_yield).filter(|c| c.terminator.operand(c.index).ty().is_tensor()).collect()
    }
    fn buffer_types<'c>(&self, op: Op<'c>, types: &mut BufferTypes<'c, '_>) -> Result<(), Diagnostics> {
        let Some(p) = parts(op) else { return Ok(()) };
        for (init, arg) in op.operands().into_iter().zip(p.before.args()).filter(|(i, _)| i.ty().is_tensor()) {
            let ty = types.of(init);
            types.set(arg, ty);
        }
        types.walk(p.before)?;
        for (i, arg) in p.after.args().into_iter().enumerate().filter(|(_, a)| a.ty().is_tensor()) {
            let ty = types.of(p.condition.operand(i + CONDITION));
            types.set(arg, ty);
        }
        let passed = |args: Vec<Value<'c>>, values: Vec<Value<'c>>| {
            args.into_iter().zip(values).filter(|(a, _)| a.ty().is_tensor())
        };
        let pairs: Vec<_> = passed(p.before.args(), p.yielded.operands())
            .chain(passed(p.after.args(), p.condition.operands().split_off(CONDITION)))
            .collect();
        types.fixpoint(op, &[p.before, p.after], &pairs)?;
        for (arg, result) in p.after.args().into_iter().zip(op.results()).filter(|(_, r)| r.ty().is_tensor()) {
            let ty = types.of(arg);
            types.set(result, ty);
        }
        Ok(())
    }
    fn rewrite<'c>(
        &self,
        op: Op<'c>,
        buffers: &Buffers<'c, '_>,
        rw: &mut ConversionRewriter<'c>,
        pass: &Rewriting<'c, '_>,
    ) -> Result<(), Declined> {
        let Some(p) = parts(op) else { return Err(Declined::no_match("a loop without its regions")) };
        let types_of = |values: Vec<Value<'c>>| values.into_iter().map(|v| pass.types.of(v)).collect::<Vec<_>>();
        let (before, after, results) = (types_of(p.before.args()), types_of(p.after.args()), types_of(op.results()));
        let mut operands = Vec::with_capacity(op.num_operands());
        for (value, ty) in buffers.operands().iter().zip(&before) {
            operands.push(if value.ty().is_memref() { pass.cast_or_copy(rw, op, *value, *ty)? } else { *value });
        }
        let new = rw.recreate(op, &operands, &results)?;
        for (region, types) in new.regions().into_iter().zip([before, after]) {
            if let Some(entry) = region.entry() {
                rw.convert_block_args(entry, &types);
            }
        }
        rw.replace_op(op, &new.results());
        Ok(())
    }
}

struct Condition;

impl OpModel for Condition {
    super::uses!(UseModel::TERMINATOR, _op => vec![]);
    fn flows<'c>(&self, op: Op<'c>, operand: usize) -> Vec<Value<'c>> {
        let Some((index, parent)) = operand.checked_sub(CONDITION).zip(op.parent()) else { return vec![] };
        let argument = parts(parent).filter(|p| index < p.after.num_args()).map(|p| p.after.arg(index));
        argument.into_iter().chain(parent.get_result(index)).collect()
    }
    fn rewrite<'c>(
        &self,
        op: Op<'c>,
        buffers: &Buffers<'c, '_>,
        rw: &mut ConversionRewriter<'c>,
        pass: &Rewriting<'c, '_>,
    ) -> Result<(), Declined> {
        let Some(parent) = op.parent() else { return Err(Declined::no_match("a condition without a loop")) };
        rw.set_point(InsertionPoint::Before(op));
        let mut values = vec![buffers.operand(0)];
        for (value, result) in buffers.operands()[CONDITION..].iter().zip(parent.results()) {
            let wanted = result.ty();
            values.push(if wanted.is_memref() { pass.cast_or_copy(rw, op, *value, wanted)? } else { *value });
        }
        rw.set_operands(op, &values);
        Ok(())
    }
}
