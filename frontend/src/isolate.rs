//! Moves a dispatch into a function of its own, so that tiling costs in proportion to the dispatch and not to the model, and
//! splices the result back.
//!
//! Before / after ([`Isolated::of`]; [`splice`] goes the other way, with `%r` now a forall over tiles):
//!
//! ```text
//! %f = linalg.fill ... outs(%e)                func.func @dispatch(%x, %w) -> tensor<64x1024xf32> {
//! %m = linalg.matmul ins(%x, %w) outs(%f)        %e = tensor.empty() : tensor<64x1024xf32>
//! %r = linalg.generic ... outs(%m)               %f = linalg.fill ... outs(%e)
//!                                                %m = linalg.matmul ins(%x, %w) outs(%f)
//!                                                %r = linalg.generic ... outs(%m)
//!                                                return %r
//!                                              }
//! ```
//!
//! Requires: what [`crate::fuse`] ensures.
//! Ensures: scalar constants and `tensor.empty` are cloned, because tiling folds them; every other value from outside,
//! weights included, is an argument. Dispatches that differ in nothing but these values have equal [`Isolated::key`]s.

use crate::dispatch::Dispatch;
use monopour_contract::attributes;
use monopour_ir::ops;
use monopour_ir::{
    Attr, Block, Diagnostics, InsertionPoint, Location, Module, Op, OpSpec, Region, Rewriter, StructuralKey, Type,
    Value, WalkOrder,
};
use std::collections::{HashMap, HashSet};

/// A dispatch in a module that holds nothing else.
pub(crate) struct Isolated<'c> {
    /// The module with the one function.
    pub module: Module<'c>,
    /// The values behind the function's arguments and results.
    pub border: Border<'c>,
}

/// The values that a dispatch captures, and its results.
pub(crate) struct Border<'c> {
    /// For each argument a use of its value, in the dispatch or a cloned op: the use stays when the value is replaced.
    captured: Vec<(Op<'c>, usize)>,
    outputs: Vec<Value<'c>>,
}

impl<'c> Isolated<'c> {
    /// Copies a dispatch out.
    ///
    /// # Errors
    /// None of its own; what MLIR's op builders report.
    pub fn of(dispatch: &Dispatch<'c>, rw: &mut Rewriter<'c>) -> Result<Self, Diagnostics> {
        let cx = rw.context();
        let loc = Location::unknown(cx);
        let Capture { uses, ops: along, .. } = Capture::of(dispatch);
        let border = Border { captured: uses, outputs: dispatch.outputs() };
        let captured = border.captured();
        let outputs = &border.outputs;
        let block = Block::new(&captured.iter().map(|v| (v.ty(), loc)).collect::<Vec<_>>());
        let mut map: HashMap<Value, Value> = captured.iter().copied().zip(block.args()).collect();
        rw.set_point(InsertionPoint::End(block));
        for op in along.into_iter().chain(dispatch.ops.iter().map(|(op, _)| *op)) {
            copy(op, &mut map, rw);
        }
        let returned: Vec<Value> = outputs.iter().map(|v| map[v]).collect();
        rw.create(OpSpec::new(ops::func::RETURN, loc).operands(&returned))?;
        let region = Region::new();
        region.append(block);
        let types = |values: &[Value<'c>]| values.iter().map(|v| v.ty()).collect::<Vec<_>>();
        let ty = Type::function(cx, &types(&captured), &types(outputs));
        let func = OpSpec::new(ops::func::FUNC, loc)
            .attr("sym_name", Attr::string(cx, "dispatch"))
            .attr("function_type", Attr::ty(ty))
            .region(region);
        Ok(Self { module: Module::of(func.build(cx)?), border })
    }

    /// The structure of the dispatch, without its number and captured values.
    pub fn key(&self) -> StructuralKey {
        StructuralKey::of(self.module.op(), &[attributes::DISPATCH])
    }
}

impl<'c> Border<'c> {
    fn captured(&self) -> Vec<Value<'c>> {
        self.captured.iter().map(|(op, index)| op.operand(*index)).collect()
    }
}

/// The values that a dispatch captures.
#[derive(Default)]
struct Capture<'c> {
    /// The first use of each value.
    uses: Vec<(Op<'c>, usize)>,
    /// Ops to clone, each after its operands.
    ops: Vec<Op<'c>>,
    seen: HashSet<Value<'c>>,
}

impl<'c> Capture<'c> {
    fn of(dispatch: &Dispatch<'c>) -> Self {
        let mut out = Self::default();
        let inside = |op: Op<'c>| dispatch.ops.iter().any(|(own, _)| op.is_inside(*own));
        for (op, _) in &dispatch.ops {
            for nested in op.nested(WalkOrder::Pre) {
                let outside = |v: &Value<'c>| match v.defining_op() {
                    Some(def) => !inside(def),
                    None => !v.block().and_then(Block::parent_op).is_some_and(inside),
                };
                for (index, value) in nested.operands().into_iter().enumerate().filter(|(_, v)| outside(v)) {
                    out.add(nested, index, value);
                }
            }
        }
        out
    }

    fn add(&mut self, user: Op<'c>, index: usize, value: Value<'c>) {
        if !self.seen.insert(value) {
            return;
        }
        let scalar =
            |op: &Op<'c>| matches!(op.name(), ops::arith::CONSTANT | ops::ub::POISON) && !value.ty().is_tensor();
        match value.defining_op().filter(|op| scalar(op) || op.is(ops::tensor::EMPTY)) {
            Some(op) => {
                op.operands().into_iter().enumerate().for_each(|(i, operand)| self.add(op, i, operand));
                self.ops.push(op);
            }
            None => self.uses.push((user, index)),
        }
    }
}

/// Replaces a dispatch, whose border is given, by a copy of a tiled function's body.
pub(crate) fn splice<'c>(tiled: &Module, dispatch: &Dispatch<'c>, border: &Border<'c>, rw: &mut Rewriter<'c>) {
    let func = tiled.functions().into_iter().next().expect("invariant: Isolated::of made a function");
    let body = func.body().expect("invariant: Isolated::of made a body");
    let mut map: HashMap<Value, Value> = body.args().into_iter().zip(border.captured()).collect();
    rw.set_point(InsertionPoint::Before(dispatch.root));
    let mut ops = body.ops();
    let end = ops.pop().expect("invariant: a function's body has a terminator");
    for op in ops {
        copy(op, &mut map, rw);
    }
    for (output, value) in border.outputs.iter().zip(end.operands()) {
        rw.replace_all_uses(*output, map[&value]);
    }
    for (op, _) in dispatch.ops.iter().rev() {
        rw.erase(*op);
    }
}

fn copy<'m, 'c: 'm>(op: Op<'m>, map: &mut HashMap<Value<'m>, Value<'c>>, rw: &mut Rewriter<'c>) {
    let new = rw.clone_op(op, |v| map.get(&v).copied().unwrap_or(v));
    rw.insert(new);
    map.extend(op.results().into_iter().zip(new.results()));
}
