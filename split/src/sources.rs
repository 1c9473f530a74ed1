//! The sources of dispatches, for traces.
//!
//! ```text
//! func.func private @main_dispatch_0(..) { linalg.fill ..  linalg.matmul .. }       loc("a.mlir":3:8)
//! call @monopour_rt_dispatch(%cx, %c0, ..)                                          kernel 0, linalg.matmul, a.mlir:3:8
//! ```
//! Requires: [`of_kernels`] after outlining, before kernels are lowered; [`run`] after the schedule.
//! Limits: a kernel whose tiles were written without linalg ops has the name of its class.

use monopour_contract::{KernelChoice, attributes};
use monopour_ir::ops;
use monopour_ir::{Module, Op, WalkOrder};
use monopour_program::Source;
use std::collections::HashMap;

/// The op of each kernel, by the kernel's name.
pub type KernelOps = HashMap<String, String>;

/// Finds the op of each kernel.
pub fn of_kernels(module: &Module) -> KernelOps {
    let kernels = module.functions().into_iter().filter(|f| f.attr(attributes::KERNEL).is_some());
    kernels.filter_map(|kernel| Some((kernel.symbol_name()?, op_of(kernel)))).collect()
}

/// The linalg op at the kernel's location, which is that of its root; else the last one that is no fill.
fn op_of(kernel: Op) -> String {
    let (mut root, mut last) = (None, None);
    kernel.walk(WalkOrder::Pre, |op| {
        if op.dialect() == "linalg" && !op.is(ops::linalg::YIELD) && !op.is(ops::linalg::INDEX) {
            if root.is_none() && op.location() == kernel.location() {
                root = Some(op.name().to_owned());
            }
            if last.is_none() || !op.is(ops::linalg::FILL) {
                last = Some(op.name().to_owned());
            }
        }
    });
    let class = || KernelChoice::decode(|entry| kernel.attr(attributes::KERNEL)?.field(entry)).ok().map(|c| c.class);
    root.or(last).or_else(|| Some(class()?.as_str().to_owned())).unwrap_or_default()
}

/// A dispatch of the host function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The kernel, by index.
    pub kernel: u32,
    /// `file:line:column`, or the name of a node; empty when unknown.
    pub location: String,
    /// Whether no loop or branch is around it.
    pub is_once: bool,
}

impl Site {
    /// That of a dispatch, an `scf.forall`.
    pub(crate) fn of(dispatch: Op, kernel: u32) -> Site {
        let at = dispatch.location();
        let location = at.position().map(|_| at.to_string()).or_else(|| at.name()).unwrap_or_default();
        Site { kernel, location, is_once: dispatch.parent().is_some_and(|around| around.is(ops::func::FUNC)) }
    }
}

/// The sources of the dispatches `sites`, of kernels with these names.
pub fn run(sites: &[Site], kernels: &[String], ops: &KernelOps) -> Vec<Source> {
    let sources = sites.iter().map(|site| {
        let op = ops.get(&kernels[site.kernel as usize]).cloned().unwrap_or_default();
        Source { kernel: site.kernel, op, location: site.location.clone(), is_once: site.is_once }
    });
    sources.collect()
}
