//! Free a buffer right after its last use in the block that frees it.
//!
//! ```text
//! %a = memref.alloc() : memref<4xf32>                   %a = memref.alloc() : memref<4xf32>
//! "use"(%a)                                             "use"(%a)
//! "other"()                                    ==>      memref.dealloc %a : memref<4xf32>
//! memref.dealloc %a : memref<4xf32>                     "other"()
//! ```
//!
//! Uses count through all aliases, addresses taken as numbers included.
//! Limits: a buffer that is allocated in another block than it is freed in, or freed by several ops, or stored in memory, is skipped.
//! Source: the pass `optimize-allocation-liveness` of MLIR.
//! Differs: upstream frees before a use through an address, and treats results that cannot hold an address as aliases, so that a
//! free may end up after the terminator.

use monopour_ir::ops;
use monopour_ir::{Op, Rewriter};

use super::aliases::Aliases;
use super::facts::{Frees, Reach, allocations, reaches};
use super::functions;
use super::places::Places;

/// Moves deallocations up to the last uses of their buffers, and returns their number.
pub fn shorten_lifetimes(root: Op) -> u32 {
    let mut moved = 0;
    for function in functions(root) {
        let (aliases, places) = (Aliases::new(function), Places::new(function));
        let reaches = reaches(&aliases, &places);
        let wanted = allocations(function).into_iter().filter_map(|(alloc, buffer)| {
            let reach = reaches.of(buffer)?;
            let Frees::By(free) = reach.frees else { return None };
            let frees_it = free.is(ops::memref::DEALLOC) && free.operand(0) == buffer && free.block() == alloc.block();
            let last = last_use(&places, alloc, reach).filter(|_| frees_it && !reach.escapes)?;
            // In an invalid program the last use comes after it.
            (places.number(last) < places.number(free)).then_some((free, last))
        });
        let wanted: Vec<(Op, Op)> = wanted.collect();
        let mut rw = Rewriter::new(function.context());
        for (free, last) in wanted {
            // A free right after it stays.
            if last.next() != Some(free) {
                rw.move_after(free, last);
                moved += 1;
            }
        }
    }
    moved
}

/// The last op of the allocation's block in which the buffer is used.
fn last_use<'c>(places: &Places<'c>, alloc: Op<'c>, reach: &Reach<'c>) -> Option<Op<'c>> {
    let last = places.ancestor_in(alloc.block()?, places.op(reach.last_use?))?;
    (!last.is_terminator()).then_some(last)
}
