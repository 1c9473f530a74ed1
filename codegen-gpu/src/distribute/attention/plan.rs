//! A planned attention as data.

use super::super::code::Code;
use super::super::evaluate::{Evaluator, Reach, common_lanes};
use super::super::model::Base;
use super::form::Form;
use monopour_ir::Value;
use std::collections::HashMap;

/// A planned attention.
pub(super) struct Plan<'c, 'm> {
    pub(super) form: Form<'c, 'm>,
    /// Lanes of a subgroup; `None`: invocations share by workgroup memory.
    pub(super) subgroup: Option<u32>,
    /// Lanes of a subgroup that multiplies matrices; `None`: no cooperative matrices.
    pub(super) cooperative: Option<i64>,
    /// Lanes of a subgroup whose teams pass maxima on by shuffles.
    pub(super) teams: Option<u32>,
    pub(super) invocations: i64,
    /// Rows of the tile.
    pub(super) rows: i64,
    /// Keys of a block.
    pub(super) block: i64,
    pub(super) lanes: Lanes,
    /// Bound of the keys on software adapters, which the host checks.
    pub(super) most_keys: Option<i64>,
}

/// Elements per access.
#[derive(Clone, Copy)]
pub(super) struct Lanes {
    /// Of queries and keys.
    pub(super) size: u32,
    /// Of the ops on scores, along the keys.
    pub(super) keys: u32,
    /// Of values and results.
    pub(super) width: u32,
}

impl<'c> Plan<'c, '_> {
    /// The lane count of each argument; 1 where two accesses of it differ.
    pub(super) fn argument_lanes(&self, evaluator: &Evaluator<'c, '_>) -> HashMap<Base, u32> {
        let (model, form) = (evaluator.model, &self.form);
        let factors =
            [(&form.queries, self.lanes.size), (&form.keys, self.lanes.size), (&form.weighted, self.lanes.width)];
        let loads = factors.into_iter().flat_map(|(factor, lanes)| {
            let operands = factor.operands(evaluator, lanes).into_iter();
            operands.filter_map(move |(operand, reach)| {
                Some((model.base(operand.source)?, if reach == Reach::Wide { lanes } else { 1 }))
            })
        });
        let on_scores = form.pointwise.iter().map(|op| (*op, self.lanes.keys));
        let on_results = form.after.iter().copied().chain([form.values]).map(|op| (op, self.lanes.width));
        let others = on_scores.chain(on_results).flat_map(|(op, lanes)| {
            let first = if std::ptr::eq(op, form.values) { op.num_inputs } else { 0 };
            op.operands[first..].iter().filter_map(move |operand| evaluator.access(op, operand, lanes))
        });
        common_lanes(loads.chain(others).filter(|(base, _)| matches!(base, Base::Argument(_))))
    }

    /// Column groups of an invocation.
    pub(super) fn column_groups(&self, threads: i64) -> i64 {
        let span = threads * i64::from(self.lanes.width);
        (self.form.width + span - 1) / span
    }

    /// The end of the loop over the keys that the tile's rows may see: of all of them, where others count.
    pub(super) fn end(&self, code: &mut Code<'c, '_>) -> Value<'c> {
        match &self.form.mask {
            Some(mask) if mask.least == f64::NEG_INFINITY => self.seen(code),
            _ => self.last(code),
        }
    }

    /// The keys that the tile's rows see, of a causal mask.
    pub(super) fn seen(&self, code: &mut Code<'c, '_>) -> Value<'c> {
        let all = self.last(code);
        let (Some(mask), Some((_, rows))) = (&self.form.mask, self.form.row) else { return all };
        let seen = mask.seen(code, rows.value);
        code.min(all, seen)
    }

    /// The end of the keys.
    pub(super) fn last(&self, code: &mut Code<'c, '_>) -> Value<'c> {
        let count = self.form.count;
        let Some(most) = self.most_keys.filter(|_| count.exact().is_none()) else { return count.value };
        let most = code.c(most);
        code.min(count.value, most)
    }

    /// Whether the last block of keys is whole.
    pub(super) fn blocks_are_whole(&self) -> bool {
        self.form.count.facts.divisor % self.block == 0
    }
}
