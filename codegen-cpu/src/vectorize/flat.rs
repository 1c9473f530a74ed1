//! Makes one loop of two that follow each other in every operand, where a pointwise op transposes or an op sums lines of an
//! image: they are shorter than a square of registers, or no multiple of a vector, images are less often so.
//!
//! ```text
//! generic (c, y, x) %in[y, x, c] outs %out[c, y, x] : [32, 7, 7]     generic (c, p) %in[p, c] outs %out[c, p] : [32, 49]
//! generic (c, y, x) %in[c, y, x] outs %sum[c]       : [32, 7, 7]     generic (c, p) %in[c, p] outs %sum[c]    : [32, 49]
//! ```
//!
//! Limits: known sizes and strides; operands that have both loops or none, each loop a dimension of its own.

use monopour_ir::typed::linalg::{IteratorType, iterator_types, iterator_types_attr};
use monopour_ir::{AffineMap, Attr, DYNAMIC, Diagnostics, InsertionPoint, Op, OpSpec, Rewriter, Type, Value, ops};

/// Rewrites a generic on memrefs, as long as it has such loops.
///
/// # Errors
/// None of its own; what MLIR's op builders report.
pub(super) fn run<'c>(op: Op<'c>, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
    while let Some(lines) = Lines::of(op) {
        lines.rewrite(rw)?;
    }
    Ok(())
}

/// Two loops of an op.
struct Lines<'c> {
    op: Op<'c>,
    /// The loops of each operand's dimensions.
    dims: Vec<Vec<usize>>,
    outer: usize,
    inner: usize,
}

impl<'c> Lines<'c> {
    fn of(op: Op<'c>) -> Option<Self> {
        let kinds = iterator_types(op).filter(|_| op.num_results() == 0)?;
        let maps = op.attr("indexing_maps")?.as_array()?;
        let dims = maps.iter().map(|map| {
            let map = map.as_affine_map().filter(|map| map.is_projected_permutation())?;
            map.dim_positions()
        });
        let dims: Vec<Vec<usize>> = dims.collect::<Option<_>>()?;
        let sums = kinds.contains(&IteratorType::Reduction);
        let plain = op.find_all(ops::linalg::INDEX).is_empty() && dims.len() == op.num_operands();
        let lines = if sums { dims.first() } else { dims.last() };
        let lines = lines.filter(|_| plain && op.num_operands() > 1)?;
        let [.., outer, inner] = lines[..] else { return None };
        let turns = |dims: &Vec<usize>| dims.contains(&inner) && dims.last() != Some(&inner);
        let found = Self { op, outer, inner, dims };
        let fits = (0..found.dims.len()).all(|operand| found.follow(operand));
        let pays = match sums {
            true => {
                [outer, inner].iter().all(|d| kinds[*d] == IteratorType::Reduction) && !found.dims.iter().any(turns)
            }
            false => found.dims.iter().any(turns),
        };
        (fits && pays).then_some(found)
    }

    /// The dimension of the outer loop, if the operand has it.
    fn place(&self, operand: usize) -> Option<usize> {
        self.dims[operand].iter().position(|d| *d == self.outer)
    }

    /// Whether an operand has none of the loops, or both as one line of memory.
    fn follow(&self, operand: usize) -> bool {
        let Some(at) = self.place(operand) else { return !self.dims[operand].contains(&self.inner) };
        let Some(ty) = self.op.operand(operand).ty().as_memref() else { return false };
        let known = |at: usize| ty.shape[at] != DYNAMIC && ty.strides[at] != DYNAMIC;
        self.dims[operand].get(at + 1) == Some(&self.inner)
            && known(at)
            && known(at + 1)
            && ty.shape[at + 1].checked_mul(ty.strides[at + 1]) == Some(ty.strides[at])
    }

    fn rewrite(&self, rw: &mut Rewriter<'c>) -> Result<(), Diagnostics> {
        let (op, cx) = (self.op, self.op.context());
        rw.set_point(InsertionPoint::Before(op));
        let mut maps = vec![];
        let renamed = |d: usize| if d > self.inner { d - 1 } else { d };
        let mut kinds = iterator_types(op).expect("invariant: it has loops");
        kinds.remove(self.inner);
        let loops = kinds.len();
        for (operand, dims) in self.dims.iter().enumerate() {
            if let Some(at) = self.place(operand) {
                let whole = collapsed(op, operand, at, rw)?;
                rw.set_operand(op, operand, whole);
            }
            let kept: Vec<usize> = dims.iter().filter(|d| **d != self.inner).map(|d| renamed(*d)).collect();
            maps.push(AffineMap::select(cx, loops, &kept).to_attr());
        }
        rw.set_attr(op, "indexing_maps", Attr::array(cx, &maps));
        rw.set_attr(op, "iterator_types", iterator_types_attr(cx, &kinds));
        Ok(())
    }
}

/// A view of an op's operand with dimensions `at` and the next one as one.
fn collapsed<'c>(op: Op<'c>, operand: usize, at: usize, rw: &mut Rewriter<'c>) -> Result<Value<'c>, Diagnostics> {
    let (cx, value) = (rw.context(), op.operand(operand));
    let ty = value.ty();
    let memref = ty.as_memref().expect("invariant: it was asked");
    let (mut shape, mut strides) = (memref.shape.clone(), memref.strides.clone());
    let inner = shape.remove(at + 1);
    shape[at] *= inner;
    strides.remove(at);
    let space = ty.memref_space();
    let plain = ty.memref_layout().is_some_and(|layout| layout.is_identity());
    let to = match plain {
        true => Type::memref(&shape, ty.element(), space),
        false => Type::strided_memref(&shape, ty.element(), memref.offset, &strides, space),
    };
    let groups: Vec<Attr> = (0..shape.len())
        .map(|d| {
            let dims = if d == at { vec![at, at + 1] } else { vec![d + usize::from(d > at)] };
            let dims: Vec<Attr> = dims.into_iter().map(|d| Attr::i64(cx, d as i64)).collect();
            Attr::array(cx, &dims)
        })
        .collect();
    let spec = OpSpec::new(ops::memref::COLLAPSE_SHAPE, op.location()).operands(&[value]).results(&[to]);
    Ok(rw.create(spec.attr("reassociation", Attr::array(cx, &groups)))?.result(0))
}
