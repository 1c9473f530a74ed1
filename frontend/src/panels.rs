//! Lays out factors of float products in panels, for CPUs: the columns of a register tile side by side, row after row.
//! Constants are laid out here; other factors of many rows by a dispatch of their own, once for all tasks.
//!
//! Before / after (dispatch 3; panels of 32 columns, two registers of the target):
//!
//! ```text
//! %p = matmul {dispatch = 3} %x[m, k], %w[k, n]   %p = generic {dispatch = 3} (m, n', n, k)
//!                                                        %x[m, k], %w[n', k, n] : [24, 3072, 32], %p[m, n', n]
//! %r = generic {dispatch = 3} (m, n) %p, %b[n]    %q = generic {dispatch = 3} (m, n', n) %p, %b[n', n]
//!                                                 %r = tensor.collapse_shape %q [[0], [1, 2]]
//! ```
//!
//! Code generation would copy the same panels in each task of each run, or read a matrix whose rows are pages apart. The
//! sums keep their order. A result is stored as before: its columns are two dimensions in the dispatch alone.
//!
//! Requires: what [`crate::fuse`] ensures. Ensures: the same.
//! Limits: known sizes but of rows; factors that are stored as they are multiplied, or constants of 16 bits, which stay so;
//! columns that a register divides; beside a constant the other factor does not just fill the second-level cache. One row streams its matrix, and its weights stay in their
//! file.

use crate::collapse_lines::expanded;
use crate::dispatch::{self, Dispatch, Role};
use crate::import::WeightTable;
use crate::layouts::REGISTERS;
use crate::narrow::constants::{beginning, permuted, stored};
use crate::{collapse_lines, kernel_cpu, linalg, products};
use monopour_contract::{KernelClass, attributes};
use monopour_ir::bodies::MultiplyAdd;
use monopour_ir::typed::linalg::{IteratorType, Operands, generic, iterator_types, iterator_types_attr};
use monopour_ir::typed::{Index, Slice};
use monopour_ir::{
    AffineMap, Attr, Block, DYNAMIC, Diagnostics, InsertionPoint, Module, Op, OpSpec, Region, Rewriter, Type, Value,
    ops,
};
use monopour_program::{CpuTarget, DType};
use std::collections::HashMap;
use tracing::trace;

/// Fewest rows that share a panel.
const FEWEST_ROWS: i64 = 2;
/// Fewest rows for which a factor that is no constant is copied: each task of 128 rows would copy it (1024 x 1024 x 1024: 1.1 of
/// the time).
const MANY_ROWS: i64 = 512;
/// Most bytes of such a factor: the copy is memory that a run takes.
const MOST_COPIED_BYTES: u64 = 64 << 20;
/// Most bytes of a program's factors in panels: they are in memory, where weights in their file need none.
const MOST_BYTES: usize = 1 << 30;

/// Bytes of the second-level cache. Where the other factor and a panel fill it, but for a quarter of it, the panels of a run's tasks
/// are better copied to one place: panels of their own would drive the other factor out (128x1536 and 384 columns in a model: 1.6 of
/// the time).
const CACHE_BYTES: i64 = 1 << 20;

/// Lays out the factors of a module; `weights` gets them.
///
/// # Errors
/// None of its own; what MLIR's op builders report.
pub fn run(module: &Module, weights: &mut WeightTable, cpu: &CpuTarget) -> Result<(), Diagnostics> {
    let dispatches = dispatch::collect(module);
    let next = dispatches.iter().map(|dispatch| dispatch.number + 1).max().unwrap_or(0);
    let rw = Rewriter::new(module.context());
    let mut panels = Panels { weights, rw, factors: HashMap::new(), copies: HashMap::new(), room: MOST_BYTES, next };
    for dispatch in dispatches {
        if let Some(form) = Form::of(&dispatch, cpu) {
            panels.rewrite(&dispatch, &form)?;
        }
    }
    Ok(())
}

/// A product whose factor gets panels.
struct Form<'c> {
    /// The factor among the operands, and its elements if it is a constant, or the first ones of that.
    factor: usize,
    elements: Option<Attr<'c>>,
    /// The shape of that constant.
    whole: Vec<i64>,
    /// The factor's dimension of columns, and the columns of a panel.
    columns: usize,
    width: i64,
    /// The order of its dimensions in panels, once its columns are two.
    order: Vec<usize>,
    members: Vec<Member<'c>>,
}

impl<'c> Form<'c> {
    fn of(dispatch: &Dispatch<'c>, cpu: &CpuTarget) -> Option<Self> {
        let main = dispatch.main();
        let found = products::contraction_loops(main).filter(|_| is_plain(main))?;
        let (maps, extents) = (linalg::indexing_maps(main)?, linalg::loop_extents(main)?);
        let (factor, last) = (1 - found.lhs, *found.n.last()?);
        let whole = whole(main.operand(factor));
        let elements = stored(whole);
        if elements.is_some_and(|attr| attr.is_splat()) {
            return None;
        }
        let dims = maps[factor].dim_positions()?;
        let known = dims.iter().all(|d| extents[*d] > 0);
        let rows = found.m.iter().map(|d| if extents[*d] == DYNAMIC { FEWEST_ROWS } else { extents[*d] });
        let shared = rows.fold(1, i64::saturating_mul) >= FEWEST_ROWS;
        let lanes = kernel_cpu::lanes(main, cpu);
        let width = [REGISTERS * lanes, lanes].into_iter().find(|width| extents[last] % width == 0)?;
        let columns = dims.iter().position(|d| *d == last)?;
        // (extent, class) of each dimension: what is parallel, what is summed, the columns of a panel.
        let mut open: Vec<(i64, u8)> = dims.iter().map(|d| (extents[*d], u8::from(found.k.contains(d)))).collect();
        open.splice(columns..=columns, [(extents[last] / width, 0), (width, 2)]);
        let mut order: Vec<usize> = (0..open.len()).collect();
        order.sort_by_key(|d| open[*d].1);
        let changes = !order.iter().filter(|d| open[**d].0 != 1).is_sorted();
        let depth = found.k.iter().map(|d| extents[*d]).fold(1, i64::saturating_mul);
        let rows = found.m.iter().map(|d| extents[*d].max(0)).fold(1, i64::saturating_mul);
        let held = |rows: i64| depth.saturating_mul(rows + width).saturating_mul(i64::from(bits(main) / 8));
        // Tasks read the rows of their own: more rows than a task has do not fill the cache.
        let fills_cache = [rows, rows.min(kernel_cpu::TASK_SIDE)]
            .map(held)
            .into_iter()
            .all(|held| held > CACHE_BYTES / 4 * 3 && held <= CACHE_BYTES / 4 * 5);
        let is_small = main.operand(factor).ty().static_size_bytes().is_some_and(|bytes| bytes <= MOST_COPIED_BYTES);
        let is_product = dispatch.class() == KernelClass::Contraction && depth > width;
        let is_copied = rows >= MANY_ROWS && is_small && is_product;
        // Rows in several dimensions would each copy panels of their own.
        let lies_in_lines = found.m.iter().filter(|d| extents[**d] != 1).count() > 1;
        let pays = if elements.is_some() { shared && (lies_in_lines || !fills_cache) } else { is_copied };
        let can = known && pays && changes && lanes > 1;
        let members = members(dispatch, &maps, last).filter(|_| can)?;
        let whole = whole.ty().shape()?;
        Some(Self { factor, elements, whole, columns, width, order, members })
    }
}

/// Bits of the elements of a product of floats.
fn bits(op: Op) -> u32 {
    op.result(0).ty().element().float_width().unwrap_or(32)
}

/// Whether a product multiplies two inputs of the floats that it sums, or a constant factor of 16 bits that it widens.
fn is_plain(op: Op) -> bool {
    let element = op.result(0).ty().element();
    let wide = element.float_width().is_some_and(|bits| bits >= 32);
    let sums = op.body().is_some_and(|body| MultiplyAdd::of(body).is_some());
    let factor = |i: usize| {
        let value = op.operand(i);
        value.ty().element() == element || is_widened(op, i) && stored(whole(value)).is_some()
    };
    op.num_results() == 1 && linalg::num_inputs(op) == 2 && wide && sums && (0..2).all(factor)
}

/// Whether an input is of 16 bits, and only its extension reads an element.
fn is_widened(op: Op, input: usize) -> bool {
    let uses = op.body().map(|body| body.arg(input).uses()).unwrap_or_default();
    let narrow = op.operand(input).ty().element().float_width() == Some(16);
    narrow && matches!(uses[..], [only] if only.op.is(ops::arith::EXTF))
}

/// The tensor of which a value is the first elements along each dimension, or the value.
fn whole(value: Value) -> Value {
    let of = || {
        let op = value.defining_op().filter(|op| op.is(ops::tensor::EXTRACT_SLICE))?;
        let slice = Slice::of(op)?;
        let all = |of: &[Index], number: i64| of.iter().all(|index| matches!(index, Index::Static(n) if *n == number));
        let same_rank = op.operand(0).ty().shape()?.len() == value.ty().shape()?.len();
        (same_rank && all(&slice.offsets, 0) && all(&slice.strides, 1)).then(|| op.operand(0))
    };
    of().unwrap_or(value)
}

/// An op of the dispatch.
pub(crate) struct Member<'c> {
    pub op: Op<'c>,
    /// The loop over columns; a fill has none.
    columns: Option<usize>,
    /// The dimension of the columns of each operand that has them.
    pub places: Vec<Option<usize>>,
}

/// All ops of a dispatch, where columns are a dimension of each operand, or none.
pub(crate) fn members<'c>(dispatch: &Dispatch<'c>, maps: &[AffineMap<'c>], columns: usize) -> Option<Vec<Member<'c>>> {
    let main = dispatch.main();
    let place = maps.last()?.dim_positions()?.iter().position(|d| *d == columns)?;
    // Values of the dispatch that have columns, and where.
    let mut known = vec![(main.result(0), place), (linalg::destination(main, 0), place)];
    let mut members = vec![];
    for (op, _) in &dispatch.ops {
        if op.is(ops::linalg::FILL) {
            let (_, place) = known.iter().find(|(value, _)| *value == op.result(0))?;
            members.push(Member { op: *op, columns: None, places: vec![None, Some(*place)] });
            continue;
        }
        let all: Vec<Vec<usize>> = linalg::indexing_maps(*op)?
            .iter()
            .map(|map| map.dim_positions().filter(|_| map.is_projected_permutation()))
            .collect::<Option<_>>()?;
        let mut loops = op.operands().into_iter().zip(&all).filter_map(|(operand, dims)| {
            known.iter().find(|(value, _)| *value == operand).map(|(_, place)| dims[*place])
        });
        let columns = loops.next()?;
        let plain = loops.all(|l| l == columns) && op.num_results() == 1 && op.find_all(ops::linalg::INDEX).is_empty();
        let places: Vec<Option<usize>> = all.iter().map(|dims| dims.iter().position(|d| *d == columns)).collect();
        known.push((op.result(0), (*places.last()?).filter(|_| plain)?));
        members.push(Member { op: *op, columns: Some(columns), places });
    }
    Some(members)
}

struct Panels<'c, 'a> {
    weights: &'a mut WeightTable,
    rw: Rewriter<'c>,
    /// Factors in panels, by their elements, the shape with two dimensions of columns, and the order.
    factors: HashMap<(Attr<'c>, Vec<i64>, Vec<usize>), Attr<'c>>,
    /// Likewise those that are copied, by their values.
    copies: HashMap<(Value<'c>, Vec<i64>, Vec<usize>), Value<'c>>,
    /// Bytes that may still be laid out.
    room: usize,
    /// The number of the next new dispatch.
    next: i64,
}

impl<'c> Panels<'c, '_> {
    fn rewrite(&mut self, dispatch: &Dispatch<'c>, form: &Form<'c>) -> Result<(), Diagnostics> {
        let main = dispatch.main();
        let made = match form.elements {
            Some(elements) => {
                let Some(made) = self.laid_out(main, form, elements) else { return Ok(()) };
                self.rw.set_point(InsertionPoint::Before(main));
                let spec = OpSpec::new(ops::arith::CONSTANT, main.location()).results(&[made.value_type()]);
                self.rw.create(spec.attr("value", made))?.result(0)
            }
            None => self.copied(main, form)?,
        };
        trace!(target: "fuse", "{}: panels of {} columns", main.location(), form.width);
        let mut inside: Vec<Op> = dispatch.ops.iter().map(|(op, _)| *op).collect();
        for member in &form.members {
            let factor = (member.op == main).then_some((form, made));
            let split = self.split(member, factor, &inside, form.width)?;
            inside.push(split);
        }
        Ok(())
    }

    /// The factor in panels, by a dispatch before the product.
    fn copied(&mut self, main: Op<'c>, form: &Form<'c>) -> Result<Value<'c>, Diagnostics> {
        let (value, cx, loc) = (main.operand(form.factor), main.context(), main.location());
        let ty = opened(value.ty(), form.columns, form.width);
        let (open, element) = (ty.shape().unwrap_or_default(), ty.element());
        let key = (value, open.clone(), form.order.clone());
        if let Some(known) = self.copies.get(&key).filter(|known| known.block() == main.block()) {
            return Ok(*known);
        }
        self.rw.set_point(InsertionPoint::Before(main));
        let from = expanded(value, ty, form.columns, &mut self.rw)?;
        let shape: Vec<i64> = form.order.iter().map(|d| open[*d]).collect();
        let empty = OpSpec::new(ops::tensor::EMPTY, loc).results(&[Type::tensor(&shape, element, None)]);
        let to = self.rw.create(empty)?.result(0);
        let block = Block::new(&[(element, loc), (element, loc)]);
        let region = Region::new();
        region.append(block);
        self.rw.set_point(InsertionPoint::End(block));
        self.rw.create(OpSpec::new(ops::linalg::YIELD, loc).operands(&[block.arg(0)]))?;
        let rank = open.len();
        let place =
            |d: usize| form.order.iter().position(|of| *of == d).expect("invariant: an order of all dimensions");
        let places: Vec<usize> = (0..rank).map(place).collect();
        let maps = [AffineMap::select(cx, rank, &places), AffineMap::identity(cx, rank)];
        let kinds = iterator_types_attr(cx, &vec![IteratorType::Parallel; rank]);
        self.rw.set_point(InsertionPoint::Before(main));
        let operands = Operands { inputs: &[from], outputs: &[to] };
        let copy = self.rw.create(generic(loc, operands, &maps, kinds, region))?;
        self.rw.set_attr(copy, attributes::DISPATCH, Attr::i64(cx, self.next));
        self.rw.set_attr(copy, attributes::ROLE, Attr::string(cx, Role::Root.as_str()));
        self.next += 1;
        self.copies.insert(key, copy.result(0));
        Ok(copy.result(0))
    }

    /// The factor's elements in panels.
    fn laid_out(&mut self, main: Op<'c>, form: &Form<'c>, elements: Attr<'c>) -> Option<Attr<'c>> {
        let ty = main.operand(form.factor).ty();
        let open = opened(ty, form.columns, form.width).shape()?;
        let key = (elements, open.clone(), form.order.clone());
        if let Some(known) = self.factors.get(&key) {
            return Some(*known);
        }
        let shape: Vec<i64> = form.order.iter().map(|d| open[*d]).collect();
        let size = usize::try_from(ty.element().element_size_bytes()?).ok()?;
        let room = self.room.checked_sub(usize::try_from(ty.static_size_bytes()?).ok()?)?;
        let stored = self.weights.bytes_of(elements)?;
        let bytes = permuted(&beginning(&stored, &form.whole, &ty.shape()?, size), &open, &form.order, size);
        let dtype = DType::parse(&ty.element().to_string())?;
        let made = self.weights.derive(elements, "panels", dtype, Type::tensor(&shape, ty.element(), None), bytes)?;
        self.room = room;
        self.factors.insert(key, made);
        Some(made)
    }

    /// Makes two loops of that over columns; returns the op.
    fn split(
        &mut self,
        member: &Member<'c>,
        factor: Option<(&Form<'c>, Value<'c>)>,
        inside: &[Op<'c>],
        width: i64,
    ) -> Result<Op<'c>, Diagnostics> {
        let op = member.op;
        for (index, place) in member.places.iter().enumerate() {
            let value = op.operand(index);
            let own = value.defining_op().is_some_and(|def| inside.contains(&def));
            match (factor, place) {
                (Some((form, made)), _) if index == form.factor => self.rw.set_operand(op, index, made),
                (_, Some(at)) if !own => {
                    self.rw.set_point(InsertionPoint::Before(op));
                    let open = expanded(value, opened(value.ty(), *at, width), *at, &mut self.rw)?;
                    self.rw.set_operand(op, index, open);
                }
                _ => (),
            }
        }
        let (result, ty) = (op.result(0), op.result(0).ty());
        let at = member.places.last().copied().flatten().unwrap_or(0);
        let outside: Vec<_> = result.uses().into_iter().filter(|u| !inside.contains(&u.op)).collect();
        self.rw.set_type(result, opened(ty, at, width));
        if !outside.is_empty() {
            self.rw.set_point(InsertionPoint::After(op));
            let whole = collapse_lines::collapsed(result, at, &mut self.rw)?;
            outside.into_iter().for_each(|u| self.rw.set_operand(u.op, u.index, whole));
        }
        match member.columns {
            Some(columns) => self.split_loop(op, columns, factor.map(|(form, _)| form)),
            None => Ok(op),
        }
    }

    fn split_loop(&mut self, op: Op<'c>, columns: usize, factor: Option<&Form<'c>>) -> Result<Op<'c>, Diagnostics> {
        let cx = op.context();
        let of = |d: usize| if d == columns { vec![d, d + 1] } else { vec![d + usize::from(d > columns)] };
        let maps = linalg::indexing_maps(op).unwrap_or_default().into_iter().enumerate().map(|(index, map)| {
            let dims: Vec<usize> = map.dim_positions().unwrap_or_default().into_iter().flat_map(of).collect();
            let dims = match factor.filter(|form| form.factor == index) {
                Some(form) => form.order.iter().map(|d| dims[*d]).collect(),
                None => dims,
            };
            AffineMap::select(cx, map.num_dims() + 1, &dims)
        });
        let maps: Vec<AffineMap> = maps.collect();
        let mut kinds = match op.is(ops::linalg::MATMUL) {
            true => vec![IteratorType::Parallel, IteratorType::Parallel, IteratorType::Reduction],
            false => iterator_types(op).unwrap_or_default(),
        };
        kinds.insert(columns, IteratorType::Parallel);
        if !op.is(ops::linalg::MATMUL) {
            self.rw.set_attr(
                op,
                "indexing_maps",
                Attr::array(cx, &maps.into_iter().map(AffineMap::to_attr).collect::<Vec<_>>()),
            );
            self.rw.set_attr(op, "iterator_types", iterator_types_attr(cx, &kinds));
            return Ok(op);
        }
        let region = Region::new();
        self.rw.take_region(region, op.region(0));
        let operands = op.operands();
        let (inputs, outputs) = operands.split_at(linalg::num_inputs(op));
        self.rw.set_point(InsertionPoint::Before(op));
        let spec = generic(op.location(), Operands { inputs, outputs }, &maps, iterator_types_attr(cx, &kinds), region);
        let made = self.rw.create(spec)?;
        for name in [attributes::DISPATCH, attributes::ROLE, attributes::MEMBER] {
            op.attr(name).into_iter().for_each(|attr| self.rw.set_attr(made, name, attr));
        }
        self.rw.replace_op(op, &made.results());
        Ok(made)
    }
}

/// A type with panels of `width` instead of dimension `at`.
fn opened(ty: Type, at: usize, width: i64) -> Type {
    let mut shape = ty.shape().unwrap_or_default();
    shape.splice(at..=at, [shape[at] / width, width]);
    Type::tensor(&shape, ty.element(), None)
}
