//! Packs an input that is strided along the vector loop, a panel at a time, into a contiguous buffer of the kernel.
//!
//! ```text
//! for j (W lanes at a time):
//!   for k: panel[k, 0 .. W] = b[j .. j + W, k]        // b^T in the order in which the product reads it
//!   for i, k: acc[i] += a[i, k] * panel[k, 0 .. W]
//! ```
//!
//! A long reduction is cut into blocks, each with its own panel.
//! Limits: known extents, panels of up to [`MAX_PANEL_BYTES`], read by at least [`MIN_ROWS`] rows.

use super::choose::{Choice, Pack};
use super::emit::{Bound, Emit, Position, Segment, Width};
use super::nest::{Access, Nest, Operand};
use monopour_ir::ops;
use monopour_ir::typed::memref;
use monopour_ir::{Attr, InsertionPoint, LinearForm, Op, Type, Value};

/// Largest panel, which lies on the stack of a task.
const MAX_PANEL_BYTES: i64 = 64 << 10;
/// Fewest rows for which the copy pays.
const MIN_ROWS: i64 = 8;
/// Registers of the widest panel.
const MAX_REGISTERS: i64 = 2;

/// The input that pays to pack for vectors of `lanes` elements along `dim`.
pub(super) fn candidate(nest: &Nest, dim: usize, lanes: i64) -> Option<Pack> {
    let strided = |i: &usize| nest.inputs[*i].access(dim) == Access::Strided;
    let mut inputs = (0..nest.inputs.len()).filter(strided);
    let input = inputs.next().filter(|_| inputs.next().is_none())?;
    let operand = &nest.inputs[input];
    let bare = operand.subscripts.iter().all(|s| s.as_dim().is_some());
    let rows = (0..nest.loops.len()).any(|d| is_row(nest, d, dim, operand));
    let room = MAX_PANEL_BYTES / (lanes * MAX_REGISTERS * operand.element().element_size_bytes()? as i64);
    let block = block(nest, operand, room)?;
    (bare && rows && !nest.reductions().is_empty()).then_some(Pack { input, block })
}

/// Blocks of the panel's longest loop, such that a panel has at most `room` iterations; `None` where no block is small
/// enough.
fn block(nest: &Nest, operand: &Operand, room: i64) -> Option<Option<(usize, i64)>> {
    let loops = panel_loops(nest, operand);
    let extents: Vec<i64> = loops.iter().map(|d| nest.loops[*d].extent).collect::<Option<_>>()?;
    let total = extents.iter().try_fold(1i64, |product, e| product.checked_mul(*e))?;
    if total <= room {
        return Some(None);
    }
    let (dim, longest) = loops.iter().zip(&extents).max_by_key(|(_, e)| **e)?;
    // Whole squares of lanes.
    let size = room / (total / longest) / 16 * 16;
    (size > 0).then_some(Some((*dim, size)))
}

/// Whether a loop runs over rows that reuse the panel.
pub(super) fn is_row(nest: &Nest, row: usize, dim: usize, packed: &Operand) -> bool {
    let long = nest.loops[row].extent.is_some_and(|e| e >= MIN_ROWS);
    row != dim && !nest.loops[row].reduction && !packed.uses(row) && long
}

/// The loops of a panel besides the vector loop.
fn panel_loops(nest: &Nest, operand: &Operand) -> Vec<usize> {
    nest.reductions().into_iter().filter(|d| operand.uses(*d)).collect()
}

/// The buffer of a nest's panels, in the kernel's entry block.
pub(super) fn buffer<'c>(e: &mut Emit<'c>, nest: &Nest<'c>, choice: &Choice) -> Option<Operand<'c>> {
    let pack = choice.pack?;
    let operand = &nest.inputs[pack.input];
    let loops = panel_loops(nest, operand);
    let extent = |d: &usize| match pack.block {
        Some((dim, size)) if dim == *d => size,
        _ => nest.loops[*d].extent.unwrap_or(1),
    };
    let mut shape: Vec<i64> = loops.iter().map(extent).collect();
    shape.push(choice.registers * choice.lanes);
    let entry = nest.op.ancestor(ops::func::FUNC).and_then(Op::body)?;
    let outside = e.b.point();
    e.b.set_point(InsertionPoint::Start(entry));
    let spec = memref::alloca(e.loc, &[], Type::memref(&shape, operand.element(), None))
        .attr("alignment", Attr::i64(e.cx, 64));
    let value = e.create(spec).result(0);
    e.b.set_point(outside);
    // Within a block, the panel is indexed by the position in the block.
    let count = nest.loops.len();
    let within = |d: usize| if pack.block.is_some_and(|(dim, _)| dim == d) { count } else { d };
    let subscripts = loops.into_iter().map(within).chain([choice.dim]);
    let subscripts = subscripts.map(|d| LinearForm::dim(d, count + 1)).collect();
    Some(Operand::panel(value, subscripts, choice.dim))
}

/// Fills the panel for the lanes at `at[dim]` and for `length` iterations from the block's position.
pub(super) fn fill<'c>(
    e: &mut Emit<'c>,
    nest: &Nest<'c>,
    choice: &Choice,
    panel: &Operand<'c>,
    at: &[Position<'c>],
    (width, length): (Width, i64),
) {
    let Some(Pack { input, block }) = choice.pack else { return };
    let source = &nest.inputs[input];
    let loops = panel_loops(nest, source);
    let along = loops.iter().copied().find(|d| source.access(*d) == Access::Contiguous);
    let block = block.map(|(dim, _)| (dim, length));
    let fill = Fill { nest, source, panel, dim: choice.dim, width, lanes: choice.lanes, along, block };
    fill.outer(e, loops.into_iter().filter(|d| Some(*d) != along).collect(), at.to_vec());
}

struct Fill<'c, 'a> {
    nest: &'a Nest<'c>,
    source: &'a Operand<'c>,
    panel: &'a Operand<'c>,
    dim: usize,
    width: Width,
    lanes: i64,
    /// The loop along which the source is contiguous.
    along: Option<usize>,
    /// The loop that is cut, and the length of this block.
    block: Option<(usize, i64)>,
}

impl<'c> Fill<'c, '_> {
    fn outer(&self, e: &mut Emit<'c>, mut order: Vec<usize>, at: Vec<Position<'c>>) {
        let Some(dim) = order.pop() else { return self.inner(e, at) };
        self.each(e, dim, &[1], &at, &mut |e, at, _| self.outer(e, order.clone(), at));
    }

    fn inner(&self, e: &mut Emit<'c>, at: Vec<Position<'c>>) {
        let Some(along) = self.along else { return self.single(e, &at) };
        let square = if self.width % self.lanes == 0 { self.lanes } else { 1 };
        let mut sizes = vec![square, 1];
        sizes.dedup();
        self.each(e, along, &sizes, &at, &mut |e, at, step| match step {
            1 => self.single(e, &at),
            _ => self.squares(e, &at, along),
        });
    }

    /// The iterations of a loop, or of its block, in steps of `sizes`.
    fn each(
        &self,
        e: &mut Emit<'c>,
        dim: usize,
        sizes: &[i64],
        at: &[Position<'c>],
        body: &mut dyn FnMut(&mut Emit<'c>, Vec<Position<'c>>, i64),
    ) {
        let mut l = self.nest.loops[dim];
        let blocked = self.block.filter(|(cut, _)| *cut == dim);
        l.extent = blocked.map_or(l.extent, |(_, length)| Some(length));
        for segment in e.segments(&l, sizes) {
            e.for_each(segment, &[], &mut |e, here, _| {
                let at = within(e, at, dim, here, blocked.is_some());
                body(e, at, segment.step);
                vec![]
            });
        }
    }

    /// Copies one row of the panel lane by lane.
    fn single(&self, e: &mut Emit<'c>, at: &[Position<'c>]) {
        let lanes = Segment { from: Bound::Static(0), to: Bound::Static(self.width), step: 1 };
        e.for_each(lanes, &[], &mut |e, lane, _| {
            let mut from = at.to_vec();
            from[self.dim] = e.sum(at[self.dim], lane);
            let value = e.load(self.source, &from, self.dim, 1);
            let mut to = at.to_vec();
            to[self.dim] = lane;
            e.store_panel(value, self.panel, &to);
            vec![]
        });
    }

    /// Copies as many rows of the panel as a register has lanes: squares are transposed in registers.
    fn squares(&self, e: &mut Emit<'c>, at: &[Position<'c>], along: usize) {
        let row = if self.block.is_some_and(|(cut, _)| cut == along) { self.nest.loops.len() } else { along };
        for first in (0..self.width).step_by(self.lanes as usize) {
            let rows = (0..self.lanes).map(|row| {
                let mut at = at.to_vec();
                at[self.dim] = at[self.dim].plus(first + row);
                e.load(self.source, &at, along, self.lanes)
            });
            let rows: Vec<Value> = rows.collect();
            for (k, column) in transpose(e, rows).into_iter().enumerate() {
                let mut to = at.to_vec();
                to[row] = to[row].plus(k as i64);
                to[self.dim] = Position::at(first);
                e.store_panel(column, self.panel, &to);
            }
        }
    }
}

/// Positions at iteration `here` of a loop, relative to its block if it is cut. The last position is that within the block.
pub(super) fn within<'c>(
    e: &mut Emit<'c>,
    at: &[Position<'c>],
    dim: usize,
    here: Position<'c>,
    blocked: bool,
) -> Vec<Position<'c>> {
    let mut at = at.to_vec();
    if let (true, Some(relative)) = (blocked, at.len().checked_sub(1)) {
        at[dim] = e.sum(at[dim], here);
        at[relative] = here;
    } else {
        at[dim] = here;
    }
    at
}

/// Transposes a square of vectors: swaps blocks of half the size, then recurses into them.
pub(super) fn transpose<'c>(e: &mut Emit<'c>, mut rows: Vec<Value<'c>>) -> Vec<Value<'c>> {
    let lanes = rows.len();
    let mut half = lanes / 2;
    while half > 0 {
        let upper = |lane: usize| (lane / half) % 2 == 1;
        let first: Vec<i64> = (0..lanes).map(|l| if upper(l) { lanes + l - half } else { l } as i64).collect();
        let second: Vec<i64> = (0..lanes).map(|l| if upper(l) { lanes + l } else { l + half } as i64).collect();
        for i in (0..lanes).filter(|i| (i / half).is_multiple_of(2)) {
            let (a, b) = (rows[i], rows[i + half]);
            rows[i] = e.shuffle(a, b, &first);
            rows[i + half] = e.shuffle(a, b, &second);
        }
        half /= 2;
    }
    rows
}
