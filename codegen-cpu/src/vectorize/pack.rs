//! An input that is strided along the vector loop is copied, a panel at a time, into a buffer of the kernel where it is contiguous.
//!
//! ```text
//! for j (W lanes at a time):
//!   for k: panel[k, 0 .. W] = b[j .. j + W, k]        // b^T in the order in which the product reads it
//!   for i, k: acc[i] += a[i, k] * panel[k, 0 .. W]
//! ```
//!
//! Limits: known extents, panels of up to [`MAX_PANEL_BYTES`], read by at least [`MIN_ROWS`] rows.

use super::choose::Choice;
use super::emit::{Bound, Emit, Position, Segment, Width};
use super::nest::{Access, Nest, Operand, Subscript};
use monopour_ir::{Attr, InsertionPoint, Op, OpSpec, Type, Value};

/// What goes to the stack of a task without harm.
const MAX_PANEL_BYTES: i64 = 64 << 10;
/// Fewer rows do not pay for the copy.
const MIN_ROWS: i64 = 8;
/// The widest panel.
const MAX_REGISTERS: i64 = 2;

/// The input that is worth packing for vectors of `lanes` elements along `dim`.
pub(super) fn candidate(nest: &Nest, dim: usize, lanes: i64) -> Option<usize> {
    let strided = |i: &usize| nest.inputs[*i].access(dim) == Access::Strided;
    let mut inputs = (0..nest.inputs.len()).filter(strided);
    let input = inputs.next().filter(|_| inputs.next().is_none())?;
    let operand = &nest.inputs[input];
    let bare = operand.subscripts.iter().all(|s| s.bare().is_some());
    let sums: i64 = panel_loops(nest, operand).iter().map(|d| nest.loops[*d].extent).product::<Option<i64>>()?;
    let bytes = sums.checked_mul(lanes * MAX_REGISTERS)?.checked_mul(operand.element().element_size_bytes()? as i64)?;
    let rows = (0..nest.loops.len()).any(|d| is_row(nest, d, dim, operand));
    (bare && rows && bytes <= MAX_PANEL_BYTES && !nest.reductions().is_empty()).then_some(input)
}

/// Whether a loop runs over rows that read the panel again.
pub(super) fn is_row(nest: &Nest, row: usize, dim: usize, packed: &Operand) -> bool {
    let long = nest.loops[row].extent.is_some_and(|e| e >= MIN_ROWS);
    row != dim && !nest.loops[row].reduction && !packed.uses(row) && long
}

/// The loops of a panel besides the vector loop.
fn panel_loops(nest: &Nest, operand: &Operand) -> Vec<usize> {
    nest.reductions().into_iter().filter(|d| operand.uses(*d)).collect()
}

/// The buffer of a nest's panels, in the kernel's entry block.
pub(super) fn buffer(e: &mut Emit, nest: &Nest, choice: &Choice) -> Option<Operand> {
    let operand = &nest.inputs[choice.pack?];
    let loops = panel_loops(nest, operand);
    let mut shape: Vec<i64> = loops.iter().map(|d| nest.loops[*d].extent.unwrap_or(1)).collect();
    shape.push(choice.registers * choice.lanes);
    let entry = nest.op.ancestor("func.func").and_then(Op::body)?;
    let outside = e.b.point();
    e.b.set_point(InsertionPoint::Start(entry));
    let spec = OpSpec::new("memref.alloca", e.loc)
        .results(&[Type::memref(&shape, operand.element(), None)])
        .attr("operandSegmentSizes", Attr::dense_i32(e.cx, &[0, 0]))
        .attr("alignment", Attr::i64(e.cx, 64));
    let value = e.create(spec).result(0);
    e.b.set_point(outside);
    let count = nest.loops.len();
    let subscripts = loops.into_iter().chain([choice.dim]).map(|d| Subscript::of_loop(d, count)).collect();
    Some(Operand::panel(value, subscripts, choice.dim))
}

/// Fills the panel for the lanes from `at[dim]` on.
pub(super) fn fill(e: &mut Emit, nest: &Nest, choice: &Choice, panel: &Operand, at: &[Position], width: Width) {
    let Some(input) = choice.pack else { return };
    let source = &nest.inputs[input];
    let loops = panel_loops(nest, source);
    let along = loops.iter().copied().find(|d| source.access(*d) == Access::Contiguous);
    let fill = Fill { nest, source, panel, dim: choice.dim, width, lanes: choice.lanes, along };
    fill.outer(e, loops.into_iter().filter(|d| Some(*d) != along).collect(), at.to_vec());
}

struct Fill<'a> {
    nest: &'a Nest,
    source: &'a Operand,
    panel: &'a Operand,
    dim: usize,
    width: Width,
    lanes: i64,
    /// The loop along which the source is contiguous.
    along: Option<usize>,
}

impl Fill<'_> {
    fn outer(&self, e: &mut Emit, mut order: Vec<usize>, at: Vec<Position>) {
        let Some(dim) = order.pop() else { return self.inner(e, at) };
        let segment = e.whole(&self.nest.loops[dim]);
        e.for_each(segment, &[], &mut |e, here, _| {
            let mut at = at.clone();
            at[dim] = here;
            self.outer(e, order.clone(), at);
            vec![]
        });
    }

    fn inner(&self, e: &mut Emit, at: Vec<Position>) {
        let Some(along) = self.along else { return self.single(e, &at) };
        let square = if self.width % self.lanes == 0 { self.lanes } else { 1 };
        let mut sizes = vec![square, 1];
        sizes.dedup();
        for segment in e.segments(&self.nest.loops[along], &sizes) {
            e.for_each(segment, &[], &mut |e, here, _| {
                let mut at = at.clone();
                at[along] = here;
                if segment.step == 1 {
                    self.single(e, &at);
                } else {
                    self.squares(e, &at, along);
                }
                vec![]
            });
        }
    }

    /// The lanes of one row of the panel, one after the other.
    fn single(&self, e: &mut Emit, at: &[Position]) {
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

    /// As many rows of the panel as a register has lanes: squares are transposed in registers.
    fn squares(&self, e: &mut Emit, at: &[Position], along: usize) {
        for first in (0..self.width).step_by(self.lanes as usize) {
            let rows = (0..self.lanes).map(|row| {
                let mut at = at.to_vec();
                at[self.dim] = at[self.dim].plus(first + row);
                e.load(self.source, &at, along, self.lanes)
            });
            let rows: Vec<Value> = rows.collect();
            for (k, column) in transpose(e, rows).into_iter().enumerate() {
                let mut to = at.to_vec();
                to[along] = to[along].plus(k as i64);
                to[self.dim] = Position::at(first);
                e.store_panel(column, self.panel, &to);
            }
        }
    }
}

/// The columns of a square of as many vectors as each has lanes: squares of half the size change places, then those within them.
fn transpose(e: &mut Emit, mut rows: Vec<Value>) -> Vec<Value> {
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
