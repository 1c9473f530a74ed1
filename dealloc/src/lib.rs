//! Ownership-based buffer deallocation: every allocation is freed exactly once on every path, or returned.
//!
//! With `extensions`, [`run_ownership`] frees each buffer right after its last use, by `memref.dealloc`.
//! Without, the code is upstream's: `bufferization.dealloc` at the end of each block.
//!
//! The modules, lowest first:
//!
//! * `options`, [`ownership`], `layout`, `control_flow`: options, ownership of a memref, copies of views, order of blocks.
//! * [`models`], `models/`: how each operation passes ownership on, an open registry; [`state`]: the rewrite that they use.
//! * `preconditions`, `callees`, `engine`: upstream's form.
//! * `collect`, `frees`, `indicators`: structured code with statically known owners; `monopour-analysis` decides.
//! * `lifetimes`, `lifetimes/`: any control flow; `monopour-analysis` decides.
//! * `choose`, `choose/`: the engine of each function, and arguments that private functions consume.
//! * [`simplify`], `simplify/`, [`lower`], `lower/`: `bufferization.dealloc` simplified and lowered.
//! * `expand_realloc`, `to_memref`: `memref.realloc` and the rest of `bufferization` on memrefs.
//! * [`promote`]: small buffers of CPU tasks on the stack.
//! * [`around`]: the passes around deallocation, one per file.

pub mod around;
mod callees;
mod choose;
mod collect;
mod control_flow;
mod engine;
mod expand_realloc;
mod frees;
mod indicators;
mod layout;
mod lifetimes;
pub mod lower;
pub mod models;
mod options;
pub mod ownership;
mod preconditions;
pub mod promote;
pub mod simplify;
pub mod state;
mod to_memref;

pub use expand_realloc::expand_realloc;
use monopour_ir::ops;
pub use options::{Options, Stats};
pub use to_memref::convert_bufferization_to_memref;

use callees::Callees;
use models::OwnershipModels;
use monopour_ir::{Diagnostics, Op};

/// Inserts deallocations into all functions of an operation, or into a function.
///
/// # Errors
/// D0101 to D0103 and D0106 to D0111 for programs whose owners cannot be decided;
/// D0105 where a memref without a rank would have to be copied.
pub fn run_ownership(root: Op, options: &Options) -> Result<Stats, Diagnostics> {
    run_ownership_with(root, options, &OwnershipModels::upstream())
}

/// As [`run_ownership`], with models of one's own.
///
/// # Errors
/// As [`run_ownership`], and those of the models.
pub fn run_ownership_with(root: Op, options: &Options, models: &OwnershipModels) -> Result<Stats, Diagnostics> {
    let mut stats = Stats::default();
    let mut functions = root.find_all(ops::func::FUNC);
    functions.retain(|f| f.body().is_some());
    if options.extensions {
        choose::run(root, &functions, models, options, &mut stats)?;
        return Ok(stats);
    }
    let is_dynamic = options.private_function_dynamic_ownership;
    let callees = if is_dynamic { Callees::dynamic_in(root) } else { Callees::default() };
    for function in functions {
        preconditions::check(function, models)?;
        engine::run(function, models, options, &callees, &mut stats)?;
    }
    Ok(stats)
}
