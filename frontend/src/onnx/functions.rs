//! Inlines the functions that a model defines.
//!
//! Before / after:
//!
//! ```text
//! y = local.Twice(x)                 y = Add(x, x)
//! local.Twice(a) -> b { b = Add(a, a) }
//! ```
//!
//! Names of a body get the call's name before them; an attribute that refers to one of the call is that one.
//! Limits: functions that call themselves, and more than a million nodes (F0041).

use super::Problem;
use super::graph::{Attribute, Graph, Node, Reader, domain_key, domain_name};
use super::proto::FunctionProto;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// Calls within calls.
const MAX_DEPTH: usize = 64;
/// Nodes after inlining.
const MAX_NODES: usize = 1 << 20;

/// The functions of a model, by domain, name and overload.
pub(super) struct Functions(HashMap<(String, String, String), Function>);

struct Function {
    inputs: Vec<String>,
    outputs: Vec<String>,
    nodes: Vec<Node>,
    defaults: BTreeMap<String, Attribute>,
}

/// The versions of operator sets by domain.
pub(super) fn versions(imports: &[super::proto::OperatorSetIdProto]) -> HashMap<String, i64> {
    imports.iter().map(|import| (domain_key(&import.domain).to_owned(), import.version)).collect()
}

impl Functions {
    /// Reads the functions of a model.
    pub fn read(protos: &[FunctionProto], opsets: &HashMap<String, i64>, reader: &mut Reader) -> Self {
        let mut all = HashMap::new();
        for proto in protos {
            let mut own = opsets.clone();
            own.extend(versions(&proto.opset_import));
            let nodes = proto.node.iter().map(|n| reader.node(n, &own)).collect();
            let defaults = proto.attribute_proto.iter();
            let defaults = defaults.map(|a| (a.name.clone(), reader.attribute(a, &proto.name, &own))).collect();
            let key = (domain_key(&proto.domain).to_owned(), proto.name.clone(), proto.overload.clone());
            let function = Function { inputs: proto.input.clone(), outputs: proto.output.clone(), nodes, defaults };
            if all.insert(key, function).is_some() {
                let message = format!("function '{}' of {} is defined twice", proto.name, domain_name(&proto.domain));
                let help = "give each function a name or an overload of its own";
                reader.problems.push(Problem { code: "F0041", message, help });
            }
        }
        Self(all)
    }

    /// Replaces every call in a graph, and in the graphs of its nodes.
    pub fn inline(&self, graph: &mut Graph, problems: &mut Vec<Problem>) {
        if self.0.is_empty() {
            return;
        }
        let mut inliner = Inliner { functions: self, nodes: 0, overflow: false };
        graph.nodes = inliner.nodes(std::mem::take(&mut graph.nodes), 0);
        if inliner.overflow {
            let message = format!(
                "the functions of the model call one another more than {MAX_DEPTH} deep, or make more than {MAX_NODES} nodes"
            );
            problems.push(Problem {
                code: "F0041",
                message,
                help: "a function must not call itself; inline large functions only where they are needed",
            });
        }
    }

    fn get(&self, node: &Node) -> Option<&Function> {
        self.0.get(&(node.domain.clone(), node.op_type.clone(), node.overload.clone()))
    }
}

struct Inliner<'a> {
    functions: &'a Functions,
    nodes: usize,
    overflow: bool,
}

impl Inliner<'_> {
    fn nodes(&mut self, nodes: Vec<Node>, depth: usize) -> Vec<Node> {
        let mut out = vec![];
        for mut node in nodes {
            self.nodes += 1;
            if self.nodes > MAX_NODES || depth > MAX_DEPTH {
                self.overflow = true;
                return out;
            }
            for attribute in node.attributes.values_mut() {
                if let Attribute::Graph(graph) = attribute {
                    let graph = Rc::make_mut(graph);
                    graph.nodes = self.nodes(std::mem::take(&mut graph.nodes), depth + 1);
                }
            }
            match self.functions.get(&node) {
                Some(function) => {
                    let body = expand(function, &node, self.nodes);
                    out.extend(self.nodes(body, depth + 1));
                }
                None => out.push(node),
            }
        }
        out
    }
}

/// The body of a function with the names and attributes of a call.
fn expand(function: &Function, call: &Node, number: usize) -> Vec<Node> {
    let mut names: HashMap<&str, String> = HashMap::new();
    for (at, input) in function.inputs.iter().enumerate() {
        names.insert(input, call.inputs.get(at).cloned().unwrap_or_default());
    }
    for (at, output) in function.outputs.iter().enumerate() {
        let given = call.outputs.get(at).filter(|o| !o.is_empty() && !function.inputs.contains(output));
        if let Some(given) = given {
            names.insert(output, given.clone());
        }
    }
    let prefix = format!("{}#{number}/", call.name);
    let rename = |name: &String| match names.get(name.as_str()) {
        Some(given) => given.clone(),
        None if name.is_empty() => String::new(),
        None => format!("{prefix}{name}"),
    };
    let mut body: Vec<Node> = function.nodes.iter().map(|node| call_node(node, function, call, &rename)).collect();
    // An output that is an input is handed on.
    for (at, output) in function.outputs.iter().enumerate().filter(|(_, o)| function.inputs.contains(o)) {
        let result = call.outputs.get(at).cloned().unwrap_or_default();
        let node = Node { name: call.name.clone(), op_type: "Identity".to_owned(), opset: 1, ..Node::default() };
        body.push(Node { inputs: vec![rename(output)], outputs: vec![result], ..node });
    }
    body
}

fn call_node(body: &Node, function: &Function, call: &Node, rename: &impl Fn(&String) -> String) -> Node {
    let mut node = body.clone();
    node.name = format!("{}/{}", call.name, node.name);
    node.inputs = node.inputs.iter().map(rename).collect();
    node.outputs = node.outputs.iter().map(rename).collect();
    for attribute in node.attributes.values_mut() {
        if let Attribute::Graph(graph) = attribute {
            rename_graph(Rc::make_mut(graph), rename);
        }
    }
    // A graph of the call has the names of the call: it is not renamed.
    resolve(&mut node, function, call);
    node
}

/// Replaces references to attributes of the call, in graphs within the node too; one that has no value is left out.
fn resolve(node: &mut Node, function: &Function, call: &Node) {
    let attributes = std::mem::take(&mut node.attributes);
    let value = |(name, attribute)| match attribute {
        Attribute::Reference(of) => {
            let given = call.attributes.get(&of).or_else(|| function.defaults.get(&of));
            given.map(|value| (name, value.clone()))
        }
        Attribute::Graph(mut graph) => {
            Rc::make_mut(&mut graph).nodes.iter_mut().for_each(|inner| resolve(inner, function, call));
            Some((name, Attribute::Graph(graph)))
        }
        other => Some((name, other)),
    };
    node.attributes = attributes.into_iter().filter_map(value).collect();
}

fn rename_graph(graph: &mut Graph, rename: &impl Fn(&String) -> String) {
    for node in &mut graph.nodes {
        node.inputs = node.inputs.iter().map(rename).collect();
        node.outputs = node.outputs.iter().map(rename).collect();
        for attribute in node.attributes.values_mut() {
            if let Attribute::Graph(inner) = attribute {
                rename_graph(Rc::make_mut(inner), rename);
            }
        }
    }
    graph.inputs.iter_mut().chain(&mut graph.outputs).for_each(|info| info.name = rename(&info.name));
    let initializers = std::mem::take(&mut graph.initializers);
    graph.initializers = initializers.into_iter().map(|(name, tensor)| (rename(&name), tensor)).collect();
}
