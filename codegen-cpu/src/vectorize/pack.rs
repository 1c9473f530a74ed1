//! Packs inputs of a product into contiguous buffers of the kernel, a panel at a time.
//!
//! ```text
//! for k (a block at a time):
//!   for i, k: left[i, k] = extf(a[i, k])                 // widened once, not for each vector that it meets
//!   for j (W lanes at a time):
//!     for k: right[k, 0 .. W] = extf(b[j .. j + W, k])   // b^T in the order in which the product reads it
//!     for i, k: acc[i] += left[i, k] * right[k, 0 .. W]
//! ```
//!
//! The right panel is of an input that is strided along the vector loop, narrower than its products, or whose rows are far
//! from each other; the left one of a narrow input whose elements are broadcast. A reduction that is too long for a panel is
//! cut into blocks.
//! A panel of an interleaved image holds the windows of a whole line: picked once, not by each row of the register tile.
//! Limits: known extents, panels of up to [`MAX_PANEL_BYTES`], or [`MOST_LINE_PANEL_BYTES`] for lines, read by at least
//! [`MIN_ROWS`] rows.

use super::body::{self, Place, Values};
use super::choose::{Choice, Pack};
use super::emit::{Emit, Position, Width, element_bytes as stored_bytes};
use super::nest::{self, Access, Nest, Operand};
use super::segments::{Bound, Segment};
use crate::small_floats::is_widened_at_once;
use monopour_contract::{MOST_LINE_PANEL_BYTES, MOST_TASK_BYTES};
use monopour_ir::ops;
use monopour_ir::typed::memref;
use monopour_ir::{Attr, InsertionPoint, LinearForm, Op, Type, Value};
use monopour_program::CpuTarget;

/// Largest panel, which lies on the stack of a task.
const MAX_PANEL_BYTES: i64 = 64 << 10;
/// Fewest rows for which the copy pays.
const MIN_ROWS: i64 = 8;
/// Registers of the widest panel.
const MAX_REGISTERS: i64 = 2;
/// Bytes of a block of an input that is not packed, a part of the first-level cache, and fewest rows that read it.
const MAX_REUSED_BYTES: i64 = 36 << 10;
const MIN_READERS: i64 = 28;
/// Bytes between vectors of which each is another stream of the prefetcher.
const FAR_BYTES: i64 = 512;
/// Bytes of the vectors that one instruction interleaves.
const INTERLEAVED_BYTES: usize = 16;
/// Fewest iterations of a block that a left panel may ask for: each block updates the outputs.
const MIN_BLOCK: i64 = 64;

/// The input that pays to pack for vectors of `lanes` elements along `dim`, because it is strided.
pub(super) fn strided(nest: &Nest, dim: usize, lanes: i64) -> Option<Pack> {
    let input = only(nest, |_, o| o.access(dim) == Access::Strided)?;
    let operand = &nest.inputs[input];
    let rows = (0..nest.loops.len()).any(|d| is_row(nest, d, dim, operand));
    let room = MAX_PANEL_BYTES / (lanes * MAX_REGISTERS * element_bytes(nest, input));
    let block = block(nest, operand, room)?;
    (is_bare(operand) && rows && !nest.reductions().is_empty()).then_some(Pack {
        right: Some(input),
        left: None,
        block,
    })
}

/// The inputs to pack for a register tile: besides one that is strided those that the body widens.
pub(super) fn widened(nest: &Nest, choice: &Choice, cpu: &CpuTarget) -> Option<Pack> {
    let (row, _) = choice.rows?;
    let (dim, width) = (choice.dim, choice.registers * choice.lanes);
    let narrow = |i: usize| is_bare(&nest.inputs[i]) && held(nest, i).is_some();
    let contiguous = |o: &Operand| o.access(dim) == Access::Contiguous && is_row(nest, row, dim, o);
    let strided = choice.pack.and_then(|p| p.right);
    let far = |i: usize| is_far(nest, &nest.inputs[i]);
    // What lies in panels is widened as it is loaded, where one instruction does.
    let in_panel =
        |i: usize| is_widened_at_once(nest.inputs[i].element(), cpu) && is_panel(nest, &nest.inputs[i], dim, width);
    let right = strided.or_else(|| only(nest, |i, o| (narrow(i) || far(i)) && contiguous(o) && !in_panel(i)));
    let per_right = right.map_or(1, |i| width * element_bytes(nest, i));
    // An element of the left panel meets several vectors.
    let meets = nest.loops[dim].extent.is_none_or(|extent| extent >= 2 * width);
    let left = only(nest, |i, o| narrow(i) && o.uses(row) && !o.uses(dim)).filter(|_| meets).and_then(|input| {
        let rows = nest.loops[row].extent?;
        let per_left = rows * element_bytes(nest, input);
        let same = right.is_none_or(|r| panel_loops(nest, &nest.inputs[r]) == panel_loops(nest, &nest.inputs[input]));
        let room = MAX_PANEL_BYTES / per_left.max(per_right);
        let block = block(nest, &nest.inputs[input], room).filter(|_| same)?;
        let long = |(dim, size): (usize, i64)| iterations(nest, &nest.inputs[input], dim, size) >= MIN_BLOCK;
        block.is_none_or(long).then_some(Pack { left: Some(input), right, block })
    });
    left.or_else(|| {
        // What is far is read once, and the panel stays in the first-level cache.
        let room = if right.is_some_and(far) { MAX_REUSED_BYTES } else { MAX_PANEL_BYTES };
        let block = block(nest, &nest.inputs[right?], room / per_right)?;
        Some(Pack { right, left: None, block })
    })
}

/// Blocks of the outermost reduction, where rows read the same vectors again, and all of these are more than the first-level
/// cache holds.
pub(super) fn reused(nest: &Nest, choice: &Choice) -> Option<Pack> {
    let (row, _) = choice.rows?;
    let (dim, width) = (choice.dim, choice.registers * choice.lanes);
    let input = only(nest, |_, o| o.uses(dim)).filter(|i| !nest.inputs[*i].uses(row) && is_bare(&nest.inputs[*i]))?;
    let operand = &nest.inputs[input];
    let row_bytes = width * stored_bytes(operand);
    let loops = panel_loops(nest, operand);
    let dense = is_panel(nest, operand, dim, width);
    let parallel = (0..nest.loops.len()).filter(|d| !nest.loops[*d].reduction && !operand.uses(*d));
    let readers = parallel.map(|d| nest.loops[d].likely()).try_fold(1i64, |all, extent| all.checked_mul(extent?))?;
    let (outermost, inner) = loops.split_first()?;
    let inside = inner.iter().try_fold(row_bytes, |bytes, d| bytes.checked_mul(nest.loops[*d].extent?))?;
    let extent = nest.loops[*outermost].extent?;
    let size = (MAX_REUSED_BYTES / inside).max(1);
    let pays = dense && readers >= MIN_READERS && size < extent && !inner.is_empty();
    pays.then_some(Pack { right: None, left: None, block: Some((*outermost, size)) })
}

/// The interleaved input whose line of `width` lanes, whole registers, a panel can hold, and whose reuse by rows pays for it.
pub(super) fn line(nest: &Nest, choice: &Choice, (row, tile): (usize, i64), width: i64) -> Option<usize> {
    let input = only(nest, |_, o| matches!(o.access(choice.dim), Access::Interleaved(_)))?;
    let operand = &nest.inputs[input];
    let loops = panel_loops(nest, operand);
    let bytes = loops
        .iter()
        .try_fold(width * element_bytes(nest, input), |bytes, d| bytes.checked_mul(nest.loops[*d].extent?))?;
    let often = nest.loops[row].extent? > 2 * tile && is_row(nest, row, choice.dim, operand);
    let fits = bytes <= MOST_LINE_PANEL_BYTES && on_stack(nest).saturating_add(bytes as u64) <= MOST_TASK_BYTES;
    (operand.is_memory() && often && fits).then_some(input)
}

/// Bytes that the kernel has on its stack.
fn on_stack(nest: &Nest) -> u64 {
    let kernel = nest.op.ancestor(ops::func::FUNC).expect("invariant: kernels are functions");
    kernel.find_all(ops::memref::ALLOCA).iter().filter_map(|op| op.result(0).ty().static_size_bytes()).sum()
}

/// The only input of that kind.
fn only<'c>(nest: &Nest<'c>, is: impl Fn(usize, &Operand<'c>) -> bool) -> Option<usize> {
    let mut found = (0..nest.inputs.len()).filter(|i| is(*i, &nest.inputs[*i]));
    found.next().filter(|_| found.next().is_none())
}

/// Whether the vectors of a product's terms are apart in memory, in other pages and in few sets of a cache, and many rows read
/// each of them.
fn is_far(nest: &Nest, operand: &Operand) -> bool {
    let readers = (0..nest.loops.len()).filter(|d| !nest.loops[*d].reduction && !operand.uses(*d));
    let readers = readers.map(|d| nest.loops[d].likely()).try_fold(1i64, |all, extent| all.checked_mul(extent?));
    let step = panel_loops(nest, operand).last().and_then(|d| operand.stride_bytes(*d));
    is_bare(operand)
        && readers.is_some_and(|readers| readers >= MIN_READERS)
        && step.is_some_and(|step| step >= FAR_BYTES)
}

/// Whether an input's vectors lie side by side in memory, one for each term.
fn is_panel(nest: &Nest, operand: &Operand, dim: usize, width: i64) -> bool {
    let step = panel_loops(nest, operand).last().and_then(|d| operand.stride_bytes(*d));
    operand.access(dim) == Access::Contiguous && step == Some(width * stored_bytes(operand))
}

/// Whether each subscript is a loop.
fn is_bare(operand: &Operand) -> bool {
    operand.is_memory() && operand.subscripts.iter().all(|s| s.as_dim().is_some())
}

/// The extension or conversion that alone reads an input's element, less a constant if that alone reads it: what a panel of
/// it holds.
fn held<'c>(nest: &Nest<'c>, input: usize) -> Option<Value<'c>> {
    use ops::arith::{CONSTANT, EXTF, EXTSI, EXTUI, SITOFP, SUBF, UITOFP};
    let reader = |value: Value<'c>| match value.uses()[..] {
        [only] if only.op.block() == Some(nest.body) => Some(only.op),
        _ => None,
    };
    let extends = |op: &Op| matches!(op.name(), EXTF | EXTSI | EXTUI | SITOFP | UITOFP);
    let wide = reader(nest.body.arg(input)).filter(extends)?.result(0);
    let lessens = |op: &Op| {
        let constant = op.is(SUBF).then(|| op.operand(1).defining_op()).flatten();
        op.operand(0) == wide && constant.is_some_and(|constant| constant.is(CONSTANT))
    };
    Some(reader(wide).filter(lessens).map_or(wide, |op| op.result(0)))
}

/// Type of a panel's elements.
fn element<'c>(nest: &Nest<'c>, input: usize) -> Type<'c> {
    held(nest, input).map_or(nest.inputs[input].element(), |value| value.ty())
}

fn element_bytes(nest: &Nest, input: usize) -> i64 {
    element(nest, input).element_size_bytes().map_or(8, |bytes| bytes as i64)
}

/// Blocks of the panel's longest loop, such that a panel has at most `room` iterations; `None` where no block is small
/// enough.
pub(super) fn block(nest: &Nest, operand: &Operand, room: i64) -> Option<Option<(usize, i64)>> {
    let loops = panel_loops(nest, operand);
    let extents: Vec<i64> = loops.iter().map(|d| nest.loops[*d].extent).collect::<Option<_>>()?;
    let total = extents.iter().try_fold(1i64, |product, e| product.checked_mul(*e))?;
    if total <= room {
        return Some(None);
    }
    let fitting = |extent: &i64| room / (total / extent);
    let iterations = |extent: &i64| fitting(extent) * (total / extent);
    // The outermost loop of which blocks are about as long as of the best one: those inside of it stay whole.
    let most = extents.iter().map(iterations).max()?;
    let (dim, extent) = loops.iter().zip(&extents).find(|(_, extent)| 2 * iterations(extent) > most)?;
    let size = fitting(extent);
    // Whole squares of lanes, where they are transposed.
    let squares = size >= 16 || operand.access(*dim) == Access::Contiguous;
    let step = if squares { 16 } else { 1 };
    let size = size / step * step;
    // Equal blocks, where those are not much shorter: another one for the rest is all of the code once more.
    let shortest = (size / 2).max(size.min(MIN_BLOCK)).max(1);
    let equal = (shortest..=size).rev().find(|size| size % step == 0 && extent % size == 0);
    let size = equal.unwrap_or(size);
    (size > 0).then_some(Some((*dim, size)))
}

/// Iterations of all loops of a panel, of which one is cut to `size`.
fn iterations(nest: &Nest, operand: &Operand, cut: usize, size: i64) -> i64 {
    let extent = |d: usize| if d == cut { size } else { nest.loops[d].extent.unwrap_or(1) };
    panel_loops(nest, operand).into_iter().map(extent).product()
}

/// Whether a loop runs over rows that reuse the panel.
pub(super) fn is_row(nest: &Nest, row: usize, dim: usize, packed: &Operand) -> bool {
    let long = nest.loops[row].least() >= MIN_ROWS;
    row != dim && !nest.loops[row].reduction && !packed.uses(row) && long
}

/// The loops of a panel besides the vector loop, or the rows.
fn panel_loops(nest: &Nest, operand: &Operand) -> Vec<usize> {
    nest.reductions().into_iter().filter(|d| operand.uses(*d)).collect()
}

/// The panels of a nest.
pub(super) struct Panels<'c, 'a> {
    nest: &'a Nest<'c>,
    choice: &'a Choice,
    left: Option<Panel<'c>>,
    right: Option<Panel<'c>>,
    line: Option<Panel<'c>>,
}

/// A buffer in the kernel's entry block.
pub(super) struct Panel<'c> {
    pub(super) input: usize,
    /// The loops of its dimensions, without the vector loop.
    pub(super) loops: Vec<usize>,
    pub(super) buffer: Operand<'c>,
}

impl<'c, 'a> Panels<'c, 'a> {
    /// Allocates the panels.
    pub(super) fn new(e: &mut Emit<'c>, nest: &'a Nest<'c>, choice: &'a Choice) -> Self {
        let mut panels = Self { nest, choice, left: None, right: None, line: None };
        panels.line = choice.line.and_then(|line| line.packed).map(|input| {
            let extent = nest.loops[choice.dim].extent.expect("invariant: lines have known extents");
            let width = (extent + choice.lanes - 1) / choice.lanes * choice.lanes;
            panels.allocate(e, input, panel_loops(nest, &nest.inputs[input]), (nest::Panel::Line, width))
        });
        let Some(pack) = choice.pack else { return panels };
        panels.right = pack.right.map(|input| {
            let mut loops = panel_loops(nest, &nest.inputs[input]);
            panels.order(&mut loops);
            panels.allocate(e, input, loops, (nest::Panel::Vector(choice.dim), choice.registers * choice.lanes))
        });
        panels.left = pack.left.zip(choice.rows).map(|(input, (row, _))| {
            let source = &nest.inputs[input];
            let mut loops = panel_loops(nest, source);
            loops.insert(0, row);
            // Lines of the source are lines of the panel.
            loops.sort_by_key(|d| source.access(*d) == Access::Contiguous);
            panels.order(&mut loops);
            panels.allocate(e, input, loops, (nest::Panel::Rows, 1))
        });
        panels
    }

    /// Groups are the last loop of a panel.
    fn order(&self, loops: &mut [usize]) {
        let groups = self.choice.dots.map(|dots| dots.dim);
        loops.sort_by_key(|d| Some(*d) == groups);
    }

    /// The reduction that is cut, and the iterations of a block.
    pub(super) fn block(&self) -> Option<(usize, i64)> {
        self.choice.pack.and_then(|p| p.block)
    }

    /// The nest that reads the panels.
    pub(super) fn packed(&self) -> Nest<'c> {
        let mut packed = self.nest.clone();
        for panel in self.left.iter().chain(&self.right).chain(&self.line) {
            packed.inputs[panel.input] = panel.buffer.clone();
        }
        packed
    }

    /// A panel over `loops`, and lanes unless it is of rows.
    fn allocate(
        &self,
        e: &mut Emit<'c>,
        input: usize,
        loops: Vec<usize>,
        (kind, width): (nest::Panel, Width),
    ) -> Panel<'c> {
        let nest = self.nest;
        let width = Some(width).filter(|_| kind != nest::Panel::Rows);
        let extent = |d: &usize| match self.block() {
            Some((dim, size)) if dim == *d => size,
            _ => nest.loops[*d].extent.unwrap_or(1),
        };
        let mut shape: Vec<i64> = loops.iter().map(extent).chain(width).collect();
        // Groups lie side by side.
        shape.last_mut().into_iter().for_each(|last| *last *= self.choice.dots.map_or(1, |dots| dots.per));
        let entry = nest.op.ancestor(ops::func::FUNC).and_then(Op::body).expect("invariant: kernels are functions");
        let outside = e.b.point();
        e.b.set_point(InsertionPoint::Start(entry));
        let element = self.choice.dots.map_or_else(|| element(nest, input), |dots| dots.element(e));
        let spec =
            memref::alloca(e.loc, &[], Type::memref(&shape, element, None)).attr("alignment", Attr::i64(e.cx, 64));
        let value = e.create(spec).result(0);
        e.b.set_point(outside);
        // Within a block, the panel is indexed by the position in the block.
        let count = nest.loops.len();
        let within = |d: usize| if self.block().is_some_and(|(dim, _)| dim == d) { count } else { d };
        let dims: Vec<usize> = loops.iter().copied().map(within).collect();
        let (subscripts, held) = match &self.choice.dots {
            Some(dots) => (dots.subscripts(input, &dims, &loops, count), None),
            None => {
                let all = dims.into_iter().chain(width.map(|_| self.choice.dim));
                (all.map(|d| LinearForm::dim(d, count + OTHER_POSITIONS)).collect(), held(nest, input))
            }
        };
        let buffer = Operand::panel(value, subscripts, kind, held);
        Panel { input, loops, buffer }
    }

    /// Fills the left panel for `length` iterations from the block's position.
    pub(super) fn fill_left(&self, e: &mut Emit<'c>, at: &[Position<'c>], length: i64) {
        let Some(panel) = &self.left else { return };
        let fill = self.fill(panel, 1, length);
        if let Some(dots) = &self.choice.dots {
            return dots.fill_left(e, &fill, at);
        }
        let (along, outer) = panel.loops.split_last().expect("invariant: a left panel has rows");
        let lanes = if fill.source().access(*along) == Access::Contiguous { self.choice.lanes } else { 1 };
        let mut sizes = vec![lanes, 1];
        sizes.dedup();
        fill.outer(e, outer.iter().rev().copied().collect(), at.to_vec(), &mut |e, at| {
            fill.each(e, *along, &sizes, &at, &mut |e, at, step| {
                let value = fill.load(e, &at, *along, step);
                e.store(value, &panel.buffer, &at);
            });
        });
    }

    /// Fills the right panel for the `width` lanes at the position, of which `used` lie in memory, and for `length` iterations
    /// from the block's position.
    pub(super) fn fill_right(&self, e: &mut Emit<'c>, at: &[Position<'c>], (width, used): (Width, Width), length: i64) {
        let Some(panel) = &self.right else { return };
        let fill = self.fill(panel, width, length);
        if let Some(dots) = &self.choice.dots {
            return dots.fill_right(e, &fill, at, used);
        }
        let along = panel.loops.iter().copied().find(|d| fill.source().access(*d) == Access::Contiguous);
        let outer = panel.loops.iter().rev().copied().filter(|d| Some(*d) != along).collect();
        fill.outer(e, outer, at.to_vec(), &mut |e, at| fill.lanes(e, at, along));
    }

    /// Fills the panel of a line.
    pub(super) fn fill_line(&self, e: &mut Emit<'c>, at: &[Position<'c>]) {
        let Some(panel) = &self.line else { return };
        let fill = self.fill(panel, 1, 0);
        fill.outer(e, panel.loops.iter().rev().copied().collect(), at.to_vec(), &mut |e, at| fill.line(e, at));
    }

    fn fill<'p>(&'p self, panel: &'p Panel<'c>, width: Width, length: i64) -> Fill<'c, 'p> {
        let block = self.block().map(|(dim, _)| (dim, length));
        Fill { nest: self.nest, panel, dim: self.choice.dim, width, lanes: self.choice.lanes, block }
    }
}

/// How a panel is filled.
pub(super) struct Fill<'c, 'a> {
    pub(super) nest: &'a Nest<'c>,
    pub(super) panel: &'a Panel<'c>,
    /// The vector loop.
    dim: usize,
    pub(super) width: Width,
    pub(super) lanes: i64,
    /// The loop that is cut, and the length of this block.
    block: Option<(usize, i64)>,
}

impl<'c> Fill<'c, '_> {
    pub(super) fn source(&self) -> &Operand<'c> {
        &self.nest.inputs[self.panel.input]
    }

    /// What the panel holds of the `width` elements along `dim`.
    fn load(&self, e: &mut Emit<'c>, at: &[Position<'c>], dim: usize, width: Width) -> Value<'c> {
        self.load_short(e, at, dim, (width, width))
    }

    /// As [`Self::load`], where `used` lanes lie in memory.
    fn load_short(
        &self,
        e: &mut Emit<'c>,
        at: &[Position<'c>],
        dim: usize,
        (width, used): (Width, Width),
    ) -> Value<'c> {
        let value = e.load_short(self.source(), at, dim, (width, used));
        let Some(held) = self.panel.buffer.holds else { return value };
        let mut values = Values::from([(self.nest.body.arg(self.panel.input), value)]);
        body::emit(e, self.nest, Place { at, dim, width }, &mut values, &[held])[0]
    }

    /// The loops of `order`, the last one outermost.
    pub(super) fn outer(
        &self,
        e: &mut Emit<'c>,
        mut order: Vec<usize>,
        at: Vec<Position<'c>>,
        body: &mut dyn FnMut(&mut Emit<'c>, Vec<Position<'c>>),
    ) {
        let Some(dim) = order.pop() else { return body(e, at) };
        self.each(e, dim, &[1], &at, &mut |e, at, _| self.outer(e, order.clone(), at, body));
    }

    /// All lanes of some rows of the right panel.
    fn lanes(&self, e: &mut Emit<'c>, at: Vec<Position<'c>>, along: Option<usize>) {
        let Some(along) = along else { return self.single(e, &at) };
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
        self.each_but(e, (dim, 0), sizes, at, body);
    }

    /// As [`Self::each`], without the last `rest` iterations of a loop of known extent.
    pub(super) fn each_but(
        &self,
        e: &mut Emit<'c>,
        (dim, rest): (usize, i64),
        sizes: &[i64],
        at: &[Position<'c>],
        body: &mut dyn FnMut(&mut Emit<'c>, Vec<Position<'c>>, i64),
    ) {
        let mut l = self.nest.loops[dim];
        let blocked = self.block.filter(|(cut, _)| *cut == dim);
        l.extent = blocked.map_or(l.extent, |(_, length)| Some(length)).map(|extent| extent - rest);
        for segment in e.segments(&l, sizes) {
            e.for_each(segment, &[], &mut |e, here, _| {
                let at = within(e, at, dim, here, blocked.is_some());
                body(e, at, segment.step);
                vec![]
            });
        }
    }

    /// One row of a line's panel: registers, of which the last may begin in the one before it; a line that is shorter than a
    /// register is one.
    fn line(&self, e: &mut Emit<'c>, mut at: Vec<Position<'c>>) {
        let extent = self.nest.loops[self.dim].extent.expect("invariant: lines have known extents");
        let width = short_width(self.lanes, extent);
        for first in (0..extent).step_by(width as usize) {
            at[self.dim] = Position::at(first.min((extent - width).max(0)));
            let value = self.load_short(e, &at, self.dim, (width, width.min(extent)));
            e.store_panel(value, &self.panel.buffer, &at);
        }
    }

    /// The position of a loop within the panel: that within its block, if it is cut.
    pub(super) fn relative(&self, dim: usize) -> usize {
        if self.block.is_some_and(|(cut, _)| cut == dim) { self.nest.loops.len() } else { dim }
    }

    /// Copies one row of the panel: as a vector, or lane by lane.
    fn single(&self, e: &mut Emit<'c>, at: &[Position<'c>]) {
        let vector = if is_whole(self.width) { self.width } else { self.lanes };
        let width = if self.source().access(self.dim) == Access::Contiguous { vector } else { 1 };
        let lanes = Segment { from: Bound::Static(0), to: Bound::Static(self.width), step: width };
        e.for_each(lanes, &[], &mut |e, lane, _| {
            let mut from = at.to_vec();
            from[self.dim] = e.sum(at[self.dim], lane);
            let value = self.load(e, &from, self.dim, width);
            let mut to = at.to_vec();
            to[self.dim] = lane;
            e.store_panel(value, &self.panel.buffer, &to);
            vec![]
        });
    }

    /// Copies as many rows of the panel as a register has lanes: squares are transposed in registers, by one copy of the shuffles,
    /// which LLVM takes long to select.
    fn squares(&self, e: &mut Emit<'c>, at: &[Position<'c>], along: usize) {
        let row = self.relative(along);
        let squares = Segment { from: Bound::Static(0), to: Bound::Static(self.width), step: self.lanes };
        e.for_each(squares, &[], &mut |e, first, _| {
            let mut from = at.to_vec();
            from[self.dim] = e.sum(at[self.dim], first);
            let rows = (0..self.lanes).map(|row| {
                let mut from = from.clone();
                from[self.dim] = from[self.dim].plus(row);
                self.load(e, &from, along, self.lanes)
            });
            let rows: Vec<Value> = rows.collect();
            for (k, column) in transpose(e, rows).into_iter().enumerate() {
                let mut to = at.to_vec();
                to[row] = to[row].plus(k as i64);
                to[self.dim] = first;
                e.store_panel(column, &self.panel.buffer, &to);
            }
            vec![]
        });
    }
}

/// Whether LLVM has one vector of so many lanes: those of other widths it takes apart.
pub(super) fn is_whole(width: Width) -> bool {
    width.count_ones() == 1
}

/// Lanes of the registers of a line: fewer where one register of fewer holds it.
pub(super) fn short_width(lanes: i64, extent: i64) -> Width {
    u64::try_from(extent).map_or(lanes, |extent| lanes.min(extent.next_power_of_two() as i64))
}

/// Positions besides those of the loops: that within a block, and the first lane of a vector within a panel of groups.
pub(super) const OTHER_POSITIONS: usize = 2;

/// Positions at iteration `here` of a loop, relative to its block if it is cut.
pub(super) fn within<'c>(
    e: &mut Emit<'c>,
    at: &[Position<'c>],
    dim: usize,
    here: Position<'c>,
    blocked: bool,
) -> Vec<Position<'c>> {
    let mut at = at.to_vec();
    if blocked {
        at[dim] = e.sum(at[dim], here);
        let relative = at.len() - OTHER_POSITIONS;
        at[relative] = here;
    } else {
        at[dim] = here;
    }
    at
}

/// Transposes a square of vectors: swaps blocks of half the size, then recurses into them. Short vectors are interleaved
/// instead, for which x86 has an instruction for elements of any size.
pub(super) fn transpose<'c>(e: &mut Emit<'c>, mut rows: Vec<Value<'c>>) -> Vec<Value<'c>> {
    let lanes = rows.len();
    if rows[0].ty().element().element_size_bytes() == Some(1) && lanes == INTERLEAVED_BYTES {
        return interleave(e, rows);
    }
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

/// Transposes a square of vectors: interleaves each of the first half with one of the second, as often as that takes.
fn interleave<'c>(e: &mut Emit<'c>, mut rows: Vec<Value<'c>>) -> Vec<Value<'c>> {
    let lanes = rows.len();
    let from = |first: usize| (first..first + lanes / 2).flat_map(|lane| [lane as i64, (lane + lanes) as i64]);
    let [low, high]: [Vec<i64>; 2] = [0, lanes / 2].map(|first| from(first).collect());
    for _ in 0..lanes.ilog2() {
        let pairs = (0..lanes / 2).map(|i| (rows[i], rows[i + lanes / 2]));
        rows = pairs.flat_map(|(a, b)| [e.shuffle(a, b, &low), e.shuffle(a, b, &high)]).collect();
    }
    rows
}
