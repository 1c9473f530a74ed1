//! Regions of one block or several, and the branches between blocks.

use super::{Datum, EvalError, Interpreter, Result, unsupported};
use monopour_ir::ops;
use monopour_ir::typed::cf::{CondBranch, Switch};
use monopour_ir::{Block, Op, Region};

impl<'c> Interpreter<'c, '_> {
    /// Runs a region from its entry block to a terminator that is no branch; returns it and its operands' values.
    pub(super) fn run_region(&mut self, region: Region<'c>, arguments: Vec<Datum>) -> Result<(Op<'c>, Vec<Datum>)> {
        let mut block = region.entry().ok_or_else(|| EvalError::Limit("a region is empty".into()))?;
        let mut arguments = arguments;
        loop {
            let (terminator, values) = self.run_block(block, arguments)?;
            let Some((next, passed)) = branch(terminator, values)? else {
                let values = self.operands(terminator)?;
                return Ok((terminator, values));
            };
            (block, arguments) = (next, passed);
        }
    }

    /// Runs a block and returns its terminator with the values of the terminator's operands.
    pub(super) fn run_block(&mut self, block: Block<'c>, arguments: Vec<Datum>) -> Result<(Op<'c>, Vec<Datum>)> {
        for (arg, value) in block.args().into_iter().zip(arguments) {
            self.env.insert(arg, value);
        }
        let mut op = block.first_op();
        while let Some(o) = op {
            self.tick(1)?;
            op = o.next();
            if op.is_none() {
                return Ok((o, self.operands(o)?));
            }
            let results = self.execute(o)?;
            for (value, result) in o.results().into_iter().zip(results) {
                self.env.insert(value, result);
            }
        }
        Err(EvalError::Limit("a block is empty".into()))
    }
}

/// The target of a branch and its block arguments; `None` for another terminator.
fn branch<'c>(op: Op<'c>, mut values: Vec<Datum>) -> Result<Option<(Block<'c>, Vec<Datum>)>> {
    let selector = |values: &[Datum]| match values.first() {
        Some(Datum::Scalar(s)) => Ok(s.int()),
        _ => Err(unsupported(op.name(), op)),
    };
    // The successor, and the range of its operands.
    let (taken, range) = match op.name() {
        ops::cf::BR => (0, 0..values.len()),
        ops::cf::COND_BR => {
            let taken = usize::from(selector(&values)? & 1 == 0);
            let branch = CondBranch::of(op).ok_or_else(|| unsupported(op.name(), op))?;
            (taken, branch.successor_operands(taken))
        }
        ops::cf::SWITCH => switch(op, selector(&values)?)?,
        _ => return Ok(None),
    };
    let block = op.successors().get(taken).copied().ok_or_else(|| unsupported(op.name(), op))?;
    if range.end > values.len() {
        return Err(unsupported(op.name(), op));
    }
    values.truncate(range.end);
    Ok(Some((block, values.split_off(range.start))))
}

fn switch(op: Op, flag: i64) -> Result<(usize, std::ops::Range<usize>)> {
    let switch = Switch::of(op).ok_or_else(|| unsupported(op.name(), op))?;
    let cases = op.attr("case_values").map(|a| case_values(op, a)).transpose()?.unwrap_or_default();
    let Some(case) = cases.iter().position(|c| *c == flag) else { return Ok((0, switch.default_operands())) };
    let operands = switch.case_operands(case).ok_or_else(|| unsupported(op.name(), op))?;
    Ok((case + 1, operands))
}

fn case_values(op: Op, attr: monopour_ir::Attr) -> Result<Vec<i64>> {
    let ty = attr.value_type();
    let width = ty.element().integer_width().map_or(8, |w| w.div_ceil(8) as usize);
    let bytes = attr.elements_bytes().ok_or_else(|| unsupported(op.name(), op))?;
    let value = |chunk: &[u8]| {
        let raw = chunk.iter().rev().fold(0u64, |v, b| v << 8 | u64::from(*b)) as i64;
        crate::host_tensor::wrap(raw, 8 * width as u32)
    };
    Ok(bytes.chunks_exact(width).map(value).collect())
}
