//! Emits a body step by step: runs of tile ops, single accesses, and the loops and conditions around them.
//!
//! Before: `scf.for %k { linalg.generic ..; %x = memref.load %t[] }` in a kernel, with slices of arguments and local buffers.
//! After: the same loop, run by all invocations; each run of ops is distributed in its place, single stores are by one
//! invocation, and a barrier separates dependent steps.
//! Requires: workgroup-uniform conditions and bounds, as all values but those of tile ops are.

use super::code::Code;
use super::evaluate::Evaluator;
use super::fitted::FittedChoice;
use super::groups::{self, Group};
use super::locals::{self, Scratch};
use super::model::{Base, Model, Step};
use super::strategy::{Declined, KernelPlan, Site, Strategy};
use super::{body, elementwise};
use crate::error;
use monopour_ir::ops;
use monopour_ir::{Diagnostics, InsertionPoint, Op, Value};
use monopour_program::GpuDescription;

/// The strategy, which takes bodies with control flow or single accesses.
pub(super) struct Stepwise;

impl Strategy for Stepwise {
    fn plan<'c, 'm>(
        &self,
        body: &Evaluator<'c, 'm>,
        _: &FittedChoice,
        _: &GpuDescription,
    ) -> Result<Box<dyn KernelPlan<'c, 'm> + 'm>, Declined> {
        let model = body.model;
        if model.is_straight() {
            return Err(Declined::NotAsked);
        }
        Ok(Box::new(Plan { in_memory: locals::in_memory(model, &groups(model), &accessed(model)) }))
    }
}

/// A body to emit step by step.
struct Plan {
    /// Local buffers that need memory.
    in_memory: Vec<Base>,
}

impl<'c, 'm> KernelPlan<'c, 'm> for Plan {
    fn strategy(&self) -> &'static str {
        "fallback"
    }

    fn lanes(&self) -> u32 {
        1
    }

    fn write(&self, code: &mut Code<'c, '_>, site: &Site<'c, '_, 'm>) -> Result<Vec<Scratch>, Diagnostics> {
        let mut evaluator = site.body.clone();
        let scratch = locals::allocate(code, site.func, &mut evaluator, &self.in_memory, site.place)?;
        let first = site.func.body().and_then(|b| b.first_op()).expect("invariant: the body has a terminator");
        let linear = Code::before(code.rw, first).linear_id(site.kernel.workgroup_size);
        let mut writer = Writer { evaluator: &evaluator, kernel: site.kernel, linear, pending: false };
        writer.steps(code, &evaluator.model.steps)?;
        code.at(InsertionPoint::Before(site.place.end));
        Ok(scratch)
    }
}

/// The groups of all runs, in program order.
fn groups<'c>(model: &Model<'c>) -> Vec<Group<'c>> {
    let mut out = Vec::new();
    visit(&model.steps, &mut |step| {
        if let Step::Run(run) = step {
            out.extend(groups::split_run(model, run.clone()));
        }
    });
    out
}

/// The buffers of single accesses.
fn accessed(model: &Model) -> Vec<Base> {
    let mut out = Vec::new();
    visit(&model.steps, &mut |step| {
        if let Step::Access(op) = step {
            out.extend(access_of(*op).and_then(|(memref, _)| model.slice_named(memref)).map(|s| model.slices[s].base));
        }
    });
    out
}

fn visit<'c>(steps: &[Step<'c>], f: &mut impl FnMut(&Step<'c>)) {
    for step in steps {
        f(step);
        if let Step::Region(_, blocks) = step {
            blocks.iter().for_each(|b| visit(b, f));
        }
    }
}

/// The memref of a load or store and whether it is a store.
fn access_of<'c>(op: Op<'c>) -> Option<(Value<'c>, bool)> {
    match op.name() {
        ops::memref::LOAD => Some((op.operand(0), false)),
        ops::memref::STORE => Some((op.operand(1), true)),
        _ => None,
    }
}

/// Emits the code of all steps.
struct Writer<'c, 'a, 'm> {
    evaluator: &'a Evaluator<'c, 'm>,
    kernel: &'a FittedChoice,
    /// The invocation's index in its workgroup.
    linear: Value<'c>,
    /// Whether a barrier is needed before the next step.
    pending: bool,
}

impl<'c> Writer<'c, '_, '_> {
    fn steps(&mut self, code: &mut Code<'c, '_>, steps: &[Step<'c>]) -> Result<(), Diagnostics> {
        for step in steps {
            match step {
                Step::Run(run) => {
                    let last = self.evaluator.model.ops[run.end - 1].op;
                    code.at(InsertionPoint::Before(last.next().expect("invariant: a tile op is no terminator")));
                    self.barrier(code)?;
                    let groups = groups::split_run(self.evaluator.model, run.clone());
                    let keep = |base: Base| self.evaluator.buffers.contains_key(&base);
                    elementwise::write_groups(code, self.evaluator, &groups, self.kernel, (self.linear, 1), &keep)?;
                    self.pending = true;
                }
                Step::Access(op) => self.access(code, *op)?,
                Step::Region(op, blocks) => self.region(code, *op, blocks)?,
            }
        }
        Ok(())
    }

    fn barrier(&mut self, code: &mut Code<'c, '_>) -> Result<(), Diagnostics> {
        if std::mem::take(&mut self.pending) { code.barrier() } else { Ok(()) }
    }

    fn access(&mut self, code: &mut Code<'c, '_>, op: Op<'c>) -> Result<(), Diagnostics> {
        let (memref, stores) = access_of(op).ok_or_else(|| error::not_a_tile(op, "it is no access"))?;
        code.at(InsertionPoint::Before(op));
        self.barrier(code)?;
        let indices = &op.operands()[if stores { 2 } else { 1 }..];
        let (buffer, index) = body::element(self.evaluator, code, op, memref, indices)?;
        if stores {
            let one = code.c(1);
            let first = code.less(self.linear, one);
            code.guarded(Some(first), |code| code.store(op.operand(0), buffer, index))?;
        } else {
            let value = code.load(buffer, index, 1);
            code.rw.replace_all_uses(op.result(0), value);
        }
        self.pending = true;
        Ok(())
    }

    /// The boundary of a block is a barrier if there is work on both of its sides.
    fn region(&mut self, code: &mut Code<'c, '_>, op: Op<'c>, blocks: &[Vec<Step<'c>>]) -> Result<(), Diagnostics> {
        let before = self.pending || !op.is(ops::scf::IF);
        for block in blocks {
            self.pending = before;
            self.steps(code, block)?;
        }
        self.pending = true;
        Ok(())
    }
}
