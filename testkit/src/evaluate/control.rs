//! Structured control flow: `scf.for`, `scf.if`, `scf.index_switch`, `scf.while`, `scf.execute_region`, `scf.forall`, `scf.parallel`.

use super::{Datum, Interpreter, Result, element_count, int, unsupported};
use crate::evaluate::tensor_ops::Slice;
use monopour_ir::ops;
use monopour_ir::typed::{Index, scf::ForAll};
use monopour_ir::{DYNAMIC, Op};
use std::rc::Rc;

impl<'c> Interpreter<'c, '_> {
    pub(super) fn control(&mut self, op: Op<'c>) -> Result<Vec<Datum>> {
        match op.name() {
            ops::scf::FOR => self.for_loop(op),
            ops::scf::IF => self.conditional(op),
            ops::scf::WHILE => self.while_loop(op),
            ops::scf::FORALL => self.forall(op),
            ops::scf::EXECUTE_REGION => Ok(self.run_region(op.region(0), vec![])?.1),
            ops::scf::INDEX_SWITCH => self.index_switch(op),
            ops::scf::PARALLEL => self.parallel(op),
            _ => Err(unsupported(op.name(), op)),
        }
    }

    fn for_loop(&mut self, op: Op<'c>) -> Result<Vec<Datum>> {
        let (lower, upper, step) = (self.index(op, 0)?, self.index(op, 1)?, self.index(op, 2)?);
        if step <= 0 {
            return Err(super::undefined(&format!("a loop step of {step}"), op));
        }
        let block = op.body().ok_or_else(|| unsupported("scf.for without a body", op))?;
        let mut carried = self.operands(op)?.split_off(3);
        let unsigned = op.attr("unsignedCmp").is_some();
        let mut iv = lower;
        while if unsigned { (iv as u64) < upper as u64 } else { iv < upper } {
            let mut arguments = vec![int(iv)];
            arguments.append(&mut carried);
            carried = self.run_block(block, arguments)?.1;
            let next =
                if unsigned { (iv as u64).checked_add(step as u64).map(|n| n as i64) } else { iv.checked_add(step) };
            let Some(next) = next else { break };
            iv = next;
        }
        Ok(carried)
    }

    /// The first region is the default.
    fn index_switch(&mut self, op: Op<'c>) -> Result<Vec<Datum>> {
        let selector = self.index(op, 0)?;
        let cases = op.attr("cases").and_then(|a| a.as_ints()).unwrap_or_default();
        let taken = cases.iter().position(|c| *c == selector).map_or(0, |case| case + 1);
        let region = op.regions().get(taken).copied().ok_or_else(|| unsupported(op.name(), op))?;
        Ok(self.run_region(region, vec![])?.1)
    }

    /// Iterations in order; each result is reduced in that order.
    fn parallel(&mut self, op: Op<'c>) -> Result<Vec<Datum>> {
        let counts = op.operand_segments().unwrap_or_default();
        let block = op.body().ok_or_else(|| unsupported(op.name(), op))?;
        let rank = block.num_args();
        if counts.len() != 4 || counts[..3].iter().any(|n| *n != rank) {
            return Err(unsupported(op.name(), op));
        }
        let bound = |from: usize| (from..from + rank).map(|i| self.index(op, i)).collect::<Result<Vec<_>>>();
        let bounds = [bound(0)?, bound(rank)?, bound(2 * rank)?];
        let mut results = self.operands(op)?.split_off(3 * rank);
        let trips = trip_counts(op, &bounds)?;
        if element_count(&trips)? == 0 {
            return Ok(results);
        }
        let mut index = vec![0i64; rank];
        loop {
            let ids = index.iter().zip(&bounds[0]).zip(&bounds[2]).map(|((i, lower), step)| int(lower + i * step));
            let (reduce, values) = self.run_block(block, ids.collect())?;
            for (i, value) in values.into_iter().enumerate() {
                let region = reduce.regions().get(i).copied().ok_or_else(|| unsupported(ops::scf::REDUCE, reduce))?;
                let reduced = self.run_region(region, vec![results[i].clone(), value])?.1;
                results[i] = reduced.into_iter().next().ok_or_else(|| unsupported(ops::scf::REDUCE, reduce))?;
            }
            if !super::advance(&mut index, &trips) {
                return Ok(results);
            }
        }
    }

    fn conditional(&mut self, op: Op<'c>) -> Result<Vec<Datum>> {
        let taken = usize::from(self.index(op, 0)? & 1 == 0);
        match op.regions().get(taken).and_then(|r| r.entry()) {
            Some(block) => Ok(self.run_block(block, vec![])?.1),
            None => Ok(vec![]),
        }
    }

    fn while_loop(&mut self, op: Op<'c>) -> Result<Vec<Datum>> {
        let blocks: Vec<_> = op.regions().iter().filter_map(|r| r.entry()).collect();
        let [before, after] = blocks.as_slice() else { return Err(unsupported(ops::scf::WHILE, op)) };
        let mut carried = self.operands(op)?;
        loop {
            let (_, mut passed) = self.run_block(*before, carried)?;
            let proceed = match passed.first() {
                Some(Datum::Scalar(s)) => s.int() & 1 == 1,
                _ => return Err(unsupported(ops::scf::CONDITION, op)),
            };
            passed.remove(0);
            if !proceed {
                return Ok(passed);
            }
            carried = self.run_block(*after, passed)?.1;
        }
    }

    /// Each iteration reads the initial shared outputs: iterations may not depend on each other.
    fn forall(&mut self, op: Op<'c>) -> Result<Vec<Datum>> {
        let block = op.body().ok_or_else(|| unsupported("scf.forall without a body", op))?;
        let terminator = block.terminator().ok_or_else(|| unsupported("scf.forall without a terminator", op))?;
        let forall = ForAll::of(op).ok_or_else(|| unsupported(op.name(), op))?;
        let given = forall.bounds().ok_or_else(|| unsupported(ops::scf::FORALL, op))?;
        let bounds = [&given.lower, &given.upper, &given.step].map(|list| self.numbers(op, list));
        let bounds = bounds.into_iter().collect::<Result<Vec<_>>>()?;
        let outputs = self.operands(op)?.split_off(forall.output_positions().start);
        let counts = trip_counts(op, &bounds)?;
        let mut results = outputs.clone();
        if element_count(&counts)? == 0 {
            return Ok(results);
        }
        let mut index = vec![0i64; counts.len()];
        loop {
            let ids = index.iter().zip(&bounds[0]).zip(&bounds[2]).map(|((i, lower), step)| int(lower + i * step));
            let arguments = ids.chain(outputs.iter().cloned()).collect();
            self.run_block(block, arguments)?;
            self.insert_parallel(terminator, block.args().split_off(counts.len()), &mut results)?;
            if !super::advance(&mut index, &counts) {
                return Ok(results);
            }
        }
    }

    /// The `tensor.parallel_insert_slice` ops of an iteration, applied to the loop's results so far.
    fn insert_parallel(
        &mut self,
        terminator: Op<'c>,
        shared: Vec<monopour_ir::Value<'c>>,
        results: &mut [Datum],
    ) -> Result<()> {
        let Some(block) = terminator.body() else { return Ok(()) };
        for op in block.ops() {
            if !op.is(ops::tensor::PARALLEL_INSERT_SLICE) {
                return Err(unsupported(op.name(), op));
            }
            let output = shared.iter().position(|v| *v == op.operand(1)).ok_or_else(|| unsupported(op.name(), op))?;
            let source = self.tensor(op, 0)?;
            let slice = Slice::of(self, op, 2)?;
            let Datum::Tensor(into) = &mut results[output] else { return Err(unsupported("a scalar output", op)) };
            slice.insert(op, &source, Rc::make_mut(into))?;
        }
        Ok(())
    }

    /// Static values with the dynamic ones filled in from the operands, starting at `next`.
    /// The values of static and dynamic numbers.
    fn numbers(&self, op: Op<'c>, list: &[Index<'c>]) -> Result<Vec<i64>> {
        let number = |index: &Index<'c>| match index {
            Index::Static(number) => Ok(*number),
            Index::Dynamic(value) => match self.value(*value) {
                Some(Datum::Scalar(number)) => Ok(number.int()),
                _ => Err(unsupported(op.name(), op)),
            },
        };
        list.iter().map(number).collect()
    }

    pub(super) fn mixed(&self, op: Op<'c>, fixed: &[i64], next: &mut usize) -> Result<Vec<i64>> {
        fixed
            .iter()
            .map(|v| {
                if *v != DYNAMIC {
                    return Ok(*v);
                }
                *next += 1;
                if *next > op.num_operands() { Err(unsupported(op.name(), op)) } else { self.index(op, *next - 1) }
            })
            .collect()
    }
}

fn trip_counts(op: Op, bounds: &[Vec<i64>]) -> Result<Vec<usize>> {
    let count = |((lower, upper), step): ((&i64, &i64), &i64)| {
        if *step <= 0 {
            return Err(super::undefined(&format!("a loop step of {step}"), op));
        }
        let distance = upper.saturating_sub(*lower).max(0);
        Ok((distance / step + i64::from(distance % step != 0)) as usize)
    };
    bounds[0].iter().zip(&bounds[1]).zip(&bounds[2]).map(count).collect()
}
