//! Folds batch norms into the weights of the convolutions and products that they follow.
//!
//! ```text
//! c = Conv(x, W, B)                                                y = Conv(x, W', B')
//! y = BatchNormalization(c, scale, shift, mean, variance)    ==>     W' = W * f per output channel
//!                                                                    B' = (B - mean) * f + shift
//! ```
//!
//! `f` is `scale / sqrt(variance + epsilon)`. New constants are computed in f64 and rounded once; others stay in the mapped file.
//! Ensures: a valid graph of the same inputs and outputs.
//! Limits: Conv, ConvTranspose and Gemm with constant weights, whose result nothing else reads; inference.

use super::DataType;
use super::graph::{Attribute, Graph, Node, reads};
use super::tensor::Tensor;
use std::collections::HashMap;
use std::rc::Rc;

/// The graph with the norms folded; `None` where there is none to fold.
pub(super) fn fold(graph: &Graph) -> Option<Graph> {
    let mut readers: HashMap<&str, usize> = HashMap::new();
    let outputs = graph.outputs.iter().map(|output| output.name.as_str());
    graph.nodes.iter().flat_map(reads).chain(outputs).for_each(|name| *readers.entry(name).or_default() += 1);
    let writers: HashMap<&str, usize> = graph
        .nodes
        .iter()
        .enumerate()
        .flat_map(|(at, node)| node.outputs.iter().map(move |o| (o.as_str(), at)))
        .collect();
    let mut folded: Option<Graph> = None;
    let mut gone = vec![false; graph.nodes.len()];
    for (at, norm) in graph.nodes.iter().enumerate().filter(|(_, node)| is(node, "BatchNormalization")) {
        let given = norm.inputs.first().map_or("", String::as_str);
        let Some(product) = writers.get(given).copied().filter(|_| readers.get(given) == Some(&1)) else { continue };
        let Some(made) = Folded::of(graph, &graph.nodes[product], norm) else { continue };
        let out = folded.get_or_insert_with(|| graph.clone());
        gone[at] = true;
        out.nodes[product] = made.node;
        out.initializers.extend(made.constants.map(|(name, tensor)| (name, Rc::new(tensor))));
    }
    let mut out = folded?;
    let mut at = 0..;
    out.nodes.retain(|_| !at.next().is_some_and(|at| gone[at]));
    Some(out)
}

fn is(node: &Node, op: &str) -> bool {
    node.domain.is_empty() && node.op_type == op
}

/// A product with the norm in its weights.
struct Folded {
    node: Node,
    /// Weights and bias, by name.
    constants: [(String, Tensor); 2],
}

impl Folded {
    fn of(graph: &Graph, product: &Node, norm: &Node) -> Option<Self> {
        let channels = Channels::of(graph, product)?;
        let (factors, offsets) = factors(graph, norm, channels.count)?;
        let (weights, result) = (channels.weights, norm.outputs.first()?);
        let bias = channels.bias(graph, product)?;
        let scaled: Vec<f64> =
            weights.to_f64()?.into_iter().enumerate().map(|(at, w)| w * factors[channels.at(at)]).collect();
        let added: Vec<f64> = (0..channels.count).map(|c| bias[c] * factors[c] + offsets[c]).collect();
        let name = |suffix: &str| {
            let mut name = format!("{result}.{suffix}");
            while is_taken(graph, &name) {
                name.push('_');
            }
            name
        };
        let constants = [
            constant(name("weights"), weights.dtype, weights.shape.clone(), &scaled)?,
            constant(name("bias"), weights.dtype, vec![channels.count as i64], &added)?,
        ];
        let mut node = product.clone();
        let [weights, bias] = &constants;
        node.inputs = vec![product.inputs.first()?.clone(), weights.0.clone(), bias.0.clone()];
        node.outputs = vec![result.clone()];
        node.attributes.remove("beta");
        Some(Self { node, constants })
    }
}

fn is_taken(graph: &Graph, name: &str) -> bool {
    let inputs = graph.inputs.iter().map(|input| &input.name).chain(graph.initializers.keys());
    inputs.chain(graph.nodes.iter().flat_map(|node| &node.outputs)).any(|taken| taken == name)
}

/// A named constant; `None` where a number is not finite in its type.
fn constant(name: String, dtype: DataType, shape: Vec<i64>, values: &[f64]) -> Option<(String, Tensor)> {
    let tensor = Tensor { name: name.clone(), ..Tensor::from_f64(dtype, shape, values)? };
    tensor.to_f64()?.iter().all(|value| value.is_finite()).then_some((name, tensor))
}

/// The elements of a constant: an initializer, or the result of a Constant node.
fn known<'a>(graph: &'a Graph, name: &str) -> Option<&'a Tensor> {
    let made = || {
        let node =
            graph.nodes.iter().find(|node| is(node, "Constant") && node.outputs.first().is_some_and(|o| o == name))?;
        match node.attributes.get("value") {
            Some(Attribute::Tensor(tensor)) => Some(tensor),
            _ => None,
        }
    };
    graph.initializers.get(name).or_else(made).map(Rc::as_ref)
}

/// The norm as a factor and an offset per channel; `None` for one that trains, or of operands that are not constant.
fn factors(graph: &Graph, norm: &Node, channels: usize) -> Option<(Vec<f64>, Vec<f64>)> {
    let int = |name: &str, default| match norm.attributes.get(name) {
        Some(Attribute::Int(value)) => Some(*value),
        Some(_) => None,
        None => Some(default),
    };
    let epsilon = match norm.attributes.get("epsilon") {
        Some(Attribute::Float(value)) => f64::from(*value),
        Some(_) => return None,
        None => f64::from(1e-5f32),
    };
    let trains = int("training_mode", 0)? != 0 || (norm.opset < 7 && int("is_test", 0)? == 0);
    let extra = norm.outputs.iter().skip(1).any(|output| !output.is_empty());
    if trains || extra || int("spatial", 1)? == 0 || norm.inputs.len() != 5 {
        return None;
    }
    let numbers = |at: usize| known(graph, &norm.inputs[at])?.to_f64().filter(|numbers| numbers.len() == channels);
    let (scale, shift, mean, variance) = (numbers(1)?, numbers(2)?, numbers(3)?, numbers(4)?);
    let factors: Vec<f64> = (0..channels).map(|c| scale[c] / (variance[c] + epsilon).sqrt()).collect();
    let offsets = (0..channels).map(|c| shift[c] - mean[c] * factors[c]).collect();
    Some((factors, offsets))
}

/// How the weights of a product lie by output channel.
struct Channels<'a> {
    weights: &'a Tensor,
    count: usize,
    /// Elements from one channel to the next.
    stride: usize,
    /// Elements from one group of channels to the next, and channels of a group.
    group: (usize, usize),
}

impl<'a> Channels<'a> {
    fn of(graph: &'a Graph, node: &Node) -> Option<Self> {
        let weights = known(graph, node.inputs.get(1)?)?;
        let float = matches!(weights.dtype, DataType::F16 | DataType::Bf16 | DataType::F32 | DataType::F64);
        let shape: Vec<usize> = weights.shape.iter().map(|size| usize::try_from(*size).ok()).collect::<Option<_>>()?;
        let [first, second, window @ ..] = &shape[..] else { return None };
        if !float || weights.elements() == 0 || node.outputs.len() != 1 || node.inputs.len() > 3 {
            return None;
        }
        let (first, second, window) = (*first, *second, window.iter().product::<usize>());
        let int = |name: &str, default| match node.attributes.get(name) {
            Some(Attribute::Int(value)) => usize::try_from(*value).ok(),
            Some(_) => None,
            None => Some(default),
        };
        let of = |count: usize, stride, group| Some(Self { weights, count, stride, group });
        if is(node, "Conv") {
            return of(first, second * window, (weights.elements(), first));
        }
        if is(node, "ConvTranspose") {
            let groups = int("group", 1)?;
            let channels = first.checked_div(groups).filter(|channels| channels * groups == first)?;
            return of(second * groups, window, (channels * second * window, second));
        }
        if !is(node, "Gemm") || shape.len() != 2 {
            return None;
        }
        match int("transB", 0)? {
            0 => of(second, 1, (weights.elements(), second)),
            _ => of(first, second, (weights.elements(), first)),
        }
    }

    /// The output channel of an element.
    fn at(&self, element: usize) -> usize {
        let (elements, channels) = self.group;
        element / elements * channels + element % elements / self.stride % channels
    }

    /// What the product adds per channel.
    fn bias(&self, graph: &Graph, node: &Node) -> Option<Vec<f64>> {
        let Some(name) = node.inputs.get(2).filter(|name| !name.is_empty()) else { return Some(vec![0.0; self.count]) };
        let beta = match node.attributes.get("beta").filter(|_| is(node, "Gemm")) {
            Some(Attribute::Float(value)) => f64::from(*value),
            Some(_) => return None,
            None => 1.0,
        };
        let tensor = known(graph, name)?;
        // A product's is broadcast to its rows.
        let fits =
            tensor.shape.len() == 1 || (is(node, "Gemm") && tensor.shape.iter().rev().skip(1).all(|size| *size == 1));
        let numbers: Vec<f64> = tensor.to_f64()?.into_iter().map(|number| number * beta).collect();
        match numbers.len() {
            1 if is(node, "Gemm") => Some(vec![numbers[0]; self.count]),
            count => (count == self.count && fits).then_some(numbers),
        }
    }
}
