//! Simplify `bufferization.dealloc`s by the origins of their memrefs.
//!
//! ```text
//! %a, %b = memref.alloc ...
//! %r:2 = bufferization.dealloc (%a, %b) if (%true, %c)     ==>    bufferization.dealloc (%b) if (%c)
//!          retain (%a, %arg)                                      %r#0 is %true, %r#1 is %false
//! ```
//!
//! A memref that is a retained one, and differs from all others, is not freed: its indicator goes to the result. A retained memref
//! that none of the freed ones may alias is dropped. A memref that may alias none of the others gets a dealloc of its own.
//! If all retained memrefs are certainly owned, their owners are dropped.
//! Ensures: the same memory is freed, at the same place; blocks and regions are unchanged.
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

/// Later rounds use constants of earlier ones. More rounds than this would only remove a few more deallocs.
const MAX_ROUNDS: usize = 10;

/// Counts of the pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SimplifyStats {
    /// Deallocs visited.
    pub deallocs: u32,
    /// Number of changes.
    pub changed: u32,
    /// Memrefs, flows between them and origins visited: the time is proportional.
    pub steps: u64,
}

/// Simplifies every `bufferization.dealloc` in an operation whose regions are isolated from above.
///
/// # Errors
/// MLIR's diagnostics for the new ops.
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
