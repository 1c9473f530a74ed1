//! A model's graph as plain data: nodes in order, each name defined once, every operand defined before it is read.
//!
//! Ensures: the above; versions of all operator sets known. `functions.rs` has inlined the model's own functions.

use super::proto::{self, DimensionValue, GraphProto, NodeProto, TypeProto, TypeValue, ValueInfoProto, attribute_type};
use super::symbolic::Dim;
use super::tensor::{Files, Tensor};
use super::{DataType, Problem};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

/// A graph.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// Its name.
    pub name: String,
    /// Nodes, each after those that it reads.
    pub nodes: Vec<Node>,
    /// Constants by name.
    pub initializers: BTreeMap<String, Rc<Tensor>>,
    /// Inputs in order; those with a default value are also initializers.
    pub inputs: Vec<ValueInfo>,
    /// Outputs in order.
    pub outputs: Vec<ValueInfo>,
}

/// An op of a graph.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// Its name, or that of its first result.
    pub name: String,
    /// The op.
    pub op_type: String,
    /// The operator set; empty: ai.onnx.
    pub domain: String,
    /// Version of the operator set; 0 where the model does not state it.
    pub opset: i64,
    /// Which of the model's functions of this name it calls.
    pub overload: String,
    /// Names of operands; empty: not given.
    pub inputs: Vec<String>,
    /// Names of results; empty: not wanted.
    pub outputs: Vec<String>,
    /// Attributes by name.
    pub attributes: BTreeMap<String, Attribute>,
}

/// Value of an attribute.
#[derive(Clone, Debug)]
pub enum Attribute {
    /// A number.
    Float(f32),
    /// An integer.
    Int(i64),
    /// A string.
    String(String),
    /// A tensor.
    Tensor(Rc<Tensor>),
    /// A graph, which sees the names around it.
    Graph(Rc<Graph>),
    /// Numbers.
    Floats(Vec<f32>),
    /// Integers.
    Ints(Vec<i64>),
    /// Strings.
    Strings(Vec<String>),
    /// A type.
    Type(ValueType),
    /// In a function: the attribute of the call with this name.
    Reference(String),
    /// Of a kind that no op here reads.
    Other,
}

/// Name and type of an input or output.
#[derive(Clone, Debug)]
pub struct ValueInfo {
    /// The name.
    pub name: String,
    /// The type.
    pub ty: ValueType,
}

/// Type of a value, as the file states it.
#[derive(Clone, Debug, PartialEq)]
pub enum ValueType {
    /// A tensor; without a shape its rank is not stated.
    Tensor(DataType, Option<Vec<Option<Dim>>>),
    /// A sequence.
    Sequence(Box<ValueType>),
    /// An optional.
    Optional(Box<ValueType>),
    /// Not stated, or of a kind that is not supported.
    Unknown,
}

impl ValueType {
    /// The type of the value, of an optional that it has.
    pub fn given(&self) -> &Self {
        match self {
            Self::Optional(of) => of,
            ty => ty,
        }
    }

    /// The type with sizes for some symbols.
    #[must_use]
    pub fn bind(&self, sizes: &BTreeMap<String, i64>) -> Self {
        match self {
            Self::Tensor(dtype, shape) => {
                let bound = |dim: &Option<Dim>| dim.as_ref().map(|dim| dim.bind(sizes));
                Self::Tensor(*dtype, shape.as_ref().map(|shape| shape.iter().map(bound).collect()))
            }
            Self::Sequence(of) => Self::Sequence(Box::new(of.bind(sizes))),
            Self::Optional(of) => Self::Optional(Box::new(of.bind(sizes))),
            Self::Unknown => Self::Unknown,
        }
    }
}

/// Makes plain data of messages.
pub(super) struct Reader<'a> {
    /// The mapped files.
    pub files: &'a mut Files,
    /// What is wrong with the model so far.
    pub problems: &'a mut Vec<Problem>,
}

impl Reader<'_> {
    /// The graph with its names as they are in the file; `opsets` are the versions by domain.
    pub fn graph(&mut self, proto: &GraphProto, opsets: &HashMap<String, i64>) -> Graph {
        let mut initializers = BTreeMap::new();
        let mut names = HashSet::new();
        for tensor in &proto.initializer {
            if !names.insert(&tensor.name) {
                self.problems.push(twice(&tensor.name, &proto.name));
            }
            if let Some(read) = self.tensor(tensor, &format!("initializer '{}'", tensor.name)) {
                initializers.insert(tensor.name.clone(), read);
            }
        }
        for sparse in &proto.sparse_initializer {
            let name = sparse.values.as_ref().map(|v| v.name.clone()).unwrap_or_default();
            self.problem(format!("initializer '{name}' is sparse"), "store it as a dense tensor");
        }
        let nodes = proto.node.iter().map(|n| self.node(n, opsets)).collect();
        let infos = |infos: &[ValueInfoProto]| infos.iter().map(value_info).collect();
        Graph {
            name: proto.name.clone(),
            nodes,
            initializers,
            inputs: infos(&proto.input),
            outputs: infos(&proto.output),
        }
    }

    /// One node.
    pub fn node(&mut self, proto: &NodeProto, opsets: &HashMap<String, i64>) -> Node {
        let named = if proto.name.is_empty() { proto.output.iter().find(|o| !o.is_empty()) } else { Some(&proto.name) };
        let name = named.cloned().unwrap_or_default();
        let domain = domain_key(&proto.domain).to_owned();
        let opset = opsets.get(&domain).copied().unwrap_or(0);
        let mut attributes = BTreeMap::new();
        for attribute in &proto.attribute {
            let value = self.attribute(attribute, &name, opsets);
            if attributes.insert(attribute.name.clone(), value).is_some() {
                let message =
                    format!("attribute '{}' of node '{name}' ({}) is given twice", attribute.name, proto.op_type);
                self.problems.push(invalid(message, "give each attribute once"));
            }
        }
        let (inputs, outputs, overload) = (proto.input.clone(), proto.output.clone(), proto.overload.clone());
        Node { name, op_type: proto.op_type.clone(), domain, opset, overload, inputs, outputs, attributes }
    }

    /// The value of an attribute.
    pub fn attribute(&mut self, proto: &proto::AttributeProto, node: &str, opsets: &HashMap<String, i64>) -> Attribute {
        let text = |bytes: &bytes::Bytes| String::from_utf8_lossy(bytes).into_owned();
        if !proto.ref_attr_name.is_empty() {
            return Attribute::Reference(proto.ref_attr_name.clone());
        }
        match proto.r#type {
            attribute_type::FLOAT => Attribute::Float(proto.f),
            attribute_type::INT => Attribute::Int(proto.i),
            attribute_type::STRING => Attribute::String(text(&proto.s)),
            attribute_type::FLOATS => Attribute::Floats(proto.floats.clone()),
            attribute_type::INTS => Attribute::Ints(proto.ints.clone()),
            attribute_type::STRINGS => Attribute::Strings(proto.strings.iter().map(text).collect()),
            attribute_type::TENSOR => {
                let what = format!("attribute '{}' of node '{node}'", proto.name);
                let tensor = proto.t.as_ref().and_then(|t| self.tensor(t, &what));
                tensor.map_or(Attribute::Other, Attribute::Tensor)
            }
            attribute_type::GRAPH => {
                let graph = proto.g.as_ref().map(|g| self.graph(g, opsets)).unwrap_or_default();
                Attribute::Graph(Rc::new(graph))
            }
            attribute_type::TYPE_PROTO => Attribute::Type(proto.tp.as_ref().map_or(ValueType::Unknown, value_type)),
            _ => Attribute::Other,
        }
    }

    fn tensor(&mut self, proto: &proto::TensorProto, what: &str) -> Option<Rc<Tensor>> {
        match self.files.tensor(proto) {
            Ok(tensor) => Some(Rc::new(tensor)),
            Err(problem) => {
                self.problems.push(Problem {
                    code: "F0044",
                    message: format!("{what}: {problem}"),
                    help: "write the tensor again, with its elements in the model or in a file beside it",
                });
                None
            }
        }
    }

    fn problem(&mut self, message: String, help: &'static str) {
        self.problems.push(Problem { code: "F0041", message, help });
    }
}

/// The domain of ai.onnx is empty.
pub(super) fn domain_key(domain: &str) -> &str {
    if domain == domain_name("") { "" } else { domain }
}

/// The name of a domain.
pub fn domain_name(domain: &str) -> &str {
    if domain.is_empty() { "ai.onnx" } else { domain }
}

fn twice(name: &str, graph: &str) -> Problem {
    let message = format!("'{name}' is defined twice in graph '{graph}'");
    Problem { code: "F0041", message, help: "give each input, constant and result a name of its own" }
}

fn value_info(proto: &ValueInfoProto) -> ValueInfo {
    ValueInfo { name: proto.name.clone(), ty: proto.r#type.as_ref().map_or(ValueType::Unknown, value_type) }
}

/// A type as plain data.
pub(super) fn value_type(proto: &TypeProto) -> ValueType {
    let element = |e: &proto::ElementTypeProto| Box::new(e.elem_type.as_deref().map_or(ValueType::Unknown, value_type));
    match &proto.value {
        Some(TypeValue::Tensor(tensor)) => match DataType::from_number(tensor.elem_type) {
            Some(dtype) => {
                let shape = tensor.shape.as_ref().map(|s| s.dim.iter().map(dimension).collect());
                ValueType::Tensor(dtype, shape)
            }
            None => ValueType::Unknown,
        },
        Some(TypeValue::Sequence(sequence)) => ValueType::Sequence(element(sequence)),
        Some(TypeValue::Optional(optional)) => ValueType::Optional(element(optional)),
        _ => ValueType::Unknown,
    }
}

/// A number or a symbol; `None` without a name.
fn dimension(proto: &proto::DimensionProto) -> Option<Dim> {
    match &proto.value {
        Some(DimensionValue::Value(size)) if *size >= 0 => Some(Dim::constant(*size)),
        Some(DimensionValue::Param(name)) if !name.is_empty() => Some(Dim::symbol(name)),
        _ => None,
    }
}

/// The names that a node reads, those of its graphs from around them included.
pub(super) fn reads(node: &Node) -> BTreeSet<&str> {
    let mut names: BTreeSet<&str> = node.inputs.iter().filter(|i| !i.is_empty()).map(String::as_str).collect();
    for attribute in node.attributes.values() {
        if let Attribute::Graph(graph) = attribute {
            names.extend(free_names(graph));
        }
    }
    names
}

/// The names that a graph reads from around it.
pub fn free_names(graph: &Graph) -> BTreeSet<&str> {
    let mut free: BTreeSet<&str> = graph.nodes.iter().flat_map(reads).collect();
    free.extend(graph.outputs.iter().map(|o| o.name.as_str()));
    for defined in defined(graph) {
        free.remove(defined);
    }
    free
}

fn defined(graph: &Graph) -> impl Iterator<Item = &str> {
    let nodes = graph.nodes.iter().flat_map(|n| &n.outputs).filter(|o| !o.is_empty());
    let given = graph.inputs.iter().map(|i| &i.name).chain(graph.initializers.keys());
    nodes.chain(given).map(String::as_str)
}

fn invalid(message: String, help: &'static str) -> Problem {
    Problem { code: "F0041", message, help }
}

/// The nodes by their results; reports names that are defined twice.
fn producers<'a>(graph: &'a Graph, problems: &mut Vec<Problem>) -> HashMap<&'a str, usize> {
    let mut inputs = HashSet::new();
    for input in &graph.inputs {
        if !inputs.insert(input.name.as_str()) {
            problems.push(twice(&input.name, &graph.name));
        }
    }
    let mut producer: HashMap<&str, usize> = HashMap::new();
    for (at, node) in graph.nodes.iter().enumerate() {
        for output in node.outputs.iter().filter(|o| !o.is_empty()) {
            if inputs.contains(output.as_str()) || graph.initializers.contains_key(output) {
                problems.push(twice(output, &graph.name));
            }
            if producer.insert(output, at).is_some() {
                let message = format!("'{output}' is the result of two nodes, of which one is '{}'", node.name);
                problems.push(invalid(message, "give each result a name of its own"));
            }
        }
    }
    producer
}

/// Checks what a node refers to but its operands.
fn check_node(node: &Node, problems: &mut Vec<Problem>) {
    let (name, op) = (&node.name, &node.op_type);
    if node.opset == 0 {
        let domain = domain_name(&node.domain);
        let message = format!("node '{name}' ({op}) is of the operator set {domain}, whose version is not stated");
        problems.push(invalid(message, "add the version to the model's opset_import"));
    }
    for (attribute, value) in &node.attributes {
        if let Attribute::Reference(of) = value {
            let message = format!("attribute '{attribute}' of node '{name}' refers to '{of}' outside of a function");
            problems.push(invalid(message, "give the attribute a value"));
        }
    }
}

/// Checks that every name is defined once and read after it; sorts nodes that are out of order. `known` are the names around.
pub(super) fn check(graph: &mut Graph, known: &mut HashSet<String>, problems: &mut Vec<Problem>) {
    let given = graph.inputs.iter().map(|i| &i.name).chain(graph.initializers.keys());
    let mut own: Vec<String> = given.filter(|name| known.insert((*name).clone())).cloned().collect();
    let producer = producers(graph, problems);
    for node in &graph.nodes {
        check_node(node, problems);
        for name in reads(node).into_iter().filter(|n| !known.contains(*n) && !producer.contains_key(n)) {
            let message = format!("node '{}' ({}) reads '{name}', which is not defined", node.name, node.op_type);
            problems.push(invalid(message, "export the model again; onnx.checker finds such names too"));
        }
    }
    for output in graph.outputs.iter().filter(|o| !known.contains(&o.name) && !producer.contains_key(o.name.as_str())) {
        let message = format!("output '{}' of graph '{}' is not defined", output.name, graph.name);
        problems.push(invalid(message, "export the model again; onnx.checker finds such names too"));
    }
    match order(graph, &producer) {
        Ok(order) => {
            let mut nodes: Vec<Option<Node>> = std::mem::take(&mut graph.nodes).into_iter().map(Some).collect();
            graph.nodes = order.into_iter().filter_map(|at| nodes[at].take()).collect();
        }
        Err(at) => {
            let node = &graph.nodes[at];
            let message = format!("node '{}' ({}) reads its own result, through others", node.name, node.op_type);
            problems.push(invalid(message, "break the cycle: a loop is a Loop or Scan node"));
        }
    }
    let made = graph.nodes.iter().flat_map(|n| &n.outputs).filter(|name| !name.is_empty());
    own.extend(made.filter(|name| known.insert((*name).clone())).cloned());
    for node in &mut graph.nodes {
        for attribute in node.attributes.values_mut() {
            if let Attribute::Graph(inner) = attribute {
                check(Rc::make_mut(inner), known, problems);
            }
        }
    }
    own.iter().for_each(|name| _ = known.remove(name));
}

/// Positions of the nodes so that each comes after those that it reads, or a node of a cycle.
fn order(graph: &Graph, producer: &HashMap<&str, usize>) -> Result<Vec<usize>, usize> {
    let count = graph.nodes.len();
    let mut readers: Vec<Vec<usize>> = vec![vec![]; count];
    let mut waits = vec![0_usize; count];
    for (at, node) in graph.nodes.iter().enumerate() {
        for from in reads(node).into_iter().filter_map(|name| producer.get(name)) {
            readers[*from].push(at);
            waits[at] += 1;
        }
    }
    // The smallest ready position first, so that ordered nodes stay where they are.
    let mut ready: BTreeSet<usize> = (0..count).filter(|at| waits[*at] == 0).collect();
    let mut sorted = Vec::with_capacity(count);
    while let Some(at) = ready.pop_first() {
        sorted.push(at);
        for reader in &readers[at] {
            waits[*reader] -= 1;
            if waits[*reader] == 0 {
                ready.insert(*reader);
            }
        }
    }
    if sorted.len() == count { Ok(sorted) } else { Err((0..count).find(|at| waits[*at] > 0).unwrap_or(0)) }
}
