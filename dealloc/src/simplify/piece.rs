//! A dealloc, or a part split off, during simplification.

use monopour_ir::ops;
use std::collections::{HashMap, HashSet};

use monopour_ir::interfaces::{EffectKind, memory_effects};
use monopour_ir::typed::bufferization;
use monopour_ir::{Diagnostics, InsertionPoint, Op, OpSpec, Rewriter, Value};

use super::index::Index;
use super::origins::{Origin, Origins};
use crate::lower::Dealloc;
use crate::ownership::{is_false, is_true};

/// Memrefs with their indicators, and retained memrefs, by the number of the result of the original op.
#[derive(Clone, Debug, Default)]
pub(super) struct Piece<'c> {
    memrefs: Vec<(Value<'c>, Value<'c>)>,
    retained: Vec<(Value<'c>, usize)>,
}

/// Simplifies one dealloc; whether it changed.
pub(super) fn simplify<'c>(op: Op<'c>, origins: &mut Origins<'c>, rw: &mut Rewriter<'c>) -> Result<bool, Diagnostics> {
    let parts = Dealloc::of(op);
    let whole = Piece {
        memrefs: parts.memrefs.into_iter().zip(parts.conditions).collect(),
        retained: parts.retained.into_iter().enumerate().map(|(i, value)| (value, i)).collect(),
    };
    rw.set_point(InsertionPoint::Before(op));
    let mut work = Work { op, origins, rw, unused: vec![], has_changed: false, has_replaced: false };
    let results = work.finish(whole, true)?;
    let Work { unused, has_replaced, .. } = work;
    let Some(results) = results else { return Ok(has_replaced) };
    let mut values = Vec::with_capacity(op.num_results());
    for number in 0..op.num_results() {
        values.push(match results.get(&number) {
            Some(value) => *value,
            None => {
                rw.set_point(InsertionPoint::Before(op));
                rw.const_bool(false, op.location())
            }
        });
    }
    rw.replace_op(op, &values);
    // Allocations that only the dealloc used.
    for allocation in unused {
        rw.erase(allocation);
    }
    Ok(true)
}

/// The indicators of retained memrefs, by the number of the result; absent ones are false.
type Results<'c> = HashMap<usize, Value<'c>>;

struct Work<'c, 'a> {
    op: Op<'c>,
    origins: &'a mut Origins<'c>,
    rw: &'a mut Rewriter<'c>,
    unused: Vec<Op<'c>>,
    has_changed: bool,
    /// Only indicators were replaced by true.
    has_replaced: bool,
}

impl<'c> Work<'c, '_> {
    /// Simplifies a piece until nothing changes, and creates its dealloc. `is_whole`: no part has been split off yet,
    /// so that an unchanged piece is the operation itself, for which there is no result.
    fn finish(&mut self, mut piece: Piece<'c>, is_whole: bool) -> Result<Option<Results<'c>>, Diagnostics> {
        let mut joined: Vec<Vec<(usize, Value)>> = vec![];
        let mut always: Vec<usize> = vec![];
        let mut split: Vec<Results> = vec![];
        let mut duplicates: Vec<(usize, usize)> = vec![];
        loop {
            let before = (piece.memrefs.len(), piece.retained.len());
            self.drop_contained(&mut piece, &mut joined);
            self.drop_unrelated(&mut piece);
            let apart = self.split_off(&mut piece);
            for part in apart {
                self.has_changed = true;
                split.extend(self.finish(part, false)?);
            }
            self.drop_owned(&mut piece, &mut always);
            let is_other = self.canonicalize(&mut piece, &mut duplicates)?;
            if before == (piece.memrefs.len(), piece.retained.len()) && !is_other {
                break;
            }
            self.has_changed = true;
        }
        if is_whole && !self.has_changed {
            for number in always {
                self.replace_by_set(number);
            }
            return Ok(None);
        }
        let mut results = self.emit(&piece)?;
        for part in split {
            let mut numbers: Vec<usize> = part.keys().copied().collect();
            numbers.sort_unstable();
            for number in numbers {
                self.or_into(&mut results, number, part[&number])?;
            }
        }
        // The memref dropped last is innermost, as in upstream.
        for (number, indicator) in joined.into_iter().rev().flatten() {
            self.or_into(&mut results, number, indicator)?;
        }
        self.rw.set_point(InsertionPoint::Before(self.op));
        for number in always {
            let set = self.rw.const_bool(true, self.op.location());
            results.insert(number, set);
        }
        for (number, first) in duplicates {
            if let Some(indicator) = results.get(&first).copied() {
                results.insert(number, indicator);
            }
        }
        Ok(Some(results))
    }

    fn replace_by_set(&mut self, number: usize) {
        let result = self.op.result(number);
        if !result.is_unused() {
            self.rw.set_point(InsertionPoint::Before(self.op));
            let set = self.rw.const_bool(true, self.op.location());
            self.rw.replace_all_uses(result, set);
            self.has_replaced = true;
        }
    }

    fn origins_of(&mut self, values: impl Iterator<Item = Value<'c>>) -> Vec<Origin<'c>> {
        values.map(|value| self.origins.get(value)).collect()
    }

    /// Drops memrefs that certainly are a retained one and differ from the other retained ones; their indicators go to its result.
    fn drop_contained(&mut self, piece: &mut Piece<'c>, joined: &mut Vec<Vec<(usize, Value<'c>)>>) {
        let mut seen = HashSet::new();
        if piece.retained.is_empty() || piece.retained.iter().any(|(value, _)| !seen.insert(*value)) {
            return;
        }
        let retained = self.origins_of(piece.retained.iter().map(|(value, _)| *value));
        let index = Index::of(&retained);
        let numbers: Vec<usize> = piece.retained.iter().map(|(_, number)| *number).collect();
        piece.memrefs.retain(|(memref, condition)| {
            let same = index.same_if_rest_differs(&self.origins.get(*memref), &retained);
            if !same.is_empty() {
                joined.push(same.iter().map(|i| (numbers[*i], *condition)).collect());
            }
            same.is_empty()
        });
    }

    /// Drops retained memrefs that none of the freed ones may alias.
    fn drop_unrelated(&mut self, piece: &mut Piece<'c>) {
        if piece.retained.is_empty() {
            return;
        }
        let index = Index::of(&self.origins_of(piece.memrefs.iter().map(|(memref, _)| *memref)));
        piece.retained.retain(|(value, _)| index.may_hold(&self.origins.get(*value), false));
        self.origins.steps += index.steps.get();
    }

    /// Splits off the memrefs that may alias none of the others, each with the retained ones that it may alias.
    fn split_off(&mut self, piece: &mut Piece<'c>) -> Vec<Piece<'c>> {
        if piece.memrefs.len() < 2 {
            return vec![];
        }
        let memrefs = self.origins_of(piece.memrefs.iter().map(|(memref, _)| *memref));
        let index = Index::of(&memrefs);
        let alone: Vec<bool> = memrefs.iter().map(|origin| !index.may_hold(origin, true)).collect();
        if !alone.contains(&true) {
            return vec![];
        }
        let retained = self.origins_of(piece.retained.iter().map(|(value, _)| *value));
        let of_retained = Index::of(&retained);
        let mut apart = Vec::new();
        let mut rest = Vec::new();
        for ((memref, origin), is_alone) in std::mem::take(&mut piece.memrefs).into_iter().zip(&memrefs).zip(alone) {
            if is_alone {
                let kept = of_retained.possible(origin, &retained).into_iter().map(|i| piece.retained[i]).collect();
                apart.push(Piece { memrefs: vec![memref], retained: kept });
            } else {
                rest.push(memref);
            }
        }
        piece.memrefs = rest;
        self.origins.steps += index.steps.get() + of_retained.steps.get();
        apart
    }

    /// A retained memref that is certainly owned gets the indicator true. If all are, drops their owners.
    fn drop_owned(&mut self, piece: &mut Piece<'c>, always: &mut Vec<usize>) {
        if piece.retained.is_empty() || !piece.memrefs.iter().any(|(_, condition)| is_true(*condition)) {
            return;
        }
        let retained = self.origins_of(piece.retained.iter().map(|(value, _)| *value));
        let index = Index::of(&retained);
        let mut is_owned = vec![false; retained.len()];
        let owners: Vec<bool> = piece
            .memrefs
            .iter()
            .map(|(memref, condition)| {
                let same = if is_true(*condition) { index.same(&self.origins.get(*memref)) } else { vec![] };
                same.iter().for_each(|i| is_owned[*i] = true);
                !same.is_empty()
            })
            .collect();
        let owned = piece.retained.iter().zip(&is_owned).filter(|(_, is_owned)| **is_owned).map(|((_, n), _)| *n);
        let owned: Vec<usize> = owned.filter(|number| !always.contains(number)).collect();
        always.extend(owned);
        if is_owned.contains(&false) {
            return;
        }
        let mut owners = owners.into_iter();
        piece.memrefs.retain(|_| owners.next() != Some(true));
        // The other memrefs are still not freed: only their indicators are unused.
        if piece.memrefs.is_empty() {
            piece.retained.clear();
        }
    }

    /// Upstream's canonicalization; whether it made a change that the lengths of the lists do not show.
    fn canonicalize(
        &mut self,
        piece: &mut Piece<'c>,
        duplicates: &mut Vec<(usize, usize)>,
    ) -> Result<bool, Diagnostics> {
        self.merge_memrefs(piece)?;
        merge_retained(piece, duplicates);
        piece.memrefs.retain(|(_, condition)| !is_false(*condition));
        if piece.memrefs.is_empty() {
            piece.retained.clear();
        }
        let mut has_changed = false;
        for (memref, _) in &mut piece.memrefs {
            let base = memref.defining_op().filter(|op| op.is(ops::memref::EXTRACT_STRIDED_METADATA));
            let allocated = base.map(|op| op.operand(0));
            if let Some(allocated) = allocated.filter(|v| allocation_of(*v).is_some()) {
                *memref = allocated;
                has_changed = true;
            }
        }
        let op = self.op;
        let unused = &mut self.unused;
        piece.memrefs.retain(|(memref, _)| {
            let is_idle =
                |a: &Op<'c>| memory_effects(*a).is_some_and(|all| all.len() == 1) && is_only_user(op, *memref);
            let allocation = allocation_of(*memref).filter(is_idle);
            unused.extend(allocation);
            allocation.is_none()
        });
        Ok(has_changed)
    }

    /// One entry for each memref, under any of its indicators.
    fn merge_memrefs(&mut self, piece: &mut Piece<'c>) -> Result<(), Diagnostics> {
        let mut positions: HashMap<Value, usize> = HashMap::new();
        let mut merged: Vec<(Value, Value)> = Vec::with_capacity(piece.memrefs.len());
        for (memref, condition) in &piece.memrefs {
            match positions.get(memref) {
                Some(at) => merged[*at].1 = self.or(merged[*at].1, *condition)?,
                None => {
                    positions.insert(*memref, merged.len());
                    merged.push((*memref, *condition));
                }
            }
        }
        piece.memrefs = merged;
        Ok(())
    }

    fn emit(&mut self, piece: &Piece<'c>) -> Result<Results<'c>, Diagnostics> {
        if piece.memrefs.is_empty() {
            return Ok(Results::new());
        }
        let (memrefs, conditions): (Vec<Value>, Vec<Value>) = piece.memrefs.iter().copied().unzip();
        let retained: Vec<Value> = piece.retained.iter().map(|(value, _)| *value).collect();
        self.rw.set_point(InsertionPoint::Before(self.op));
        let new = self.rw.create(bufferization::dealloc(self.op.location(), &memrefs, &conditions, &retained))?;
        Ok(piece.retained.iter().map(|(_, number)| *number).zip(new.results()).collect())
    }

    fn or_into(&mut self, results: &mut Results<'c>, number: usize, indicator: Value<'c>) -> Result<(), Diagnostics> {
        let either = match results.get(&number) {
            Some(known) => self.or(*known, indicator)?,
            None => indicator,
        };
        results.insert(number, either);
        Ok(())
    }

    fn or(&mut self, a: Value<'c>, b: Value<'c>) -> Result<Value<'c>, Diagnostics> {
        if a == b || is_false(b) || is_true(a) {
            return Ok(a);
        }
        if is_false(a) || is_true(b) {
            return Ok(b);
        }
        self.rw.set_point(InsertionPoint::Before(self.op));
        let spec = OpSpec::new(ops::arith::ORI, self.op.location()).operands(&[a, b]).results(&[a.ty()]);
        Ok(self.rw.create(spec)?.result(0))
    }
}

/// One entry for each retained memref. The others have the same indicator.
fn merge_retained(piece: &mut Piece, duplicates: &mut Vec<(usize, usize)>) {
    let mut numbers: HashMap<Value, usize> = HashMap::new();
    piece.retained.retain(|(value, number)| match numbers.get(value) {
        Some(first) => {
            duplicates.push((*number, *first));
            false
        }
        None => {
            numbers.insert(*value, *number);
            true
        }
    });
}

/// The operation that allocates a memref.
fn allocation_of<'c>(memref: Value<'c>) -> Option<Op<'c>> {
    let allocates = |op: &Op<'c>| {
        memory_effects(*op)
            .is_some_and(|all| all.iter().any(|e| e.kind == EffectKind::Allocate && e.value == Some(memref)))
    };
    memref.defining_op().filter(allocates)
}

fn is_only_user(op: Op, memref: Value) -> bool {
    memref.only_use().is_some_and(|only| only.op == op)
}
