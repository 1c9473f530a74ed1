//! Values of the graph: type, value in the IR, and the elements where they are known.

use super::DataType;
use super::symbolic::Dim;
use super::tensor::Tensor;
use monopour_ir::Value;
use std::rc::Rc;

/// Most elements that are looked at one by one.
pub const MAX_FOLDED: usize = 1 << 16;

/// A tensor of the graph.
#[derive(Clone, Debug)]
pub struct Operand<'c> {
    /// Element type.
    pub dtype: DataType,
    /// Dimensions.
    pub shape: Vec<Dim>,
    /// The value, once there is one.
    pub value: Option<Value<'c>>,
    /// The elements, if known.
    pub known: Option<Known<'c>>,
}

/// What is known at import: elements, or what a value is made of.
#[derive(Clone, Debug)]
pub enum Known<'c> {
    /// Numbers.
    Elements(Rc<Tensor>),
    /// Integers that are sizes, row-major.
    Sizes(Rc<Vec<Dim>>),
    /// A sequence of values.
    Sequence(Rc<Vec<Operand<'c>>>),
    /// An optional without a value.
    Nothing,
}

impl<'c> Operand<'c> {
    /// A value of the IR.
    pub fn value(dtype: DataType, shape: Vec<Dim>, value: Value<'c>) -> Self {
        Self { dtype, shape, value: Some(value), known: None }
    }
    /// A constant.
    pub fn constant(tensor: Rc<Tensor>) -> Self {
        let shape = tensor.shape.iter().map(|d| Dim::constant(*d)).collect();
        Self { dtype: tensor.dtype, shape, value: None, known: Some(Known::Elements(tensor)) }
    }
    /// Integers that are sizes: a constant where all are numbers.
    pub fn sizes(dtype: DataType, shape: Vec<i64>, sizes: Vec<Dim>) -> Self {
        let numbers: Option<Vec<i64>> = sizes.iter().map(Dim::as_constant).collect();
        if let Some(tensor) = numbers.and_then(|n| Tensor::from_i64(dtype, shape.clone(), &n)) {
            return Self::constant(Rc::new(tensor));
        }
        let shape = shape.into_iter().map(Dim::constant).collect();
        Self { dtype, shape, value: None, known: Some(Known::Sizes(Rc::new(sizes))) }
    }
    /// A sequence; its element type is that of its first value.
    pub fn sequence(items: Vec<Operand<'c>>) -> Self {
        let dtype = items.first().map_or(DataType::F32, |item| item.dtype);
        Self { dtype, shape: vec![], value: None, known: Some(Known::Sequence(Rc::new(items))) }
    }
    /// An optional without a value.
    pub fn nothing() -> Self {
        Self { dtype: DataType::F32, shape: vec![], value: None, known: Some(Known::Nothing) }
    }
    /// Whether this is no tensor.
    pub fn is_sequence(&self) -> bool {
        matches!(self.known, Some(Known::Sequence(_) | Known::Nothing))
    }
    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }
    /// The shape, if all its sizes are numbers.
    pub fn static_shape(&self) -> Option<Vec<i64>> {
        self.shape.iter().map(Dim::as_constant).collect()
    }
    /// Number of elements.
    pub fn elements(&self) -> Dim {
        Dim::product(&self.shape)
    }
    /// The constant, if this is one.
    pub fn tensor(&self) -> Option<&Rc<Tensor>> {
        match &self.known {
            Some(Known::Elements(tensor)) => Some(tensor),
            _ => None,
        }
    }
    /// The elements as sizes, if they are known integers and not many.
    pub fn as_sizes(&self) -> Option<Vec<Dim>> {
        if self.elements().is(0) {
            return Some(vec![]);
        }
        match self.known.as_ref()? {
            Known::Sizes(sizes) => Some(sizes.to_vec()),
            Known::Elements(t) if t.elements() <= MAX_FOLDED => {
                Some(t.to_i64()?.into_iter().map(Dim::constant).collect())
            }
            _ => None,
        }
    }
    /// The elements as integers, if they are known numbers and not many.
    pub fn as_ints(&self) -> Option<Vec<i64>> {
        self.as_sizes()?.iter().map(Dim::as_constant).collect()
    }
    /// The elements as floats, if they are known and not many.
    pub fn as_floats(&self) -> Option<Vec<f64>> {
        self.tensor().filter(|t| t.elements() <= MAX_FOLDED)?.to_f64()
    }
    /// The element, if there is one and it is known.
    pub fn as_scalar(&self) -> Option<f64> {
        let tensor = self.tensor().filter(|t| t.elements() == 1)?;
        tensor.to_f64()?.first().copied()
    }
}
