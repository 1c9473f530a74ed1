//! Reduces the partial results of the lanes of a team: a butterfly of subgroup shuffles, or a tree in workgroup memory.

use super::super::code::Code;
use super::super::combine::Combine;
use super::super::fitted::FittedChoice;
use super::Team;
use monopour_ir::ops;
use monopour_ir::{Diagnostics, Op, Type, Value};
use std::cell::Cell;

/// An invocation as a lane of its team.
pub(super) struct Member<'c> {
    pub(super) team: Team,
    /// Invocation in the workgroup.
    pub(super) linear: Value<'c>,
    /// Lane in the team.
    pub(super) lane: Value<'c>,
}

/// The way between the lanes.
pub(super) struct Exchange<'c> {
    member: Member<'c>,
    subgroup: u32,
    /// One value per invocation each.
    buffers: Vec<(Type<'c>, Value<'c>)>,
    /// Whether invocations may still read the buffers when they are written.
    is_read: Cell<bool>,
}

impl<'c> Exchange<'c> {
    /// `needed`: per sweep, the element types that are reduced together. `repeats`: the code is in a loop.
    pub(super) fn new(
        code: &mut Code<'c, '_>,
        func: Op<'c>,
        member: Member<'c>,
        kernel: &FittedChoice,
        needed: &[Vec<Type<'c>>],
        repeats: bool,
    ) -> Result<Self, Diagnostics> {
        let mut buffers: Vec<(Type, Value)> = Vec::new();
        for types in needed.iter().filter(|_| member.team.workgroup_memory) {
            let mut free: Vec<Type> = buffers.iter().map(|b| b.0).collect();
            for ty in types {
                match free.iter().position(|f| f == ty) {
                    Some(at) => drop(free.remove(at)),
                    None => buffers.push((*ty, code.workgroup_buffer(func.location(), *ty, kernel.invocations())?)),
                }
            }
        }
        Ok(Self { member, subgroup: kernel.shared_lanes.unwrap_or(1), buffers, is_read: Cell::new(repeats) })
    }

    /// Reduces the values of every team, into all its lanes.
    pub(super) fn reduce(
        &self,
        code: &mut Code<'c, '_>,
        values: &[(Combine<'c>, Value<'c>)],
    ) -> Result<Vec<Value<'c>>, Diagnostics> {
        if self.member.team.size == 1 || values.is_empty() {
            return Ok(values.iter().map(|v| v.1).collect());
        }
        if self.member.team.workgroup_memory { self.tree(code, values) } else { self.butterfly(code, values) }
    }

    fn butterfly(
        &self,
        code: &mut Code<'c, '_>,
        values: &[(Combine<'c>, Value<'c>)],
    ) -> Result<Vec<Value<'c>>, Diagnostics> {
        let mut out: Vec<Value> = values.iter().map(|v| v.1).collect();
        let mut mask = 1;
        while mask < self.member.team.size {
            for (value, (combine, _)) in out.iter_mut().zip(values) {
                let other = code.shuffle_xor(*value, mask as u32, self.subgroup);
                *value = combine.apply(code, *value, other)?;
            }
            mask *= 2;
        }
        Ok(out)
    }

    /// Each step leaves a quarter of the values (a half where four does not divide them); neighbours access neighbours.
    fn tree(
        &self,
        code: &mut Code<'c, '_>,
        values: &[(Combine<'c>, Value<'c>)],
    ) -> Result<Vec<Value<'c>>, Diagnostics> {
        let buffers = self.assign(values);
        if self.is_read.replace(true) {
            code.barrier()?;
        }
        for ((_, value), buffer) in values.iter().zip(&buffers) {
            code.store(*value, *buffer, self.member.linear)?;
        }
        code.barrier()?;
        let mut width = self.member.team.size;
        while width > 1 {
            let arity = if width % 4 == 0 { 4 } else { 2 };
            width /= arity;
            let limit = code.c(width);
            let works = code.less(self.member.lane, limit);
            code.guarded(Some(works), |code| {
                for ((combine, _), buffer) in values.iter().zip(&buffers) {
                    let mut sum = code.load(*buffer, self.member.linear, 1);
                    for other in 1..arity {
                        let at = code.add_const(self.member.linear, other * width);
                        let value = code.load(*buffer, at, 1);
                        sum = combine.apply(code, sum, value)?;
                    }
                    code.store(sum, *buffer, self.member.linear)?;
                }
                Ok(())
            })?;
            code.barrier()?;
        }
        let first = code.op1(ops::arith::SUBI, &[self.member.linear, self.member.lane], code.index);
        Ok(buffers.iter().map(|b| code.load(*b, first, 1)).collect())
    }

    /// A buffer for each value.
    fn assign(&self, values: &[(Combine<'c>, Value<'c>)]) -> Vec<Value<'c>> {
        let mut free = self.buffers.clone();
        let mut take = |ty: Type<'c>| {
            let at =
                free.iter().position(|f| f.0 == ty).expect("invariant: there is a buffer for each value of a sweep");
            free.remove(at).1
        };
        values.iter().map(|(combine, _)| take(combine.element)).collect()
    }
}
