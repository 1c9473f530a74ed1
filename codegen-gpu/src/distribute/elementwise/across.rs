//! Inputs that a pointwise tile reads across its rows: copied through workgroup memory, so that neighbours read
//! neighbours.
//!
//! Before: invocation `l` loads `x[j, i]` of element `(i, j)`, each neighbour from another line of memory.
//! After: `copy of x[j, i], neighbours along i; barrier;` and loads from the copy, neighbours along j.
//! Requires: one pointwise group whose tile has two extents of more than one element, the last and the one that is
//! contiguous in the inputs; each such input is read by one operand, and written by none.
//! Ensures: rows of a copy are one element longer than the tile's, so that its columns lie in different banks.

use super::super::code::Code;
use super::super::evaluate::{Evaluator, Reach};
use super::super::fitted::FittedChoice;
use super::super::groups::Group;
use super::super::locals;
use super::super::model::{Base, Operand, Size, Source, TileOp};
use super::super::stride::Stride;
use super::super::types::is_vector_float;
use monopour_ir::{Diagnostics, Op, Value};
use monopour_program::GpuDescription;
use std::collections::HashMap;

/// An input that is read across: its op, operand and slice.
#[derive(Clone, Copy, Debug)]
struct Input {
    op: usize,
    operand: usize,
    slice: usize,
}

/// The inputs that are read across, and the tile.
#[derive(Clone, Debug)]
pub(super) struct Across<'c> {
    inputs: Vec<Input>,
    /// The coordinate along which the inputs are contiguous, and its extent; the extent of the last coordinate.
    turned: usize,
    down: Size<'c>,
    along: Size<'c>,
    rank: usize,
    /// Elements of a copy, and of one of its rows.
    elements: i64,
    pitch: i64,
}

impl<'c> Across<'c> {
    /// The inputs of a group, if it has some that fit in workgroup memory.
    pub(super) fn of(
        evaluator: &Evaluator<'c, '_>,
        groups: &[Group<'c>],
        kernel: &FittedChoice,
        device: &GpuDescription,
    ) -> Option<Self> {
        let [group] = groups else { return None };
        let ops: Vec<&TileOp> = group.ops.iter().map(|i| &evaluator.model.ops[*i]).collect();
        let is_plain = |op: &&TileOp| op.outer.is_some() && op.inner().is_empty() && op.gathered.is_empty();
        if !kernel.staged || group.serial || !ops.iter().all(is_plain) {
            return None;
        }
        let last = group.sizes.len().checked_sub(1)?;
        let mut found: Vec<(Input, usize)> = vec![];
        for (at, op) in group.ops.iter().zip(&ops) {
            for operand in (0..op.num_inputs).filter(|i| op.reads(*i)) {
                if let Some((slice, turned)) = across(op, &op.operands[operand], last) {
                    found.push((Input { op: *at, operand, slice }, turned));
                }
            }
        }
        let (_, turned) = *found.first()?;
        let inputs: Vec<Input> = found.iter().filter(|(_, t)| *t == turned).map(|(input, _)| *input).collect();
        let (down, along) = (group.sizes[turned], group.sizes[last]);
        let is_other = |(d, size): (usize, &Size)| d == turned || d == last || size.exact() == Some(1);
        let pitch = along.facts.bound? + 1;
        let elements = down.facts.bound?.checked_mul(pitch)?;
        let bytes = |input: &Input| {
            let element = evaluator.model.slices[input.slice].element;
            locals::rounded(elements as u64 * element.element_size_bytes().unwrap_or(4).max(4)).unwrap_or(u64::MAX >> 8)
        };
        let fits = inputs.iter().map(bytes).sum::<u64>() <= u64::from(device.limits.max_workgroup_storage_bytes);
        let is_tile = group.sizes.iter().enumerate().all(is_other) && elements > 0;
        let is_alone = inputs.iter().all(|input| is_read_once(evaluator, &ops, input));
        let rank = group.sizes.len();
        (fits && is_tile && is_alone).then_some(Self { inputs, turned, down, along, rank, elements, pitch })
    }

    /// Copies the inputs; returns the copies by slice.
    pub(super) fn copy(
        &self,
        code: &mut Code<'c, '_>,
        func: Op<'c>,
        evaluator: &Evaluator<'c, '_>,
        (linear, invocations): (Value<'c>, i64),
    ) -> Result<HashMap<usize, Value<'c>>, Diagnostics> {
        let mut copies = HashMap::new();
        for input in &self.inputs {
            let element = evaluator.model.slices[input.slice].element;
            copies.insert(input.slice, code.workgroup_buffer(func.location(), element, self.elements)?);
        }
        let total = code.mul(self.down.value, self.along.value);
        let rounds = code.ceil_div_const(total, invocations);
        code.repeat(rounds, |code, round| {
            let start = code.mul_const(round, invocations);
            let item = code.add(start, linear);
            let exact = total.constant_int().is_some_and(|t| t % invocations == 0);
            let some = (!exact).then(|| code.less(item, total));
            code.guarded(some, |code| {
                let (row, column) = (code.rem(item, self.down.value), code.div(item, self.down.value));
                let mut coordinates = vec![code.c(0); self.rank];
                (coordinates[self.turned], coordinates[self.rank - 1]) = (row, column);
                let to = self.place(code, &coordinates);
                for input in &self.inputs {
                    let op = &evaluator.model.ops[input.op];
                    let loops = loops(code, op, &coordinates);
                    let from = evaluator.linear_index(code, &op.operands[input.operand], input.slice, &loops);
                    let value = evaluator.load(code, input.slice, from, Reach::Uniform, 1);
                    code.store(value, copies[&input.slice], to)?;
                }
                Ok(())
            })
        })?;
        code.barrier()?;
        Ok(copies)
    }

    /// The values of the copies at a point, by slice.
    pub(super) fn load(
        &self,
        code: &mut Code<'c, '_>,
        copies: &HashMap<usize, Value<'c>>,
        coordinates: &[Value<'c>],
    ) -> HashMap<usize, Value<'c>> {
        let at = self.place(code, coordinates);
        self.inputs.iter().map(|input| (input.slice, code.load(copies[&input.slice], at, 1))).collect()
    }

    /// The position in a copy. A coordinate of extent 1 may carry that of the dimension before it, with which it is one
    /// axis.
    fn place(&self, code: &mut Code<'c, '_>, coordinates: &[Value<'c>]) -> Value<'c> {
        let mut row = code.c(0);
        for coordinate in &coordinates[self.turned..self.rank - 1] {
            row = code.add(row, *coordinate);
        }
        let row = code.mul_const(row, self.pitch);
        code.add(row, coordinates[self.rank - 1])
    }
}

/// The values of an op's loops at a point of a pointwise group.
fn loops<'c>(code: &mut Code<'c, '_>, op: &TileOp<'c>, coordinates: &[Value<'c>]) -> Vec<Value<'c>> {
    let mut out = vec![code.c(0); op.sizes.len()];
    for (coordinate, l) in coordinates.iter().zip(op.outer.iter().flatten()) {
        out[*l] = *coordinate;
    }
    out
}

/// The slice of an operand in an argument that is contiguous along another coordinate than the last one, and that
/// coordinate.
fn across(op: &TileOp, operand: &Operand, last: usize) -> Option<(usize, usize)> {
    let (Source::Slice(slice), Some(linear), Some(outer)) = (operand.source, &operand.linear, &op.outer) else {
        return None;
    };
    let factor = |coordinate: usize| outer.get(coordinate).map_or(Stride::ZERO, |l| linear.factors[*l]);
    let turned = (0..last).find(|coordinate| factor(*coordinate).is(1))?;
    (![Some(0), Some(1)].contains(&factor(last).exact())).then_some((slice, turned))
}

/// Whether nothing else accesses an input, and vectors could have its elements.
fn is_read_once(evaluator: &Evaluator<'_, '_>, ops: &[&TileOp], input: &Input) -> bool {
    let slices = &evaluator.model.slices;
    let (base, element) = (slices[input.slice].base, slices[input.slice].element);
    let is_same = |o: &&Operand| matches!(o.source, Source::Slice(s) if slices[s].base == base);
    let accesses = ops.iter().flat_map(|op| &op.operands).filter(is_same).count();
    let is_value = is_vector_float(element) || element.integer_width() == Some(32);
    accesses == 1 && is_value && matches!(base, Base::Argument(_))
}
