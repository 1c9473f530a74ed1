//! The passes around deallocation: positions, lifetimes and removal of buffers.
//!
//! Each has upstream's name in `monopour opt`; without extensions its output has upstream's form.
//! They share `aliases` and `places`, both near-linear in the size of a function.

mod across_blocks;
mod aliases;
mod calls;
mod classes;
mod drop_equivalent_results;
mod facts;
mod graph;
mod hoist;
mod places;
mod promote_to_stack;
mod recompute;
mod remove_copies;
mod results_to_out_params;
mod shorten_lifetimes;

pub use drop_equivalent_results::drop_equivalent_results;
pub use hoist::{hoist_buffers, hoist_buffers_out_of_loops};
pub use promote_to_stack::{PromoteOptions, promote_buffers_to_stack};
pub use remove_copies::{CopyRemovalOptions, CopyRemovalStats, remove_copies};
pub use results_to_out_params::{OutParamOptions, OutParamStats, results_to_out_params};
pub use shorten_lifetimes::shorten_lifetimes;

use monopour_ir::Op;
use monopour_ir::control_flow::Traits;

/// The functions with a body in `root`, or `root` if it is one.
fn functions<'c>(root: Op<'c>) -> Vec<Op<'c>> {
    let mut found = Vec::new();
    root.walk_selected(|op| {
        let is_function = Traits::of(op).is_function();
        if is_function && op.body().is_some() {
            found.push(op);
        }
        !is_function
    });
    found
}
