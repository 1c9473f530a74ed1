//! A tree over the partial results of invocations `vectors` apart, in workgroup memory.

use super::super::code::Code;
use super::super::combine::Combine;
use super::Plan;
use monopour_ir::{Diagnostics, Op, Type, Value};
use std::collections::HashMap;

/// Workgroup memory of a vector per invocation, by element type.
pub(super) struct Shared<'c> {
    buffers: HashMap<Type<'c>, Vec<Value<'c>>>,
    linear: Value<'c>,
    lanes: i64,
}

impl<'c> Shared<'c> {
    /// Memory for any run of `at_once` of these partial results.
    pub(super) fn new(
        code: &mut Code<'c, '_>,
        func: Op<'c>,
        partials: &[Combine<'c>],
        (plan, linear): (&Plan<'c, '_>, Value<'c>),
    ) -> Result<Self, Diagnostics> {
        let lanes = i64::from(plan.lanes);
        let mut buffers: HashMap<Type, Vec<Value>> = HashMap::new();
        for batch in partials.chunks(plan.at_once) {
            let mut needed: Vec<(Type, usize)> = vec![];
            for combine in batch {
                match needed.iter_mut().find(|(ty, _)| *ty == combine.element) {
                    Some((_, count)) => *count += 1,
                    None => needed.push((combine.element, 1)),
                }
            }
            for (ty, count) in needed {
                let have = buffers.get(&ty).map_or(0, Vec::len);
                for _ in have..count {
                    let buffer = code.workgroup_buffer(func.location(), ty, plan.vectors * plan.groups * lanes)?;
                    buffers.entry(ty).or_default().push(buffer);
                }
            }
        }
        Ok(Self { buffers, linear, lanes })
    }

    /// Reduces the values of a batch; the invocations of the first group get the results.
    pub(super) fn reduce(
        &self,
        code: &mut Code<'c, '_>,
        plan: &Plan<'c, '_>,
        values: &[(Combine<'c>, Value<'c>)],
    ) -> Result<Vec<Value<'c>>, Diagnostics> {
        let mut used: HashMap<Type, usize> = HashMap::new();
        let mut buffers = vec![];
        for (combine, value) in values {
            let next = used.entry(combine.element).or_default();
            let buffer = self.buffers[&combine.element][*next];
            *next += 1;
            buffers.push((*combine, buffer));
            let at = code.mul_const(self.linear, self.lanes);
            code.store(*value, buffer, at)?;
        }
        let mut width = plan.groups;
        while width > 1 {
            // The values before are stored.
            code.barrier()?;
            let arity = if width % 4 == 0 { 4 } else { 2 };
            width /= arity;
            let limit = code.c(width * plan.vectors);
            let works = code.less(self.linear, limit);
            code.guarded(Some(works), |code| {
                for (combine, buffer) in &buffers {
                    let at = code.mul_const(self.linear, self.lanes);
                    let mut sum = code.load(*buffer, at, plan.lanes);
                    for other in 1..arity {
                        let at = code.add_const(self.linear, other * width * plan.vectors);
                        let at = code.mul_const(at, self.lanes);
                        let value = code.load(*buffer, at, plan.lanes);
                        sum = combine.apply(code, sum, value)?;
                    }
                    code.store(sum, *buffer, at)?;
                }
                Ok(())
            })?;
        }
        code.barrier()?;
        let at = code.mul_const(self.linear, self.lanes);
        Ok(buffers.iter().map(|(_, buffer)| code.load(*buffer, at, plan.lanes)).collect())
    }
}
