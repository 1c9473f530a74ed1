//! Memory layout of operands, by rows and columns.
//!
//! Operands of one form are the same element at the same row and column, whatever the ops' own loops are: an op reads what
//! another wrote from its register.

use super::super::code::{Code, facts, gcd};
use super::super::evaluate::Evaluator;
use super::super::model::{Base, Model, Operand, Size, Source};
use super::super::strategy::Declined;
use super::super::stride::{Linear, Stride};
use super::{Axis, Kind, Step, Sweep};
use monopour_ir::ops;
use monopour_ir::{Type, Value};

/// A linear access to a buffer.
#[derive(Clone, Debug)]
pub(super) struct Form<'c> {
    pub(super) base: Base,
    /// First element.
    pub(super) offset: Value<'c>,
    pub(super) constant: i64,
    /// Stride in elements per row dimension and per column axis.
    pub(super) rows: Vec<Stride<'c>>,
    pub(super) columns: Vec<Stride<'c>>,
    pub(super) element: Type<'c>,
    pub(super) element_bytes: Option<u64>,
}

/// All forms of a kernel, without duplicates.
#[derive(Default)]
pub(super) struct Forms<'c> {
    pub(super) all: Vec<Form<'c>>,
}

impl<'c> Form<'c> {
    /// The form of an operand; `None` for a scalar.
    pub(super) fn of(
        model: &Model<'c>,
        operand: &Operand<'c>,
        row_loops: &[usize],
        column_loops: &[usize],
        columns: usize,
    ) -> Result<Option<Self>, Declined> {
        let Source::Slice(slice) = operand.source else { return Ok(None) };
        let Linear { factors: strides, constant } = operand.linear.as_ref().ok_or(Declined::OperandNotLinear)?;
        let at = &model.slices[slice];
        let mut along_columns: Vec<Stride> = column_loops.iter().map(|l| strides[*l]).collect();
        along_columns.resize(columns, Stride::ZERO);
        Ok(Some(Self {
            base: at.base,
            offset: at.offset,
            constant: *constant,
            rows: row_loops.iter().map(|l| strides[*l]).collect(),
            columns: along_columns,
            element: at.element,
            element_bytes: at.element.element_size_bytes(),
        }))
    }

    fn same(&self, other: &Form<'c>) -> bool {
        self.base == other.base
            && self.constant == other.constant
            && self.rows == other.rows
            && self.columns == other.columns
            && same_index(self.offset, other.offset)
    }

    /// Whether it has one element per row.
    pub(super) fn is_narrow(&self) -> bool {
        self.columns.iter().all(|s| s.is(0))
    }
    /// Whether all rows read the same elements.
    pub(super) fn is_row_invariant(&self) -> bool {
        self.rows.iter().all(|s| s.is(0))
    }

    /// Whether `lanes` neighbours of a row are one aligned access, of whole words.
    pub(super) fn is_wide(&self, evaluator: &Evaluator<'c, '_>, axes: &[Axis<'c>], lanes: u32) -> bool {
        let words = self.element_bytes.is_none_or(|bytes| bytes * u64::from(lanes) % 4 == 0);
        words && self.is_aligned(evaluator, axes, (1, self.constant), lanes)
    }

    /// Whether every second element is one of `lanes` neighbours of a row: those of an aligned access and of the next one.
    pub(super) fn is_paired(&self, evaluator: &Evaluator<'c, '_>, axes: &[Axis<'c>], lanes: u32) -> bool {
        matches!(self.constant, 0 | 1)
            && matches!(lanes, 2 | 4)
            && self.element_bytes == Some(4)
            && self.is_aligned(evaluator, axes, (2, 0), lanes)
    }

    /// Whether neighbours of a row are `stride` elements apart, and `lanes` of them begin at multiples of so many strides.
    fn is_aligned(
        &self,
        evaluator: &Evaluator<'c, '_>,
        axes: &[Axis<'c>],
        (stride, constant): (i64, i64),
        lanes: u32,
    ) -> bool {
        let Some((&last, others)) = self.columns.split_last() else { return false };
        let others = others.iter().chain(&self.rows).fold(constant, |d, s| gcd(d, s.divisor()));
        let all = gcd(gcd(others, facts(self.offset).divisor), evaluator.elements(self.base));
        let extent = axes.last().map_or(1, |a| a.extent.unwrap_or(a.size.facts.divisor));
        last.is(stride) && gcd(all, extent.saturating_mul(stride)) % (i64::from(lanes) * stride) == 0
    }
}

impl<'c> Forms<'c> {
    pub(super) fn intern(&mut self, form: Form<'c>) -> usize {
        if let Some(found) = self.all.iter().position(|f| f.same(&form)) {
            return found;
        }
        self.all.push(form);
        self.all.len() - 1
    }

    /// Merges column dimensions that collapse to one in every form, unless `indexed`: a body has their `linalg.index`.
    pub(super) fn merge_columns(&mut self, columns: &[Size<'c>], indexed: bool) -> Vec<Axis<'c>> {
        let mut axes: Vec<Axis> = Vec::new();
        // The last dimension of each axis.
        let mut kept: Vec<usize> = Vec::new();
        for (d, size) in columns.iter().enumerate() {
            let merges = d > 0
                && !indexed
                && size.exact().is_some_and(|e| {
                    let collapses =
                        |f: &Form| f.columns[d - 1].exact().zip(f.columns[d].exact()).is_some_and(|(o, i)| o == i * e);
                    self.all.iter().all(collapses)
                });
            match axes.last_mut() {
                Some(axis) if merges && axis.extent.is_some() => {
                    axis.extent = axis.extent.zip(size.exact()).map(|(a, b)| a * b);
                    axis.size = *size;
                    *kept.last_mut().expect("invariant: an axis has a dimension") = d;
                }
                _ => {
                    axes.push(Axis { size: *size, extent: size.exact() });
                    kept.push(d);
                }
            }
        }
        for form in &mut self.all {
            form.columns = kept.iter().map(|d| form.columns[*d]).collect();
        }
        axes
    }

    /// Whether neighbours in memory belong to different rows.
    pub(super) fn rows_are_strided(&self) -> bool {
        let along = |strides: &[Stride]| strides.iter().any(|s| s.is(1));
        let wide = || self.all.iter().filter(|f| !f.is_narrow());
        wide().any(|f| along(&f.rows)) && !wide().any(|f| along(&f.columns))
    }

    /// Forms that ops of a kind write.
    pub(super) fn written<'a>(&'a self, steps: &'a [Step<'c, '_>], kind: Kind) -> impl Iterator<Item = &'a Form<'c>> {
        steps.iter().filter(move |s| s.kind == kind).flat_map(|s| &s.writes).map(|f| &self.all[*f])
    }

    /// Most wide forms that are live across sweeps, and whether any of them is a local buffer.
    pub(super) fn live_across(&self, steps: &[Step<'c, '_>], sweeps: &[Sweep]) -> (i64, bool) {
        let reads = |s: &usize, form: usize| steps[*s].reads.contains(&Some(form));
        let touches = |s: &usize, form: usize| reads(s, form) || steps[*s].writes.contains(&form);
        let (mut most, mut local) = (0, false);
        for end in 1..sweeps.len() {
            let live = (0..self.all.len()).filter(|f| {
                let form = &self.all[*f];
                !form.is_narrow()
                    && !form.is_row_invariant()
                    && sweeps[..end].iter().any(|sweep| sweep.body.iter().any(|s| touches(s, *f)))
                    && sweeps[end..].iter().any(|sweep| sweep.body.iter().any(|s| reads(s, *f)))
            });
            let live: Vec<usize> = live.collect();
            local |= live.iter().any(|f| matches!(self.all[*f].base, Base::Local(_)));
            most = most.max(live.len() as i64);
        }
        (most, local)
    }
}

/// Whether two indices are one value, or the same arithmetic on the same values.
fn same_index(a: Value, b: Value) -> bool {
    if a == b || a.constant_int().is_some_and(|c| b.constant_int() == Some(c)) {
        return true;
    }
    let (Some(x), Some(y)) = (a.defining_op(), b.defining_op()) else { return false };
    x.name() == y.name()
        && x.dialect() == "arith"
        && !x.is(ops::arith::CONSTANT)
        && x.num_operands() == y.num_operands()
        && x.operands().into_iter().zip(y.operands()).all(|(a, b)| same_index(a, b))
}

/// Without the extents that are 1.
pub(super) fn stripped<'c>(sizes: &[Size<'c>]) -> Vec<Size<'c>> {
    sizes.iter().copied().filter(|s| s.exact() != Some(1)).collect()
}

pub(super) fn same_sizes(a: &[Size], b: &[Size]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.same(b))
}

/// Every second element from `index` on, which is `first` behind an aligned vector, of two vectors.
pub(super) fn every_second<'c>(
    code: &mut Code<'c, '_>,
    buffer: Value<'c>,
    (index, first): (Value<'c>, i64),
    lanes: u32,
) -> Value<'c> {
    let low = code.add_const(index, -first);
    let high = code.add_const(low, i64::from(lanes));
    let halves = [low, high].map(|at| code.load(buffer, at, lanes));
    let elements = halves.map(|half| (first as u32..lanes).step_by(2).map(|lane| code.extract(half, lane)).collect());
    let elements: [Vec<Value>; 2] = elements;
    code.vector_of(&elements.concat())
}
