//! What a lowering reads of its node.

use super::DataType;
use super::builder::Failure;
use super::graph::{Attribute, Graph, Node};
use super::operand::Operand;
use super::tensor::Tensor;
use std::rc::Rc;

/// Largest size in an attribute of a window.
const MAX_EXTENT: u64 = 1 << 30;

/// A node with its operands.
#[derive(Debug)]
pub struct NodeContext<'a, 'c> {
    /// The node.
    pub node: &'a Node,
    /// Its operands; `None` where one is not given.
    pub operands: Vec<Option<Operand<'c>>>,
}

impl<'c> NodeContext<'_, 'c> {
    /// Version of the node's operator set.
    pub fn opset(&self) -> i64 {
        self.node.opset
    }
    /// Number of operands, given or not.
    pub fn num_operands(&self) -> usize {
        self.operands.len()
    }
    /// Number of results, wanted or not.
    pub fn num_results(&self) -> usize {
        self.node.outputs.len()
    }
    /// Whether a result is wanted.
    pub fn wants(&self, result: usize) -> bool {
        self.node.outputs.get(result).is_some_and(|name| !name.is_empty())
    }
    /// An operand.
    ///
    /// # Errors
    /// If it is not given.
    pub fn operand(&self, at: usize) -> Result<&Operand<'c>, Failure> {
        self.optional(at).ok_or_else(|| format!("operand {at} is missing").into())
    }
    /// An operand that may be missing.
    pub fn optional(&self, at: usize) -> Option<&Operand<'c>> {
        self.operands.get(at).and_then(Option::as_ref)
    }
    /// All operands.
    ///
    /// # Errors
    /// If one is not given.
    pub fn all(&self) -> Result<Vec<&Operand<'c>>, Failure> {
        (0..self.num_operands()).map(|at| self.operand(at)).collect()
    }
    fn wrong(&self, name: &str, kind: &str) -> Failure {
        format!("attribute '{name}' is not {kind}").into()
    }
    /// An integer attribute, if given.
    ///
    /// # Errors
    /// For one of another kind.
    pub fn int_given(&self, name: &str) -> Result<Option<i64>, Failure> {
        match self.node.attributes.get(name) {
            Some(Attribute::Int(value)) => Ok(Some(*value)),
            Some(_) => Err(self.wrong(name, "an integer")),
            None => Ok(None),
        }
    }
    /// An integer attribute, or its default value.
    ///
    /// # Errors
    /// As [`Self::int_given`].
    pub fn int(&self, name: &str, default: i64) -> Result<i64, Failure> {
        Ok(self.int_given(name)?.unwrap_or(default))
    }
    /// Whether an integer attribute is not zero.
    ///
    /// # Errors
    /// As [`Self::int_given`].
    pub fn flag(&self, name: &str, default: bool) -> Result<bool, Failure> {
        Ok(self.int(name, i64::from(default))? != 0)
    }
    /// A float attribute, or its default value.
    ///
    /// # Errors
    /// For one of another kind.
    pub fn float(&self, name: &str, default: f64) -> Result<f64, Failure> {
        match self.node.attributes.get(name) {
            Some(Attribute::Float(value)) => Ok(f64::from(*value)),
            Some(_) => Err(self.wrong(name, "a float")),
            None => Ok(default),
        }
    }
    /// A string attribute, or its default value.
    ///
    /// # Errors
    /// For one of another kind.
    pub fn string(&self, name: &str, default: &str) -> Result<String, Failure> {
        match self.node.attributes.get(name) {
            Some(Attribute::String(value)) => Ok(value.clone()),
            Some(_) => Err(self.wrong(name, "a string")),
            None => Ok(default.to_owned()),
        }
    }
    /// An attribute of integers, if given.
    ///
    /// # Errors
    /// For one of another kind.
    pub fn ints(&self, name: &str) -> Result<Option<Vec<i64>>, Failure> {
        match self.node.attributes.get(name) {
            Some(Attribute::Ints(values)) => Ok(Some(values.clone())),
            Some(_) => Err(self.wrong(name, "a list of integers")),
            None => Ok(None),
        }
    }
    /// An attribute of integers that count elements, such that their sums and products of two do not overflow.
    ///
    /// # Errors
    /// For one of another kind, and for larger ones.
    pub fn extents(&self, name: &str) -> Result<Option<Vec<i64>>, Failure> {
        let given = self.ints(name)?;
        match given.iter().flatten().find(|value| value.unsigned_abs() > MAX_EXTENT) {
            Some(value) => Err(format!("{value} of attribute '{name}' is too large").into()),
            None => Ok(given),
        }
    }
    /// [`Self::extents`], `count` of them, or as many of the default.
    ///
    /// # Errors
    /// As [`Self::extents`], and for another number of them.
    pub fn ints_of(&self, name: &str, count: usize, default: i64) -> Result<Vec<i64>, Failure> {
        let given = self.extents(name)?.unwrap_or_else(|| vec![default; count]);
        let wrong = || format!("attribute '{name}' is {given:?}, not {count} numbers").into();
        if given.len() == count { Ok(given) } else { Err(wrong()) }
    }
    /// An attribute of floats, if given.
    ///
    /// # Errors
    /// For one of another kind.
    pub fn floats(&self, name: &str) -> Result<Option<Vec<f64>>, Failure> {
        match self.node.attributes.get(name) {
            Some(Attribute::Floats(values)) => Ok(Some(values.iter().map(|v| f64::from(*v)).collect())),
            Some(_) => Err(self.wrong(name, "a list of floats")),
            None => Ok(None),
        }
    }
    /// A tensor attribute, if given.
    ///
    /// # Errors
    /// For one of another kind.
    pub fn tensor(&self, name: &str) -> Result<Option<Rc<Tensor>>, Failure> {
        match self.node.attributes.get(name) {
            Some(Attribute::Tensor(value)) => Ok(Some(value.clone())),
            Some(_) => Err(self.wrong(name, "a dense tensor of numbers")),
            None => Ok(None),
        }
    }
    /// A graph attribute.
    ///
    /// # Errors
    /// If it is not given.
    pub fn graph(&self, name: &str) -> Result<Rc<Graph>, Failure> {
        match self.node.attributes.get(name) {
            Some(Attribute::Graph(graph)) => Ok(graph.clone()),
            _ => Err(self.wrong(name, "a graph")),
        }
    }
    /// An element type, an integer attribute.
    ///
    /// # Errors
    /// For a number that is no type.
    pub fn data_type(&self, name: &str) -> Result<Option<DataType>, Failure> {
        let Some(number) = self.int_given(name)? else { return Ok(None) };
        let dtype = i32::try_from(number).ok().and_then(DataType::from_number);
        dtype.map(Some).ok_or_else(|| self.wrong(name, "an element type"))
    }
    /// A dimension's number, counted from the end where negative.
    ///
    /// # Errors
    /// For one that the rank does not have.
    pub fn axis(&self, axis: i64, rank: usize) -> Result<usize, Failure> {
        let counted = if axis < 0 { axis + rank as i64 } else { axis };
        let axis_error = || format!("axis {axis} is not one of {rank}").into();
        usize::try_from(counted).ok().filter(|a| *a < rank).ok_or_else(axis_error)
    }
    /// The axis attribute.
    ///
    /// # Errors
    /// As [`Self::axis`].
    pub fn axis_attribute(&self, default: i64, rank: usize) -> Result<usize, Failure> {
        self.axis(self.int("axis", default)?, rank)
    }
    /// Integers from an operand since a version, before it from the attribute; `None` where not given.
    ///
    /// # Errors
    /// For an operand whose elements are not known.
    pub fn ints_since(&self, version: i64, at: usize, name: &str) -> Result<Option<Vec<i64>>, Failure> {
        if self.opset() < version {
            return self.ints(name);
        }
        match self.optional(at) {
            Some(operand) => Ok(Some(self.known_ints(operand, name)?)),
            None => Ok(None),
        }
    }
    /// Whether integers that are an operand since a version are read at run time.
    pub fn is_read(&self, version: i64, at: usize) -> bool {
        self.opset() >= version && self.optional(at).is_some_and(|o| o.as_ints().is_none())
    }
    /// The elements of an operand that must be known.
    ///
    /// # Errors
    /// If they are not.
    pub fn known_ints(&self, operand: &Operand<'c>, name: &str) -> Result<Vec<i64>, Failure> {
        operand.as_ints().ok_or_else(|| format!("operand '{name}' is not a constant, which is not supported").into())
    }
    /// The axes of a reduction or view, sorted, each once; all of them where not given.
    ///
    /// # Errors
    /// As [`Self::axis`].
    pub fn axes(&self, given: Option<Vec<i64>>, rank: usize) -> Result<Vec<usize>, Failure> {
        let Some(given) = given else { return Ok((0..rank).collect()) };
        let mut axes: Vec<usize> = given.into_iter().map(|a| self.axis(a, rank)).collect::<Result<_, _>>()?;
        axes.sort_unstable();
        axes.dedup();
        Ok(axes)
    }
}
