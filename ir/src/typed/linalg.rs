//! Ops of the dialect `linalg`; structured ops by their interface.

use crate::{AffineMap, Attr, Context, Location, Op, OpSpec, Region, Type, Value, ops};

pub use super::enums::IteratorType;

/// The iterator types of an op that carries them.
pub fn iterator_types(op: Op) -> Option<Vec<IteratorType>> {
    op.attr("iterator_types")?.as_array()?.into_iter().map(IteratorType::of).collect()
}

/// An array of iterator types.
pub fn iterator_types_attr<'c>(cx: Context<'c>, types: &[IteratorType]) -> Attr<'c> {
    let attr = |ty: &IteratorType| ty.to_attr(cx).expect("invariant: the linalg dialect is registered");
    Attr::array(cx, &types.iter().map(attr).collect::<Vec<_>>())
}

/// A structured op: `linalg.generic` and the named ops that stand for one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Structured<'c> {
    op: Op<'c>,
    inputs: usize,
}

impl<'c> Structured<'c> {
    /// The view of an op with the two segments of structured ops; `None` for another op.
    pub fn of(op: Op<'c>) -> Option<Self> {
        match (op.dialect(), op.operand_segments()?.as_slice()) {
            ("linalg", [inputs, _]) => Some(Self { op, inputs: *inputs }),
            _ => None,
        }
    }
    /// The op.
    pub fn op(self) -> Op<'c> {
        self.op
    }
    /// Number of inputs: the operands before the outputs.
    pub fn num_inputs(self) -> usize {
        self.inputs
    }
}

/// Inputs and outputs of a structured op.
#[derive(Clone, Copy, Debug)]
pub struct Operands<'c, 'v> {
    /// Inputs.
    pub inputs: &'v [Value<'c>],
    /// Outputs.
    pub outputs: &'v [Value<'c>],
}

/// A structured op, whose outputs that are tensors have results.
fn structured<'c, 'a>(name: &'a str, loc: Location<'c>, operands: Operands<'c, '_>) -> OpSpec<'c, 'a> {
    let results: Vec<Type> = operands.outputs.iter().map(|v| v.ty()).filter(|ty| ty.is_tensor()).collect();
    OpSpec::new(name, loc).operand_segments(&[operands.inputs, operands.outputs]).results(&results)
}

/// `linalg.generic`; `iterator_types` is an array of iterator types.
pub fn generic<'c, 'a>(
    loc: Location<'c>,
    operands: Operands<'c, '_>,
    maps: &[AffineMap<'c>],
    iterator_types: Attr<'c>,
    region: Region<'c>,
) -> OpSpec<'c, 'a> {
    structured(ops::linalg::GENERIC, loc, operands)
        .attr("indexing_maps", maps_attr(loc, maps))
        .attr("iterator_types", iterator_types)
        .region(region)
}

/// `linalg.fill`.
pub fn fill<'c, 'a>(loc: Location<'c>, value: Value<'c>, output: Value<'c>, region: Region<'c>) -> OpSpec<'c, 'a> {
    structured(ops::linalg::FILL, loc, Operands { inputs: &[value], outputs: &[output] }).region(region)
}

/// `linalg.matmul`.
pub fn matmul<'c, 'a>(
    loc: Location<'c>,
    operands: Operands<'c, '_>,
    maps: &[AffineMap<'c>],
    region: Region<'c>,
) -> OpSpec<'c, 'a> {
    structured(ops::linalg::MATMUL, loc, operands).attr("indexing_maps", maps_attr(loc, maps)).region(region)
}

fn maps_attr<'c>(loc: Location<'c>, maps: &[AffineMap<'c>]) -> Attr<'c> {
    Attr::array(loc.context(), &maps.iter().map(|map| map.to_attr()).collect::<Vec<_>>())
}

view! {
    /// `linalg.pack`.
    Pack, ops::linalg::PACK
}

impl<'c> Pack<'c> {
    /// The position of the padding value among the operands.
    pub fn padding_position(self) -> Option<usize> {
        self.0.operand_segment(2).next()
    }
}
