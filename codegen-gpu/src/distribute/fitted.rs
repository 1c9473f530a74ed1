//! The kernel choice of `monopour.kernel`, fitted to the device.

use crate::error;
use monopour_contract::{KernelChoice, KernelClass, Sharing, attributes};
use monopour_ir::{Diagnostics, Op};
use monopour_program::{GpuDescription, GpuFeature};

/// Most iterations of an unrolled pass: more only slow drivers down.
const MAX_REDUCTION_STEP: i64 = 32;

/// A kernel choice, fitted to the device.
#[derive(Clone, Debug)]
pub(super) struct FittedChoice {
    /// The class, which selects the strategy.
    pub(super) class: KernelClass,
    /// Invocations per workgroup: x, y, z.
    pub(super) workgroup_size: [i64; 3],
    /// Elements that one invocation holds per dimension of the tile; empty: the strategy's default.
    pub(super) register_tile: Vec<i64>,
    /// Iterations of a reduction per pass of its loop.
    pub(super) reduction_step: i64,
    /// Widest access, in lanes: 1, 2, 4 or 8.
    pub(super) vector_width: u32,
    /// Subgroup size for shared operands; `None`: not shared.
    pub(super) shared_lanes: Option<u32>,
    /// Whether operands are staged in workgroup memory.
    pub(super) staged: bool,
    /// Subgroup size for cooperative matrices; `None`: they are not asked for, or not there.
    pub(super) cooperative: Option<i64>,
    /// Whether f16 is computed in f16.
    pub(super) native_halves: bool,
}

impl FittedChoice {
    /// Reads the attribute of a kernel function and fits it to the device.
    pub(super) fn read(func: Op, device: &GpuDescription) -> Result<Self, Diagnostics> {
        let attr = func.attr(attributes::KERNEL).ok_or_else(|| error::bad_kernel_attr(func, "it is missing"))?;
        let choice = KernelChoice::decode(|entry| attr.field(entry));
        let choice = choice.map_err(|why| error::bad_kernel_attr(func, &why.to_string()))?;
        let offered = i64::from(device.limits.max_workgroup_invocations);
        let invocations = choice.invocations();
        if invocations > offered {
            return Err(error::over_limit(func, "invocations per workgroup", invocations as u64, offered as u64));
        }
        // Eight lanes are four words of 64 bits: there is none for eight halves that stay halves.
        let has_eight = device.has(GpuFeature::Int64) && device.has_wide_halves();
        let widest = if has_eight { 8 } else { 4 };
        // Lane counts are powers of two.
        let vector_width = 1 << choice.vector_width.clamp(1, widest).ilog2();
        Ok(Self {
            class: choice.class,
            workgroup_size: choice.workgroup_size.map(i64::from),
            reduction_step: choice.reduction_step.clamp(1, MAX_REDUCTION_STEP),
            vector_width,
            shared_lanes: shared_lanes(&choice, device),
            staged: matches!(choice.sharing, Sharing::Workgroup | Sharing::Cooperative),
            cooperative: cooperative_lanes(&choice, device),
            native_halves: !device.has_wide_halves(),
            register_tile: choice.register_tile,
        })
    }

    /// Number of invocations of a workgroup.
    pub(super) fn invocations(&self) -> i64 {
        self.workgroup_size.iter().product()
    }
}

/// Shuffles need one known subgroup size that divides the workgroup.
fn shared_lanes(choice: &KernelChoice, device: &GpuDescription) -> Option<u32> {
    let exact = device.exact_subgroup_size()?;
    let lanes = i64::from(exact);
    let fits = choice.sharing == Sharing::Subgroup
        && choice.subgroup_size.is_none_or(|asked| asked == lanes)
        && choice.invocations() % lanes == 0;
    fits.then_some(exact)
}

/// Cooperative matrices are of whole subgroups.
fn cooperative_lanes(choice: &KernelChoice, device: &GpuDescription) -> Option<i64> {
    let lanes = i64::from(device.cooperative_lanes()?);
    (choice.sharing == Sharing::Cooperative && choice.invocations() % lanes == 0).then_some(lanes)
}
