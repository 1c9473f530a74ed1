//! Fewer and shorter `bufferization.dealloc`s, by what is known of where memrefs come from.
//!
//! ```text
//! %a, %b = memref.alloc ...
//! %r:2 = bufferization.dealloc (%a, %b) if (%true, %c)     ==>    bufferization.dealloc (%b) if (%c)
//!          retain (%a, %arg)                                      %r#0 is %true, %r#1 is %false
//! ```
//!
//! A memref that is a retained one, and differs from all others, is not freed: its indicator goes there. A retained memref
//! that none of those to be freed may be goes. A memref that may be none of the others gets a dealloc of its own.
//! Where all retained memrefs are owned in any case, those that own them go.
//! Ensures: the same memory is freed, at the same place; the structure of blocks and regions stays.
//! Source: MLIR's buffer-deallocation-simplification, LLVM 22.
//! Differs: memrefs are sorted by their origins instead of being compared with each other. A memref of more than 64 origins
//! counts as one of unknown origin.

mod index;
mod origins;
mod piece;

use monopour_ir::control_flow::fold;
use monopour_ir::ops;
use monopour_ir::{Diagnostics, Op, Rewriter};

use origins::Origins;

/// What one round makes constant the next one uses. More rounds than this would only undo a few deallocs more.
const MAX_ROUNDS: usize = 10;

/// What was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SimplifyStats {
    /// Deallocs that were looked at.
    pub deallocs: u32,
    /// Times that one was changed.
    pub changed: u32,
    /// Memrefs, flows between them and places they come from that were looked at: what the time is in proportion to.
    pub steps: u64,
}

/// Simplifies every `bufferization.dealloc` in an operation whose regions are isolated from above.
///
/// # Errors
/// What MLIR says of the operations that are made.
pub fn simplify(root: Op) -> Result<SimplifyStats, Diagnostics> {
    let mut stats = SimplifyStats::default();
    for round in 0..MAX_ROUNDS {
        fold(root);
        let deallocs = root.find_all(ops::bufferization::DEALLOC);
        if round == 0 {
            stats.deallocs = u32::try_from(deallocs.len()).unwrap_or(u32::MAX);
        }
        if deallocs.is_empty() {
            break;
        }
        let mut origins = Origins::of(root);
        let mut rw = Rewriter::new(root.context());
        let mut changed = 0;
        for op in deallocs {
            changed += u32::from(piece::simplify(op, &mut origins, &mut rw)?);
        }
        stats.steps += origins.steps;
        stats.changed += changed;
        if changed == 0 {
            break;
        }
    }
    Ok(stats)
}
