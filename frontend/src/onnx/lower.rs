//! The nodes of a model, one by one, as linalg on tensors.
//!
//! Ensures: one function `main`; names of arguments and results in `monopour.name`; an op's location is its node's name.
//! A node that cannot be lowered is reported, and those that read it are passed over: all that is missing is reported at once.

use super::DataType;
use super::builder::{Builder, Failure};
use super::graph::{Attribute, Graph, Node, ValueInfo, ValueType};
use super::model::Model;
use super::node::NodeContext;
use super::operand::Operand;
use super::registry::Registry;
use super::symbolic::Dim;
use crate::import::WeightTable;
use monopour_contract::attributes;
use monopour_ir::{
    Attr, Block, Context, Diagnostic, Diagnostics, InsertionPoint, Location, Module, OpSpec, Region, Type, Value, ops,
};
use std::collections::{BTreeMap, HashMap};

/// The name of the function.
const ENTRY: &str = "main";
/// Names of nodes in a line about a missing op.
const SHOWN_NODES: usize = 4;

/// Values by name; `None`: a node that could not be lowered.
type Names<'c> = HashMap<String, Option<Operand<'c>>>;

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
    let mut lowering = Lowering { cx, model, registry, found: Diagnostics::default() };
    lowering.report_missing();
    let inputs = lowering.inputs(sizes);
    let types: Vec<Type> = inputs.iter().map(|input| input.ty).collect();
    let block = Block::new(&types.iter().map(|ty| (*ty, Location::unknown(cx))).collect::<Vec<_>>());
    let region = Region::new();
    region.append(block);
    // The module holds the block from here on, whatever is found wrong.
    let function = function(cx, region)?;
    let module = Module::of(function);
    let mut b = Builder::new(cx, InsertionPoint::End(block));
    let mut names = arguments(&mut b, block, &inputs);
    for (name, tensor) in &model.graph.initializers {
        names.insert(name.clone(), Some(Operand::constant(tensor.clone())));
    }
    lowering.nodes(&mut b, &model.graph, &mut names);
    let results = lowering.results(&mut b, &names);
    if lowering.found.has_errors() {
        return Err(lowering.found);
    }
    let spec = OpSpec::new(ops::func::RETURN, Location::unknown(cx)).operands(&results);
    lowering.made(b.create(spec))?;
    let result_types: Vec<Type> = results.iter().map(|v| v.ty()).collect();
    let mut rw = monopour_ir::Rewriter::new(cx);
    rw.set_attr(function, "function_type", Attr::ty(Type::function(cx, &types, &result_types)));
    let dicts = inputs.iter().map(|input| boundary(cx, &input.name, input.dtype)).collect::<Vec<_>>();
    rw.set_attr(function, "arg_attrs", Attr::array(cx, &dicts));
    rw.set_attr(function, "res_attrs", Attr::array(cx, &lowering.result_attributes(&names)));
    module.op().verify_with_diagnostics()?;
    Ok((module, WeightTable::from(b.weights)))
}

/// What a model needs and the registry lacks: a line per op, with the names of nodes.
pub fn missing_ops(model: &Model, registry: &Registry) -> Vec<String> {
    let mut nodes = BTreeMap::new();
    collect_missing(&model.graph, registry, &mut nodes);
    let line = |((domain, op, version), names): (&(String, String, i64), &Vec<String>)| {
        let domain = if domain.is_empty() { "ai.onnx" } else { domain };
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

/// An input of the graph that is an argument of the function.
struct Input<'c> {
    name: String,
    dtype: DataType,
    shape: Vec<Dim>,
    ty: Type<'c>,
}

/// The function, with an empty type for now.
fn function<'c>(cx: Context<'c>, region: Region<'c>) -> Result<monopour_ir::Op<'c>, Diagnostics> {
    let spec = OpSpec::new(ops::func::FUNC, Location::unknown(cx))
        .attr("sym_name", Attr::string(cx, ENTRY))
        .attr("function_type", Attr::ty(Type::function(cx, &[], &[])))
        .region(region);
    spec.build(cx)
}

/// The attributes of an argument or result.
fn boundary<'c>(cx: Context<'c>, name: &str, dtype: DataType) -> Attr<'c> {
    let mut entries = vec![(attributes::NAME, Attr::string(cx, name))];
    if let Some(dtype) = dtype.dtype().filter(|_| dtype.is_unsigned()) {
        entries.push((attributes::DTYPE, Attr::string(cx, dtype.as_str())));
    }
    Attr::dict(cx, &entries)
}

/// The arguments by name; every size of theirs that is a symbol gets its value.
fn arguments<'c>(b: &mut Builder<'c>, block: Block<'c>, inputs: &[Input<'c>]) -> Names<'c> {
    let mut names = Names::new();
    for (input, value) in inputs.iter().zip(block.args()) {
        for (axis, dim) in input.shape.iter().enumerate() {
            if let Some(symbol) = dim.as_symbol().filter(|s| !b.is_defined(s)) {
                let axis = b.int(Type::index(b.context()), axis as i64);
                let size = b.op(ops::tensor::DIM, &[value, axis], Type::index(b.context()));
                b.define(symbol, size.expect("invariant: tensor.dim of a known type always builds"));
            }
        }
        names.insert(input.name.clone(), Some(Operand::value(input.dtype, input.shape.clone(), value)));
    }
    names
}

struct Lowering<'a, 'c> {
    cx: Context<'c>,
    model: &'a Model,
    registry: &'a Registry,
    found: Diagnostics,
}

impl<'c> Lowering<'_, 'c> {
    fn error(&mut self, code: &'static str, message: String, help: &str) {
        let mut diagnostic = Diagnostic::global(code, message).with_help(help);
        diagnostic.location.clone_from(&self.model.file);
        self.found.0.push(diagnostic);
    }

    /// MLIR's diagnostics, or those of a node, as an error of the model.
    fn made<T>(&self, made: Result<T, Failure>) -> Result<T, Diagnostics> {
        made.map_err(|failure| match failure {
            Failure::Ir(diagnostics) => diagnostics,
            Failure::Node(message) => {
                Diagnostic::global("F0043", message).with_help("docs/onnx.md says what is supported of each op").into()
            }
        })
    }

    fn report_missing(&mut self) {
        let missing = missing_ops(self.model, self.registry);
        if !missing.is_empty() {
            let message = format!("{} ops that the model needs are not supported", missing.len());
            self.error("F0042", message, "docs/onnx.md lists the ops that are supported");
            self.found.0.last_mut().expect("it was just reported").notes = missing;
        }
    }

    /// The inputs without a default value.
    fn inputs(&mut self, sizes: &BTreeMap<String, i64>) -> Vec<Input<'c>> {
        let model = self.model;
        let open = model.graph.inputs.iter().filter(|i| !model.graph.initializers.contains_key(&i.name));
        open.filter_map(|info| self.input(info, sizes)).collect()
    }

    fn input(&mut self, info: &ValueInfo, sizes: &BTreeMap<String, i64>) -> Option<Input<'c>> {
        let found = match &info.ty {
            ValueType::Tensor(dtype, Some(shape)) => dtype.ir(self.cx).map(|element| (*dtype, shape, element)),
            _ => None,
        };
        let Some((dtype, shape, element)) = found else {
            let kind = match &info.ty {
                ValueType::Tensor(_, None) => "has no shape".to_owned(),
                ValueType::Tensor(dtype, Some(_)) => format!("has elements of {dtype}"),
                _ => "is not a tensor".to_owned(),
            };
            let message = format!("input '{}' {kind}, which is not supported", info.name);
            self.error("F0043", message, "inputs are tensors of known rank, of floats, integers or truth values");
            return None;
        };
        let dim = |(axis, dim): (usize, &Option<Dim>)| match dim {
            Some(dim) => dim.bind(sizes),
            None => Dim::symbol(&format!("{}.{axis}", info.name)),
        };
        let shape: Vec<Dim> = shape.iter().enumerate().map(dim).collect();
        let extents: Vec<i64> = shape.iter().map(|d| d.as_constant().unwrap_or(monopour_ir::DYNAMIC)).collect();
        Some(Input { name: info.name.clone(), dtype, shape, ty: Type::tensor(&extents, element, None) })
    }

    /// Lowers the nodes of a graph in order.
    fn nodes(&mut self, b: &mut Builder<'c>, graph: &Graph, names: &mut Names<'c>) {
        for node in &graph.nodes {
            let given = |name: &String| if name.is_empty() { Some(None) } else { names.get(name)?.clone().map(Some) };
            // An operand that could not be lowered has been reported.
            let operands: Option<Vec<Option<Operand>>> = node.inputs.iter().map(given).collect();
            let results = operands.and_then(|operands| self.node(b, node, operands));
            let mut results = results.map(Vec::into_iter);
            for name in &node.outputs {
                let result = results.as_mut().and_then(Iterator::next);
                names.insert(name.clone(), result);
            }
        }
    }

    /// The results of a node; `None` after a report.
    fn node(
        &mut self,
        b: &mut Builder<'c>,
        node: &Node,
        operands: Vec<Option<Operand<'c>>>,
    ) -> Option<Vec<Operand<'c>>> {
        let entry = self.registry.get(&node.domain, &node.op_type, node.opset)?;
        b.loc = Location::named(self.cx, &node.name);
        let context = NodeContext { node, operands };
        let problem = match (entry.lowering)(b, &context) {
            Ok(results) => {
                let wanted = node.outputs.iter().rposition(|o| !o.is_empty()).map_or(0, |last| last + 1);
                if results.len() >= wanted {
                    return Some(results);
                }
                format!("its result {} is not supported", results.len())
            }
            Err(Failure::Node(message)) => message,
            Err(Failure::Ir(diagnostics)) => diagnostics.to_string(),
        };
        let message = format!("node '{}' ({}): {problem}", node.name, node.op_type);
        self.error("F0043", message, "docs/onnx.md says what is supported of each op");
        None
    }

    /// The values of the graph's outputs.
    fn results(&mut self, b: &mut Builder<'c>, names: &Names<'c>) -> Vec<Value<'c>> {
        let mut values = vec![];
        for output in &self.model.graph.outputs {
            let Some(Some(operand)) = names.get(&output.name) else { continue };
            match b.value(operand) {
                Ok(value) => values.push(value),
                Err(failure) => {
                    let found = self.made::<()>(Err(failure)).err().unwrap_or_default();
                    self.found.0.extend(found.0);
                }
            }
        }
        values
    }

    fn result_attributes(&self, names: &Names<'c>) -> Vec<Attr<'c>> {
        let outputs = self.model.graph.outputs.iter();
        let typed = outputs.filter_map(|o| Some((&o.name, names.get(&o.name)?.as_ref()?.dtype)));
        typed.map(|(name, dtype)| boundary(self.cx, name, dtype)).collect()
    }
}
