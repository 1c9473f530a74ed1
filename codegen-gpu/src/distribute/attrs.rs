//! What `monopour.kernel` asks for.

use crate::error;
use monopour_ir::{Diagnostics, Op};
use monopour_program::GpuDescription;

/// Each carried value costs a store and a load per pass on software adapters, which eight products outweigh.
const DEFAULT_REDUCTION_STEP: i64 = 8;
/// The pass is unrolled: more only makes drivers slow.
const MAX_REDUCTION_STEP: i64 = 32;

/// The kernel attribute as data.
#[derive(Clone, Debug)]
pub(super) struct KernelAttr {
    /// `elementwise`, `contraction`, `generic`.
    pub(super) class: String,
    /// Invocations per workgroup: x, y, z.
    pub(super) workgroup_size: [i64; 3],
    /// Elements that one invocation holds per dimension of the tile; empty: the strategy's default.
    pub(super) register_tile: Vec<i64>,
    /// Iterations of a reduction that one pass of its loop takes.
    pub(super) reduction_step: i64,
    /// Widest access, in lanes: 1, 2, 4 or 8.
    pub(super) vector_width: u32,
    /// Lanes of the subgroup that operands are shared in; `None`: not shared.
    pub(super) shared_lanes: Option<u32>,
    /// Whether operands are copied to workgroup memory, where the invocations share them.
    pub(super) staged: bool,
}

impl KernelAttr {
    /// Reads the attribute of a kernel function and fits it to the device.
    pub(super) fn read(func: Op, device: &GpuDescription) -> Result<Self, Diagnostics> {
        let attr = func.attr("monopour.kernel").ok_or_else(|| error::bad_kernel_attr(func, "it is missing"))?;
        let ints = |name: &str| attr.get(name).and_then(|a| a.as_ints());
        let int = |name: &str| attr.get(name).and_then(|a| a.as_int());
        let text = |name: &str| attr.get(name).and_then(|a| a.as_string().map(str::to_owned));
        let size =
            ints("workgroup_size").filter(|s| (1..=3).contains(&s.len()) && s.iter().all(|d| (1..=1024).contains(d)));
        let size =
            size.ok_or_else(|| error::bad_kernel_attr(func, "workgroup_size is not an array of one to three sizes"))?;
        let dim = |i: usize| size.get(i).copied().unwrap_or(1);
        let workgroup_size = [dim(0), dim(1), dim(2)];
        let offered = i64::from(device.limits.max_workgroup_invocations);
        let invocations: i64 = workgroup_size.iter().product();
        if invocations > offered {
            return Err(error::over_limit(func, "invocations per workgroup", invocations as u64, offered as u64));
        }
        let widest = if device.has(monopour_program::GpuFeature::Int64) { 8 } else { 4 };
        let asked = int("vector_width").unwrap_or(1).clamp(1, widest) as u32;
        Ok(Self {
            class: text("class").unwrap_or_default(),
            workgroup_size,
            register_tile: ints("register_tile").unwrap_or_default(),
            reduction_step: int("reduction_step").unwrap_or(DEFAULT_REDUCTION_STEP).clamp(1, MAX_REDUCTION_STEP),
            // Lane counts are powers of two.
            vector_width: 1 << asked.ilog2(),
            shared_lanes: shared_lanes(text("share").as_deref(), int("subgroup_size"), invocations, device),
            staged: text("share").as_deref() == Some("workgroup"),
        })
    }

    /// All invocations of a workgroup.
    pub(super) fn invocations(&self) -> i64 {
        self.workgroup_size.iter().product()
    }
}

/// Sharing through a subgroup needs one known size that divides the workgroup.
fn shared_lanes(share: Option<&str>, asked: Option<i64>, invocations: i64, device: &GpuDescription) -> Option<u32> {
    let exact = device.exact_subgroup_size()?;
    let fits =
        share == Some("subgroup") && asked.is_none_or(|s| s == i64::from(exact)) && invocations % i64::from(exact) == 0;
    fits.then_some(exact)
}
