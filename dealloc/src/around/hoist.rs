//! Hoist allocations to the common dominator of all aliases, or out of loops.
//!
//! ```text
//! %r = scf.if %c {                                      %a = memref.alloc() : memref<4xf32>
//!   %a = memref.alloc() : memref<4xf32>                 %r = scf.if %c {
//!   scf.yield %a                               ==>        scf.yield %a
//! } else {                                              } else {
//!   scf.yield %b                                          scf.yield %b
//! }                                                     }
//! ```
//!
//! [`hoist_buffers`] does not leave loops, threads or functions; [`hoist_buffers_out_of_loops`] leaves loops alone.
//! Requires: the operands dominate the new position, or the buffer stays after them.
//! Source: the passes `buffer-hoisting` and `buffer-loop-hoisting` of MLIR, and the document on buffer deallocation.
//! Differs: a buffer allocated in a block on a cycle stays in it. Out of a loop its free is hoisted along; if
//! that is impossible, the buffer stays (upstream leaves the free in the loop). With extensions a buffer that is freed stays
//! in its branch: the other branches would not free it.

use monopour_ir::ops;
use monopour_ir::{Op, Rewriter, Value};

use super::aliases::Aliases;
use super::facts::{Frees, Reach, reaches};
use super::functions;
use super::places::{Places, is_loop};

/// Ops that can be hoisted.
const MOVABLE: &[&str] = &[ops::memref::ALLOC];
/// Ops that can be hoisted out of a loop.
const MOVABLE_OUT_OF_LOOPS: &[&str] = &[ops::memref::ALLOC, ops::memref::ALLOCA];

/// Hoists allocations to the common dominator of their aliases, and returns their number.
pub fn hoist_buffers(root: Op, extensions: bool) -> u32 {
    let mut moved = 0;
    for function in functions(root) {
        let (aliases, places) = (Aliases::new(function), Places::new(function));
        let reaches = reaches(&aliases, &places);
        let wanted = named(function, MOVABLE).into_iter().filter_map(|alloc| {
            let reach = reaches.of(alloc.result(0))?;
            let may_move = !extensions || (reach.frees == Frees::Never && !reach.escapes);
            dominating_place(&places, alloc, reach).filter(|_| may_move).map(|anchor| (alloc, anchor))
        });
        let wanted: Vec<(Op, Op)> = wanted.collect();
        let mut rw = Rewriter::new(function.context());
        for (alloc, anchor) in wanted {
            rw.move_before(alloc, anchor);
            moved += 1;
        }
    }
    moved
}

/// The ops of these names in a function, in order.
fn named<'c>(function: Op<'c>, names: &[&str]) -> Vec<Op<'c>> {
    let mut found = Vec::new();
    function.walk(monopour_ir::WalkOrder::Pre, |op| {
        if names.contains(&op.name()) {
            found.push(op);
        }
    });
    found
}

/// The op before which the allocation is moved; `None` if it stays in its block.
fn dominating_place<'c>(places: &Places<'c>, alloc: Op<'c>, reach: &Reach<'c>) -> Option<Op<'c>> {
    let from = places.node(alloc.block()?);
    let mut to = places.common_dominator(from, reach.dominator?);
    for size in alloc.operands() {
        to = places.lower(to, places.node_of(size));
    }
    to = places.lower(to, places.limit(from));
    if to == from {
        return None;
    }
    let block = places.block(to);
    places.ancestor_in(block, alloc).or_else(|| block.terminator())
}

/// Hoists allocations out of their loops, and returns their number.
pub fn hoist_buffers_out_of_loops(root: Op) -> u32 {
    let mut moved = 0;
    for function in functions(root) {
        let (aliases, places) = (Aliases::new(function), Places::new(function));
        let reaches = reaches(&aliases, &places);
        let mut wanted = Vec::new();
        for alloc in named(function, MOVABLE_OUT_OF_LOOPS) {
            let Some(reach) = reaches.of(alloc.result(0)).filter(|r| !r.escapes) else { continue };
            // The free is hoisted along; no iteration may skip it.
            let along = match reach.frees {
                Frees::Never => None,
                Frees::By(free) if is_freed_in_its_block(alloc, free) => Some(free),
                _ => continue,
            };
            if let Some(outermost) = outermost_loop(&places, alloc, reach) {
                wanted.push((alloc, along, outermost));
            }
        }
        let mut rw = Rewriter::new(function.context());
        for (alloc, free, outermost) in wanted {
            rw.move_before(alloc, outermost);
            if let Some(free) = free {
                rw.move_after(free, outermost);
            }
            moved += 1;
        }
    }
    moved
}

fn is_freed_in_its_block(alloc: Op, free: Op) -> bool {
    free.is(ops::memref::DEALLOC) && free.operand(0) == alloc.result(0) && free.block() == alloc.block()
}

/// The outermost loop out of which the buffer can move: it flows to no argument and no result of the loop, and its sizes are
/// defined before.
fn outermost_loop<'c>(places: &Places<'c>, alloc: Op<'c>, reach: &Reach<'c>) -> Option<Op<'c>> {
    let sizes: Vec<usize> = alloc.operands().into_iter().map(|v: Value<'c>| places.definition(v)).collect();
    let fits = |around: &Op<'c>| {
        let number = places.number(*around);
        is_loop(*around) && reach.first_definition > number && sizes.iter().all(|s| *s < number)
    };
    let loops = std::iter::successors(alloc.parent(), |op| op.parent());
    loops.take_while(fits).last()
}
