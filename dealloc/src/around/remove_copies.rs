//! Merge two buffers where one is copied into the other and their contents are never needed separately.
//!
//! ```text
//! %t = memref.alloc()                                   "fill"(%s)
//! "fill"(%s)                                   ==>      "use"(%s)
//! memref.copy %s, %t                                    (source: %s is freed right away, %t is replaced by it)
//! memref.dealloc %s
//! "use"(%t)
//!
//! %s = memref.alloc()                                   "fill"(%t)
//! "fill"(%s)                                   ==>      "use"(%t)
//! memref.copy %s, %t                                    (target: %t is not accessed before the copy)
//! memref.dealloc %s
//! "use"(%t)
//! ```
//!
//! Reuse of the source: the copy, the allocation of the target and the deallocation of the source are in one block, the target
//! is not touched before the copy, nor the source after it.
//! Reuse of the target: the copy, the allocation and the deallocation of the source are in one block, the target is not touched
//! between the allocation and the copy, nor the source after the copy.
//! Arguments of a function are assumed not to alias, unless `arguments_may_alias`.
//! With extensions they may be in different blocks ([`super::across_blocks`]), an allocation that is never freed may be
//! removed, too, and the target's allocation moves up.
//! Source: the document on the internals of buffer deallocation, whose pass upstream has removed.
//! Differs: an op that only reads sizes or makes a view touches no memory.

use monopour_ir::ops;
use std::collections::{HashMap, HashSet};

use monopour_ir::{Attr, Diagnostics, Op, Rewriter, Use, Value};

use super::across_blocks::{Site, can_reuse_source, can_reuse_target};
use super::aliases::Aliases;
use super::classes::Classes;
use super::facts::{Frees, is_free, reaches};
use super::functions;
use super::places::Places;

/// Ops that copy all of a buffer into another: source, then target.
const COPIES: &[&str] = &[ops::memref::COPY, ops::linalg::COPY];

/// Options of [`remove_copies`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyRemovalOptions {
    /// Two arguments of a function may alias.
    pub arguments_may_alias: bool,
    /// Extensions beyond the document.
    pub extensions: bool,
}

/// Counts of removed copies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyRemovalStats {
    /// Copies whose target became the source.
    pub sources_reused: u32,
    /// Copies whose source became the target.
    pub targets_reused: u32,
}

/// A copy with its operands.
#[derive(Clone, Copy)]
struct Copy<'c> {
    op: Op<'c>,
    source: Value<'c>,
    target: Value<'c>,
}

/// Removes copies together with the buffers that they copy from or to.
///
/// # Errors
/// MLIR's diagnostics for the new ops.
pub fn remove_copies(root: Op, options: &CopyRemovalOptions) -> Result<CopyRemovalStats, Diagnostics> {
    let mut stats = CopyRemovalStats::default();
    for function in functions(root) {
        let copies = copies_of(function);
        if copies.is_empty() {
            continue;
        }
        let (aliases, places) = (Aliases::new(function), Places::new(function));
        let classes = Classes::new(function, &aliases, &places, options.arguments_may_alias);
        // A buffer that is never freed before the first rewrite is never freed after it.
        let reaches = reaches(&aliases, &places);
        let never_freed = |v: Value| {
            // It is not live across iterations.
            let is_here =
                |first: usize| first >= places.definition(v) && v.block().is_some_and(|b| !places.is_on_cycle(b));
            reaches.of(v).is_some_and(|r| r.frees == Frees::Never && !r.escapes && is_here(r.first_definition))
        };
        let kept: Vec<Value> = copies.iter().map(|op| op.operand(0)).filter(|v| never_freed(*v)).collect();
        let kept = kept.into_iter().collect();
        let rw = Rewriter::new(function.context());
        let uses = Uses::new(function);
        let mut pass = Pass { places: &places, classes, rw, uses, options, kept, moved: HashMap::new() };
        for op in copies {
            let copy = Copy { op, source: op.operand(0), target: op.operand(1) };
            if pass.reuse_source(copy) {
                stats.sources_reused += 1;
            } else if pass.reuse_target(copy) {
                stats.targets_reused += 1;
            }
        }
    }
    Ok(stats)
}

/// Copies between two buffers of one type, in order.
fn copies_of<'c>(function: Op<'c>) -> Vec<Op<'c>> {
    let mut found = Vec::new();
    function.walk(monopour_ir::WalkOrder::Pre, |op| {
        let is_copy = COPIES.contains(&op.name()) && op.num_operands() == 2 && op.num_results() == 0;
        if is_copy && op.operand(0).ty() == op.operand(1).ty() && op.operand(0) != op.operand(1) {
            found.push(op);
        }
    });
    found
}

/// The relevant uses by value: merged buffers may have many.
#[derive(Default)]
struct Uses<'c> {
    frees: HashMap<Value<'c>, Vec<Op<'c>>>,
    /// Values whose alignment is assumed.
    aligned: HashSet<Value<'c>>,
}

impl<'c> Uses<'c> {
    fn new(function: Op<'c>) -> Self {
        let mut this = Self::default();
        function.walk(monopour_ir::WalkOrder::Pre, |op| {
            if op.is(ops::memref::ASSUME_ALIGNMENT) {
                this.aligned.insert(op.operand(0));
            }
            for (index, value) in op.operands().into_iter().enumerate().filter(|(_, v)| v.ty().is_memref()) {
                if is_free(Use { op, index }, value) {
                    this.frees.entry(value).or_default().push(op);
                }
            }
        });
        this
    }

    /// The op that frees the buffer, if only one does through this value.
    fn only_free(&self, value: Value<'c>) -> Option<Op<'c>> {
        match self.frees.get(&value).map(Vec::as_slice) {
            Some([free]) if free.is(ops::memref::DEALLOC) => Some(*free),
            _ => None,
        }
    }

    /// Merges the uses of a replaced value, whose frees are erased, into another.
    fn merge(&mut self, gone: Value<'c>, stays: Value<'c>) {
        let frees = self.frees.remove(&gone);
        self.frees.insert(stays, frees.unwrap_or_default());
        if self.aligned.remove(&gone) {
            self.aligned.insert(stays);
        }
    }
}

struct Pass<'c, 'a> {
    places: &'a Places<'c>,
    classes: Classes<'c>,
    rw: Rewriter<'c>,
    uses: Uses<'c>,
    options: &'a CopyRemovalOptions,
    /// Sources that are never freed and do not escape.
    kept: HashSet<Value<'c>>,
    /// Moved allocations, with the numbers of their next ops.
    moved: HashMap<Op<'c>, usize>,
}

impl<'c> Pass<'c, '_> {
    fn number(&self, op: Op<'c>) -> usize {
        self.moved.get(&op).copied().unwrap_or_else(|| self.places.number(op))
    }

    /// Replaces the target by the source, which lives on.
    fn reuse_source(&mut self, copy: Copy<'c>) -> bool {
        let (Some(alloc), Some(free)) = (allocation(copy.target), self.uses.only_free(copy.source)) else {
            return false;
        };
        if self.classes.are_joined(copy.source, copy.target) || !self.can_reuse_source(copy, alloc, free) {
            return false;
        }
        self.drop_touches(copy, Some(free));
        self.rw.erase(copy.op);
        self.rw.erase(free);
        self.align(copy.source, alloc);
        self.rw.replace_op(alloc, &[copy.source]);
        self.uses.merge(copy.target, copy.source);
        true
    }

    fn can_reuse_source(&mut self, copy: Copy<'c>, alloc: Op<'c>, free: Op<'c>) -> bool {
        let site = Site { copy: copy.op, alloc, free: Some(free) };
        if alloc.block() != copy.op.block() || !is_freed_behind(copy, free) {
            return self.options.extensions && can_reuse_source(self.places, &mut self.classes, site, copy.source);
        }
        let (made, copied, freed) = (self.number(alloc), self.number(copy.op), self.number(free));
        // The source must be defined for all uses of the target: between the allocations only the copy's block is passed.
        let source_made = copy.source.defining_op().filter(|op| op.block() == alloc.block()).map(|op| self.number(op));
        if self.classes.is_touched(copy.target, made, Some(copied))
            || self.classes.is_touched(copy.source, copied, Some(freed))
        {
            return false;
        }
        let is_early = |op: Op<'c>| source_made.is_some_and(|source| self.number(op) < source);
        !copy.target.uses().iter().any(|u| is_early(u.op))
    }

    /// Replaces the source by the target.
    fn reuse_target(&mut self, copy: Copy<'c>) -> bool {
        let Some(alloc) = allocation(copy.source) else { return false };
        let free = self.uses.only_free(copy.source);
        let is_kept = self.options.extensions && self.kept.contains(&copy.source);
        let is_assumed = self.uses.aligned.contains(&copy.source);
        if self.classes.are_joined(copy.source, copy.target) || is_assumed || (free.is_none() && !is_kept) {
            return false;
        }
        let moves = self.moves_up(copy, alloc);
        if !self.can_reuse_target(copy, alloc, free, moves.is_some()) {
            return false;
        }
        if let Some(target) = moves {
            self.rw.move_before(target, alloc);
            self.moved.insert(target, self.number(alloc));
        }
        self.drop_touches(copy, free);
        self.rw.erase(copy.op);
        free.into_iter().for_each(|free| self.rw.erase(free));
        self.align(copy.target, alloc);
        self.rw.replace_op(alloc, &[copy.target]);
        self.uses.frees.remove(&copy.source);
        true
    }

    fn can_reuse_target(&mut self, copy: Copy<'c>, alloc: Op<'c>, free: Option<Op<'c>>, moves: bool) -> bool {
        if alloc.block() != copy.op.block() || free.is_some_and(|free| !is_freed_behind(copy, free)) {
            let site = Site { copy: copy.op, alloc, free };
            return self.options.extensions && can_reuse_target(self.places, &mut self.classes, site, copy.target);
        }
        let (made, copied) = (self.number(alloc), self.number(copy.op));
        let freed = free.map(|op| self.number(op));
        let is_there = moves || copy.target.defining_op().is_none_or(|op| self.number(op) < made);
        is_there
            && !self.classes.is_touched(copy.target, made, Some(copied))
            && !self.classes.is_touched(copy.source, copied, freed)
    }

    /// The allocation of the target, if it comes after that of the source and can move before it.
    fn moves_up(&self, copy: Copy<'c>, source: Op<'c>) -> Option<Op<'c>> {
        let made = self.number(source);
        let target = allocation(copy.target).filter(|op| self.options.extensions && op.block() == source.block())?;
        let can_move = target.operands().iter().all(|v| v.defining_op().is_none_or(|op| self.number(op) < made));
        (self.number(target) > made && can_move).then_some(target)
    }

    /// Removes the erased ops from the classes, and merges the two buffers.
    fn drop_touches(&mut self, copy: Copy<'c>, free: Option<Op<'c>>) {
        for op in free.into_iter().chain([copy.op]) {
            self.classes.forget(self.places.number(op), &[copy.source, copy.target]);
        }
        self.classes.unite(copy.source, copy.target);
    }

    /// The remaining buffer gets the larger alignment of the two.
    fn align(&mut self, stays: Value<'c>, goes: Op<'c>) {
        let bytes = |op: Op<'c>| op.attr("alignment").and_then(|a| a.as_int());
        let Some(alloc) = allocation(stays) else { return };
        if let Some(wanted) = bytes(goes).filter(|wanted| bytes(alloc).is_none_or(|has| has < *wanted)) {
            let attr = Attr::i64(self.rw.context(), wanted);
            self.rw.set_attr(alloc, "alignment", attr);
        }
    }
}

fn allocation<'c>(value: Value<'c>) -> Option<Op<'c>> {
    value.defining_op().filter(|op| op.is(ops::memref::ALLOC))
}

fn is_freed_behind(copy: Copy, free: Op) -> bool {
    free.block() == copy.op.block() && copy.op.is_before_in_block(free)
}
