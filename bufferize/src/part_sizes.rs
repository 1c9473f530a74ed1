//! The sizes of the parts of a merged axis, where it is parted again.
//!
//! ```text
//! %e = tensor.empty(%m, %n) : tensor<?x4x?xf32>          %s = tensor.extract_slice %d[%o] [%k] [1]
//! %a = linalg.exp ins(%x) outs(%e)                       %p = tensor.expand_shape %s [[0, 1, 2]] output_shape [%k / (4 * %n), 4, %n]
//! %b = tensor.collapse_shape %a [[0, 1, 2]]         ==>  %a = linalg.exp ins(%x) outs(%p)
//! %r = tensor.insert_slice %b into %d[%o] [%k] [1]       ..
//! ```
//!
//! Ensures: the parts have no more elements than the place, whatever its size; and the sizes of the new tensor, if the place has its
//! number of elements.
//! Limits: but for the first dynamic size of an axis, sizes are static, or those of a tensor that is replaced.

use monopour_ir::typed::Index;
use monopour_ir::typed::arith::CmpIPredicate;
use monopour_ir::{Diagnostics, Op, OpSpec, Rewriter, Type, Value, ops};

use crate::index_ops::IndexOps;
use crate::subset_extraction::Edit;

/// The dynamic sizes of the source of `collapse`, of which `value` has the merged axes; `like`, if there is one, has its
/// sizes. `None` if they do not follow.
///
/// # Errors
/// MLIR's diagnostics for the ops.
pub(crate) fn part_sizes<'c>(
    rw: &mut Rewriter<'c>,
    collapse: Op<'c>,
    (value, like): (Value<'c>, Option<Value<'c>>),
    edits: &mut Vec<Edit<'c>>,
) -> Result<Option<Vec<Value<'c>>>, Diagnostics> {
    let shape = collapse.operand(0).ty().shape().unwrap_or_default();
    let groups = collapse.attr("reassociation").and_then(|a| a.as_array()).unwrap_or_default();
    let mut ops = IndexOps::new(rw, edits, collapse.location());
    let mut sizes = Vec::new();
    for (axis, group) in groups.iter().enumerate() {
        let Some(group) = group.as_ints() else { return Ok(None) };
        let group: Vec<usize> = group.into_iter().filter_map(|d| usize::try_from(d).ok()).collect();
        let (dynamic, known): (Vec<usize>, Vec<usize>) = group.into_iter().partition(|d| shape[*d] < 0);
        if dynamic.is_empty() {
            continue;
        }
        let product = known.into_iter().try_fold(1, |product: i64, d| product.checked_mul(shape[d]));
        // Without elements the place says nothing.
        let Some(product) = product.filter(|product| *product > 0) else { return Ok(None) };
        match (&dynamic[..], like) {
            ([_], _) => {
                let whole = ops.size(value, axis)?;
                sizes.push(ops.quotient(whole, product)?);
            }
            (all, Some(like)) => sizes.extend(ops.parts((value, axis), (like, all), product)?),
            (_, None) => return Ok(None),
        }
    }
    Ok(Some(sizes))
}

impl<'c> IndexOps<'c, '_> {
    fn quotient(&mut self, whole: Index<'c>, by: i64) -> Result<Value<'c>, Diagnostics> {
        let whole = self.value(whole)?;
        if by == 1 {
            return Ok(whole);
        }
        let by = self.value(Index::Static(by))?;
        self.op(ops::arith::DIVUI, &[whole, by])
    }

    /// Several sizes of one axis: those of `like`, but for the first one, which follows from the size of the axis.
    fn parts(
        &mut self,
        (value, axis): (Value<'c>, usize),
        (like, dims): (Value<'c>, &[usize]),
        product: i64,
    ) -> Result<Vec<Value<'c>>, Diagnostics> {
        let mut sizes = Vec::new();
        for dim in dims {
            let size = self.size(like, *dim)?;
            sizes.push(self.value(size)?);
        }
        let mut others = self.value(Index::Static(product))?;
        for size in &sizes[1..] {
            others = self.op(ops::arith::MULI, &[others, *size])?;
        }
        let (zero, one) = (self.value(Index::Static(0))?, self.value(Index::Static(1))?);
        let (whole, divisor) = (self.size(value, axis)?, self.op(ops::arith::MAXUI, &[others, one])?);
        let whole = self.value(whole)?;
        let first = self.op(ops::arith::DIVUI, &[whole, divisor])?;
        // Without elements any size does: the one that the tensor has.
        let is_none = OpSpec::new(ops::arith::CMPI, self.loc)
            .attr("predicate", CmpIPredicate::Eq.to_attr(self.context()))
            .operands(&[others, zero])
            .results(&[Type::integer(self.context(), 1)]);
        let is_none = self.made(is_none)?.result(0);
        sizes[0] = self.op(ops::arith::SELECT, &[is_none, sizes[0], first])?;
        Ok(sizes)
    }
}
