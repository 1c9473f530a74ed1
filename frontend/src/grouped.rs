//! Lays out constant factors of 8-bit products in groups of four terms, as `vpdpbusd`, Arm's `sdot` and AMX's tiles read them, or
//! of two, as `pmaddwd` does.
//!
//! Before / after:
//!
//! ```text
//! %r = generic (m, n, k)                       %y = tensor.expand_shape %x : [M, K / 4, 4]
//!        %x[m, k] : i8, %w[k, n] : i8          %r = generic (m, n, g, t)
//!                                                     %y[m, g, t] : i8, %w[g, n, t] : i8 [K / 4, N, 4]
//! ```
//!
//! Code generation would interleave rows of the filter in each task of each run, which takes as long as the product of 50 rows
//! with four. The terms of the other factor lie side by side already: only its view changes.
//!
//! A convolution whose channels are no last dimension, as those of a first layer, sums its window along a line in groups. A
//! window of seven gets an eighth column of zeros, where the image has an element for it: groups are then read in place.
//!
//! Requires: what [`crate::layouts`] ensures. Ensures: the same; the reduction of such a product is two loops.
//! Limits: x86, and Arm with FEAT_DotProd; a reduction that is the last dimension of the other factor and that is of whole groups;
//! columns that the result has last; at least four rows that share the filter.

use crate::collapse_lines::dynamic_sizes;
use crate::import::WeightTable;
use crate::narrow::constants::{constant, permuted};
use crate::{linalg, products};
use monopour_ir::ops;
use monopour_ir::typed::linalg::{IteratorType, iterator_types, iterator_types_attr};
use monopour_ir::{
    AffineExpr, AffineExprKind, AffineMap, Attr, DYNAMIC, Diagnostics, InsertionPoint, Module, Op, OpSpec, Rewriter,
    Type, Value,
};
use monopour_program::{CpuTarget, DType};
use std::collections::HashMap;

/// Terms of a group that instructions for bytes add.
const BYTES: i64 = 4;
/// Of those for factors of 16 bits.
const PAIR: i64 = 2;
/// Fewest rows: fewer stream the filter in another form.
const MIN_ROWS: i64 = 4;

/// Lays out the filters of a module; `weights` gets them.
///
/// # Errors
/// None of its own; what MLIR's op builders report.
pub fn run(module: &Module, weights: &mut WeightTable, cpu: &CpuTarget) -> Result<(), Diagnostics> {
    let mut grouping = Grouping { weights, rw: Rewriter::new(module.context()), filters: HashMap::new() };
    for op in module.op().find_all(ops::linalg::GENERIC) {
        if let Some(product) = Product::of(op, cpu) {
            grouping.rewrite(&product)?;
        } else if let Some(window) = Window::of(op, cpu) {
            grouping.widen(&window)?;
        }
    }
    Ok(())
}

/// A product that gains.
struct Product<'c> {
    op: Op<'c>,
    /// The constant operand.
    filter: usize,
    /// The reduction, and the loop over columns.
    sum: usize,
    columns: usize,
    /// Terms of a group.
    terms: i64,
    maps: Vec<AffineMap<'c>>,
    extents: Vec<i64>,
}

impl<'c> Product<'c> {
    fn of(op: Op<'c>, cpu: &CpuTarget) -> Option<Self> {
        let (rows, columns, sums) = loops(op)?;
        let maps = linalg::indexing_maps(op)?;
        let extents = linalg::loop_extents(op)?;
        let terms = terms(op, cpu)?;
        let last = |map: &AffineMap<'c>| match map.results().last()?.kind() {
            AffineExprKind::Dim(d) => Some(d),
            _ => None,
        };
        let column = last(&maps[2]).filter(|d| columns.contains(d) && extents[*d] >= MIN_ROWS)?;
        let filter = (0..2).find(|input| constant(op.operand(*input)).is_some())?;
        let own = maps[filter].dim_positions()?;
        let sum =
            last(&maps[1 - filter]).filter(|d| sums.contains(d) && own.contains(d) && extents[*d] % terms == 0)?;
        let shared = rows.iter().any(|d| !own.contains(d) && (extents[*d] == DYNAMIC || extents[*d] >= MIN_ROWS));
        let fits = shared && own.contains(&column) && extents[sum] != DYNAMIC;
        fits.then_some(Self { op, filter, sum, columns: column, terms, maps, extents })
    }
}

/// How many products of the op's factors the target adds at once.
fn terms(op: Op, cpu: &CpuTarget) -> Option<i64> {
    let bytes = (0..2).all(|input| op.operand(input).ty().element().integer_width() == Some(8));
    let body = op.body().map(|body| body.ops()).unwrap_or_default();
    let signs = body.iter().filter(|op| op.is(ops::arith::EXTSI)).count();
    let of_bytes = cpu.has("amx-int8") || cpu.adds_bytes(signs != 1);
    let terms = of_bytes.then_some(BYTES).or((cpu.arch == "x86_64").then_some(PAIR));
    terms.filter(|_| bytes)
}

/// A convolution whose window is not of whole groups along the line.
struct Window<'c> {
    op: Op<'c>,
    /// The constant operand, its dimension of the window along a line, and the size that this gets.
    filter: usize,
    dim: usize,
    size: i64,
}

impl<'c> Window<'c> {
    fn of(op: Op<'c>, cpu: &CpuTarget) -> Option<Self> {
        let found = products::convolution_loops(op)?;
        let (maps, extents) = (linalg::indexing_maps(op)?, linalg::loop_extents(op)?);
        let line = maps[found.input].results().last()?.linear(extents.len())?;
        let along = |d: &&usize| line.factors[**d] != 0;
        let (window, image) = (*found.window.iter().find(along)?, *found.image.iter().find(along)?);
        let width = op.operand(found.input).ty().shape()?.last().copied()?;
        if [extents[window], extents[image], width].contains(&DYNAMIC) {
            return None;
        }
        let (old, filter) = (extents[window], 1 - found.input);
        let size = (old + BYTES - 1) / BYTES * BYTES;
        // The last window reaches so far.
        let reach = (extents[image] - 1).checked_mul(line.factors[image])?.checked_add(size)?;
        let pays = size > old && 3 * size <= 4 * old && line.factors[window] == 1 && !found.channels.is_empty();
        let dim = maps[filter].dim_positions()?.iter().position(|d| *d == window)?;
        let fits = pays && reach <= width && terms(op, cpu) == Some(BYTES);
        (fits && constant(op.operand(filter)).is_some()).then_some(Self { op, filter, dim, size })
    }
}

/// The loops over rows, those over columns, and those that sum, of a contraction or a convolution.
fn loops(op: Op) -> Option<(Vec<usize>, Vec<usize>, Vec<usize>)> {
    if op.is(ops::linalg::MATMUL) {
        return None;
    }
    if let Some(found) = products::contraction_loops(op) {
        return Some((found.m, found.n, found.k));
    }
    let found = products::convolution_loops(op)?;
    Some((found.image, found.channels, found.k))
}

struct Grouping<'c, 'a> {
    weights: &'a mut WeightTable,
    rw: Rewriter<'c>,
    /// Filters in groups, by the ones they are of, the dimension that is summed and that of the columns, and the groups' terms.
    filters: HashMap<(Attr<'c>, [usize; 2], i64), Attr<'c>>,
}

impl<'c> Grouping<'c, '_> {
    fn rewrite(&mut self, product: &Product<'c>) -> Result<(), Diagnostics> {
        let (op, filter, cx) = (product.op, product.filter, product.op.context());
        let Some((stored, attr)) = constant(op.operand(filter)) else { return Ok(()) };
        let own = product.maps[filter].dim_positions().unwrap_or_default();
        let place = |d: usize| own.iter().position(|own| *own == d);
        let (Some(sum), Some(columns)) = (place(product.sum), place(product.columns)) else { return Ok(()) };
        let Some(made) = self.in_groups(attr, [sum, columns], product.terms) else { return Ok(()) };
        self.rw.set_point(InsertionPoint::Before(stored));
        let spec = OpSpec::new(ops::arith::CONSTANT, stored.location()).results(&[made.value_type()]);
        let made = self.rw.create(spec.attr("value", made))?.result(0);
        self.rw.set_operand(op, filter, made);
        self.rw.set_point(InsertionPoint::Before(op));
        let other = self.opened(op, op.operand(1 - filter), product.terms)?;
        self.rw.set_operand(op, 1 - filter, other);
        // The terms of a group are the last loop.
        let loops = product.extents.len();
        let names: Vec<AffineExpr> = (0..loops).map(|d| AffineExpr::dim(cx, d)).collect();
        let within = AffineExpr::dim(cx, loops);
        let of = |(operand, map): (usize, &AffineMap<'c>)| {
            let mut exprs = map.compose(AffineMap::of(cx, loops + 1, &names)).results();
            if operand == filter {
                let column = exprs.remove(columns);
                exprs.push(column);
            }
            exprs.extend((operand < 2).then_some(within));
            AffineMap::of(cx, loops + 1, &exprs).to_attr()
        };
        let maps: Vec<Attr> = product.maps.iter().enumerate().map(of).collect();
        let kinds = iterator_types(op).unwrap_or_default().into_iter().chain([IteratorType::Reduction]);
        self.rw.set_attr(op, "indexing_maps", Attr::array(cx, &maps));
        self.rw.set_attr(op, "iterator_types", iterator_types_attr(cx, &kinds.collect::<Vec<_>>()));
        Ok(())
    }

    /// Adds columns of zeros to the filter's windows.
    fn widen(&mut self, window: &Window<'c>) -> Result<(), Diagnostics> {
        let Some((stored, attr)) = constant(window.op.operand(window.filter)) else { return Ok(()) };
        let (ty, Some(bytes)) = (attr.value_type(), self.weights.bytes_of(attr)) else { return Ok(()) };
        let mut shape = ty.shape().unwrap_or_default();
        let inside = |shape: &[i64]| usize::try_from(shape[window.dim..].iter().product::<i64>()).unwrap_or(0);
        let old = inside(&shape);
        shape[window.dim] = window.size;
        let new = inside(&shape);
        let zeros = std::iter::repeat_n(0, new - old);
        let wide = bytes.chunks(old.max(1)).flat_map(|part| part.iter().copied().chain(zeros.clone())).collect();
        let Some(dtype) = DType::parse(&ty.element().to_string()) else { return Ok(()) };
        let ty = Type::tensor(&shape, ty.element(), None);
        let Some(made) = self.weights.derive(attr, "widened", dtype, ty, wide) else { return Ok(()) };
        self.rw.set_point(InsertionPoint::Before(stored));
        let spec = OpSpec::new(ops::arith::CONSTANT, stored.location()).results(&[ty]).attr("value", made);
        let made = self.rw.create(spec)?.result(0);
        self.rw.set_operand(window.op, window.filter, made);
        Ok(())
    }

    /// A constant whose dimension `sum` is one of groups, and whose columns and terms are last.
    fn in_groups(&mut self, attr: Attr<'c>, [sum, columns]: [usize; 2], terms: i64) -> Option<Attr<'c>> {
        if let Some(known) = self.filters.get(&(attr, [sum, columns], terms)) {
            return Some(*known);
        }
        let (ty, mut open) = (attr.value_type(), attr.value_type().shape()?);
        open.splice(sum..=sum, [open[sum] / terms, terms]);
        let columns_now = columns + usize::from(columns > sum);
        let rest = (0..open.len()).filter(|d| *d != columns_now && *d != sum + 1);
        let order: Vec<usize> = rest.chain([columns_now, sum + 1]).collect();
        let shape: Vec<i64> = order.iter().map(|d| open[*d]).collect();
        let dtype = DType::parse(&ty.element().to_string())?;
        let bytes = permuted(&self.weights.bytes_of(attr)?, &open, &order, 1);
        let made = self.weights.derive(attr, "grouped", dtype, Type::tensor(&shape, ty.element(), None), bytes)?;
        self.filters.insert((attr, [sum, columns], terms), made);
        Some(made)
    }

    /// A value whose last dimension is two: groups, and the terms of each.
    fn opened(&mut self, op: Op<'c>, value: Value<'c>, terms: i64) -> Result<Value<'c>, Diagnostics> {
        let (cx, loc) = (op.context(), op.location());
        let mut shape = value.ty().shape().unwrap_or_default();
        let sizes = dynamic_sizes(value, &mut self.rw)?;
        let last = shape.pop().unwrap_or(terms);
        shape.extend([last / terms, terms]);
        let rank = shape.len() as i64;
        let group = |d: i64| match d {
            d if d + 2 == rank => Attr::array(cx, &[Attr::i64(cx, d), Attr::i64(cx, d + 1)]),
            d => Attr::array(cx, &[Attr::i64(cx, d)]),
        };
        let spec = OpSpec::new(ops::tensor::EXPAND_SHAPE, loc)
            .operands(&[value])
            .operands(&sizes)
            .results(&[Type::tensor(&shape, value.ty().element(), None)])
            .attr("reassociation", Attr::array(cx, &(0..rank - 1).map(group).collect::<Vec<_>>()))
            .attr("static_output_shape", Attr::dense_i64(cx, &shape));
        Ok(self.rw.create(spec)?.result(0))
    }
}
