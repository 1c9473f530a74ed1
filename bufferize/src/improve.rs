//! The changes of functions on tensors for [`crate::Strategy::Minimal`]: new tensors eliminated, reads moved, parts copied for the
//! whole, buffers used again.
//!
//! Each tries changes and judges them by an analysis of the function, as often as its size allows; the analysis of what is kept
//! serves the next one.

use std::cell::Cell;

use monopour_ir::{Diagnostics, Op, Rewriter, ops};

use crate::boundary::{Callees, callees_first};
use crate::eliminate_empty_tensors::{self, Analysed, analyse, erase_unused, replaced};
use crate::kept_parts::keep_parts;
use crate::move_reads::move_reads;
use crate::op_model::OpModels;
use crate::options::Options;
use crate::remarks::Remarks;
use crate::reuse_buffers::reuse_buffers;
use crate::summaries::summarise;
use crate::{alternate, order_insertions, own_empties, shared_outputs, sink_insertions};

/// Operands that are analysed again in one function, all analyses together: a large function is analysed once or twice
/// more.
const MOST_OPERANDS: usize = 40_000;

/// What the changes took, and why they copy.
#[derive(Clone, Debug, Default)]
pub struct Improved {
    /// Elementary steps of all decisions, which complexity tests count.
    pub steps: u64,
    /// The reason of each copy that a change brought.
    pub remarks: Diagnostics,
    /// Bytes that each remark's copy moves: `None` if known at run time only.
    pub remark_bytes: Vec<Option<u64>>,
}

/// An analysis of the function as it is now.
pub(crate) type Analyse<'c, 'a> = &'a dyn Fn() -> Result<Analysed<'c>, Diagnostics>;

/// Lets loops alternate between buffers, inserts in branches, eliminates new tensors, moves reads, copies parts for the whole, and reuses buffers in the
/// functions of a module, callees first. Nothing is done but with [`crate::Strategy::Minimal`].
///
/// A function is analysed once, and again for each set of changes that is tried.
///
/// # Errors
/// As [`crate::run_one_shot`], for programs that it would refuse.
pub fn improve(root: Op, options: &Options) -> Result<Improved, Diagnostics> {
    options.check()?;
    let options = &options.effective();
    if !options.is_minimal() {
        return Ok(Improved::default());
    }
    let (steps, mut remarks) = (Cell::new(0), Remarks::default());
    let models = OpModels::upstream();
    let functions = functions(root);
    let mut callees = Callees::new(&functions);
    for function in callees_first(&functions).into_iter().filter(|f| f.body().is_some()) {
        shared_outputs::run(function);
        own_empties::run(function);
        order_insertions::run(function);
        alternate::run(function)?;
        sink_insertions::run(function)?;
        let analyse = || {
            let analysed = analyse(function, &models, &callees, options)?;
            steps.set(steps.get() + analysed.decisions.steps());
            Ok(analysed)
        };
        let mut analysed = analyse()?;
        let edits = eliminate_empty_tensors::improve(function, &mut analysed, &analyse, Some(&mut remarks))?;
        move_reads(function, &mut analysed, &analyse)?;
        let parts = keep_parts(function, &mut analysed, &analyse, &mut remarks)?;
        let reused = reuse_buffers(function, &mut analysed, &analyse)?;
        // A loop that is in place by now may be where its result goes.
        let late = eliminate_empty_tensors::improve(function, &mut analysed, &analyse, Some(&mut remarks))?;
        let summary = summarise(function, &analysed.collected, &analysed.decisions);
        callees.insert(function, summary);
        // From here on the analysis has values that are gone.
        let mut rw = Rewriter::new(function.context());
        erase_unused(
            &mut rw,
            [&edits, &parts, &late].into_iter().flat_map(|e| replaced(e)).chain(reused.empties.iter().copied()),
        );
        reused.finish(&mut rw)?;
    }
    let Remarks { diagnostics: remarks, bytes: remark_bytes } = remarks;
    Ok(Improved { steps: steps.get(), remarks, remark_bytes })
}

/// A function itself, or those of a module.
pub(crate) fn functions(root: Op) -> Vec<Op> {
    if root.is(ops::func::FUNC) { vec![root] } else { root.find_all(ops::func::FUNC) }
}

/// How many analyses more the function may have, of at most `most`.
pub(crate) fn trials(analysed: &Analysed, most: usize) -> usize {
    (MOST_OPERANDS / analysed.collected.operands.len().max(1)).clamp(1, most)
}
