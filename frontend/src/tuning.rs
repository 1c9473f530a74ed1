//! Kernels by measurement: the candidates of a dispatch, and which of them was the fastest.
//!
//! ```text
//! dispatch 3        [16, 64, 0] {class = "contraction", reduction_step = 8, ..}      the cost model's, the first candidate
//! its structure:    [16, 64, 0] {class = "contraction", reduction_step = 16, ..}     a choice for this structure: taken instead
//! "9f3ac1.."        [32, 32, 0] {class = "contraction", register_tile = [32, 4], ..}
//! ```
//! Choices are by structure: equal dispatches of a program, and of other programs for the same device, share one. A choice that
//! is no candidate, as one of an earlier version, counts as none.

use crate::deviation;
use crate::dispatch::Dispatch;
use crate::effort::Effort;
use crate::isolate::Isolated;
use crate::kernel::{self, Kernel};
use crate::linalg::Loops;
use monopour_contract::attributes;
use monopour_ir::{Diagnostics, Rewriter, WalkOrder};
use monopour_program::GpuDescription;
use std::collections::BTreeMap;

/// The choice for each structure of dispatches, by its name: the text of a kernel.
pub type Choices = BTreeMap<String, String>;

/// Measured choices for a device, and whether kernels are measured now.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuning {
    /// The device for which they hold.
    pub device: GpuDescription,
    /// The choices.
    pub choices: Choices,
    /// Whether kernels are named by their structure: equal kernels of several structures are then several.
    pub measures: bool,
}

/// A dispatch's structure, and the kernels that it may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tunable {
    /// The name of the structure.
    pub key: String,
    /// The source of the first dispatch of this structure.
    pub location: String,
    /// Texts of the kernels, the cost model's first.
    pub candidates: Vec<String>,
}

impl Tuning {
    /// The kernel of a dispatch, and what it could be.
    ///
    /// # Errors
    /// MLIR's, none on verified IR.
    pub(crate) fn choose<'c>(
        &self,
        dispatch: &Dispatch<'c>,
        loops: &Loops,
        effort: Effort,
        rw: &mut Rewriter<'c>,
    ) -> Result<(Kernel, Tunable), Diagnostics> {
        let mut kernels: Vec<Kernel> = vec![];
        for by in std::iter::once(effort.deviation(dispatch, &self.device)).chain(deviation::ALL) {
            let kernel = kernel::for_gpu(dispatch, loops, &self.device, by);
            if !kernels.contains(&kernel) {
                kernels.push(kernel);
            }
        }
        let cx = dispatch.root.context();
        let candidates: Vec<String> = kernels.iter().map(|kernel| kernel.text(cx)).collect();
        let key = key(dispatch, rw)?;
        let chosen = self.choices.get(&key).and_then(|text| candidates.iter().position(|known| known == text));
        let kernel = kernels.swap_remove(chosen.unwrap_or(0));
        let kernel = if self.measures { kernel.measured_as(&key) } else { kernel };
        let location = dispatch.root.location().to_string();
        Ok((kernel, Tunable { key, location, candidates }))
    }
}

/// The name of a dispatch's structure: the first half of the hash of its text.
fn key<'c>(dispatch: &Dispatch<'c>, rw: &mut Rewriter<'c>) -> Result<String, Diagnostics> {
    let isolated = Isolated::of(dispatch, rw)?;
    let (module, mut rw) = (&isolated.module, Rewriter::new(isolated.module.context()));
    for op in module.op().nested(WalkOrder::Pre) {
        rw.remove_attr(op, attributes::DISPATCH);
    }
    let hash = blake3::hash(module.op().to_string().as_bytes());
    Ok(hash.to_hex()[..32].to_owned())
}
