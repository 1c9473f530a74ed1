//! Makes ops of the IR: scalars, sizes, constants.
//!
//! Lowerings of other crates use the same builder.

use super::DataType;
use super::operand::{Known, Operand};
use super::predicate::{CmpI, Predicate};
use super::registry::Registry;
use super::symbolic::{Atom, Dim, Symbol};
use super::tensor::{Tensor, count};
use crate::import::Weight;
use monopour_ir::{
    Attr, Builder as IrBuilder, Context, DYNAMIC, Diagnostics, InsertionPoint, Location, OpSpec, Type, Value, ops,
};
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::rc::Rc;

/// Larger constants are weights beside the module.
const MAX_INLINE_BYTES: usize = 1024;

/// Why a node cannot be lowered.
#[derive(Debug)]
pub enum Failure {
    /// What is wrong with the node, or not supported of it.
    Node(String),
    /// MLIR's diagnostics.
    Ir(Diagnostics),
    /// A node of a graph within, which has been reported.
    Reported,
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self::Node(message)
    }
}

impl From<&str> for Failure {
    fn from(message: &str) -> Self {
        Self::Node(message.to_owned())
    }
}

impl From<Diagnostics> for Failure {
    fn from(diagnostics: Diagnostics) -> Self {
        Self::Ir(diagnostics)
    }
}

/// A key that got a value, with the value that it had.
#[derive(Debug)]
enum Change<'c> {
    Symbol(Symbol, Option<Value<'c>>),
    Size(Dim, Option<Value<'c>>),
}

/// Makes the ops of a model.
#[derive(Debug)]
pub struct Builder<'c> {
    ir: IrBuilder<'c>,
    /// Location of new ops.
    pub loc: Location<'c>,
    /// Values of symbols.
    symbols: HashMap<Symbol, Value<'c>>,
    /// Values of sizes in the current block.
    sizes: HashMap<Dim, Value<'c>>,
    /// What `symbols` and `sizes` had before each change within a block, which its end restores.
    changes: Vec<Change<'c>>,
    /// Blocks around the current one.
    depth: usize,
    /// Attributes of weights by address of their elements, which `weights` keeps alive, type and shape.
    resources: HashMap<(*const u8, DataType, Vec<i64>), Attr<'c>>,
    /// Weights by the names of their resources.
    pub(super) weights: BTreeMap<String, Weight>,
    unnamed: usize,
    /// In the body of an elementwise op: the loop of each dimension of its result.
    pub(super) loop_of_dim: Option<Vec<Option<usize>>>,
    /// The lowerings.
    pub(super) registry: Rc<Registry>,
    /// Names of graphs, the innermost last.
    pub(super) scopes: Vec<HashMap<String, Option<Operand<'c>>>>,
    /// What is wrong with the model.
    pub(super) found: Diagnostics,
    /// The model's file.
    pub(super) file: String,
}

impl<'c> Builder<'c> {
    /// A builder that inserts at `point`, with the lowerings and file of a model.
    pub fn new(cx: Context<'c>, point: InsertionPoint<'c>, registry: Registry, file: &str) -> Self {
        Self {
            ir: IrBuilder::new(cx, point),
            loc: Location::unknown(cx),
            symbols: HashMap::new(),
            sizes: HashMap::new(),
            changes: vec![],
            depth: 0,
            resources: HashMap::new(),
            weights: BTreeMap::new(),
            unnamed: 0,
            loop_of_dim: None,
            registry: Rc::new(registry),
            scopes: vec![],
            found: Diagnostics::default(),
            file: file.to_owned(),
        }
    }
    /// The context.
    pub fn context(&self) -> Context<'c> {
        self.ir.context()
    }
    /// The insertion point.
    pub fn point(&self) -> InsertionPoint<'c> {
        self.ir.point()
    }
    /// Moves the insertion point within the current block, or into a region that computes no sizes.
    pub fn set_point(&mut self, point: InsertionPoint<'c>) {
        self.ir.set_point(point);
    }
    /// Runs `f` with the insertion point in another block; sizes that it computes are not used outside.
    ///
    /// # Errors
    /// What `f` returns.
    pub fn inside<T>(
        &mut self,
        point: InsertionPoint<'c>,
        f: impl FnOnce(&mut Self) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let (outer, before) = (self.ir.point(), self.changes.len());
        self.ir.set_point(point);
        self.depth += 1;
        let result = f(self);
        self.depth -= 1;
        self.ir.set_point(outer);
        while self.changes.len() > before {
            match self.changes.pop() {
                Some(Change::Symbol(symbol, value)) => restore(&mut self.symbols, symbol, value),
                Some(Change::Size(size, value)) => restore(&mut self.sizes, size, value),
                None => {}
            }
        }
        result
    }
    /// Creates an op.
    ///
    /// # Errors
    /// MLIR's diagnostics.
    pub fn create(&mut self, spec: OpSpec<'c, '_>) -> Result<monopour_ir::Op<'c>, Failure> {
        Ok(self.ir.create(spec)?)
    }
    /// An op of one result, without attributes.
    ///
    /// # Errors
    /// MLIR's diagnostics.
    pub fn op(&mut self, name: &str, operands: &[Value<'c>], ty: Type<'c>) -> Result<Value<'c>, Failure> {
        Ok(self.create(OpSpec::new(name, self.loc).operands(operands).results(&[ty]))?.result(0))
    }
    /// An op of two operands of one type, which is the result's.
    ///
    /// # Errors
    /// MLIR's diagnostics.
    pub fn binary(&mut self, name: &str, a: Value<'c>, b: Value<'c>) -> Result<Value<'c>, Failure> {
        self.op(name, &[a, b], a.ty())
    }
    /// An op of one operand, whose type is the result's.
    ///
    /// # Errors
    /// MLIR's diagnostics.
    pub fn unary(&mut self, name: &str, a: Value<'c>) -> Result<Value<'c>, Failure> {
        self.op(name, &[a], a.ty())
    }
    /// A comparison of floats or integers.
    ///
    /// # Errors
    /// MLIR's diagnostics.
    pub fn compare(
        &mut self,
        predicate: impl Into<Predicate>,
        a: Value<'c>,
        b: Value<'c>,
    ) -> Result<Value<'c>, Failure> {
        let predicate = predicate.into();
        let name = match predicate {
            Predicate::Int(_) => ops::arith::CMPI,
            Predicate::Float(_) => ops::arith::CMPF,
        };
        let spec = OpSpec::new(name, self.loc).operands(&[a, b]).results(&[Type::integer(self.context(), 1)]);
        Ok(self.create(spec.attr("predicate", predicate.to_attr(self.context())))?.result(0))
    }
    /// One of two values, by a truth value.
    ///
    /// # Errors
    /// MLIR's diagnostics.
    pub fn select(&mut self, which: Value<'c>, a: Value<'c>, b: Value<'c>) -> Result<Value<'c>, Failure> {
        self.op(ops::arith::SELECT, &[which, a, b], a.ty())
    }
    /// A float, integer or index constant.
    pub fn number(&mut self, ty: Type<'c>, value: f64) -> Value<'c> {
        // Unsigned 64-bit integers wrap.
        let int = if value >= 2f64.powi(63) { (value as u64).cast_signed() } else { value as i64 };
        let attr = if ty.is_float() { Attr::float(ty, value) } else { Attr::int(ty, int) };
        self.ir.constant(attr, ty, self.loc)
    }
    /// An integer or index constant.
    pub fn int(&mut self, ty: Type<'c>, value: i64) -> Value<'c> {
        self.ir.constant(Attr::int(ty, value), ty, self.loc)
    }

    /// The type of an element in the IR.
    ///
    /// # Errors
    /// For types that the IR does not have.
    pub fn element(&self, dtype: DataType) -> Result<Type<'c>, Failure> {
        dtype.ir(self.context()).ok_or_else(|| format!("elements of {dtype} are not supported").into())
    }
    /// The type of a tensor in the IR.
    ///
    /// # Errors
    /// As [`Self::element`].
    pub fn tensor_type(&self, dtype: DataType, shape: &[Dim]) -> Result<Type<'c>, Failure> {
        let sizes: Vec<i64> = shape.iter().map(|d| d.as_constant().unwrap_or(DYNAMIC)).collect();
        if sizes.iter().any(|size| *size < 0 && *size != DYNAMIC) {
            return Err(format!("a tensor of shape {} cannot be", super::operand_shape(shape)).into());
        }
        let numbers: Vec<i64> = sizes.iter().copied().filter(|size| *size != DYNAMIC).collect();
        if count(&numbers).is_none() {
            return Err(format!("a tensor of shape {} has too many elements", super::operand_shape(shape)).into());
        }
        Ok(Type::tensor(&sizes, self.element(dtype)?, None))
    }

    /// Gives a symbol its value.
    pub fn define(&mut self, symbol: &Symbol, value: Value<'c>) {
        let before = self.symbols.insert(symbol.clone(), value);
        if self.depth > 0 {
            self.changes.push(Change::Symbol(symbol.clone(), before));
        }
    }
    /// Whether a symbol has a value.
    pub fn is_defined(&self, symbol: &Symbol) -> bool {
        self.symbols.contains_key(symbol)
    }
    /// A symbol of its own for a size that data decides, with its value.
    pub fn new_symbol(&mut self, value: Value<'c>) -> Dim {
        self.unnamed += 1;
        let symbol = Symbol::Data(self.unnamed);
        self.define(&symbol, value);
        Dim::from(symbol)
    }
    /// The size of a value's dimension, read from the value.
    ///
    /// # Errors
    /// MLIR's diagnostics.
    pub fn dim_of(&mut self, value: Value<'c>, axis: usize) -> Result<Value<'c>, Failure> {
        let index = Type::index(self.context());
        let axis = self.int(index, axis as i64);
        self.op(ops::tensor::DIM, &[value, axis], index)
    }
    /// The number of symbols so far: those of a region are not visible after it, see [`Self::outlives`].
    pub fn mark(&self) -> usize {
        self.unnamed
    }
    /// Whether a size has none of the symbols that were made after the mark.
    pub fn outlives(&self, dim: &Dim, mark: usize) -> bool {
        dim.symbols().iter().all(|symbol| !matches!(symbol, Symbol::Data(number) if *number > mark))
    }
    /// A size as an index value.
    ///
    /// # Errors
    /// For a symbol without a value.
    pub fn index(&mut self, dim: &Dim) -> Result<Value<'c>, Failure> {
        if let Some(value) = self.sizes.get(dim) {
            return Ok(*value);
        }
        let index = Type::index(self.context());
        let mut sum: Option<Value<'c>> = None;
        for (atoms, factor) in dim.terms() {
            let mut product: Option<Value<'c>> = None;
            for atom in atoms {
                let value = self.atom(atom)?;
                product = Some(self.combine(ops::arith::MULI, product, value)?);
            }
            let mut product = product.expect("invariant: a term has an atom");
            if factor != 1 {
                let factor = self.int(index, factor);
                product = self.binary(ops::arith::MULI, product, factor)?;
            }
            sum = Some(self.combine(ops::arith::ADDI, sum, product)?);
        }
        if dim.offset() != 0 || sum.is_none() {
            let offset = self.int(index, dim.offset());
            sum = Some(self.combine(ops::arith::ADDI, sum, offset)?);
        }
        let value = sum.expect("invariant: a sum has a part");
        let before = self.sizes.insert(dim.clone(), value);
        if self.depth > 0 {
            self.changes.push(Change::Size(dim.clone(), before));
        }
        Ok(value)
    }
    fn combine(&mut self, name: &str, left: Option<Value<'c>>, right: Value<'c>) -> Result<Value<'c>, Failure> {
        left.map_or(Ok(right), |left| self.binary(name, left, right))
    }
    fn atom(&mut self, atom: &Atom) -> Result<Value<'c>, Failure> {
        let (name, of) = match atom {
            Atom::Symbol(symbol) => {
                let value = self.symbols.get(symbol).copied();
                return value.ok_or_else(|| format!("the size '{symbol}' is that of no input").into());
            }
            Atom::FloorDiv(of) => (ops::arith::FLOORDIVSI, of),
            Atom::Min(of) => (ops::arith::MINSI, of),
            Atom::Max(of) => (ops::arith::MAXSI, of),
            Atom::Broadcast(of) => {
                let (a, b) = (self.index(&of.0)?, self.index(&of.1)?);
                let one = self.int(a.ty(), 1);
                let is_one = self.compare(CmpI::Eq, a, one)?;
                return self.select(is_one, b, a);
            }
        };
        let (a, b) = (self.index(&of.0)?, self.index(&of.1)?);
        self.binary(name, a, b)
    }
    /// The values of the sizes that are no numbers, in order.
    ///
    /// # Errors
    /// As [`Self::index`].
    pub fn dynamic(&mut self, dims: &[Dim]) -> Result<Vec<Value<'c>>, Failure> {
        dims.iter().filter(|d| d.as_constant().is_none()).map(|d| self.index(d)).collect()
    }
    /// A tensor to be written.
    ///
    /// # Errors
    /// As [`Self::index`].
    pub fn empty(&mut self, dtype: DataType, shape: &[Dim]) -> Result<Value<'c>, Failure> {
        let (ty, sizes) = (self.tensor_type(dtype, shape)?, self.dynamic(shape)?);
        self.op(ops::tensor::EMPTY, &sizes, ty)
    }

    /// The operand as a value of the IR.
    ///
    /// # Errors
    /// For types that the IR does not have.
    pub fn value(&mut self, operand: &Operand<'c>) -> Result<Value<'c>, Failure> {
        match (&operand.value, &operand.known) {
            (Some(value), _) => Ok(*value),
            (None, Some(Known::Elements(tensor))) => self.constant(tensor),
            (None, Some(Known::Sizes(sizes))) => {
                let (ty, element) = (self.tensor_type(operand.dtype, &operand.shape)?, self.element(operand.dtype)?);
                let mut values = vec![];
                for size in sizes.iter() {
                    let index = self.index(size)?;
                    values.push(self.op(ops::arith::INDEX_CAST, &[index], element)?);
                }
                self.op(ops::tensor::FROM_ELEMENTS, &values, ty)
            }
            (None, Some(_)) => Err("a sequence or an empty optional is no tensor".into()),
            (None, None) => Err("this operand has no value".into()),
        }
    }

    /// A constant: inline where it is small, else a weight.
    fn constant(&mut self, tensor: &Rc<Tensor>) -> Result<Value<'c>, Failure> {
        let shape: Vec<Dim> = tensor.shape.iter().map(|d| Dim::constant(*d)).collect();
        if tensor.dtype.is_packed() {
            let packed = self.stored(tensor, &[Dim::constant(tensor.data.bytes().len() as i64)])?;
            return self.unpack(packed, tensor.dtype, &shape);
        }
        self.stored(tensor, &shape)
    }
    /// The constant's elements; packed ones as bytes.
    fn stored(&mut self, tensor: &Rc<Tensor>, shape: &[Dim]) -> Result<Value<'c>, Failure> {
        let ty = self.tensor_type(tensor.dtype, shape)?;
        let attr = if tensor.data.bytes().len() <= MAX_INLINE_BYTES {
            self.inline(tensor, ty)?
        } else {
            self.resource(tensor, ty)?
        };
        Ok(self.ir.constant(attr, ty, self.loc))
    }
    fn inline(&self, tensor: &Tensor, ty: Type<'c>) -> Result<Attr<'c>, Failure> {
        let (bytes, element) = (tensor.data.bytes(), ty.element());
        let count = if tensor.dtype.is_packed() { bytes.len() } else { tensor.elements() };
        let elements = if count == 0 {
            String::new()
        } else if tensor.dtype == DataType::Bool {
            let each: Vec<&str> = bytes.iter().map(|b| if *b == 0 { "false" } else { "true" }).collect();
            format!("[{}]", each.join(", "))
        } else {
            let hex: String = bytes.iter().map(|b| format!("{b:02X}")).collect();
            format!("\"0x{hex}\"")
        };
        let flat = format!("dense<{elements}> : tensor<{count}x{element}>");
        let attr = Attr::parse(self.context(), &flat).and_then(|a| a.elements_with_type(ty));
        attr.ok_or_else(|| format!("a constant of type {ty} cannot be made").into())
    }
    fn resource(&mut self, tensor: &Tensor, ty: Type<'c>) -> Result<Attr<'c>, Failure> {
        let key = (tensor.data.bytes().as_ptr(), tensor.dtype, tensor.shape.clone());
        if let Some(attr) = self.resources.get(&key) {
            return Ok(*attr);
        }
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' };
        let name: String = tensor.name.chars().map(plain).collect();
        let mut unique = format!("w_{name}");
        while self.weights.contains_key(&unique) {
            self.unnamed += 1;
            unique = format!("w{}_{name}", self.unnamed);
        }
        let attr = Attr::parse(self.context(), &format!("dense_resource<{unique}> : {ty}"));
        let attr = attr.ok_or_else(|| format!("a weight of type {ty} cannot be made"))?;
        let name = attr.resource_name().unwrap_or(&unique).to_owned();
        let dtype = tensor.dtype.dtype().ok_or("a weight of this type cannot be made")?;
        self.weights.insert(name, Weight::new(dtype, tensor.stored_shape(), tensor.data.clone()));
        self.resources.insert(key, attr);
        Ok(attr)
    }
}

fn restore<K: Eq + Hash, V>(map: &mut HashMap<K, V>, key: K, value: Option<V>) {
    match value {
        Some(value) => map.insert(key, value),
        None => map.remove(&key),
    };
}
