//! Rewrite tensors into memrefs, op by op, through the conversion driver.
//!
//! ```text
//! %e = tensor.empty() : tensor<4xf32>                         %b = memref.alloc() {alignment = 64 : i64} : memref<4xf32>
//! %f = linalg.fill ins(%z : f32) outs(%e : ..) -> ..    ==>   linalg.fill ins(%z : f32) outs(%b : memref<4xf32>)
//! return %f : tensor<4xf32>                                   return %b : memref<4xf32>
//! ```
//!
//! Requires: copies are inserted, every tensor has a predicted type.
//! Ensures: no tensors; no `builtin.unrealized_conversion_cast` of ours.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};

use monopour_ir::conversion::{Adaptor, ConversionRewriter, ConversionTarget, Declined, Mode, PatternSet, convert};
use monopour_ir::{
    Attr, DYNAMIC, Diagnostic, Diagnostics, InsertionPoint, Location, Op, OpSpec, Region, Rewriter, Type, Value,
    WalkOrder,
};

use crate::buffer_type::{BufferTypes, is_cast_safe, subview_type};
use crate::insert_copies::{Remarks, bytes};
use crate::op_model::{Buffers, Index, OpModels, SliceModel, has_tensors};
use crate::options::Options;

const CAST: &str = "builtin.unrealized_conversion_cast";

/// What a rewrite of one op may ask and use.
pub struct Rewriting<'a> {
    /// Predicted types.
    pub types: BufferTypes<'a>,
    module: Op,
    options: &'a Options,
    self_copies: HashSet<Op>,
    unverified: RefCell<Vec<Op>>,
    globals: RefCell<Globals>,
    allocs: Cell<u32>,
    copies: Cell<u32>,
    remarks: RefCell<Remarks>,
}

/// Constants by value and type, and the names that are taken.
#[derive(Default)]
struct Globals {
    by_value: HashMap<(Attr, Type), Attr>,
    names: HashSet<String>,
}

/// What the rewrite made.
pub(crate) struct Made {
    pub(crate) allocs: u32,
    pub(crate) copies: u32,
    pub(crate) remarks: Remarks,
}

/// Rewrites the module. `self_copies`: inserts whose source already is the slice that they overwrite.
pub(crate) fn run(
    module: Op,
    models: &OpModels,
    options: &Options,
    types: BufferTypes<'_>,
    self_copies: HashSet<Op>,
) -> Result<Made, Diagnostics> {
    let names = module.nested(WalkOrder::Pre).into_iter().filter_map(Op::symbol_name).collect();
    let pass = Rewriting {
        types,
        module,
        options,
        self_copies,
        unverified: RefCell::default(),
        globals: RefCell::new(Globals { by_value: HashMap::new(), names }),
        allocs: Cell::new(0),
        copies: Cell::new(0),
        remarks: RefCell::default(),
    };
    let stays = |op: Op| {
        models.taking_part(op, options).is_none_or(|m| m.follows_blocks(op) && stay_blocks(op, models, options))
    };
    let mut target = ConversionTarget::new();
    target.unknown_dynamically_legal(|op| !has_tensors(op) || op.is(CAST) || (options.is_partial() && stays(op)));
    target.dynamically_legal_op("func.func", |op| {
        !options.bufferize_function_boundaries || !(has_tensor_signature(op) || has_tensors(op))
    });
    let mut patterns = PatternSet::new();
    patterns.add_fn("func.func", |op, _, rw| signature(op, rw, &pass));
    patterns.add_fn("*", |op, adaptor, rw| match models.taking_part(op, options) {
        Some(model) => {
            let buffers = buffers_of(op, adaptor, rw, &pass);
            model.rewrite(op, &Buffers::new(&buffers), rw, &pass)
        }
        None => Err(Declined::no_match("nothing says how it uses the memory of its tensors")),
    });
    let mode = if options.is_partial() { Mode::Partial } else { Mode::Full };
    convert(module, &target, &patterns, mode)?;
    pass.verify_made()?;
    if options.is_partial() {
        bridge(module)?;
    }
    Ok(Made { allocs: pass.allocs.get(), copies: pass.copies.get(), remarks: pass.remarks.take() })
}

/// Whether the arguments of the blocks around an operation stay tensors.
fn stay_blocks(op: Op, models: &OpModels, options: &Options) -> bool {
    op.parent().is_none_or(|parent| match parent.is("func.func") {
        true => !options.bufferize_function_boundaries,
        false => models.taking_part(parent, options).is_none(),
    })
}

/// The operands as memrefs; a tensor that something else makes is cast, and becomes a `bufferization.to_buffer` at the end.
fn buffers_of(op: Op, adaptor: &Adaptor<'_>, rw: &mut ConversionRewriter, pass: &Rewriting<'_>) -> Vec<Value> {
    let original = op.operands();
    adaptor
        .operands()
        .iter()
        .zip(original)
        .map(|(value, tensor)| {
            if value.ty().is_tensor() && !op.is("scf.forall.in_parallel") {
                rw.cast(*value, pass.types.of(tensor))
            } else {
                *value
            }
        })
        .collect()
}

/// Casts between what was rewritten and what stays on tensors become `to_tensor` and `to_buffer`.
fn bridge(module: Op) -> Result<(), Diagnostics> {
    let mut rw = Rewriter::new(module.context());
    for cast in module.find_all(CAST).into_iter().filter(|op| op.num_operands() == 1 && op.num_results() == 1) {
        let (from, to) = (cast.operand(0), cast.result(0));
        let name = match (from.ty().is_memref(), to.ty().is_memref()) {
            (true, false) if to.ty().is_tensor() => "bufferization.to_tensor",
            (false, true) if from.ty().is_tensor() => "bufferization.to_buffer",
            _ => continue,
        };
        // A buffer becomes a tensor when its writes are done: right before its first reader.
        let anchor = first_user(cast).filter(|_| name == "bufferization.to_tensor").unwrap_or(cast);
        rw.set_point(InsertionPoint::Before(anchor));
        let new = rw.create(OpSpec::new(name, cast.location()).operands(&[from]).results(&[to.ty()]))?;
        rw.replace_op(cast, &new.results());
    }
    Ok(())
}

/// The first op of the block that uses the cast's result, or holds one that does.
fn first_user(cast: Op) -> Option<Op> {
    let in_block = |mut op: Op| {
        while op.block() != cast.block() {
            op = op.parent()?;
        }
        Some(op)
    };
    let users = cast.result(0).uses().into_iter().filter_map(|u| in_block(u.op));
    users.reduce(|a, b| if b.is_before_in_block(a) { b } else { a })
}

fn has_tensor_signature(op: Op) -> bool {
    op.function_type().is_some_and(|(inputs, results)| inputs.iter().chain(&results).any(|t| t.is_tensor()))
}

/// A function's type, and the arguments of its body.
fn signature(op: Op, rw: &mut ConversionRewriter, pass: &Rewriting<'_>) -> Result<(), Declined> {
    let (inputs, results) = pass.types.signature(op);
    let ty = Type::function(rw.context(), &inputs, &results);
    rw.set_attr(op, "function_type", Attr::ty(ty));
    if let Some(body) = op.body() {
        rw.convert_block_args(body, &inputs);
        pass.convert_blocks(rw, op.region(0));
    }
    Ok(())
}

impl Rewriting<'_> {
    /// Gives the arguments of a region's blocks their memref types, but for the entry's; branches to them follow.
    pub(crate) fn convert_blocks(&self, rw: &mut ConversionRewriter, region: Region) {
        for block in region.blocks().into_iter().skip(1) {
            let types: Vec<Type> = block.args().into_iter().map(|a| self.types.of(a)).collect();
            rw.convert_block_args(block, &types);
        }
    }
    /// The row-major memref of a tensor type.
    pub fn identity(&self, tensor: Type) -> Type {
        self.types.identity(tensor)
    }
    /// Types of a function's arguments after the rewrite.
    pub fn argument_types(&self, function: Op) -> Vec<Type> {
        self.types.signature(function).0
    }
    /// Whether the insert's source already is the slice that it overwrites.
    pub fn is_self_copy(&self, op: Op) -> bool {
        self.options.extensions && self.self_copies.contains(&op)
    }
    /// A diagnostic for a form of an op that is not handled (B0104).
    pub fn unsupported(&self, op: Op, what: &str) -> Diagnostic {
        Diagnostic::error("B0104", op.location(), format!("{} with {what} cannot be bufferized", op.name()))
            .with_help("rewrite it to the plain form of the operation")
    }

    /// Verifies an op when all is rewritten: whether it has a form on memrefs, nobody but its verifier knows.
    pub(crate) fn verify_later(&self, op: Op) {
        self.unverified.borrow_mut().push(op);
    }

    fn verify_made(&self) -> Result<(), Diagnostics> {
        let mut errors = Diagnostics::default();
        for op in self.unverified.take() {
            let Err(found) = op.verify_with_diagnostics() else { continue };
            let message = format!("{} has no form on memrefs without results", op.name());
            let mut error = Diagnostic::error("B0104", op.location(), message)
                .with_help("rewrite it to linalg or tensor operations, or register an op model");
            error.notes = found.0.into_iter().map(|d| d.message).collect();
            errors.0.push(error);
        }
        if errors.has_errors() { Err(errors) } else { Ok(()) }
    }

    /// `memref.alloc` of `ty`, its dynamic sizes given.
    ///
    /// # Errors
    /// What MLIR says of the op.
    pub fn alloc(&self, rw: &mut ConversionRewriter, at: Op, ty: Type, sizes: &[Value]) -> Result<Value, Diagnostics> {
        let cx = rw.context();
        let count = i32::try_from(sizes.len()).unwrap_or(i32::MAX);
        let mut spec = OpSpec::new("memref.alloc", at.location()).operands(sizes).results(&[ty]);
        if self.options.buffer_alignment_bytes > 0 {
            let bytes = i64::try_from(self.options.buffer_alignment_bytes).unwrap_or(i64::MAX);
            spec = spec.attr("alignment", Attr::i64(cx, bytes));
        }
        spec = spec.attr("operandSegmentSizes", Attr::dense_i32(cx, &[count, 0]));
        let alloc = rw.create(spec)?;
        self.allocs.set(self.allocs.get() + 1);
        Ok(alloc.result(0))
    }

    /// `memref.copy`.
    ///
    /// # Errors
    /// What MLIR says of the op.
    pub fn copy(&self, rw: &mut ConversionRewriter, at: Op, from: Value, to: Value) -> Result<(), Diagnostics> {
        rw.create(OpSpec::new("memref.copy", at.location()).operands(&[from, to]))?;
        self.copies.set(self.copies.get() + 1);
        Ok(())
    }

    /// The dynamic sizes of a memref, by `memref.dim`.
    ///
    /// # Errors
    /// What MLIR says of the ops.
    pub fn dynamic_sizes(&self, rw: &mut ConversionRewriter, at: Op, memref: Value) -> Result<Vec<Value>, Diagnostics> {
        let index = Type::index(rw.context());
        let shape = memref.ty().shape().unwrap_or_default();
        let mut sizes = Vec::new();
        for (dim, _) in shape.iter().enumerate().filter(|(_, size)| **size == DYNAMIC) {
            let number = rw.const_index(i64::try_from(dim).unwrap_or(i64::MAX), at.location());
            let size =
                rw.create(OpSpec::new("memref.dim", at.location()).operands(&[memref, number]).results(&[index]))?;
            sizes.push(size.result(0));
        }
        Ok(sizes)
    }

    /// `value` as a `ty`: itself, a cast that cannot fail, or a copy in a new buffer.
    ///
    /// # Errors
    /// What MLIR says of the ops.
    pub fn cast_or_copy(
        &self,
        rw: &mut ConversionRewriter,
        at: Op,
        value: Value,
        ty: Type,
    ) -> Result<Value, Diagnostics> {
        if value.ty() == ty || !value.ty().is_memref() {
            return Ok(value);
        }
        if is_cast_safe(value.ty(), ty) {
            let spec = OpSpec::new("memref.cast", at.location()).operands(&[value]).results(&[ty]);
            return Ok(rw.create(spec)?.result(0));
        }
        let sizes = self.dynamic_sizes(rw, at, value)?;
        let buffer = self.alloc(rw, at, ty, &sizes)?;
        self.copy(rw, at, value, buffer)?;
        self.remarks.borrow_mut().push(layout_remark(at, value.ty(), ty), value.ty().static_size_bytes());
        Ok(buffer)
    }

    /// `memref.subview` of a slice, with dimensions of size 1 dropped as `shape` has it.
    ///
    /// # Errors
    /// B0104 for a source without a strided layout; what MLIR says of the op.
    pub fn subview(
        &self,
        rw: &mut ConversionRewriter,
        at: Op,
        source: Value,
        slice: &SliceModel,
        shape: &[i64],
    ) -> Result<Value, Diagnostics> {
        let cx = rw.context();
        let Some(memref) = source.ty().as_memref() else {
            return Err(self.unsupported(at, "a source without strides").into());
        };
        let ty = subview_type(&memref, slice, shape);
        let mut operands = vec![source];
        let mut segments = vec![1i32];
        let mut attrs = Vec::new();
        for list in [&slice.offsets, &slice.sizes, &slice.strides] {
            let dynamic: Vec<Value> = list
                .iter()
                .filter_map(|i| match i {
                    Index::Dynamic(v) => Some(*v),
                    Index::Static(_) => None,
                })
                .collect();
            let fixed: Vec<i64> = list
                .iter()
                .map(|i| match i {
                    Index::Static(v) => *v,
                    Index::Dynamic(_) => DYNAMIC,
                })
                .collect();
            segments.push(i32::try_from(dynamic.len()).unwrap_or(i32::MAX));
            operands.extend(dynamic);
            attrs.push(Attr::dense_i64(cx, &fixed));
        }
        let spec = OpSpec::new("memref.subview", at.location())
            .operands(&operands)
            .results(&[ty])
            .attr("static_offsets", attrs[0])
            .attr("static_sizes", attrs[1])
            .attr("static_strides", attrs[2])
            .attr("operandSegmentSizes", Attr::dense_i32(cx, &segments));
        Ok(rw.create(spec)?.result(0))
    }

    /// The same op with other operands and result types; it takes the regions of `op`.
    ///
    /// # Errors
    /// What MLIR says of the op.
    pub fn recreate(
        &self,
        rw: &mut ConversionRewriter,
        op: Op,
        operands: &[Value],
        results: &[Type],
    ) -> Result<Op, Diagnostics> {
        let attrs = op.attrs();
        let mut spec = OpSpec::new(op.name(), op.location()).operands(operands).results(results);
        for (name, value) in &attrs {
            spec = spec.attr(name, *value);
        }
        for _ in op.regions() {
            spec = spec.region(Region::new());
        }
        let new = rw.create(spec)?;
        for (to, from) in new.regions().into_iter().zip(op.regions()) {
            rw.take_region(to, from);
        }
        Ok(new)
    }

    /// The symbol of a private constant global with this value; one per value and type.
    ///
    /// # Errors
    /// What MLIR says of the op.
    pub fn global(&self, rw: &mut ConversionRewriter, at: Op, value: Attr, ty: Type) -> Result<Attr, Diagnostics> {
        let mut globals = self.globals.borrow_mut();
        if let Some(symbol) = globals.by_value.get(&(value, ty)) {
            return Ok(*symbol);
        }
        let cx = rw.context();
        let name = globals.free_name(ty);
        let Some(top) = self.module.body() else { return Err(self.unsupported(at, "no module around it").into()) };
        rw.set_point(InsertionPoint::Start(top));
        let mut spec = OpSpec::new("memref.global", at.location())
            .attr("sym_name", Attr::string(cx, &name))
            .attr("sym_visibility", Attr::string(cx, "private"))
            .attr("type", Attr::ty(ty))
            .attr("initial_value", value)
            .attr("constant", Attr::unit(cx));
        if self.options.buffer_alignment_bytes > 0 {
            let bytes = i64::try_from(self.options.buffer_alignment_bytes).unwrap_or(i64::MAX);
            spec = spec.attr("alignment", Attr::i64(cx, bytes));
        }
        let created = rw.create(spec);
        rw.set_point(InsertionPoint::Before(at));
        created?;
        let symbol = Attr::symbol(cx, &name);
        globals.by_value.insert((value, ty), symbol);
        Ok(symbol)
    }
}

impl Globals {
    /// `__constant_4x4xf32`, with a number behind it when taken.
    fn free_name(&mut self, ty: Type) -> String {
        let dims: Vec<String> = ty.shape().unwrap_or_default().iter().map(i64::to_string).collect();
        let base = format!("__constant_{}x{}", dims.join("x"), ty.element());
        let mut name = base.clone();
        let mut number = 0usize;
        while !self.names.insert(name.clone()) {
            name = format!("{base}_{number}");
            number += 1;
        }
        name
    }
}

fn layout_remark(at: Op, from: Type, to: Type) -> Diagnostic {
    let size = bytes(from);
    Diagnostic::remark(
        "B0202",
        at.location(),
        format!("copied {size} for {}: {from} is not certain to have the layout of {to}", at.name()),
    )
}

/// The location of a value: of its op, or of the op around its block.
pub(crate) fn location_of(value: Value) -> Option<Location> {
    let op = value.defining_op().or_else(|| value.as_block_arg().and_then(|(b, _)| b.parent_op()));
    op.map(Op::location)
}
