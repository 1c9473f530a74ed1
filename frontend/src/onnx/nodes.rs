//! Lowers the nodes of graphs, of the main one and of those within nodes.
//!
//! A node that cannot be lowered is reported, and those that read it are passed over, so that all problems are reported.

use super::builder::{Builder, Failure};
use super::graph::{Graph, Node};
use super::node::NodeContext;
use super::operand::{Known, Operand};
use super::symbolic::Dim;
use monopour_ir::{Diagnostic, Location};
use std::collections::HashMap;

/// The remedy for nodes that are refused.
pub(super) const HELP: &str = "docs/onnx.md says what is supported of each op";

/// Values by name; `None`: a node that could not be lowered.
pub(super) type Names<'c> = HashMap<String, Option<Operand<'c>>>;

impl<'c> Builder<'c> {
    /// Lowers a graph within a node at the insertion point, with these operands for its inputs; it sees the names around the
    /// node. Returns its outputs.
    ///
    /// # Errors
    /// If the graph takes more or fewer operands, or a node of it was reported.
    pub fn graph(&mut self, graph: &Graph, operands: Vec<Operand<'c>>) -> Result<Vec<Operand<'c>>, Failure> {
        let given = graph.inputs.iter().filter(|i| !graph.initializers.contains_key(&i.name));
        let mut names = Names::new();
        let mut operands = operands.into_iter();
        for input in given {
            let operand = operands.next().ok_or_else(|| format!("its graph has an input '{}' too many", input.name))?;
            names.insert(input.name.clone(), Some(operand));
        }
        if operands.next().is_some() {
            return Err(format!("its graph '{}' takes only {} operands", graph.name, names.len()).into());
        }
        let loc = self.loc;
        self.enter(graph, names);
        let found = self.found.0.len();
        self.nodes(graph);
        let outputs: Option<Vec<Operand>> = graph.outputs.iter().map(|o| self.named(&o.name)?.clone()).collect();
        self.scopes.pop();
        self.loc = loc;
        if self.found.0.len() > found { Err(Failure::Reported) } else { outputs.ok_or(Failure::Reported) }
    }

    /// Makes a graph's constants and these names visible.
    pub(super) fn enter(&mut self, graph: &Graph, mut names: Names<'c>) {
        for (name, tensor) in &graph.initializers {
            names.insert(name.clone(), Some(Operand::constant(tensor.clone())));
        }
        self.scopes.push(names);
    }

    /// The value of a name, innermost first.
    pub(super) fn named(&self, name: &str) -> Option<&Option<Operand<'c>>> {
        self.scopes.iter().rev().find_map(|names| names.get(name))
    }

    /// Lowers the nodes of a graph in order.
    pub(super) fn nodes(&mut self, graph: &Graph) {
        for node in &graph.nodes {
            let given = |name: &String| if name.is_empty() { Some(None) } else { self.named(name)?.clone().map(Some) };
            // An operand that could not be lowered has been reported.
            let operands: Option<Vec<Option<Operand>>> = node.inputs.iter().map(given).collect();
            let results = operands.and_then(|operands| self.node(node, operands));
            let mut results = results.map(Vec::into_iter);
            let names = self.scopes.last_mut().expect("invariant: a graph is entered before its nodes");
            for name in &node.outputs {
                let result = results.as_mut().and_then(Iterator::next);
                if !name.is_empty() {
                    names.insert(name.clone(), result);
                }
            }
        }
    }

    /// The results of a node; `None` after a report.
    fn node(&mut self, node: &Node, operands: Vec<Option<Operand<'c>>>) -> Option<Vec<Operand<'c>>> {
        let lowering = self.registry.get(&node.domain, &node.op_type, node.opset)?.lowering;
        self.loc = Location::named(self.context(), &node.name);
        let results = match lowering(self, &NodeContext { node, operands }) {
            Ok(results) => {
                let wanted = node.outputs.iter().rposition(|o| !o.is_empty()).map_or(0, |last| last + 1);
                if results.len() < wanted {
                    Err(format!("its result {} is not supported", results.len()).into())
                } else {
                    results.into_iter().map(|result| self.shortened(result)).collect()
                }
            }
            failure => failure,
        };
        let problem = match results {
            Ok(results) => return Some(results),
            Err(Failure::Reported) => return None,
            Err(Failure::Node(message)) => message,
            Err(Failure::Ir(diagnostics)) => diagnostics.to_string(),
        };
        self.report("F0043", format!("node '{}' ({}): {problem}", node.name, node.op_type));
        None
    }

    /// The operand, whose sizes of many parts are symbols of their own from here on.
    fn shortened(&mut self, mut operand: Operand<'c>) -> Result<Operand<'c>, Failure> {
        if matches!(&operand.known, Some(Known::Sizes(sizes)) if !sizes.iter().all(Dim::is_small)) {
            operand.value = Some(self.value(&operand)?);
            operand.known = None;
        }
        if let Some(value) = operand.value {
            for (axis, dim) in operand.shape.iter_mut().enumerate().filter(|(_, dim)| !dim.is_small()) {
                let size = self.dim_of(value, axis)?;
                *dim = self.new_symbol(size);
            }
        }
        Ok(operand)
    }

    /// Reports a problem of the model.
    pub(super) fn report(&mut self, code: &'static str, message: String) {
        let mut diagnostic = Diagnostic::global(code, message).with_help(HELP);
        diagnostic.location.clone_from(&self.file);
        self.found.0.push(diagnostic);
    }
}
