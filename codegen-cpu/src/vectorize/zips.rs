//! The form of a pointwise op whose innermost loop has a few iterations, as that over the numbers in a byte.
//!
//! ```text
//! for .., for i (L lanes at a time):
//!   part[n] = body(in[i .. i + L, n])          // for each n of the innermost loop, along i
//!   out[i .. i + L, 0 .. N] = part[0], part[1], .. in turn
//! ```
//!
//! Each part is a copy of the body in which the innermost loop's position is a constant.

use super::body::{self, Place, Values};
use super::choose::{Choice, Declined, bits_along};
use super::emit::{Emit, Position, Width};
use super::form::Form;
use super::nest::{Access, Nest};
use monopour_ir::Value;
use monopour_program::CpuTarget;

/// The form.
pub(super) struct Zips;

impl Form for Zips {
    fn plan(&self, nest: &Nest, cpu: &CpuTarget) -> Result<Choice, Declined> {
        let (dim, _) = loops(nest).ok_or(Declined::NotAsked)?;
        let lanes = i64::from(cpu.vector_bits) / bits_along(nest, dim);
        let long = nest.loops[dim].extent.is_none_or(|extent| extent >= lanes);
        let updates = nest.outputs.iter().enumerate().any(|(i, _)| !nest.output_arg(i).is_unused());
        let scattered = nest.inputs.iter().any(|o| o.access(dim) == Access::Strided);
        if lanes < 2 || !long || updates || scattered {
            return Err(Declined::NotAsked);
        }
        Ok(Choice::vectors(dim, lanes, 1, cpu))
    }

    fn updates_in_blocks(&self, _: &Choice) -> bool {
        false
    }

    fn write<'c>(&self, e: &mut Emit<'c>, nest: &Nest<'c>, choice: &Choice) {
        let (dim, inner) = loops(nest).expect("invariant: the plan found them");
        let order = (0..nest.loops.len()).rev().filter(|d| *d != dim && *d != inner).collect();
        let mut at = vec![Position::at(0); nest.loops.len()];
        Zip { nest, dim, inner, lanes: choice.lanes }.outer(e, order, &mut at);
    }
}

/// The vector loop, and the innermost loop of two or four iterations whose elements lie between its.
fn loops(nest: &Nest) -> Option<(usize, usize)> {
    let inner = nest.loops.len().checked_sub(1)?;
    let count = nest.loops[inner].extent.filter(|extent| matches!(extent, 2 | 4))?;
    let all = |d: usize, access: Access| nest.outputs.iter().all(|o| o.access(d) == access);
    if !nest.reductions().is_empty() || !all(inner, Access::Contiguous) {
        return None;
    }
    (0..inner).rev().find(|d| all(*d, Access::Interleaved(count))).map(|dim| (dim, inner))
}

struct Zip<'c, 'a> {
    nest: &'a Nest<'c>,
    dim: usize,
    inner: usize,
    lanes: i64,
}

impl<'c> Zip<'c, '_> {
    fn outer(&self, e: &mut Emit<'c>, mut order: Vec<usize>, at: &mut [Position<'c>]) {
        let Some(dim) = order.pop() else { return self.along(e, at) };
        let segment = e.whole(&self.nest.loops[dim]);
        e.for_each(segment, &[], &mut |e, here, _| {
            at[dim] = here;
            self.outer(e, order.clone(), at);
            vec![]
        });
    }

    fn along(&self, e: &mut Emit<'c>, at: &[Position<'c>]) {
        for segment in e.segments(&self.nest.loops[self.dim], &[self.lanes, 1]) {
            e.for_each(segment, &[], &mut |e, here, _| {
                let mut at = at.to_vec();
                at[self.dim] = here;
                self.store(e, &at, segment.step);
                vec![]
            });
        }
    }

    /// The elements of `width` iterations.
    fn store(&self, e: &mut Emit<'c>, at: &[Position<'c>], width: Width) {
        let count = self.nest.loops[self.inner].extent.expect("invariant: a few iterations");
        let parts: Vec<Vec<Value>> = (0..count).map(|n| self.part(e, at, n, width)).collect();
        for (i, output) in self.nest.outputs.iter().enumerate() {
            let mut parts: Vec<Value> = parts.iter().map(|values| values[i]).collect();
            while parts.len() > 1 {
                let half = parts.len() / 2;
                parts = (0..half).map(|n| e.interleave([parts[n], parts[n + half]])).collect();
            }
            e.store(parts[0], output, at);
        }
    }

    /// What the body yields along the vector loop, at iteration `n` of the innermost one.
    fn part(&self, e: &mut Emit<'c>, at: &[Position<'c>], n: i64, width: Width) -> Vec<Value<'c>> {
        let mut at = at.to_vec();
        at[self.inner] = Position::at(n);
        let mut values = Values::new();
        for (i, input) in self.nest.inputs.iter().enumerate() {
            let arg = self.nest.body.arg(i);
            if !arg.is_unused() {
                values.insert(arg, e.load(input, &at, self.dim, width));
            }
        }
        let place = Place { at: &at, dim: self.dim, width };
        let yielded = body::emit(e, self.nest, place, &mut values, &self.nest.yielded());
        yielded.into_iter().map(|v| e.splat(v, width)).collect()
    }
}
