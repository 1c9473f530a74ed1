//! Orders the loops of leftover linalg ops, before they become loops.
//!
//! Before: `linalg.matmul` over (i, j, k), whose innermost loop is a sum that stays scalar and steps down a column.
//! After: the same as `linalg.generic` over (i, k, j): the innermost loop runs along rows, and LLVM makes vectors of it.
//! The innermost loop becomes the one along which the fewest operands are strided; of equal ones a parallel one, then the
//! last.
//! Ensures: each element's terms are added in the same order as before, because the other dimensions keep theirs.
//! Limits: ops with `linalg.index`, or with maps that are not of plain dimensions, keep their order.

use monopour_ir::ops;
use monopour_ir::typed::linalg::{self, IteratorType};
use monopour_ir::{Attr, Diagnostics, Module, Op, Rewriter, run_passes};

/// Reorders the loops of every linalg op with reductions.
///
/// # Errors
/// None on verified IR.
pub(crate) fn run(module: &Module) -> Result<(), Diagnostics> {
    run_passes(module.op(), "builtin.module(func.func(linalg-generalize-named-ops))")?;
    let mut rewriter = Rewriter::new(module.context());
    for op in module.op().find_all(ops::linalg::GENERIC) {
        let Some(loops) = Loops::of(op) else { continue };
        let order = loops.order();
        if order.is_sorted() {
            continue;
        }
        rewriter.set_attr(op, "indexing_maps", loops.permuted_maps(&order));
        let types: Vec<IteratorType> = order.iter().map(|d| loops.types[*d]).collect();
        rewriter.set_attr(op, "iterator_types", linalg::iterator_types_attr(op.context(), &types));
    }
    Ok(())
}

/// The iteration space of an op with reductions.
struct Loops<'c> {
    types: Vec<IteratorType>,
    maps: Vec<Attr<'c>>,
    /// Dimension of each result of each map.
    positions: Vec<Vec<usize>>,
}

impl<'c> Loops<'c> {
    fn of(op: Op<'c>) -> Option<Self> {
        let types = linalg::iterator_types(op)?;
        let maps = op.attr("indexing_maps")?.as_array()?;
        let positions: Option<Vec<_>> = maps.iter().map(|m| m.as_affine_map()?.dim_positions()).collect();
        let loops = Self { types, maps, positions: positions? };
        let sums = (0..loops.types.len()).any(|d| loops.is_reduction(d));
        (sums && op.find_all(ops::linalg::INDEX).is_empty()).then_some(loops)
    }

    fn is_reduction(&self, dim: usize) -> bool {
        self.types[dim] == IteratorType::Reduction
    }

    /// Number of operands with a stride of more than one element along `dim`.
    fn strided(&self, dim: usize) -> usize {
        let steps = |p: &Vec<usize>| p.iter().rposition(|d| *d == dim).is_some_and(|at| at + 1 < p.len());
        self.positions.iter().filter(|p| steps(p)).count()
    }

    /// Dimensions, outermost first.
    fn order(&self) -> Vec<usize> {
        let dims = 0..self.types.len();
        let innermost = dims.clone().min_by_key(|d| (self.strided(*d), self.is_reduction(*d), std::cmp::Reverse(*d)));
        let rest = dims.filter(|d| Some(*d) != innermost);
        rest.chain(innermost).collect()
    }

    /// The maps with their dimensions in `order`: only the dimension list changes.
    fn permuted_maps(&self, order: &[usize]) -> Attr<'c> {
        let names: Vec<String> = order.iter().map(|d| format!("d{d}")).collect();
        let cx = self.maps[0].value_type().context();
        let permuted = self.positions.iter().map(|results| {
            let results: Vec<String> = results.iter().map(|d| format!("d{d}")).collect();
            let text = format!("affine_map<({}) -> ({})>", names.join(", "), results.join(", "));
            Attr::parse(cx, &text).expect("a map of plain dimensions parses")
        });
        Attr::array(cx, &permuted.collect::<Vec<_>>())
    }
}
