//! `scf`: loops with a counter carry memrefs, `forall` writes its shared outputs in place.

use monopour_ir::conversion::{ConversionRewriter, Declined};
use monopour_ir::ops;
use monopour_ir::typed::{Index, scf::ForAll};
use monopour_ir::{Diagnostics, Op, OpSpec, Region, Value};

use crate::boundary::Callees;
use crate::buffer_type::BufferTypes;
use crate::op_model::{
    AliasModel, Buffers, LoopCarried, LoopTerminator, OpModel, OpModels, ReadModel, RegionInfo, UseModel,
};
use crate::rewriting::Rewriting;

pub(super) fn add(models: &mut OpModels) {
    models.add(ops::scf::FOR, For);
    models.add(ops::scf::FORALL, Forall);
    models.add(ops::scf::FORALL_IN_PARALLEL, InParallel);
}

/// Lower bound, upper bound and step come before the initial values.
const FOR_CONTROL: usize = 3;

/// The iteration argument and the yielded value of a loop's initial value.
fn carried<'c>(op: Op<'c>, index: usize) -> Option<(Value<'c>, Value<'c>)> {
    let body = op.body()?;
    let yielded = body.terminator()?;
    (index + 1 < body.num_args() && index < yielded.num_operands())
        .then(|| (body.arg(index + 1), yielded.operand(index)))
}

struct For;

impl For {
    /// The trip count, if the bounds are constants.
    fn trip_count(op: Op) -> Option<u64> {
        let number = |i: usize| op.operand(i).constant_int();
        let (lower, upper, step) = (number(0)?, number(1)?, number(2)?);
        // Unsigned bounds compare like signed ones unless one has its highest bit set.
        let is_unsigned = op.attr("unsignedCmp").is_some();
        if step <= 0 || (is_unsigned && (lower < 0 || upper < 0)) {
            return None;
        }
        let span = upper.checked_sub(lower)?.max(0);
        u64::try_from(span.checked_add(step - 1)? / step).ok()
    }
}

impl OpModel for For {
    fn use_of<'c>(&self, op: Op<'c>, operand: usize, _callees: &Callees<'c>) -> UseModel<'c> {
        if operand < FOR_CONTROL {
            return UseModel::NONE;
        }
        // A loop that may not run returns its initial value, so a read of the result reads that.
        let runs = Self::trip_count(op).is_some_and(|n| n > 0);
        let reads = match carried(op, operand - FOR_CONTROL) {
            Some((argument, _)) if runs => ReadModel::IfRead(argument),
            _ => ReadModel::Yes,
        };
        UseModel { reads, ..UseModel::WRITE }
    }
    fn aliases<'c>(&self, op: Op<'c>, operand: usize, _callees: &Callees<'c>) -> Vec<AliasModel<'c>> {
        let Some(index) = operand.checked_sub(FOR_CONTROL) else { return vec![] };
        let Some((argument, yielded)) = carried(op, index) else { return vec![] };
        vec![AliasModel::equivalent_if(op.result(index), (argument, yielded))]
    }
    fn flows<'c>(&self, op: Op<'c>, operand: usize) -> Vec<Value<'c>> {
        let Some(index) = operand.checked_sub(FOR_CONTROL) else { return vec![] };
        let Some((argument, _)) = carried(op, index) else { return vec![] };
        let runs = Self::trip_count(op).is_some_and(|n| n > 0);
        if runs { vec![argument] } else { vec![argument, op.result(index)] }
    }
    fn region(&self, op: Op, _region: usize) -> RegionInfo {
        RegionInfo { repetitive: true, trip_count: Self::trip_count(op), ..RegionInfo::default() }
    }
    fn are_arguments_writable(&self, _op: Op, _region: usize) -> bool {
        true
    }
    fn region_branches(&self, _op: Op) -> Option<Vec<(usize, usize)>> {
        Some(vec![(0, 0)])
    }
    fn loop_carried<'c>(&self, op: Op<'c>) -> Vec<LoopCarried<'c>> {
        let Some((body, terminator)) = op.body().and_then(|b| Some((b, b.terminator()?))) else { return vec![] };
        let tensors = (0..op.num_results()).filter(|i| i + 1 < body.num_args() && op.result(*i).ty().is_tensor());
        let carried = |index: usize| {
            let argument = Some(body.arg(index + 1));
            LoopCarried { terminator, index, position: index, argument, from: LoopTerminator::Body }
        };
        tensors.map(carried).collect()
    }
    fn buffer_types<'c>(&self, op: Op<'c>, types: &mut BufferTypes<'c, '_>) -> Result<(), Diagnostics> {
        let Some(body) = op.body() else { return Ok(()) };
        let tensors: Vec<usize> = (0..op.num_results()).filter(|i| op.result(*i).ty().is_tensor()).collect();
        for &i in &tensors {
            let init = types.of(op.operand(FOR_CONTROL + i));
            types.set(body.arg(i + 1), init);
        }
        let pairs: Vec<_> = tensors.iter().filter_map(|i| carried(op, *i)).collect();
        types.fixpoint(op, &[body], &pairs)?;
        for &i in &tensors {
            let ty = types.of(body.arg(i + 1));
            types.set(op.result(i), ty);
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
        let Some(body) = op.body() else { return Err(Declined::no_match("a loop without a body")) };
        let mut operands = buffers.operands()[..FOR_CONTROL].to_vec();
        let types: Vec<_> = body.args().into_iter().map(|a| pass.types.of(a)).collect();
        for i in FOR_CONTROL..op.num_operands() {
            let ty = types[i - FOR_CONTROL + 1];
            let init = buffers.operand(i);
            operands.push(if init.ty().is_memref() { pass.cast_or_copy(rw, op, init, ty)? } else { init });
        }
        let new = rw.recreate(op, &operands, &types[1..])?;
        if let Some(body) = new.body() {
            rw.convert_block_args(body, &types);
        }
        rw.replace_op(op, &new.results());
        Ok(())
    }
}

struct Forall;

/// Position of the first shared output among the operands.
fn first_output(op: Op) -> usize {
    op.num_operands().saturating_sub(op.num_results())
}

/// The body's argument of a shared output.
fn shared_output<'c>(op: Op<'c>, operand: usize) -> Option<Value<'c>> {
    let (index, body) = (operand.checked_sub(first_output(op))?, op.body()?);
    Some(body.arg(body.num_args().checked_sub(op.num_results())? + index))
}

/// Number of iterations, if all bounds are static or constants.
fn forall_trips(op: Op) -> Option<u64> {
    let bounds = ForAll::of(op)?.bounds()?;
    let numbers = |list: Vec<Index<'_>>| list.into_iter().map(Index::constant).collect::<Option<Vec<i64>>>();
    let (lower, upper, step) = (numbers(bounds.lower)?, numbers(bounds.upper)?, numbers(bounds.step)?);
    let mut trips = 1u64;
    for ((l, u), s) in lower.into_iter().zip(upper).zip(step) {
        if s <= 0 {
            return None;
        }
        let span = u.checked_sub(l)?.max(0).checked_add(s - 1)?;
        trips = trips.checked_mul(u64::try_from(span / s).ok()?)?;
    }
    Some(trips)
}

impl OpModel for Forall {
    fn use_of<'c>(&self, op: Op<'c>, operand: usize, _callees: &Callees<'c>) -> UseModel<'c> {
        if operand < first_output(op) { UseModel::NONE } else { UseModel::READ_WRITE }
    }
    fn aliases<'c>(&self, op: Op<'c>, operand: usize, _callees: &Callees<'c>) -> Vec<AliasModel<'c>> {
        let index = operand.checked_sub(first_output(op));
        index.map(|i| AliasModel::equivalent(op.result(i))).into_iter().collect()
    }
    fn flows<'c>(&self, op: Op<'c>, operand: usize) -> Vec<Value<'c>> {
        shared_output(op, operand).into_iter().collect()
    }
    fn region(&self, op: Op, _region: usize) -> RegionInfo {
        let trips = forall_trips(op);
        let many = trips.is_none_or(|n| n > 1);
        RegionInfo { repetitive: many, parallel: many, trip_count: trips, graph: false }
    }
    fn are_arguments_writable(&self, _op: Op, _region: usize) -> bool {
        true
    }
    fn region_branches(&self, op: Op) -> Option<Vec<(usize, usize)>> {
        Some(if forall_trips(op).is_none_or(|n| n > 1) { vec![(0, 0)] } else { vec![] })
    }
    fn buffer_types<'c>(&self, op: Op<'c>, types: &mut BufferTypes<'c, '_>) -> Result<(), Diagnostics> {
        let Some(body) = op.body() else { return Ok(()) };
        let first = first_output(op);
        for i in 0..op.num_results() {
            let ty = types.of(op.operand(first + i));
            types.set(op.result(i), ty);
            types.set(body.arg(body.num_args() - op.num_results() + i), ty);
        }
        types.walk(body)
    }
    fn rewrite<'c>(
        &self,
        op: Op<'c>,
        buffers: &Buffers<'c, '_>,
        rw: &mut ConversionRewriter<'c>,
        _pass: &Rewriting<'c, '_>,
    ) -> Result<(), Declined> {
        let Some(body) = op.body() else { return Err(Declined::no_match("a forall without a body")) };
        let (first, outputs) = (first_output(op), op.num_results());
        let shared: Vec<Value> = buffers.operands()[first..].to_vec();
        // Inside, a shared output is the operand of the forall, whose buffer the driver knows.
        let first_argument = body.num_args() - outputs;
        for i in (0..outputs).rev() {
            rw.replace_all_uses(body.arg(first_argument + i), shared[i]);
            rw.erase_block_arg(body, first_argument + i);
        }
        let spec = OpSpec::new(ops::scf::FORALL, op.location()).region(Region::new());
        let operands = buffers.operands();
        let segment = |index| &operands[op.operand_segment(index)];
        let new = rw.create(spec.operand_segments(&[segment(0), segment(1), segment(2), &[]]).attrs_of(op))?;
        rw.take_region(new.region(0), op.region(0));
        rw.replace_op(op, &shared);
        Ok(())
    }
}

/// The region of a forall's terminator: its inserts are not ordered.
struct InParallel;

impl OpModel for InParallel {
    super::no_uses!();
    fn region(&self, _op: Op, _region: usize) -> RegionInfo {
        RegionInfo { graph: true, ..RegionInfo::default() }
    }
    fn rewrite<'c>(
        &self,
        _op: Op<'c>,
        _buffers: &Buffers<'c, '_>,
        _rw: &mut ConversionRewriter<'c>,
        _pass: &Rewriting<'c, '_>,
    ) -> Result<(), Declined> {
        Err(Declined::no_match("its inserts are rewritten one by one"))
    }
}
