//! Loops by whose quotient an operand is read, as two loops: then every map selects loops.
//!
//! Before / after (queries of 32 heads, keys of 8):
//!
//! ```text
//! generic (h, i, j, d) -> (h, i, d), (h floordiv 4, j, d), (h, i, j)
//! generic (g, k, i, j, d) -> (g, k, i, d), (g, j, d), (g, k, i, j)      g = h floordiv 4, k = h mod 4
//! ```
//!
//! Products and row groups are known by such maps; with a quotient they would be loops over elements.
//! Requires: generics. Limits: static extents that the divisor divides, one loop and divisor per op, maps of nothing but
//! loops, quotients and remainders, bodies without `linalg.index`.

use crate::collapse_lines::{collapsed, expanded};
use crate::linalg;
use monopour_ir::typed::linalg::{IteratorType, iterator_types, iterator_types_attr};
use monopour_ir::{
    AffineExpr, AffineExprKind, AffineMap, Attr, Diagnostics, InsertionPoint, Module, Op, OpSpec, Rewriter, Type,
    Value, ops,
};

/// Splits all such loops.
///
/// # Errors
/// None of its own; what MLIR's op builders report.
pub(crate) fn run<'c>(module: &'c Module<'c>, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
    for op in module.op().find_all(ops::linalg::GENERIC) {
        if let Some(division) = Division::find(op) {
            division.split(op, rw)?;
        }
    }
    Ok(())
}

/// A loop and its divisor.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Division {
    of: usize,
    by: i64,
}

/// The part of an index that a map reads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Whole(usize),
    Quotient(Division),
    Remainder(Division),
}

impl Part {
    fn of(expr: AffineExpr) -> Option<Self> {
        let division = |of: AffineExpr, by: AffineExpr| match (of.kind(), by.kind()) {
            (AffineExprKind::Dim(of), AffineExprKind::Constant(by)) if by > 1 => Some(Division { of, by }),
            _ => None,
        };
        match expr.kind() {
            AffineExprKind::Dim(d) => Some(Part::Whole(d)),
            AffineExprKind::FloorDiv(of, by) => division(of, by).map(Part::Quotient),
            AffineExprKind::Mod(of, by) => division(of, by).map(Part::Remainder),
            _ => None,
        }
    }

    fn division(self) -> Option<Division> {
        match self {
            Part::Whole(_) => None,
            Part::Quotient(division) | Part::Remainder(division) => Some(division),
        }
    }
}

/// Per operand, the parts of indices that its map reads.
fn parts_of(op: Op) -> Option<Vec<Vec<Part>>> {
    let maps = linalg::indexing_maps(op)?;
    maps.into_iter().map(|map| map.results().into_iter().map(Part::of).collect()).collect()
}

impl Division {
    fn find(op: Op) -> Option<Self> {
        let parts = parts_of(op)?;
        let found = parts.iter().flatten().find_map(|part| part.division())?;
        let extent = *linalg::loop_extents(op)?.get(found.of)?;
        let only = |part: &Part| part.division().is_none_or(|division| division == found);
        // An operand that is read by the whole loop is reshaped.
        let is_static = |value: Value| value.ty().shape().is_some_and(|shape| shape.iter().all(|size| *size >= 0));
        let reshapes = |(value, parts): (Value, &Vec<Part>)| {
            let whole = parts.iter().filter(|part| **part == Part::Whole(found.of)).count();
            whole == 0 || (whole == 1 && is_static(value))
        };
        let fits = extent > 0
            && extent % found.by == 0
            && parts.iter().flatten().all(only)
            && op.operands().into_iter().zip(&parts).all(reshapes)
            && op.find_all(ops::linalg::INDEX).is_empty();
        fits.then_some(found)
    }

    fn split<'c>(self, op: Op<'c>, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
        let cx = op.context();
        let parts = parts_of(op).expect("invariant: found by them");
        let loops = linalg::parallel_loops(op).map_or(0, |loops| loops.len());
        let mut maps = vec![];
        for (index, parts) in parts.iter().enumerate() {
            let mut read = vec![];
            for part in parts {
                match *part {
                    Part::Whole(d) if d == self.of => read.extend([d, d + 1]),
                    Part::Whole(d) => read.push(d + usize::from(d > self.of)),
                    Part::Quotient(_) => read.push(self.of),
                    Part::Remainder(_) => read.push(self.of + 1),
                }
            }
            maps.push(AffineMap::select(cx, loops + 1, &read).to_attr());
            if let Some(at) = parts.iter().position(|part| *part == Part::Whole(self.of)) {
                self.reshape(op, index, at, rw)?;
            }
        }
        let mut kinds: Vec<IteratorType> = iterator_types(op).unwrap_or_default();
        kinds.insert(self.of, kinds[self.of]);
        rw.set_attr(op, "indexing_maps", Attr::array(cx, &maps));
        rw.set_attr(op, "iterator_types", iterator_types_attr(cx, &kinds));
        Ok(())
    }

    /// Splits dimension `at` of an operand, and of the result that it is the destination of.
    fn reshape<'c>(self, op: Op<'c>, index: usize, at: usize, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
        let old = op.operand(index);
        let ty = self.split_type(old.ty(), at);
        rw.set_point(InsertionPoint::Before(op));
        let new = match old.defining_op().filter(|def| def.is(ops::tensor::EMPTY)) {
            Some(def) => rw.create(OpSpec::new(ops::tensor::EMPTY, def.location()).results(&[ty]))?.result(0),
            None => expanded(old, ty, at, rw)?,
        };
        rw.set_operand(op, index, new);
        if let Some(result) = index.checked_sub(linalg::num_inputs(op)).map(|at| op.result(at)) {
            let uses = result.uses();
            rw.set_type(result, ty);
            if !uses.is_empty() {
                rw.set_point(InsertionPoint::After(op));
                let whole = collapsed(result, at, rw)?;
                uses.into_iter().for_each(|u| rw.set_operand(u.op, u.index, whole));
            }
        }
        Ok(())
    }

    fn split_type<'c>(self, ty: Type<'c>, at: usize) -> Type<'c> {
        let mut shape = ty.shape().unwrap_or_default();
        shape[at] /= self.by;
        shape.insert(at + 1, self.by);
        Type::tensor(&shape, ty.element(), None)
    }
}
