//! `linalg`: destination-style operations keep their form, with the results in their `outs`.

use monopour_ir::conversion::{ConversionRewriter, Declined};
use monopour_ir::ops;
use monopour_ir::typed;
use monopour_ir::{Op, Value, interfaces};

use crate::boundary::Callees;
use crate::op_model::{AliasModel, Buffers, OpModel, OpModels, ReadModel, SubsetModel, UseModel};
use crate::options::Options;
use crate::rewriting::Rewriting;

/// Named operations all of whose maps are the identity.
const ELEMENTWISE: &[&str] = &[
    "abs",
    "add",
    "ceil",
    "copy",
    "div",
    "div_unsigned",
    "erf",
    "exp",
    "floor",
    "log",
    "map",
    "max",
    "min",
    "mul",
    "negf",
    "powf",
    "reciprocal",
    "round",
    "rsqrt",
    "select",
    "sqrt",
    "square",
    "sub",
    "tanh",
];

/// Operations of the dialect that are not structured.
const UNSTRUCTURED: &[&str] = &[
    "index",
    "pack",
    "unpack",
    "winograd_filter_transform",
    "winograd_input_transform",
    "winograd_output_transform",
    "yield",
];

pub(super) fn add(models: &mut OpModels) {
    models.add_dialect("linalg", Structured);
}

/// Number of the first destination operand; the destinations are the last operands.
fn first_init(op: Op) -> usize {
    let outputs = || op.num_operands().saturating_sub(op.num_results());
    typed::linalg::Structured::of(op).map_or_else(outputs, |structured| structured.num_inputs())
}

fn result_of<'c>(op: Op<'c>, operand: usize) -> Option<Value<'c>> {
    // Results correspond to the destinations that are tensors, in order.
    let inits = (first_init(op)..op.num_operands()).filter(|i| op.operand(*i).ty().is_tensor());
    let position = inits.into_iter().position(|i| i == operand)?;
    (position < op.num_results()).then(|| op.result(position))
}

/// Whether the payload reads the operand.
fn is_read(op: Op, operand: usize) -> bool {
    match op.body() {
        // One block argument per operand, as in `linalg.generic` and all operations that stand for one.
        Some(body) if body.num_args() == op.num_operands() => !body.arg(operand).is_unused(),
        // The operand's argument is unknown.
        Some(_) => true,
        None => operand < first_init(op) || !op.is(ops::linalg::SOFTMAX),
    }
}

/// Whether the access of this operand is elementwise: all loops parallel, identity map.
fn is_elementwise(op: Op, operand: usize) -> bool {
    let name = op.name().trim_start_matches("linalg.");
    if ELEMENTWISE.contains(&name) {
        return op.operand(operand).ty().is_tensor();
    }
    if op.is(ops::linalg::ELEMENTWISE) {
        let maps = op.attr("indexing_maps").and_then(|a| a.as_array()).unwrap_or_default();
        return maps.iter().all(|m| m.as_affine_map().is_some_and(|m| m.is_identity()));
    }
    let Some(maps) = op.attr("indexing_maps").and_then(|a| a.as_array()) else { return false };
    op.attr("iterator_types").is_some()
        && interfaces::has_parallel_loops_only(op)
        && maps.get(operand).and_then(|m| m.as_affine_map()).is_some_and(|m| m.is_identity())
}

struct Structured;

impl OpModel for Structured {
    /// `linalg.pack` and the Winograd transforms have no form on memrefs in upstream: ops that are not structured, and
    /// no softmax, are described by their interfaces, if at all.
    fn describes(&self, op: Op, _options: &Options) -> bool {
        !UNSTRUCTURED.iter().any(|name| op.name().strip_prefix("linalg.") == Some(*name))
    }
    fn use_of<'c>(&self, op: Op<'c>, operand: usize, _callees: &Callees<'c>) -> UseModel<'c> {
        UseModel {
            reads: if is_read(op, operand) { ReadModel::Yes } else { ReadModel::No },
            writes: operand >= first_init(op),
            elementwise: is_elementwise(op, operand),
            must_in_place: false,
        }
    }
    fn aliases<'c>(&self, op: Op<'c>, operand: usize, _callees: &Callees<'c>) -> Vec<AliasModel<'c>> {
        result_of(op, operand).map(AliasModel::equivalent).into_iter().collect()
    }
    fn subset<'c>(&self, op: Op<'c>) -> Option<SubsetModel<'c>> {
        op.is(ops::linalg::COPY).then_some(SubsetModel::Insertion { source: Some(0), destination: 1, slice: None })
    }
    fn rewrite<'c>(
        &self,
        op: Op<'c>,
        buffers: &Buffers<'c, '_>,
        rw: &mut ConversionRewriter<'c>,
        pass: &Rewriting<'c, '_>,
    ) -> Result<(), Declined> {
        let replacements: Vec<Value> = (first_init(op)..op.num_operands())
            .filter(|i| op.operand(*i).ty().is_tensor())
            .map(|i| buffers.operand(i))
            .collect();
        // Not a copy of a buffer onto itself.
        if !(op.is(ops::linalg::COPY) && pass.is_self_copy(op)) {
            rw.recreate(op, buffers.operands(), &[])?;
        }
        rw.replace_op(op, &replacements[..op.num_results()]);
        Ok(())
    }
}
