//! The registry of upstream's operations and interfaces.

use super::OwnershipModels;
use super::branch::{Branch, ConditionalBranch};
use super::call::Call;
use super::memory_effects::MemoryEffects;
use super::region_branch::RegionBranch;
use super::select::Select;
use super::terminator::{ForwardsNothing, RegionBranchTerminator};
use monopour_ir::ops;

impl OwnershipModels {
    /// Upstream's models: memory effects, regions, calls, branches and terminators by interface; `arith.select`,
    /// `cf.cond_br`, and the terminators of `scf.forall`, `scf.reduce` and `gpu.launch` by name.
    pub fn upstream() -> Self {
        let mut models = Self::new();
        models.add(ops::arith::SELECT, Select);
        models.add(ops::cf::COND_BR, ConditionalBranch);
        for name in [ops::scf::FORALL_IN_PARALLEL, ops::scf::REDUCE_RETURN, ops::gpu::TERMINATOR] {
            models.add(name, ForwardsNothing);
        }
        models.add_interface(MemoryEffects);
        models.add_interface(RegionBranch);
        models.add_interface(Call);
        models.add_interface(Branch);
        models.add_interface(RegionBranchTerminator);
        models
    }
    /// Upstream's, and a model of `cf.switch`, which upstream refuses.
    pub fn extended() -> Self {
        let mut models = Self::upstream();
        models.add(ops::cf::SWITCH, ConditionalBranch);
        models
    }
}
