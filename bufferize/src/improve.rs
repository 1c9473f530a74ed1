//! What the passes of [`Strategy::Minimal`] have in common: a walk over functions, each analysed as often as its size
//! allows.

use monopour_ir::{Diagnostics, Op, ops};

use crate::boundary::{Callees, callees_first};
use crate::eliminate_empty_tensors::{Analysed, analyse};
use crate::op_model::OpModels;
use crate::options::{Options, Strategy};
use crate::summaries::summarise;

/// Operands that are analysed again in one function, all analyses together: a large function is analysed once or twice
/// more.
const MOST_OPERANDS: usize = 100_000;

/// An analysis of the function as it is now.
pub(crate) type Analyse<'c, 'a> = &'a dyn Fn() -> Result<Analysed<'c>, Diagnostics>;

/// Whether these options ask for more than upstream's decisions.
pub(crate) fn is_minimal(options: &Options) -> bool {
    options.strategy == Strategy::Minimal && !options.copy_before_write
}

/// Changes the functions of a module, callees first; the sum of what `change` counts, which also returns the last
/// analysis. Nothing is done but with [`Strategy::Minimal`].
pub(crate) fn improve<'c>(
    root: Op<'c>,
    options: &Options,
    change: impl Fn(Op<'c>, Analyse<'c, '_>) -> Result<(usize, Analysed<'c>), Diagnostics>,
) -> Result<usize, Diagnostics> {
    options.check()?;
    let options = &options.effective();
    if !is_minimal(options) {
        return Ok(0);
    }
    let models = OpModels::upstream();
    let functions = functions(root);
    let mut callees = Callees::new(&functions);
    let mut sum = 0;
    for function in callees_first(&functions).into_iter().filter(|f| f.body().is_some()) {
        let (count, analysed) = change(function, &|| analyse(function, &models, &callees, options))?;
        sum += count;
        callees.insert(function, summarise(function, &analysed.collected, &analysed.decisions));
    }
    Ok(sum)
}

/// A function itself, or those of a module.
pub(crate) fn functions(root: Op) -> Vec<Op> {
    if root.is(ops::func::FUNC) { vec![root] } else { root.find_all(ops::func::FUNC) }
}

/// How many analyses more the function may have, of at most `most`.
pub(crate) fn trials(analysed: &Analysed, most: usize) -> usize {
    (MOST_OPERANDS / analysed.collected.operands.len().max(1)).clamp(1, most)
}
