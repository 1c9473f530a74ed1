//! Upstream's form: `bufferization.dealloc` at the end of each block, retaining what the terminator forwards.
use crate::Stats;
use monopour_ir::{Diagnostics, Op};
pub(crate) fn run(_function: Op, _stats: &mut Stats) -> Result<(), Diagnostics> {
    Ok(())
}
