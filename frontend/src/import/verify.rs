//! Diagnoses every op, type and shape of a model that is not supported, with its location.

use crate::linalg;
use monopour_contract::attributes;
use monopour_ir::ops;
use monopour_ir::{Attr, DYNAMIC, Diagnostic, Diagnostics, Module, Op, Type, WalkOrder};
use std::collections::HashSet;

/// Dialects of ops on scalars, in the body of a linalg op or outside (and, elementwise, on tensors).
const SCALAR_DIALECTS: [&str; 2] = ["arith", "math"];
/// Ops outside `linalg`, `arith` and `math` that are supported.
const OPS: [&str; 38] = [
    ops::affine::APPLY,
    ops::affine::MAX,
    ops::affine::MIN,
    ops::cf::ASSERT,
    ops::func::FUNC,
    ops::func::RETURN,
    ops::linalg::PACK,
    ops::linalg::SOFTMAX,
    ops::linalg::UNPACK,
    ops::scf::CONDITION,
    ops::scf::EXECUTE_REGION,
    ops::scf::FOR,
    ops::scf::FORALL,
    ops::scf::FORALL_IN_PARALLEL,
    ops::scf::IF,
    ops::scf::WHILE,
    ops::scf::YIELD,
    ops::tensor::BITCAST,
    ops::tensor::CAST,
    ops::tensor::COLLAPSE_SHAPE,
    ops::tensor::CONCAT,
    ops::tensor::DIM,
    ops::tensor::EMPTY,
    ops::tensor::EXPAND_SHAPE,
    ops::tensor::EXTRACT,
    ops::tensor::EXTRACT_SLICE,
    ops::tensor::FROM_ELEMENTS,
    ops::tensor::GATHER,
    ops::tensor::GENERATE,
    ops::tensor::INSERT,
    ops::tensor::INSERT_SLICE,
    ops::tensor::PAD,
    ops::tensor::PARALLEL_INSERT_SLICE,
    ops::tensor::RANK,
    ops::tensor::RESHAPE,
    ops::tensor::SCATTER,
    ops::tensor::SPLAT,
    ops::tensor::YIELD,
];
/// Largest tensor: 64 TiB.
const MAX_TENSOR_BYTES: u64 = 1 << 46;

pub(super) fn run(module: &Module, entry: Op) -> Result<(), Diagnostics> {
    let mut found = Diagnostics::default();
    check_signature(entry, &mut found);
    for op in module.body().ops() {
        if op != entry {
            found.0.push(unsupported(op));
        }
    }
    entry.walk(WalkOrder::Pre, |op| check_op(op, &mut found));
    if found.has_errors() { Err(found) } else { Ok(()) }
}

fn check_signature(entry: Op, found: &mut Diagnostics) {
    let (inputs, results) = entry.function_type().expect("a function has a type");
    for (kind, types, attrs) in [("argument", &inputs, "arg_attrs"), ("result", &results, "res_attrs")] {
        for (i, ty) in types.iter().enumerate() {
            if !ty.is_tensor() && !is_supported_element(*ty) {
                let message = format!("{kind} {i} of the entry function has type {ty}, expected a tensor or a scalar");
                let help = "pass ranked tensors, integers, floats and index values";
                found.0.push(Diagnostic::error("F0005", entry.location(), message).with_help(help));
            }
        }
        types.iter().for_each(|ty| check_size(entry, *ty, found));
        check_names(entry, kind, types.len(), entry.attr(attrs), found);
    }
}

/// `monopour.name` must be a string. Names, default ones included, are unique among the arguments and among the results.
fn check_names(entry: Op, kind: &str, count: usize, attrs: Option<Attr>, found: &mut Diagnostics) {
    let prefix = if kind == "argument" { "arg" } else { "result" };
    let dicts = attrs.and_then(|a| a.as_array()).unwrap_or_default();
    let mut seen: HashSet<String> = HashSet::new();
    for i in 0..count {
        let name = dicts.get(i).and_then(|dict| dict.get(attributes::NAME));
        let text = name.map_or_else(|| Some(format!("{prefix}{i}")), |name| name.as_string().map(str::to_owned));
        let message = match (text, name) {
            (Some(text), _) if !seen.contains(&text) => {
                seen.insert(text);
                continue;
            }
            (Some(text), Some(_)) => {
                format!("{kind} {i} of the entry function has the name '{text}', which an earlier one has too")
            }
            (Some(text), None) => {
                format!("an earlier {kind} has the name '{text}', which is that of {kind} {i} without one")
            }
            (None, name) => {
                let name = name.map_or(String::new(), |name| name.to_string());
                format!("{} of {kind} {i} is {name}, expected a string", attributes::NAME)
            }
        };
        let help = "give each argument and each result a name of its own";
        found.0.push(Diagnostic::error("F0012", entry.location(), message).with_help(help));
    }
}

/// Sizes in bytes, and those of iteration spaces, fit 63 bits.
fn check_size(op: Op, ty: Type, found: &mut Diagnostics) {
    let is_static = ty.is_tensor() && ty.shape().is_some_and(|shape| !shape.contains(&DYNAMIC));
    if is_static && ty.element_size_bytes().is_some() && ty.static_size_bytes().is_none_or(|b| b > MAX_TENSOR_BYTES) {
        let message = format!("a {ty} has more than {MAX_TENSOR_BYTES} bytes");
        let help = "no machine holds such a tensor: check its sizes";
        found.0.push(Diagnostic::error("F0030", op.location(), message).with_help(help));
    }
}

fn check_op(op: Op, found: &mut Diagnostics) {
    op.results().into_iter().for_each(|result| check_size(op, result.ty(), found));
    if op.is(ops::cf::ASSERT) && !super::checks::is_on_host(op) {
        let message = "'cf.assert' stands in the body of an op that computes elements".to_owned();
        found.0.push(error(
            "F0002",
            op,
            message,
            "check before the op, or compute the condition as a result of its own",
        ));
        return;
    }
    let legal = OPS.contains(&op.name()) || SCALAR_DIALECTS.contains(&op.dialect()) || linalg::is_supported(op);
    if !legal {
        found.0.push(unsupported(op));
        return;
    }
    if op.dialect() == "linalg" && op.results().is_empty() && op.operands().iter().any(|v| v.ty().is_memref()) {
        let message = format!("'{}' works on memrefs", op.name());
        let help = "give the model in destination style on tensors, before bufferization";
        found.0.push(Diagnostic::error("F0010", op.location(), message).with_help(help));
        return;
    }
    let args = op.regions().into_iter().flat_map(|r| r.blocks()).flat_map(|b| b.args());
    let types = op.results().into_iter().chain(args).map(|v| v.ty());
    if let Some(problem) = types.into_iter().find_map(|ty| check_type(op, ty)) {
        found.0.push(problem);
    }
}

fn unsupported(op: Op) -> Diagnostic {
    if op.operands().into_iter().chain(op.results()).any(|v| v.ty().is_memref()) {
        let help = "give the model on tensors, before bufferization: take the tensor where the memref is made of one";
        return error("F0010", op, format!("'{}' works on memrefs", op.name()), help);
    }
    if op.dialect() == "vector" {
        let help = "write it as linalg on tensors: the compiler makes the vectors";
        return error("F0002", op, format!("op '{}' is not supported", op.name()), help);
    }
    Diagnostic::error("F0002", op.location(), format!("op '{}' is not supported", op.name())).with_help(
        "supported: linalg, tensor, scf, tosa, arith, math, cf.assert, affine.apply, affine.min and affine.max; lower other dialects to these first",
    )
}

fn check_type(op: Op, ty: Type) -> Option<Diagnostic> {
    let name = op.name();
    if ty.is_tensor() {
        if ty.shape().is_none() {
            let help = "give every tensor a rank";
            return Some(error("F0004", op, format!("'{name}' has the unranked type {ty}"), help));
        }
        if ty.as_tensor().is_some_and(|t| t.encoding.is_some()) {
            let help = "remove the encoding; the compiler uses it for memory spaces";
            return Some(error("F0003", op, format!("'{name}' has the encoded type {ty}"), help));
        }
    } else if ty.is_memref() {
        let help = "give the model on tensors, before bufferization";
        return Some(error("F0010", op, format!("'{name}' has the memref type {ty}"), help));
    }
    let element = ty.element();
    if is_supported_element(element) {
        return None;
    }
    let help =
        "supported element types: f16, bf16, f32, f64, i1, i8, i16, i32, i64 and index; integers may have a sign";
    Some(error("F0003", op, format!("'{name}' has the element type {element}"), help))
}

/// `f64` passes: CPUs have it, and code generation rejects it for a GPU without it.
fn is_supported_element(ty: Type) -> bool {
    let float = ty.is_float() && matches!(ty.to_string().as_str(), "f16" | "bf16" | "f32" | "f64");
    let integer =
        ty.integer_width().is_some_and(|w| matches!(w, 1 | 8 | 16 | 32 | 64)) && ty.to_string().starts_with('i');
    float || integer || ty.is_index()
}

pub(super) fn error(code: &'static str, op: Op, message: String, help: &str) -> Diagnostic {
    Diagnostic::error(code, op.location(), message).with_help(help)
}
