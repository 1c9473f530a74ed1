//! Reduction loops of a sum of products that lie side by side in each input, as one.
//!
//! Before / after, of keys that [`crate::joined_halves`] has turned:
//!
//! ```text
//! %s[i, j] += %q[i, h, d] * %k[j, h, d]         %s[i, j] += collapse(%q)[i, k] * collapse(%k)[j, k]
//! ```
//!
//! Fusion gives a pointwise op the dimensions of what it computes with, and a product those of its factors;
//! [`crate::attention`] knows products that reduce over one.
//! Requires: sums of products, whose body has no `linalg.index`.
//! Ensures: the same order of the sums.

use crate::collapse_lines::collapsed;
use crate::linalg;
use monopour_ir::bodies::MultiplyAdd;
use monopour_ir::{AffineMap, Attr, Diagnostics, InsertionPoint, Module, Op, Rewriter, ops};

/// Rewrites all such products of `module`.
///
/// # Errors
/// None of its own; what MLIR's op builders report.
pub(crate) fn run<'c>(module: &'c Module<'c>, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
    for op in module.op().find_all(ops::linalg::GENERIC) {
        while let Some((first, places)) = neighbours(op) {
            merge(op, first, &places, rw)?;
        }
    }
    Ok(())
}

/// The first of two reduction loops that always stand side by side, and by operand their place, if they index it.
fn neighbours(op: Op) -> Option<(usize, Vec<Option<usize>>)> {
    MultiplyAdd::of(op.body()?).filter(|_| op.num_results() == 1 && op.find_all(ops::linalg::INDEX).is_empty())?;
    let (maps, parallel) = (linalg::indexing_maps(op)?, linalg::parallel_loops(op)?);
    if !maps.iter().all(|map| map.is_projected_permutation()) {
        return None;
    }
    let dims: Vec<Vec<usize>> = maps.iter().map(|map| map.dim_positions()).collect::<Option<_>>()?;
    let place = |dims: &Vec<usize>, first: usize| {
        let at = |d: usize| dims.iter().position(|other| *other == d);
        match (at(first), at(first + 1)) {
            (None, None) => Some(None),
            (Some(a), Some(b)) if b == a + 1 => Some(Some(a)),
            _ => None,
        }
    };
    let both = |first: &usize| !parallel[*first] && !parallel[first + 1];
    (0..parallel.len().saturating_sub(1)).filter(both).find_map(|first| {
        let places = dims.iter().map(|dims| place(dims, first)).collect::<Option<Vec<_>>>()?;
        Some((first, places))
    })
}

fn merge<'c>(op: Op<'c>, first: usize, places: &[Option<usize>], rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
    let (cx, maps) = (rw.context(), linalg::indexing_maps(op).unwrap_or_default());
    rw.set_point(InsertionPoint::Before(op));
    for (input, place) in places.iter().enumerate() {
        if let Some(at) = place {
            let value = collapsed(op.operand(input), *at, rw)?;
            rw.set_operand(op, input, value);
        }
    }
    let mut parallel = linalg::parallel_loops(op).unwrap_or_default();
    parallel.remove(first + 1);
    let renamed = |map: &AffineMap<'c>| {
        let dims = map.dim_positions().unwrap_or_default().into_iter().filter(|d| *d != first + 1);
        let dims: Vec<usize> = dims.map(|d| if d > first { d - 1 } else { d }).collect();
        AffineMap::select(cx, parallel.len(), &dims).to_attr()
    };
    let maps: Vec<Attr> = maps.iter().map(renamed).collect();
    rw.set_attr(op, "indexing_maps", Attr::array(cx, &maps));
    rw.set_attr(op, "iterator_types", linalg::iterators(cx, &parallel));
    Ok(())
}
