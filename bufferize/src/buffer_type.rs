//! Predict the memref type of every tensor value, before anything is rewritten.
//!
//! ```text
//! %s = tensor.extract_slice %t[%i, 0] [16, 8] [1, 1]     memref<16x8xf32, strided<[8, 1], offset: ?>>
//! scf.for iter_args(%a = %s)                              the type of %s, if the body yields that type,
//!                                                         else one with dynamic strides and offset
//! ```
//!
//! One walk in program order; a loop's body is walked again only when its yielded type differs from its argument's.
//! Requires: copies are inserted. Ensures: every tensor value of the function has a type.
//! Differs from upstream: predictions are kept, so that nested loops cost no more than their bodies.

use monopour_ir::ops;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use monopour_contract::attributes;
use monopour_ir::{Attr, Block, DYNAMIC, Diagnostic, Diagnostics, HandleMap, Location, Op, Type, Value};

use crate::blocks::{dominators_first, terminators};
use crate::boundary::Callees;
use crate::effects::{AliasModel, RelationModel};
use crate::failures::{failed_to_bufferize, location_of};
use crate::memref_types::{boundary_type, dynamic_layout, identity, is_memref_element, memory_space};
use crate::op_model::OpModels;
use crate::options::{FunctionBoundaryTypeConversion, Options, UnknownTypeConversion};
use crate::scope::{has_tensors, is_apart};

/// Assumed types of arguments, by function and position.
pub(crate) type Assumed<'c> = HashMap<(Op<'c>, usize), Type<'c>>;

/// The predictions so far.
pub struct BufferTypes<'c, 'a> {
    models: &'a OpModels,
    options: &'a Options,
    callees: &'a Callees<'c>,
    types: HandleMap<Value<'c>, Type<'c>>,
    signatures: HashMap<Op<'c>, (Vec<Type<'c>>, Vec<Type<'c>>)>,
    /// Whether memrefs can hold an element type.
    elements: HashMap<Type<'c>, bool>,
    /// Whether the walk precedes the rewrite; see [`Self::early`].
    is_early: bool,
    steps: u64,
    /// Functions whose results were requested before they were known: recursion.
    assumed: RefCell<HashSet<Op<'c>>>,
    /// What is assumed of the arguments of private functions.
    arguments: Assumed<'c>,
}

impl<'c, 'a> BufferTypes<'c, 'a> {
    pub(crate) fn new(models: &'a OpModels, options: &'a Options, callees: &'a Callees<'c>) -> Self {
        Self {
            models,
            options,
            callees,
            types: HandleMap::default(),
            signatures: HashMap::new(),
            elements: HashMap::new(),
            is_early: false,
            steps: 0,
            assumed: RefCell::default(),
            arguments: Assumed::new(),
        }
    }
    /// Assumes types of arguments.
    pub(crate) fn assume(&mut self, arguments: Assumed<'c>) {
        self.arguments = arguments;
    }
    /// Whether the pass goes beyond upstream's.
    pub fn extensions(&self) -> bool {
        self.options.extensions
    }
    /// Number of operations visited, those of a loop's body once per walk.
    pub(crate) fn steps(&self) -> u64 {
        self.steps
    }
    /// The functions and their summaries.
    pub fn callees(&self) -> &'a Callees<'c> {
        self.callees
    }
    /// The predicted type of a tensor value; the type itself of any other value.
    pub fn of(&self, value: Value<'c>) -> Type<'c> {
        let ty = value.ty();
        if !ty.is_tensor() {
            return ty;
        }
        // A result of an op that stays on tensors has no prediction.
        self.types.get(&value).copied().unwrap_or_else(|| self.unknown(ty))
    }
    /// Whether a value has a prediction.
    pub(crate) fn is_known(&self, value: Value<'c>) -> bool {
        self.types.contains_key(&value)
    }
    /// Whether diagnostics have upstream's wording.
    pub(crate) fn is_upstream(&self) -> bool {
        !self.options.extensions
    }
    /// An error, with the operation whose rewrite fails in upstream's report.
    pub(crate) fn failed(&self, error: Diagnostic, at: Op<'c>) -> Diagnostics {
        let mut errors = Diagnostics::from(error);
        failed_to_bufferize(&mut errors, at.location(), self.options);
        errors
    }
    /// The options.
    pub(crate) fn options(&self) -> &'a Options {
        self.options
    }
    /// Refuses a tensor whose memory space is to be inferred and cannot be (`must-infer-memory-space`).
    ///
    /// # Errors
    /// B0121.
    pub(crate) fn check_space(&self, tensor: Value<'c>) -> Result<(), Diagnostics> {
        let space = || self.of(tensor).as_memref().and_then(|memref| memref.memory_space);
        if !self.options.must_infer_memory_space
            || space().is_none_or(|s| s.as_string() != Some(attributes::UNKNOWN_SPACE))
        {
            return Ok(());
        }
        let location = location_of(tensor).unwrap_or_else(|| Location::unknown(tensor.ty().context()));
        let help = "give the allocation a memory_space, or allow the default one";
        Err(Diagnostic::error("B0121", location, "could not infer memory space").with_help(help).into())
    }
    /// Records a prediction.
    pub fn set(&mut self, value: Value<'c>, ty: Type<'c>) {
        self.types.insert(value, ty);
    }
    /// The memory space of a tensor type under the options.
    pub fn memory_space(&self, tensor: Type<'c>) -> Option<Attr<'c>> {
        memory_space(self.options, tensor)
    }
    fn unknown(&self, tensor: Type<'c>) -> Type<'c> {
        let identity = self.identity(tensor);
        match (self.options.unknown_type_conversion, identity.as_memref()) {
            (UnknownTypeConversion::FullyDynamic, Some(memref)) => dynamic_layout(&memref),
            _ => identity,
        }
    }
    /// The row-major memref of a tensor type, in the tensor's memory space.
    pub fn identity(&self, tensor: Type<'c>) -> Type<'c> {
        identity(self.options, tensor)
    }

    /// The memref of a new buffer: row-major.
    ///
    /// Upstream knows that only for ops already rewritten, and assumes any layout for the others.
    fn fresh(&self, tensor: Type<'c>) -> Type<'c> {
        if self.is_early { self.unknown(tensor) } else { self.identity(tensor) }
    }
    /// Walks regions whose types upstream requests before their rewrite: regions of a branch after the first, whose yield is rewritten
    /// first and then needs the type of the result. Such regions must be walked again for their own types.
    ///
    /// # Errors
    /// As the walk.
    pub(crate) fn early<T>(
        &mut self,
        walk: impl FnOnce(&mut Self) -> Result<T, Diagnostics>,
    ) -> Result<T, Diagnostics> {
        let outer = std::mem::replace(&mut self.is_early, true);
        let walked = walk(self);
        self.is_early = outer;
        walked
    }
    /// Whether this is an early walk.
    pub(crate) fn is_early(&self) -> bool {
        self.is_early
    }
    /// The operands that a branch forwards to its successors, by position, each with its block argument.
    pub(crate) fn passed_to_blocks(&self, branch: Op<'c>) -> Vec<(usize, Value<'c>)> {
        self.models.get(branch, self.options).map(|model| model.passes_to_blocks(branch)).unwrap_or_default()
    }
    /// Forgets a prediction.
    pub(crate) fn forget(&mut self, value: Value<'c>) {
        self.types.remove(&value);
    }

    /// Types of a function's arguments and results.
    pub fn signature(&self, function: Op<'c>) -> (Vec<Type<'c>>, Vec<Type<'c>>) {
        self.signatures.get(&function).cloned().unwrap_or_else(|| {
            let (inputs, results) = function.function_type().unwrap_or_default();
            let attrs = function.attr("arg_attrs").and_then(|a| a.as_array()).unwrap_or_default();
            let layout = |i: usize| attrs.get(i).and_then(|a| a.get(ops::attributes::bufferization::BUFFER_LAYOUT));
            let argument = |(i, ty)| {
                let declared = layout(i).and_then(|l| self.with_layout(ty, l));
                declared.or_else(|| self.arguments.get(&(function, i)).copied()).unwrap_or_else(|| self.boundary(ty))
            };
            let arguments = inputs.into_iter().enumerate().map(argument).collect();
            (arguments, results.into_iter().map(|t| self.boundary(t)).collect())
        })
    }

    /// The memref with a declared layout; `None` if that does not fit.
    fn with_layout(&self, tensor: Type<'c>, layout: Attr<'c>) -> Option<Type<'c>> {
        let shape: Vec<String> = tensor
            .as_tensor()?
            .shape
            .iter()
            .map(|size| match *size {
                DYNAMIC => "?x".to_owned(),
                size => format!("{size}x"),
            })
            .collect();
        let space = self.memory_space(tensor).map_or_else(String::new, |space| format!(", {space}"));
        let text = format!("memref<{}{}, {layout}{space}>", shape.concat(), tensor.element());
        Type::parse(tensor.context(), &text)
    }

    /// The type of a call's result.
    pub(crate) fn callee_result(&self, call: Op<'c>, index: usize, tensor: Type<'c>) -> Type<'c> {
        let callee = self.callees.callee(call);
        let Some(callee) = callee else { return self.boundary(tensor) };
        if !self.signatures.contains_key(&callee) {
            self.assumed.borrow_mut().insert(callee);
        }
        self.signature(callee).1.get(index).copied().unwrap_or_else(|| self.boundary(tensor))
    }

    fn boundary(&self, ty: Type<'c>) -> Type<'c> {
        if ty.is_tensor() { boundary_type(self.options, ty) } else { ty }
    }

    /// Predicts the types in a function, and its signature. Callees come first.
    ///
    /// # Errors
    /// As [`Self::walk`].
    pub(crate) fn function(&mut self, function: Op<'c>) -> Result<(), Diagnostics> {
        let Some(body) = function.body() else { return Ok(()) };
        if self.options.bufferize_function_boundaries {
            let (inputs, _) = self.signature(function);
            for (arg, ty) in body.args().into_iter().zip(inputs).filter(|(arg, _)| arg.ty().is_tensor()) {
                self.set(arg, ty);
            }
        }
        match self.options.bufferize_function_boundaries {
            true => self.walk_region(function, function.region(0))?,
            // Arguments of blocks stay tensors.
            false => dominators_first(function.region(0)).into_iter().try_for_each(|block| self.walk(block))?,
        }
        let (inputs, mut results) = self.signature(function);
        let infers = self.options.function_boundary_type_conversion == FunctionBoundaryTypeConversion::Infer;
        if infers && !self.assumed.borrow().contains(&function) {
            results = self.returned_types(function, results);
        }
        self.signatures.insert(function, (inputs, results));
        Ok(())
    }

    /// The types on which all returns of a function agree; elsewhere the given type.
    fn returned_types(&self, function: Op<'c>, mut results: Vec<Type<'c>>) -> Vec<Type<'c>> {
        let returns: Vec<Op> = terminators(function.region(0)).filter(|op| op.is(ops::func::RETURN)).collect();
        for (index, result) in results.iter_mut().enumerate() {
            let types = returns.iter().filter(|op| index < op.num_operands()).map(|op| self.of(op.operand(index)));
            let types: HashSet<Type> = types.collect();
            if let [ty] = Vec::from_iter(types)[..] {
                *result = ty;
            }
        }
        results
    }

    /// Results: the type of the first equivalent operand, else a fresh row-major buffer.
    ///
    /// # Errors
    /// None; the signature is that of [`crate::op_model::OpModel::buffer_types`].
    pub fn set_from_aliases(
        &mut self,
        op: Op<'c>,
        aliases: &dyn Fn(usize) -> Vec<AliasModel<'c>>,
    ) -> Result<(), Diagnostics> {
        let mut found: HashMap<Value, Type> = HashMap::new();
        for (index, operand) in op.operands().into_iter().enumerate().filter(|(_, v)| v.ty().is_tensor()) {
            for alias in aliases(index).into_iter().filter(|a| a.relation == RelationModel::Equivalent) {
                found.entry(alias.value).or_insert_with(|| self.of(operand));
            }
        }
        for result in op.results().into_iter().filter(|r| r.ty().is_tensor()) {
            let ty = found.get(&result).copied().unwrap_or_else(|| self.fresh(result.ty()));
            self.set(result, ty);
        }
        op.regions().into_iter().flat_map(dominators_first).try_for_each(|block| self.walk(block))
    }

    /// Refuses tensors whose element type memrefs cannot have.
    fn check_elements(&mut self, op: Op<'c>) -> Result<(), Diagnostics> {
        for ty in op.results().into_iter().map(|r| r.ty()).filter(|ty| ty.is_tensor()) {
            let element = ty.element();
            let is_plain = element.is_float() || element.is_index() || element.integer_width().is_some();
            if is_plain || *self.elements.entry(element).or_insert_with(|| is_memref_element(element)) {
                continue;
            }
            let message = format!(
                "cannot bufferize value of type '{ty}': element type '{element}' is not a valid memref element type"
            );
            let help = "let the tensor hold integers, floats, indices, complex numbers or vectors";
            return Err(Diagnostic::error("B0132", op.location(), message).with_help(help).into());
        }
        Ok(())
    }

    /// Predicts the types in a block, in order.
    ///
    /// # Errors
    /// B0108 when two equivalent values are in different memory spaces.
    pub fn walk(&mut self, block: Block<'c>) -> Result<(), Diagnostics> {
        for op in block.ops().into_iter().filter(|op| !is_apart(*op, self.options)) {
            self.steps += 1;
            match self.models.taking_part(op, self.options).cloned() {
                Some(model) if has_tensors(op) => {
                    let typed = self.check_elements(op).and_then(|()| model.buffer_types(op, self));
                    typed.map_err(|mut errors| {
                        failed_to_bufferize(&mut errors, op.location(), self.options);
                        errors
                    })?;
                }
                _ => {
                    op.regions().into_iter().flat_map(dominators_first).try_for_each(|inner| self.walk(inner))?;
                }
            }
        }
        Ok(())
    }

    /// Walks the blocks of a loop until each argument has a type to which its operands can be cast.
    ///
    /// # Errors
    /// As [`Self::walk`] and [`Self::unify`].
    pub fn fixpoint(
        &mut self,
        op: Op<'c>,
        blocks: &[Block<'c>],
        passed: &[(Value<'c>, Value<'c>)],
    ) -> Result<(), Diagnostics> {
        loop {
            for block in blocks {
                self.walk(*block)?;
            }
            let mut changed = false;
            for &(argument, value) in passed {
                let (old, new) = (self.of(argument), self.of(value));
                let unified = self.unify(op, old, new)?;
                changed |= unified != old;
                self.set(argument, unified);
            }
            // Each round makes some argument's layout dynamic, the widest, so it terminates.
            if !changed {
                return Ok(());
            }
        }
    }

    /// A type to which both can be cast: themselves if equal, else with dynamic strides and offset.
    ///
    /// # Errors
    /// B0108 when they are in different memory spaces.
    pub fn unify(&self, op: Op<'c>, a: Type<'c>, b: Type<'c>) -> Result<Type<'c>, Diagnostics> {
        if a == b {
            return Ok(a);
        }
        let (Some(first), Some(second)) = (a.as_memref(), b.as_memref()) else { return Ok(a) };
        if first.memory_space != second.memory_space {
            return Err(self.different_spaces(op, a, b));
        }
        Ok(dynamic_layout(&first))
    }

    fn different_spaces(&self, op: Op<'c>, a: Type<'c>, b: Type<'c>) -> Diagnostics {
        let name = op.name();
        let message = match name {
            _ if !self.is_upstream() => {
                format!("one value of {name} is {a}, another one {b}: they are in different memory spaces")
            }
            ops::scf::IF => "inconsistent memory space on then/else branches".to_owned(),
            ops::scf::INDEX_SWITCH => "inconsistent memory space on switch cases".to_owned(),
            _ if self.models.get(op, self.options).is_some_and(|model| !model.loop_carried(op).is_empty()) => {
                format!("'{name}' op init_arg and yielded value bufferize to inconsistent memory spaces")
            }
            ops::arith::SELECT => format!("'{name}' op inconsistent memory space on true/false operands"),
            _ => format!("'{name}' op incoming operands of block argument have inconsistent memory spaces"),
        };
        let error = Diagnostic::error("B0108", op.location(), message)
            .with_help("copy one of them with bufferization.alloc_tensor copy(..) into the other's space");
        // The first nested operation that needs the type is the terminator.
        let inside = if name == ops::func::FUNC { None } else { op.body().and_then(Block::terminator) };
        self.failed(error, inside.unwrap_or(op))
    }
}
