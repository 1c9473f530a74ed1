//! Ops of the dialect `scf`.

use super::Index;
use super::index::{numbers, operands, read, values};
use crate::{Location, OpSpec, Region, Type, Value, ops};
use std::ops::Range;

view! {
    /// `scf.forall`.
    ForAll, ops::scf::FORALL
}

impl<'c> ForAll<'c> {
    /// The lower bounds; `None` if the op is malformed.
    pub fn lower_bounds(self) -> Option<Vec<Index<'c>>> {
        read(self.0, "staticLowerBound", 0)
    }
    /// The upper bounds; `None` if the op is malformed.
    pub fn upper_bounds(self) -> Option<Vec<Index<'c>>> {
        read(self.0, "staticUpperBound", 1)
    }
    /// The steps; `None` if the op is malformed.
    pub fn steps(self) -> Option<Vec<Index<'c>>> {
        read(self.0, "staticStep", 2)
    }
    /// Lower bounds, upper bounds and steps.
    pub fn bounds(self) -> Option<Bounds<'c>> {
        Some(Bounds { lower: self.lower_bounds()?, upper: self.upper_bounds()?, step: self.steps()? })
    }
    /// The positions of the shared outputs among the operands.
    pub fn output_positions(self) -> Range<usize> {
        self.0.operand_segment(3)
    }
    /// The shared outputs.
    pub fn outputs(self) -> Vec<Value<'c>> {
        operands(self.0, self.output_positions())
    }
}

/// The bounds of a `scf.forall`, per dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds<'c> {
    /// Lower bounds.
    pub lower: Vec<Index<'c>>,
    /// Upper bounds.
    pub upper: Vec<Index<'c>>,
    /// Steps.
    pub step: Vec<Index<'c>>,
}

impl<'c> Bounds<'c> {
    /// From 0 in steps of 1.
    pub fn upto(upper: Vec<Index<'c>>) -> Self {
        let of = |number| vec![Index::Static(number); upper.len()];
        Self { lower: of(0), step: of(1), upper }
    }
}

/// `scf.forall`; one result per shared output.
pub fn forall<'c, 'a>(
    loc: Location<'c>,
    bounds: &Bounds<'c>,
    outputs: &[Value<'c>],
    region: Region<'c>,
) -> OpSpec<'c, 'a> {
    let cx = loc.context();
    let Bounds { lower, upper, step } = bounds;
    let results: Vec<Type> = outputs.iter().map(|v| v.ty()).collect();
    OpSpec::new(ops::scf::FORALL, loc)
        .operand_segments(&[&values(lower), &values(upper), &values(step), outputs])
        .results(&results)
        .attr("staticLowerBound", numbers(cx, lower))
        .attr("staticUpperBound", numbers(cx, upper))
        .attr("staticStep", numbers(cx, step))
        .region(region)
}

view! {
    /// `scf.parallel`.
    Parallel, ops::scf::PARALLEL
}

impl<'c> Parallel<'c> {
    /// The lower bounds.
    pub fn lower_bounds(self) -> Vec<Value<'c>> {
        self.0.segment_operands(0)
    }
    /// The upper bounds.
    pub fn upper_bounds(self) -> Vec<Value<'c>> {
        self.0.segment_operands(1)
    }
    /// The steps.
    pub fn steps(self) -> Vec<Value<'c>> {
        self.0.segment_operands(2)
    }
    /// The initial values of the reductions.
    pub fn init_vals(self) -> Vec<Value<'c>> {
        self.0.segment_operands(3)
    }
}
