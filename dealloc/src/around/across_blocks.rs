//! Copy removal across blocks: the buffers are allocated, copied and freed in different blocks.
//!
//! ```text
//! %t = memref.alloc(); %s = memref.alloc()              ^a: %s = memref.alloc()
//! cf.cond_br %c, ^b, ^d                                 cf.cond_br %c, ^b, ^d
//! ^b: "fill"(%s); cf.br ^e                       ==>    ^b: "fill"(%s); cf.br ^e
//! ^d: "zero"(%s); cf.br ^e                              ^d: "zero"(%s); cf.br ^e
//! ^e: memref.copy %s, %t; cf.br ^g                      ^e: cf.br ^g
//! ^g: memref.dealloc %s; "use"(%t)                      ^g: "use"(%s)
//! ```
//!
//! All are in one region, in blocks on no cycle. Then an op is *before* the copy if it is not reachable from the copy,
//! and *after* it if every path to it passes the copy.

use monopour_ir::{Block, Op, Value};

use super::classes::Classes;
use super::places::Places;

/// Most ops examined for one copy: each costs a search of the blocks.
const MAX_TOUCHES: usize = 64;
/// Most blocks that such a search visits.
const MAX_BLOCKS: usize = 256;

/// A copy, the allocation to remove, and the free of the source.
#[derive(Clone, Copy)]
pub(crate) struct Site<'c> {
    pub copy: Op<'c>,
    pub alloc: Op<'c>,
    pub free: Option<Op<'c>>,
}

/// The blocks of a site: one region, no cycles.
struct Blocks<'c, 'a> {
    places: &'a Places<'c>,
    copy: Op<'c>,
    at: Block<'c>,
}

impl<'c, 'a> Blocks<'c, 'a> {
    fn new(places: &'a Places<'c>, site: Site<'c>) -> Option<Self> {
        let at = site.copy.block()?;
        let region = at.region()?;
        let others = [Some(site.copy), Some(site.alloc), site.free];
        for block in others.into_iter().flatten().map(|op| op.block()) {
            if block.and_then(Block::region) != Some(region) || places.is_on_cycle(block?) {
                return None;
            }
        }
        Some(Self { places, copy: site.copy, at })
    }

    /// The op of the region that is or contains this one.
    fn lifted(&self, op: Op<'c>) -> Option<Op<'c>> {
        let region = self.at.region();
        std::iter::successors(Some(op), |op| op.parent()).find(|o| o.block().and_then(Block::region) == region)
    }

    /// Whether every path to `op` passes the copy.
    fn is_after(&self, op: Op<'c>) -> bool {
        let Some((op, block)) = self.lifted(op).and_then(|op| Some((op, op.block()?))) else { return false };
        if block == self.at { self.copy.is_before_in_block(op) } else { self.places.dominates(self.at, block) }
    }

    /// Whether `op` is not reachable from `from`.
    fn is_before(&self, op: Op<'c>, from: Op<'c>) -> bool {
        let Some((op, block)) = self.lifted(op).and_then(|op| Some((op, op.block()?))) else { return false };
        match from.block() {
            Some(at) if at == block => op.is_before_in_block(from),
            Some(at) => !is_reachable(at, block),
            None => false,
        }
    }

    fn copy_follows(&self, alloc: Op<'c>) -> bool {
        alloc.block().is_some_and(|block| self.places.post_dominates(self.at, block))
    }
}

/// Whether one block may be reachable from another: a long search gives up with true.
fn is_reachable(from: Block, to: Block) -> bool {
    let mut seen = vec![from];
    let mut next = 0;
    while let Some(block) = seen.get(next).copied() {
        next += 1;
        for successor in block.successors() {
            if successor == to || seen.len() > MAX_BLOCKS {
                return true;
            }
            if !seen.contains(&successor) {
                seen.push(successor);
            }
        }
    }
    false
}

/// Whether the source can replace the target, whose allocation is the site's.
pub(crate) fn can_reuse_source<'c>(
    places: &Places<'c>,
    classes: &mut Classes<'c>,
    site: Site<'c>,
    source: Value<'c>,
) -> bool {
    let Some(blocks) = Blocks::new(places, site) else { return false };
    let (target, Some(free)) = (site.copy.operand(1), site.free) else { return false };
    let frees_always = blocks.is_after(free) && free.block().is_some_and(|b| places.post_dominates(b, blocks.at));
    // A target that is freed on a path without the copy would free the source there, too.
    if !frees_always || !blocks.copy_follows(site.alloc) {
        return false;
    }
    let uses_are_late = target.uses().iter().all(|u| u.op == site.copy || blocks.is_after(u.op));
    uses_are_late
        && all_touch(places, classes, target, &[site.copy], |op| blocks.is_after(op))
        && all_touch(places, classes, source, &[site.copy, free], |op| blocks.is_before(op, site.copy))
}

/// Whether the target can replace the source, whose allocation is the site's.
pub(crate) fn can_reuse_target<'c>(
    places: &Places<'c>,
    classes: &mut Classes<'c>,
    site: Site<'c>,
    target: Value<'c>,
) -> bool {
    let Some(blocks) = Blocks::new(places, site) else { return false };
    let source = site.copy.operand(0);
    let Some(made) = site.alloc.block() else { return false };
    let is_there = match target.defining_op() {
        Some(op) if op.block() == Some(made) => op.is_before_in_block(site.alloc),
        _ => target.block().is_some_and(|block| places.dominates(block, made)),
    };
    // On a path without the copy the target would still be written.
    if !is_there || !blocks.copy_follows(site.alloc) || site.free.is_some_and(|free| !blocks.is_after(free)) {
        return false;
    }
    let gone: Vec<Op> = [Some(site.copy), site.free].into_iter().flatten().collect();
    all_touch(places, classes, source, &gone, |op| blocks.is_before(op, site.copy))
        && all_touch(places, classes, target, &gone, |op| blocks.is_after(op) || blocks.is_before(op, site.alloc))
}

/// Whether all ops that may touch the memory, other than `gone`, are on the required side of the copy.
fn all_touch<'c>(
    places: &Places<'c>,
    classes: &mut Classes<'c>,
    value: Value<'c>,
    gone: &[Op<'c>],
    is_right: impl Fn(Op<'c>) -> bool,
) -> bool {
    let touches = classes.touches(value, MAX_TOUCHES);
    touches.is_some_and(|all| all.into_iter().map(|n| places.op(n)).all(|op| gone.contains(&op) || is_right(op)))
}
