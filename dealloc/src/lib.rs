//! Ownership-based buffer deallocation: every allocation is freed exactly once on every path, or returned.
//!
//! [`run_ownership`] has two faces. With `extensions`, each buffer is freed right after its last use, by `memref.dealloc`;
//! without, the code is upstream's, `bufferization.dealloc` at the end of each block.
//! `collect` turns a function into facts, `monopour-analysis` decides; [`promote`] puts small buffers of CPU tasks on the stack.

mod collect;
mod frees;
mod indicators;
pub mod promote;
mod retain;

use monopour_ir::{Diagnostic, Diagnostics, Op};

/// Options of [`run_ownership`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// `private-function-dynamic-ownership`: private functions say at run time whether they give a result away.
    pub private_function_dynamic_ownership: bool,
    /// What goes beyond upstream: plain frees after the last use; bodies of dispatches are left to later phases.
    pub extensions: bool,
}

/// What was inserted.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// `memref.dealloc` or `bufferization.dealloc` operations.
    pub deallocs: u32,
    /// Copies of memory that is returned without being owned.
    pub clones: u32,
    /// Why each copy is there (D0201).
    pub remarks: Diagnostics,
    /// Bytes that each remark's copy moves; none if known at run time only.
    pub remark_bytes: Vec<Option<u64>>,
}

/// Inserts deallocations into all functions of `module`.
///
/// # Errors
/// D0100 for an option that is not implemented; D0101 to D0103 for programs whose owners cannot be decided;
/// D0105 where a copy would be needed that has the layout of a view.
pub fn run_ownership(module: Op, options: &Options) -> Result<Stats, Diagnostics> {
    if options.private_function_dynamic_ownership {
        return Err(Diagnostic::global("D0100", "option 'private-function-dynamic-ownership' is not implemented")
            .with_help("leave the option out")
            .into());
    }
    let mut stats = Stats::default();
    // Every function is checked and decided before the first one changes.
    let mut functions = module.find_all("func.func");
    functions.retain(|f| f.body().is_some());
    if options.extensions {
        let decided: Vec<_> = functions.iter().map(|f| frees::decide(*f)).collect::<Result<_, _>>()?;
        for decisions in decided {
            frees::insert(decisions, &mut stats)?;
        }
    } else {
        for function in &functions {
            collect::check(*function, false)?;
        }
        for function in functions {
            retain::run(function, &mut stats)?;
        }
    }
    Ok(stats)
}
