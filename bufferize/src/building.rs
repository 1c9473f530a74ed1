//! Builders for rewrites of ops: allocations, copies, casts, views, globals.
//!
//! ```text
//! alloc          memref.alloc(%n) {alignment = 64 : i64} : memref<?xf32>
//! cast_or_copy   memref.cast %m, or a copy in a new buffer if the layout may not fit (B0202)
//! global         memref.global "private" constant @__constant_4xf32, one per value and type
//! ```
//!
//! Ensures: every allocation and every copy is counted.

use monopour_ir::conversion::ConversionRewriter;
use monopour_ir::ops;
use monopour_ir::typed::{Slice, memref};
use monopour_ir::{Attr, DYNAMIC, Diagnostic, Diagnostics, InsertionPoint, Op, OpSpec, Type, Value};

use crate::effects::{Index, SliceModel};
use crate::memref_types::{is_cast_safe, subview_type};
use crate::remarks::bytes;
use crate::rewriting::Rewriting;

impl<'c> Rewriting<'c, '_> {
    /// `memref.alloc` of `ty` with the given dynamic sizes; a row-major one, cast, if `ty` has dynamic strides or a dynamic
    /// offset.
    ///
    /// # Errors
    /// B0104 for a layout that a row-major buffer need not have; MLIR's diagnostics for the op.
    pub fn alloc(
        &self,
        rw: &mut ConversionRewriter<'c>,
        at: Op<'c>,
        ty: Type<'c>,
        sizes: &[Value<'c>],
    ) -> Result<Value<'c>, Diagnostics> {
        if ty.memref_layout().is_none_or(|map| map.num_symbols() == 0) {
            return self.alloc_as_is(rw, at, ty, sizes);
        }
        let made = ty.as_memref().map(|m| Type::memref(&m.shape, m.element, m.memory_space));
        let Some(made) = made.filter(|made| is_cast_safe(*made, ty)) else {
            return Err(self.unsupported(at, &format!("a new buffer of type {ty}, whose layout is not known,")).into());
        };
        let buffer = self.alloc_as_is(rw, at, made, sizes)?;
        let cast = OpSpec::new(ops::memref::CAST, at.location()).operands(&[buffer]).results(&[ty]);
        Ok(rw.create(cast)?.result(0))
    }

    fn alloc_as_is(
        &self,
        rw: &mut ConversionRewriter<'c>,
        at: Op<'c>,
        ty: Type<'c>,
        sizes: &[Value<'c>],
    ) -> Result<Value<'c>, Diagnostics> {
        let cx = rw.context();
        let mut spec = memref::alloc(at.location(), sizes, ty);
        if self.options.buffer_alignment_bytes > 0 {
            let bytes = i64::try_from(self.options.buffer_alignment_bytes).unwrap_or(i64::MAX);
            spec = spec.attr("alignment", Attr::i64(cx, bytes));
        }
        let alloc = rw.create(spec)?;
        self.allocs.set(self.allocs.get() + 1);
        Ok(alloc.result(0))
    }

    /// `memref.copy`.
    ///
    /// # Errors
    /// MLIR's diagnostics for the op.
    pub fn copy(
        &self,
        rw: &mut ConversionRewriter<'c>,
        at: Op<'c>,
        from: Value<'c>,
        to: Value<'c>,
    ) -> Result<(), Diagnostics> {
        rw.create(OpSpec::new(ops::memref::COPY, at.location()).operands(&[from, to]))?;
        self.copies.set(self.copies.get() + 1);
        Ok(())
    }

    /// The dynamic sizes of a memref, by `memref.dim`.
    ///
    /// # Errors
    /// MLIR's diagnostics for the ops.
    pub fn dynamic_sizes(
        &self,
        rw: &mut ConversionRewriter<'c>,
        at: Op<'c>,
        memref: Value<'c>,
    ) -> Result<Vec<Value<'c>>, Diagnostics> {
        let index = Type::index(rw.context());
        let shape = memref.ty().shape().unwrap_or_default();
        let mut sizes = Vec::new();
        for (dim, _) in shape.iter().enumerate().filter(|(_, size)| **size == DYNAMIC) {
            let number = rw.const_index(i64::try_from(dim).unwrap_or(i64::MAX), at.location());
            let size =
                rw.create(OpSpec::new(ops::memref::DIM, at.location()).operands(&[memref, number]).results(&[index]))?;
            sizes.push(size.result(0));
        }
        Ok(sizes)
    }

    /// `value` as a `ty`: itself, a cast that cannot fail, or a copy in a new buffer.
    ///
    /// # Errors
    /// MLIR's diagnostics for the ops.
    pub fn cast_or_copy(
        &self,
        rw: &mut ConversionRewriter<'c>,
        at: Op<'c>,
        value: Value<'c>,
        ty: Type<'c>,
    ) -> Result<Value<'c>, Diagnostics> {
        if value.ty() == ty || !value.ty().is_memref() || !ty.is_memref() {
            return Ok(value);
        }
        // Between ranked and unranked types the layout is irrelevant.
        if value.ty().shape().is_none() || ty.shape().is_none() || is_cast_safe(value.ty(), ty) {
            let spec = OpSpec::new(ops::memref::CAST, at.location()).operands(&[value]).results(&[ty]);
            return Ok(rw.create(spec)?.result(0));
        }
        let sizes = self.dynamic_sizes(rw, at, value)?;
        let buffer = self.alloc(rw, at, ty, &sizes)?;
        self.copy(rw, at, value, buffer)?;
        self.remarks.borrow_mut().push(layout_remark(at, value.ty(), ty), value.ty().static_size_bytes());
        Ok(buffer)
    }

    /// `memref.subview` of a slice; dimensions of size 1 that `shape` lacks are dropped.
    ///
    /// # Errors
    /// B0104 for a source without a strided layout, and for a slice that is certainly out of bounds; MLIR's diagnostics for the op.
    pub fn subview(
        &self,
        rw: &mut ConversionRewriter<'c>,
        at: Op<'c>,
        source: Value<'c>,
        slice: &SliceModel<'c>,
        shape: &[i64],
    ) -> Result<Value<'c>, Diagnostics> {
        let Some(memref) = source.ty().as_memref() else {
            return Err(self.unsupported(at, "a source without strides").into());
        };
        if let Some((upstream, what)) = misfit(slice, &memref.shape) {
            return Err(self.refuse(at, &upstream, what).into());
        }
        let ty = subview_type(&memref, slice, shape);
        Ok(rw.create(memref::subview(at.location(), source, &to_slice(slice), ty))?.result(0))
    }

    /// `memref.get_global` of the symbol `name`, a `ty`.
    ///
    /// # Errors
    /// MLIR's diagnostics for the op.
    pub fn get_global(
        &self,
        rw: &mut ConversionRewriter<'c>,
        at: Op<'c>,
        name: Attr<'c>,
        ty: Type<'c>,
    ) -> Result<Value<'c>, Diagnostics> {
        let get = OpSpec::new(ops::memref::GET_GLOBAL, at.location()).results(&[ty]).attr("name", name);
        Ok(rw.create(get)?.result(0))
    }

    /// Refuses a global of dynamic shape (B0104). Constants may have one: an external resource fits any.
    pub(crate) fn check_static(&self, at: Op<'c>, ty: Type<'c>) -> Result<(), Diagnostics> {
        if ty.shape().is_none_or(|shape| shape.iter().all(|size| *size >= 0)) {
            return Ok(());
        }
        let upstream = format!("'memref.global' op type should be static shaped memref, but got '{ty}'");
        let help = "give it a static type, and cast it to the dynamic one";
        Err(self.refuse(at, &upstream, "a dynamic shape").with_help(help).into())
    }
    /// The symbol of a private constant global with this value; one per module, value and type.
    ///
    /// # Errors
    /// B0104 where a symbol could not be looked up, or a dynamic shape; MLIR's diagnostics for the op.
    pub fn global(
        &self,
        rw: &mut ConversionRewriter<'c>,
        at: Op<'c>,
        value: Attr<'c>,
        ty: Type<'c>,
    ) -> Result<Attr<'c>, Diagnostics> {
        self.check_static(at, ty)?;
        let cx = rw.context();
        let around = std::iter::successors(at.parent(), |op| op.parent());
        // An unregistered op may be a symbol table: the verifier stops there.
        let known = around.take_while(|op| cx.is_registered(op.name()));
        let module = known.into_iter().find(|op| op.is(ops::builtin::MODULE));
        let Some((module, top)) = module.and_then(|m| Some((m, m.body()?))) else {
            return Err(self.unsupported(at, "no module around it, or an unknown operation between").into());
        };
        let mut globals = self.globals.borrow_mut();
        if let Some(symbol) = globals.by_value.get(&(module, value, ty)) {
            return Ok(*symbol);
        }
        let name = globals.free_name(ty);
        rw.set_point(InsertionPoint::Start(top));
        let mut spec = OpSpec::new(ops::memref::GLOBAL, at.location())
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
        globals.by_value.insert((module, value, ty), symbol);
        Ok(symbol)
    }
}

/// The slice of a model, as ops take it.
fn to_slice<'c>(slice: &SliceModel<'c>) -> Slice<'c> {
    Slice { offsets: slice.offsets.clone(), sizes: slice.sizes.clone(), strides: slice.strides.clone() }
}

/// The reason why a slice is certainly out of bounds: in upstream's words, and in ours.
fn misfit(slice: &SliceModel, shape: &[i64]) -> Option<(String, &'static str)> {
    let number = |index: &Index| match index {
        Index::Static(number) => Some(*number),
        Index::Dynamic(_) => None,
    };
    let negative = |list: &[Index]| list.iter().filter_map(number).find(|n| *n < 0);
    if let Some(found) = negative(&slice.offsets) {
        return Some((format!("expected offsets to be non-negative, but got {found}"), "a negative offset"));
    }
    if let Some(found) = negative(&slice.sizes) {
        return Some((format!("expected sizes to be non-negative, but got {found}"), "a negative size"));
    }
    for (dim, &extent) in shape.iter().enumerate().filter(|(_, extent)| **extent != DYNAMIC) {
        let Some(first) = number(&slice.offsets[dim]) else { continue };
        if first >= extent {
            return Some((format!("offset {dim} is out-of-bounds: {first} >= {extent}"), "a slice out of bounds"));
        }
        let (Some(size), Some(stride)) = (number(&slice.sizes[dim]), number(&slice.strides[dim])) else { continue };
        let last = first.wrapping_add((size - 1).wrapping_mul(stride));
        if last >= extent {
            let message = format!("slice along dimension {dim} runs out-of-bounds: {last} >= {extent}");
            return Some((message, "a slice out of bounds"));
        }
    }
    None
}

fn layout_remark(at: Op, from: Type, to: Type) -> Diagnostic {
    let size = bytes(from);
    Diagnostic::remark(
        "B0202",
        at.location(),
        format!("copied {size} for {}: {from} is not certain to have the layout of {to}", at.name()),
    )
}
