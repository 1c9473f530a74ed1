//! A model as a module of linalg on tensors.
//!
//! Ensures: one function `main`; names of arguments and results in `monopour.name`; an op's location is its node's name.

use super::builder::{Builder, Failure};
use super::graph::{Attribute, Graph, ValueInfo, ValueType, domain_name};
use super::model::Model;
use super::nodes::{HELP, Names};
use super::operand::{Known, Operand};
use super::registry::Registry;
use super::symbolic::{Dim, Symbol};
use super::{DataType, batch_norms};
use crate::import::{Weight, WeightTable};
use monopour_contract::attributes;
use monopour_ir::{
    Attr, Block, Context, Diagnostic, Diagnostics, InsertionPoint, Location, Module, Op, OpSpec, Region, Rewriter,
    Type, Value, ops,
};
use std::collections::BTreeMap;

/// The name of the function.
const ENTRY: &str = "main";
/// Names of nodes in a line about a missing op.
const SHOWN_NODES: usize = 4;

/// A model as a module, with its weights; `sizes` are those of symbols that are bound.
///
/// # Errors
/// F0042 for ops that are missing, F0043 for nodes that are not supported, F0045 for symbols that are not the model's.
pub fn lower<'c>(
    cx: Context<'c>,
    model: &Model,
    registry: &Registry,
    sizes: &BTreeMap<String, i64>,
) -> Result<(Module<'c>, WeightTable), Diagnostics> {
    model.check_dims(sizes)?;
    let module = Module::empty(cx);
    let weights = fill(&module, model, registry, sizes)?;
    module.op().verify_with_diagnostics().map_err(|found| unfit(found, &model.file))?;
    Ok((module, WeightTable::from(weights)))
}

/// What the verifier refuses: operands of types or shapes that a node's op does not take. Its notes name the nodes.
fn unfit(found: Diagnostics, file: &str) -> Diagnostics {
    let refused = |found: Diagnostic| Diagnostic {
        code: "F0043",
        location: file.to_owned(),
        message: format!("operands do not fit: {}", found.message),
        help: Some(HELP.to_owned()),
        ..found
    };
    Diagnostics(found.0.into_iter().map(refused).collect())
}

/// Puts the function into a module; returns the weights.
fn fill(
    module: &Module,
    model: &Model,
    registry: &Registry,
    sizes: &BTreeMap<String, i64>,
) -> Result<BTreeMap<String, Weight>, Diagnostics> {
    let body = module.body();
    let cx = module.op().context();
    let (block, region) = (Block::new(&[]), Region::new());
    region.append(block);
    // The module holds the block from here on, whatever is found wrong.
    let function = function(cx, body, region)?;
    let mut b = Builder::new(cx, InsertionPoint::End(block), registry.clone(), &model.file);
    b.found.0.extend(missing_diagnostic(model, registry));
    let inputs = inputs(&mut b, model, sizes);
    let names = arguments(&mut b, block, &inputs).map_err(diagnostics)?;
    let folded = batch_norms::fold(&model.graph);
    let graph = folded.as_ref().unwrap_or(&model.graph);
    b.enter(graph, names);
    b.nodes(graph);
    b.loc = Location::unknown(cx);
    let results = results(&mut b, model);
    if b.found.has_errors() {
        return Err(b.found);
    }
    let values: Vec<Value> = results.iter().map(|result| result.value).collect();
    let spec = OpSpec::new(ops::func::RETURN, Location::unknown(cx)).operands(&values);
    b.create(spec).map_err(diagnostics)?;
    let types: Vec<Type> = inputs.iter().map(|input| input.ty).collect();
    let result_types: Vec<Type> = values.iter().map(|v| v.ty()).collect();
    let arguments: Vec<Attr> = inputs.iter().map(|input| boundary(cx, &input.name, input.dtype)).collect();
    let results: Vec<Attr> = results.iter().map(|result| boundary(cx, &result.name, result.dtype)).collect();
    let mut rw = Rewriter::new(cx);
    rw.set_attr(function, "function_type", Attr::ty(Type::function(cx, &types, &result_types)));
    rw.set_attr(function, "arg_attrs", Attr::array(cx, &arguments));
    rw.set_attr(function, "res_attrs", Attr::array(cx, &results));
    Ok(b.weights)
}

/// What a model needs and the registry lacks: a line per op, with the names of nodes.
pub fn missing_ops(model: &Model, registry: &Registry) -> Vec<String> {
    let mut nodes = BTreeMap::new();
    collect_missing(&model.graph, registry, &mut nodes);
    let line = |((domain, op, version), names): (&(String, String, i64), &Vec<String>)| {
        let domain = domain_name(domain);
        let shown = names.iter().take(SHOWN_NODES).cloned().collect::<Vec<_>>().join(", ");
        let more = names.len().checked_sub(SHOWN_NODES).filter(|n| *n > 0);
        format!("{op} of {domain} {version}: {shown}{}", more.map(|n| format!(" and {n} more")).unwrap_or_default())
    };
    nodes.iter().map(line).collect()
}

fn collect_missing(graph: &Graph, registry: &Registry, out: &mut BTreeMap<(String, String, i64), Vec<String>>) {
    for node in &graph.nodes {
        if registry.get(&node.domain, &node.op_type, node.opset).is_none() {
            let key = (node.domain.clone(), node.op_type.clone(), node.opset);
            out.entry(key).or_default().push(node.name.clone());
        }
        for attribute in node.attributes.values() {
            if let Attribute::Graph(inner) = attribute {
                collect_missing(inner, registry, out);
            }
        }
    }
}

fn missing_diagnostic(model: &Model, registry: &Registry) -> Option<Diagnostic> {
    let missing = missing_ops(model, registry);
    if missing.is_empty() {
        return None;
    }
    let message = format!("{} ops that the model needs are not supported", missing.len());
    let mut diagnostic =
        Diagnostic::global("F0042", message).with_help("docs/onnx.md lists the ops that are supported");
    diagnostic.location.clone_from(&model.file);
    diagnostic.notes = missing;
    Some(diagnostic)
}

/// An input of the graph that is an argument of the function.
struct Input<'c> {
    name: String,
    dtype: DataType,
    shape: Vec<Dim>,
    ty: Type<'c>,
}

/// The function, with an empty type for now.
fn function<'c>(cx: Context<'c>, body: Block<'c>, region: Region<'c>) -> Result<Op<'c>, Diagnostics> {
    let spec = OpSpec::new(ops::func::FUNC, Location::unknown(cx))
        .attr("sym_name", Attr::string(cx, ENTRY))
        .attr("function_type", Attr::ty(Type::function(cx, &[], &[])))
        .region(region);
    monopour_ir::Builder::new(cx, InsertionPoint::End(body)).create(spec)
}

/// The shape of packed elements as bytes.
fn packed_shape(dtype: DataType, shape: &[Dim]) -> Vec<Dim> {
    let (elements, bits) = (shape.iter().fold(Dim::constant(1), |n, d| n.mul(d)), dtype.bits().unwrap_or(8));
    vec![elements.ceil_div(i64::from(8 / bits)).unwrap_or_default()]
}

/// The attributes of an argument or result.
fn boundary<'c>(cx: Context<'c>, name: &str, dtype: DataType) -> Attr<'c> {
    let mut entries = vec![(attributes::NAME, Attr::string(cx, name))];
    if let Some(dtype) = dtype.dtype().filter(|_| dtype.is_unsigned() || dtype.is_narrow()) {
        entries.push((attributes::DTYPE, Attr::string(cx, dtype.as_str())));
    }
    Attr::dict(cx, &entries)
}

/// The inputs without a default value.
fn inputs<'c>(b: &mut Builder<'c>, model: &Model, sizes: &BTreeMap<String, i64>) -> Vec<Input<'c>> {
    let open = model.graph.inputs.iter().filter(|i| !model.graph.initializers.contains_key(&i.name));
    open.filter_map(|info| input(b, info, sizes)).collect()
}

fn input<'c>(b: &mut Builder<'c>, info: &ValueInfo, sizes: &BTreeMap<String, i64>) -> Option<Input<'c>> {
    let found = match info.ty.given() {
        ValueType::Tensor(dtype, Some(shape)) => Some((*dtype, shape)).filter(|_| dtype.dtype().is_some()),
        _ => None,
    };
    let Some((dtype, shape)) = found else {
        let kind = match &info.ty {
            ValueType::Tensor(_, None) => "has no shape".to_owned(),
            ValueType::Tensor(dtype, Some(_)) => format!("has elements of {dtype}"),
            _ => "is not a tensor".to_owned(),
        };
        b.report("F0043", format!("input '{}' {kind}, which is not supported", info.name));
        return None;
    };
    let dim = |(axis, dim): (usize, &Option<Dim>)| match dim {
        Some(dim) => dim.bind(sizes),
        None => Dim::from(Symbol::Axis(info.name.as_str().into(), axis)),
    };
    let shape: Vec<Dim> = shape.iter().enumerate().map(dim).collect();
    let stored = if dtype.is_packed() { packed_shape(dtype, &shape) } else { shape.clone() };
    // The bytes of packed elements are fewer than the elements.
    match b.tensor_type(dtype, &shape).and_then(|_| b.tensor_type(dtype, &stored)) {
        Ok(ty) => Some(Input { name: info.name.clone(), dtype, shape, ty }),
        Err(failure) => {
            let found = diagnostics(failure).0.into_iter().map(|d| d.message);
            b.report("F0043", format!("input '{}': {}", info.name, found.collect::<Vec<_>>().join("; ")));
            None
        }
    }
}

/// The arguments by name; every size of theirs that is a symbol gets its value.
fn arguments<'c>(b: &mut Builder<'c>, block: Block<'c>, inputs: &[Input<'c>]) -> Result<Names<'c>, Failure> {
    let (mut names, mut rw, mut packed) = (Names::new(), Rewriter::new(b.context()), vec![]);
    for input in inputs {
        let value = rw.add_block_arg(block, input.ty, b.loc);
        if input.dtype.is_packed() {
            packed.push((input, value));
            continue;
        }
        for (axis, dim) in input.shape.iter().enumerate() {
            if let Some(symbol) = dim.as_symbol().filter(|s| !b.is_defined(s)) {
                let size = b.dim_of(value, axis)?;
                b.define(symbol, size);
            }
        }
        names.insert(input.name.clone(), Some(Operand::value(input.dtype, input.shape.clone(), value)));
    }
    // The number of bytes does not tell a size: the sizes are those of other inputs.
    for (input, value) in packed {
        let elements = b.unpack(value, input.dtype, &input.shape)?;
        names.insert(input.name.clone(), Some(Operand::value(input.dtype, input.shape.clone(), elements)));
    }
    Ok(names)
}

/// A result of the function.
struct Output<'c> {
    name: String,
    dtype: DataType,
    value: Value<'c>,
}

/// The graph's outputs; a sequence is a result for each of its values.
fn results<'c>(b: &mut Builder<'c>, model: &Model) -> Vec<Output<'c>> {
    let mut results = vec![];
    for output in &model.graph.outputs {
        let Some(Some(operand)) = b.named(&output.name).cloned() else { continue };
        let parts: Vec<(String, Operand)> = match &operand.known {
            Some(Known::Sequence(items)) => {
                items.iter().enumerate().map(|(at, item)| (format!("{}.{at}", output.name), item.clone())).collect()
            }
            _ => vec![(output.name.clone(), operand)],
        };
        for (name, part) in parts {
            let dtype = part.dtype;
            match if dtype.is_packed() { b.pack(&part) } else { b.value(&part) } {
                Ok(value) => results.push(Output { name, dtype, value }),
                Err(failure) => b.found.0.extend(diagnostics(failure).0),
            }
        }
    }
    results
}

/// A failure that is of no node.
fn diagnostics(failure: Failure) -> Diagnostics {
    match failure {
        Failure::Ir(diagnostics) => diagnostics,
        Failure::Reported => Diagnostics::default(),
        Failure::Node(message) => Diagnostic::global("F0043", message).with_help(HELP).into(),
    }
}
