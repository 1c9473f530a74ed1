//! The trait of vector forms: `plan` decides from data and changes nothing, `write` emits the loops.

use super::choose::{Choice, Declined};
use super::emit::Emit;
use super::nest::Nest;
use monopour_program::CpuTarget;

/// A way to write an op as loops over vectors.
pub(super) trait Form: Sync {
    /// Chooses the vector loop and the register tile, or declines.
    fn plan(&self, nest: &Nest, cpu: &CpuTarget) -> Result<Choice, Declined>;
    /// Whether outputs are updated block by block, and so not fused with fill and epilogue.
    fn updates_in_blocks(&self, choice: &Choice) -> bool;
    /// Writes the loops.
    fn write<'c>(&self, e: &mut Emit<'c>, nest: &Nest<'c>, choice: &Choice);
}
