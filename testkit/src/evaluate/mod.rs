//! A reference evaluator with value semantics: programs on tensors, computed in f64 and exact integers.
//!
//! Tensors are values, so that no bug of aliasing is possible.
//!
//! Floats of every type are f64 throughout and are not rounded between ops, except by `evaluate_in_type`; integers wrap at
//! their width. `tensor.empty` is NaN (floats) or an unusual pattern (integers), so that a read of it shows in the result.
//! Named linalg ops are generalised by upstream's pass on a clone, so that one implementation of `linalg.generic` serves
//! all. Memrefs are views of buffers with lifetimes (`memory`), which `lifetimes` checks.
//! Limits: static and dynamic ranked tensors and memrefs of f16, bf16, f32, f64, iN (N <= 64) and index.

mod blocks;
mod body;
mod control;
mod gather;
mod generic;
mod globals;
pub mod lifetimes;
mod linalg_ops;
mod memory;
mod memref_ops;
mod scalar;
mod tensor_ops;
mod vectors;

use crate::host_tensor::{Data, Dtype, HostTensor, decode_float, encode_float};
pub use memory::Defect;
use memory::{Memory, Origin, View};
use monopour_ir::ops;
use monopour_ir::{Attr, DYNAMIC, Module, Op, Rewriter, Type, Value, run_passes};
use scalar::{Scalar, ScalarOp, dtype_of};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::rc::Rc;

/// Most ops and loop iterations of one evaluation: far above any test, yet it ends within hours.
const MAX_STEPS: u64 = 20_000_000_000;
/// Most elements of one tensor.
const MAX_ELEMENTS: usize = 1 << 28;
/// Most nested calls.
const MAX_CALL_DEPTH: usize = 64;
/// Integers of `tensor.empty`: a value that no program computes by chance.
const POISON_INT: i64 = 0x5a5a_5a5a_5a5a_5a5a;

/// Why a program has no value.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum EvalError {
    /// An op, type or attribute that the evaluator does not cover.
    Unsupported {
        /// The unsupported item.
        what: String,
        /// Its location.
        location: String,
    },
    /// The program has undefined behaviour on these inputs.
    Undefined {
        /// The undefined behaviour.
        what: String,
        /// Its location.
        location: String,
    },
    /// A lifetime defect of a buffer.
    Lifetime {
        /// The defect.
        defect: Defect,
        /// The buffer.
        what: String,
        /// The location.
        location: String,
    },
    /// The inputs do not fit the entry function.
    Inputs(String),
    /// More steps or elements than the evaluator allows.
    Limit(String),
}

impl std::error::Error for EvalError {}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EvalError::Unsupported { what, location } => write!(f, "the evaluator does not cover {what} at {location}"),
            EvalError::Undefined { what, location } => write!(f, "undefined behaviour: {what} at {location}"),
            EvalError::Lifetime { defect, what, location } => write!(f, "{defect} {what} at {location}"),
            EvalError::Inputs(what) => write!(f, "inputs do not fit: {what}"),
            EvalError::Limit(what) => write!(f, "limit of the evaluator: {what}"),
        }
    }
}

/// Values of `dense_resource` constants that have no blob in the module, by name.
pub type Weights = BTreeMap<String, Vec<u8>>;

type Result<T> = std::result::Result<T, EvalError>;

/// Evaluates function `entry` on `inputs`.
///
/// # Errors
/// See [`EvalError`].
pub fn evaluate(module: &Module, entry: &str, inputs: &[HostTensor]) -> Result<Vec<HostTensor>> {
    evaluate_with_weights(module, entry, inputs, &Weights::new())
}

/// As [`evaluate`], with values for the `dense_resource` constants that have no blob.
///
/// # Errors
/// See [`EvalError`].
pub fn evaluate_with_weights(
    module: &Module,
    entry: &str,
    inputs: &[HostTensor],
    weights: &Weights,
) -> Result<Vec<HostTensor>> {
    run(module, entry, inputs, weights, Precision::Double)
}

/// As [`evaluate`], with every float rounded to its type after every op: for elementary arithmetic, bit for bit the result
/// of a machine that neither reorders nor contracts.
///
/// # Errors
/// See [`EvalError`].
pub fn evaluate_in_type(module: &Module, entry: &str, inputs: &[HostTensor]) -> Result<Vec<HostTensor>> {
    run(module, entry, inputs, &Weights::new(), Precision::OfType)
}

/// Rounding of the results of float ops.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Precision {
    /// To f64, whatever the type.
    Double,
    /// To the type of the result.
    OfType,
}

fn run(
    module: &Module,
    entry: &str,
    inputs: &[HostTensor],
    weights: &Weights,
    precision: Precision,
) -> Result<Vec<HostTensor>> {
    let module = prepared(module)?;
    let func = function(&module, entry)?;
    let mut interpreter = Interpreter::new(&module, weights, precision);
    let arguments = interpreter.bind_inputs(func, inputs)?;
    let results = interpreter.call(func, arguments)?;
    interpreter.results(func, results)
}

/// A copy of the module in which named ops are generalised.
fn prepared<'c>(module: &Module<'c>) -> Result<Module<'c>> {
    let module = module.duplicate();
    vectors::keep_masks(&module)?;
    keep_pads(&module);
    let generalised = run_passes(module.op(), "builtin.module(func.func(linalg-generalize-named-ops))");
    generalised
        .map_err(|d| EvalError::Unsupported { what: d.to_string(), location: "linalg-generalize-named-ops".into() })?;
    Ok(module)
}

/// Upstream folds a pad whose result has the type of its source, although a negative pad on one side may shift it.
fn keep_pads(module: &Module) {
    let mut rw = Rewriter::new(module.context());
    for pad in module.op().find_all(ops::tensor::PAD) {
        rw.set_attr(pad, "nofold", Attr::unit(module.context()));
    }
}

fn function<'c>(module: &'c Module<'c>, entry: &str) -> Result<Op<'c>> {
    module.symbol(entry).ok_or_else(|| EvalError::Inputs(format!("there is no function @{entry}")))
}

/// An SSA value at run time.
#[derive(Clone, Debug)]
enum Datum {
    Scalar(Scalar),
    Tensor(Rc<HostTensor>),
    MemRef(Rc<View>),
}

struct Interpreter<'c, 'm> {
    module: &'c Module<'c>,
    weights: &'m Weights,
    precision: Precision,
    env: HashMap<Value<'c>, Datum>,
    /// Values of the variables of `ml_program`, from their first use on.
    globals: HashMap<String, Datum>,
    /// Iteration of the innermost `linalg.generic` whose body is interpreted op by op.
    indices: Vec<Vec<i64>>,
    /// The mask of the enclosing `vector.mask`.
    mask: Option<Rc<HostTensor>>,
    memory: Memory<'c>,
    /// Stack buffers of functions that have not returned.
    stack: Vec<usize>,
    /// Whether the contract of public functions is checked.
    watches: bool,
    steps: u64,
    depth: usize,
}

impl<'c, 'm> Interpreter<'c, 'm> {
    fn new(module: &'c Module<'c>, weights: &'m Weights, precision: Precision) -> Self {
        Self {
            module,
            weights,
            precision,
            env: HashMap::new(),
            globals: HashMap::new(),
            indices: vec![],
            mask: None,
            memory: Memory::default(),
            stack: vec![],
            watches: false,
            steps: 0,
            depth: 0,
        }
    }
}

impl<'c> Interpreter<'c, '_> {
    /// The arguments of the entry function. A memref is a buffer of the caller.
    fn bind_inputs(&mut self, func: Op<'c>, inputs: &[HostTensor]) -> Result<Vec<Datum>> {
        let (types, _) = func.function_type().ok_or_else(|| unsupported("an entry without a function type", func))?;
        if types.len() != inputs.len() {
            return Err(EvalError::Inputs(format!("{} given, the function takes {}", inputs.len(), types.len())));
        }
        let bind = |(i, (ty, input)): (usize, (&Type<'c>, &HostTensor))| {
            let dtype = dtype_of(*ty).ok_or_else(|| unsupported(&format!("type {ty}"), func))?;
            let shape = ty.shape();
            let fits = dtype == input.dtype
                && shape.as_ref().is_none_or(|s| {
                    s.len() == input.shape.len()
                        && s.iter().zip(&input.shape).all(|(a, b)| *a == DYNAMIC || *a == *b as i64)
                });
            if !fits || input.shape.iter().product::<usize>() != input.len() {
                let message = format!("input {i} is {:?} x {}, expected {ty}", input.shape, input.dtype);
                return Err(EvalError::Inputs(message));
            }
            if ty.is_memref() {
                let sizes: Vec<i64> = input.shape.iter().map(|d| *d as i64).collect();
                let view = self.memory.adopt(input.clone(), &sizes, Origin::Foreign, format!("argument {i}"));
                return Ok(memory::datum(view));
            }
            Ok(if shape.is_some() { Datum::Tensor(Rc::new(input.clone())) } else { Datum::Scalar(element(input, 0)) })
        };
        types.iter().zip(inputs).enumerate().map(bind).collect()
    }

    /// The results of the entry function.
    fn results(&self, func: Op<'c>, results: Vec<Datum>) -> Result<Vec<HostTensor>> {
        let types = func.function_type().map(|t| t.1).unwrap_or_default();
        let read = |(datum, ty): (Datum, Type<'c>)| match datum {
            Datum::Tensor(t) => Ok(Rc::unwrap_or_clone(t)),
            Datum::MemRef(view) => self.memory.read(func, &view),
            Datum::Scalar(s) => {
                let dtype = dtype_of(ty).ok_or_else(|| unsupported(&format!("type {ty}"), func))?;
                Ok(filled(dtype, vec![], s))
            }
        };
        results.into_iter().zip(types).map(read).collect()
    }

    fn call(&mut self, func: Op<'c>, arguments: Vec<Datum>) -> Result<Vec<Datum>> {
        if func.body().is_none() {
            return Err(unsupported("a call to a function without a body", func));
        }
        if self.depth >= MAX_CALL_DEPTH {
            return Err(EvalError::Limit(format!("calls nest deeper than {MAX_CALL_DEPTH}")));
        }
        let outer = std::mem::take(&mut self.env);
        let (height, borrowed) = (self.stack.len(), arguments.clone());
        self.depth += 1;
        let results = self.run_region(func.region(0), arguments);
        self.depth -= 1;
        self.env = outer;
        let mut results = results?.1;
        if func.is_public() {
            match self.watches {
                true => self.check_boundary(func, &borrowed, &results)?,
                false => self.own_results(func, &borrowed, &mut results)?,
            }
        }
        for buffer in self.stack.split_off(height) {
            self.memory.release(buffer);
        }
        Ok(results)
    }

    fn execute(&mut self, op: Op<'c>) -> Result<Vec<Datum>> {
        match op.name() {
            ops::arith::CONSTANT => Ok(vec![self.constant(op)?]),
            ops::ub::POISON => Ok(vec![poison(op)?]),
            ops::func::CALL => {
                let name = op.callee().unwrap_or_default();
                let func = self.module.symbol(name).ok_or_else(|| unsupported(&format!("a call of @{name}"), op))?;
                let arguments = self.operands(op)?;
                self.call(func, arguments)
            }
            ops::linalg::FILL if op.operand(1).ty().is_memref() => self.memref_op(op),
            ops::linalg::GENERIC => self.generic(op),
            ops::cf::ASSERT => self.assert(op),
            ops::tensor::BITCAST => self.tensor_bitcast(op),
            ops::linalg::INDEX => {
                let dim = attr_int(op, "dim")? as usize;
                let index =
                    self.indices.last().and_then(|i| i.get(dim)).ok_or_else(|| unsupported("linalg.index here", op))?;
                Ok(vec![int(*index)])
            }
            name if name.starts_with("linalg.") => self.linalg_op(op),
            name if name.starts_with("affine.") => self.affine(op),
            name if name.starts_with("scf.") => self.control(op),
            name if name.starts_with("vector.") => self.vector_op(op),
            name if name.starts_with("ml_program.") => self.global_op(op),
            ops::bufferization::CLONE
            | ops::bufferization::DEALLOC
            | ops::bufferization::TO_BUFFER
            | ops::bufferization::TO_TENSOR => self.memref_op(op),
            name if name.starts_with("memref.") => self.memref_op(op),
            ops::arith::SELECT if op.result(0).ty().is_memref() => {
                let taken = if self.index(op, 0)? & 1 == 1 { 1 } else { 2 };
                Ok(vec![self.operand(op, taken)?])
            }
            name if name.starts_with("tensor.") || name.starts_with("bufferization.") => self.tensor_op(op),
            _ => (0..op.num_results().max(1)).map(|result| self.elementwise(op, result)).collect(),
        }
    }

    fn operand(&self, op: Op<'c>, index: usize) -> Result<Datum> {
        self.value(op.operand(index)).ok_or_else(|| unsupported("an operand without a value", op))
    }
    fn value(&self, value: Value<'c>) -> Option<Datum> {
        self.env.get(&value).cloned()
    }
    fn operands(&self, op: Op<'c>) -> Result<Vec<Datum>> {
        (0..op.num_operands()).map(|i| self.operand(op, i)).collect()
    }
    fn tensor(&self, op: Op<'c>, index: usize) -> Result<Rc<HostTensor>> {
        match self.operand(op, index)? {
            Datum::Tensor(t) => Ok(t),
            Datum::MemRef(view) => Ok(Rc::new(self.memory.read(op, &view)?)),
            Datum::Scalar(_) => Err(unsupported("a scalar where a tensor is expected", op)),
        }
    }
    fn scalar(&self, op: Op<'c>, index: usize) -> Result<Scalar> {
        match self.operand(op, index)? {
            Datum::Scalar(s) => Ok(s),
            Datum::Tensor(_) | Datum::MemRef(_) => Err(unsupported("a tensor where a scalar is expected", op)),
        }
    }
    fn index(&self, op: Op<'c>, operand: usize) -> Result<i64> {
        Ok(self.scalar(op, operand)?.int())
    }
    fn tick(&mut self, steps: u64) -> Result<()> {
        self.steps += steps;
        if self.steps > MAX_STEPS { Err(EvalError::Limit(format!("more than {MAX_STEPS} steps"))) } else { Ok(()) }
    }

    fn constant(&self, op: Op<'c>) -> Result<Datum> {
        let value = op.attr("value").ok_or_else(|| unsupported("a constant without a value", op))?;
        let ty = op.result(0).ty();
        let dtype = dtype_of(ty).ok_or_else(|| unsupported(&format!("type {ty}"), op))?;
        let Some(shape) = ty.shape() else {
            return Ok(Datum::Scalar(match value.as_float() {
                Some(v) => Scalar::Float(v),
                None => Scalar::Int(value.as_int().ok_or_else(|| unsupported(&format!("constant {value}"), op))?),
            }));
        };
        let shape = checked_shape(op, &shape)?;
        let bytes = value
            .elements_bytes()
            .or_else(|| self.weight(value))
            .ok_or_else(|| unsupported(&format!("constant of {ty} without a value"), op))?;
        let tensor = HostTensor::from_bytes(dtype, &shape, &bytes);
        Ok(Datum::Tensor(Rc::new(tensor.ok_or_else(|| unsupported(&format!("{} bytes for {ty}", bytes.len()), op))?)))
    }

    fn weight(&self, value: Attr<'c>) -> Option<Vec<u8>> {
        self.weights.get(value.resource_name()?).cloned()
    }

    fn affine(&self, op: Op<'c>) -> Result<Vec<Datum>> {
        let map = op.attr("map").and_then(|a| a.as_affine_map()).ok_or_else(|| unsupported(op.name(), op))?;
        let operands = (0..op.num_operands()).map(|i| self.index(op, i)).collect::<Result<Vec<_>>>()?;
        let (dims, symbols) = operands.split_at_checked(map.num_dims()).ok_or_else(|| unsupported(op.name(), op))?;
        let values = map.eval(dims, symbols);
        let value = match op.name() {
            ops::affine::APPLY => values.first().copied(),
            ops::affine::MIN => values.into_iter().min(),
            ops::affine::MAX => values.into_iter().max(),
            _ => None,
        };
        Ok(vec![int(value.ok_or_else(|| unsupported(op.name(), op))?)])
    }

    /// A result of an op of arith or math, on scalars or element by element on tensors.
    fn elementwise(&mut self, op: Op<'c>, result: usize) -> Result<Datum> {
        let semantics = ScalarOp::of(op, result).ok_or_else(|| unsupported(op.name(), op))?;
        let operands = self.operands(op)?;
        let Some(shape) =
            operands.iter().rev().find_map(|o| if let Datum::Tensor(t) = o { Some(t.shape.clone()) } else { None })
        else {
            let value = self.apply(op, semantics, !self.indices.is_empty(), |i| scalar_at(&operands, i, 0))?;
            return Ok(Datum::Scalar(self.precision.round(op, value)));
        };
        let dtype = dtype_of(op.result(result).ty()).ok_or_else(|| unsupported("a result type", op))?;
        let count = element_count(&shape)?;
        self.tick(count as u64)?;
        let mut out = filled(dtype, shape, Scalar::Int(0));
        for at in 0..count {
            let value = self.apply(op, semantics, true, |i| scalar_at(&operands, i, at))?;
            set_element(&mut out, at, self.precision.round(op, value));
        }
        Ok(Datum::Tensor(Rc::new(out)))
    }

    /// One application of an op; in a kernel every division has a result.
    fn apply(
        &self,
        op: Op<'c>,
        semantics: ScalarOp,
        kernel: bool,
        operand: impl Fn(usize) -> Scalar,
    ) -> Result<Scalar> {
        let value = semantics.apply(operand(0), operand(1), operand(2));
        let value = if kernel { value.or_else(|| scalar::divided_by_one(op, operand(0))) } else { value };
        value.ok_or_else(|| undefined(op.name(), op))
    }
}

impl Precision {
    /// The value of an op's result.
    fn round(self, op: Op, value: Scalar) -> Scalar {
        match value {
            Scalar::Float(_) => rounded(value, self.type_of(op)),
            _ => value,
        }
    }

    /// The type that results of an op are rounded to.
    fn type_of(self, op: Op) -> Option<Dtype> {
        matches!(self, Self::OfType).then(|| dtype_of(op.result(0).ty()))?.filter(|dtype| dtype.is_float())
    }
}

fn rounded(value: Scalar, to: Option<Dtype>) -> Scalar {
    match (to, value) {
        (Some(dtype), Scalar::Float(v)) => Scalar::Float(decode_float(dtype, encode_float(dtype, v))),
        _ => value,
    }
}

fn scalar_at(operands: &[Datum], index: usize, at: usize) -> Scalar {
    match operands.get(index) {
        None | Some(Datum::MemRef(_)) => Scalar::Int(0),
        Some(Datum::Scalar(s)) => *s,
        Some(Datum::Tensor(t)) => element(t, at),
    }
}

fn poison(op: Op) -> Result<Datum> {
    let ty = op.result(0).ty();
    let dtype = dtype_of(ty).ok_or_else(|| unsupported(&format!("type {ty}"), op))?;
    match ty.shape() {
        None => Ok(Datum::Scalar(poison_of(dtype))),
        Some(shape) => Ok(Datum::Tensor(Rc::new(filled(dtype, checked_shape(op, &shape)?, poison_of(dtype))))),
    }
}

fn poison_of(dtype: Dtype) -> Scalar {
    match dtype.int_width() {
        Some(width) => Scalar::Int(crate::host_tensor::wrap(POISON_INT, width)),
        None => Scalar::Float(f64::NAN),
    }
}

fn element(tensor: &HostTensor, at: usize) -> Scalar {
    match &tensor.data {
        Data::Float(v) => Scalar::Float(v[at]),
        Data::Int(v) => Scalar::Int(v[at]),
    }
}

fn set_element(tensor: &mut HostTensor, at: usize, value: Scalar) {
    match &mut tensor.data {
        Data::Float(v) => v[at] = value.float(),
        Data::Int(v) => v[at] = value.int(),
    }
}

/// A tensor of one value; the caller has checked the shape.
fn filled(dtype: Dtype, shape: Vec<usize>, value: Scalar) -> HostTensor {
    let count = shape.iter().product();
    let data =
        if dtype.is_float() { Data::Float(vec![value.float(); count]) } else { Data::Int(vec![value.int(); count]) };
    HostTensor { dtype, shape, data }
}

fn element_count(shape: &[usize]) -> Result<usize> {
    let count = shape.iter().try_fold(1usize, |n, d| n.checked_mul(*d)).filter(|n| *n <= MAX_ELEMENTS);
    count.ok_or_else(|| EvalError::Limit(format!("a tensor of shape {shape:?}")))
}

/// A static shape within the limits.
fn checked_shape(op: Op, shape: &[i64]) -> Result<Vec<usize>> {
    let sizes = shape.iter().map(|d| usize::try_from(*d).map_err(|_| undefined(&format!("size {d}"), op)));
    let sizes = sizes.collect::<Result<Vec<_>>>()?;
    element_count(&sizes)?;
    Ok(sizes)
}

/// Row-major strides in elements.
fn strides_of(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    for i in (1..shape.len()).rev() {
        strides[i - 1] = strides[i] * shape[i];
    }
    strides
}

/// Row-major position of a multi-index; `None` outside of the shape.
fn position(shape: &[usize], index: &[i64]) -> Option<usize> {
    let mut at = 0usize;
    for (i, size) in index.iter().zip(shape) {
        let i = usize::try_from(*i).ok().filter(|i| i < size)?;
        at = at * size + i;
    }
    Some(at)
}

/// The element at the clamped index, as kernels read it; zero of a tensor without elements.
fn nearest(tensor: &HostTensor, index: &[i64]) -> Scalar {
    if tensor.is_empty() {
        return if tensor.dtype.is_float() { Scalar::Float(0.0) } else { Scalar::Int(0) };
    }
    let inside = |(i, size): (&i64, &usize)| (*i).clamp(0, *size as i64 - 1);
    let index: Vec<i64> = index.iter().zip(&tensor.shape).map(inside).collect();
    position(&tensor.shape, &index).map_or(Scalar::Int(0), |at| element(tensor, at))
}

/// Steps a multi-index in row-major order; false after the last.
fn advance(index: &mut [i64], shape: &[usize]) -> bool {
    for (i, size) in index.iter_mut().zip(shape).rev() {
        *i += 1;
        if (*i as usize) < *size {
            return true;
        }
        *i = 0;
    }
    false
}

fn int(value: i64) -> Datum {
    Datum::Scalar(Scalar::Int(value))
}

fn attr_int(op: Op, name: &str) -> Result<i64> {
    op.attr(name).and_then(|a| a.as_int()).ok_or_else(|| unsupported(&format!("{} without {name}", op.name()), op))
}

fn unsupported(what: &str, op: Op) -> EvalError {
    EvalError::Unsupported { what: what.to_owned(), location: op.location().to_string() }
}

fn undefined(what: &str, op: Op) -> EvalError {
    EvalError::Undefined { what: what.to_owned(), location: op.location().to_string() }
}
