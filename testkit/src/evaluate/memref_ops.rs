//! Ops on memrefs: allocations, views, accesses, and the ops of `bufferization` that free and clone.

use super::memory::{Origin, View, datum, dense_strides};
use super::scalar::dtype_of;
use super::{Datum, Interpreter, Result, int, undefined, unsupported};
use monopour_ir::ops;
use monopour_ir::typed::bufferization::Dealloc;
use monopour_ir::{DYNAMIC, Op, Type};
use std::rc::Rc;

impl<'c> Interpreter<'c, '_> {
    pub(super) fn memref(&self, op: Op<'c>, index: usize) -> Result<Rc<View>> {
        match self.operand(op, index)? {
            Datum::MemRef(view) => Ok(view),
            _ => Err(unsupported("another value where a memref is expected", op)),
        }
    }

    pub(super) fn memref_op(&mut self, op: Op<'c>) -> Result<Vec<Datum>> {
        match op.name() {
            ops::memref::ALLOC => self.allocation(op, Origin::Heap),
            ops::memref::ALLOCA => self.allocation(op, Origin::Stack),
            ops::memref::GET_GLOBAL => self.global(op),
            ops::memref::DEALLOC => {
                let view = self.memref(op, 0)?;
                self.memory.free(op, view.buffer)?;
                Ok(vec![])
            }
            ops::memref::REALLOC => self.realloc(op),
            ops::memref::LOAD => {
                let (view, index) = (self.memref(op, 0)?, self.indices(op, 1)?);
                Ok(vec![Datum::Scalar(self.memory.load(op, &view, &index)?)])
            }
            ops::memref::STORE => {
                let (value, view, index) = (self.scalar(op, 0)?, self.memref(op, 1)?, self.indices(op, 2)?);
                self.memory.store(op, &view, &index, value)?;
                Ok(vec![])
            }
            ops::memref::COPY => {
                let (from, to) = (self.memref(op, 0)?, self.memref(op, 1)?);
                self.copy(op, &from, &to)?;
                Ok(vec![])
            }
            ops::memref::DIM => {
                let (view, dim) = (self.memref(op, 0)?, self.index(op, 1)?);
                let size = usize::try_from(dim).ok().and_then(|d| view.sizes.get(d));
                Ok(vec![int(*size.ok_or_else(|| undefined("memref.dim out of range", op))?)])
            }
            ops::memref::RANK => Ok(vec![int(self.memref(op, 0)?.sizes.len() as i64)]),
            ops::memref::EXTRACT_ALIGNED_POINTER_AS_INDEX => {
                let view = self.memref(op, 0)?;
                Ok(vec![int(self.memory.address(view.buffer))])
            }
            ops::memref::EXTRACT_STRIDED_METADATA => {
                let view = self.memref(op, 0)?;
                let base = View { buffer: view.buffer, offset: 0, sizes: vec![], strides: vec![] };
                let numbers = [view.offset].into_iter().chain(view.sizes.clone()).chain(view.strides.clone());
                Ok([datum(base)].into_iter().chain(numbers.map(int)).collect())
            }
            ops::linalg::FILL => {
                let (value, view) = (self.scalar(op, 0)?, self.memref(op, 1)?);
                self.memory.fill(op, &view, value)?;
                Ok(vec![])
            }
            ops::bufferization::CLONE => self.clone_buffer(op),
            ops::bufferization::DEALLOC => self.conditional_dealloc(op),
            ops::bufferization::TO_BUFFER => {
                let contents = Rc::unwrap_or_clone(self.tensor(op, 0)?);
                let sizes: Vec<i64> = contents.shape.iter().map(|d| *d as i64).collect();
                Ok(vec![datum(self.memory.adopt(contents, &sizes, Origin::Foreign, op.location().to_string()))])
            }
            ops::bufferization::TO_TENSOR => {
                let view = self.memref(op, 0)?;
                Ok(vec![Datum::Tensor(Rc::new(self.memory.read(op, &view)?))])
            }
            _ => self.view(op),
        }
    }

    fn indices(&self, op: Op<'c>, first: usize) -> Result<Vec<i64>> {
        (first..op.num_operands()).map(|i| self.index(op, i)).collect()
    }

    fn allocation(&mut self, op: Op<'c>, origin: Origin) -> Result<Vec<Datum>> {
        let ty = op.result(0).ty();
        let memref = ty.as_memref().ok_or_else(|| unsupported(&format!("type {ty}"), op))?;
        let sizes = self.mixed(op, &memref.shape, &mut 0)?;
        let dtype = dtype_of(ty).ok_or_else(|| unsupported(&format!("type {ty}"), op))?;
        if !memref.is_identity() {
            return Err(unsupported(&format!("an allocation of {ty}"), op));
        }
        let view = self.memory.allocate(dtype, &sizes, origin, op.location().to_string())?;
        if origin == Origin::Stack {
            self.stack.push(view.buffer);
        }
        Ok(vec![datum(view)])
    }

    fn global(&mut self, op: Op<'c>) -> Result<Vec<Datum>> {
        let name = op.attr("name").and_then(|a| a.as_symbol().map(str::to_owned)).unwrap_or_default();
        let ty = op.result(0).ty();
        let sizes = ty.shape().ok_or_else(|| unsupported(&format!("type {ty}"), op))?;
        if let Some(buffer) = self.memory.globals.get(&name) {
            return Ok(vec![datum(View { buffer: *buffer, offset: 0, strides: dense_strides(&sizes), sizes })]);
        }
        let dtype = dtype_of(ty).ok_or_else(|| unsupported(&format!("type {ty}"), op))?;
        let value = self.module.symbol(&name).and_then(|g| g.attr("initial_value"));
        let shape = super::checked_shape(op, &sizes)?;
        let contents = match value.and_then(|v| v.elements_bytes()) {
            Some(bytes) => crate::host_tensor::HostTensor::from_bytes(dtype, &[shape.iter().product()], &bytes)
                .ok_or_else(|| unsupported(&format!("the value of @{name}"), op))?,
            None => super::filled(dtype, vec![shape.iter().product()], super::poison_of(dtype)),
        };
        let view = self.memory.adopt(contents, &sizes, Origin::Foreign, format!("@{name}"));
        self.memory.globals.insert(name, view.buffer);
        Ok(vec![datum(view)])
    }

    fn realloc(&mut self, op: Op<'c>) -> Result<Vec<Datum>> {
        let old = self.memref(op, 0)?;
        let ty = op.result(0).ty();
        let shape = ty.shape().ok_or_else(|| unsupported(&format!("type {ty}"), op))?;
        let sizes = self.mixed(op, &shape, &mut 1)?;
        let contents = self.memory.read(op, &old)?;
        let dtype = contents.dtype;
        let view = self.memory.allocate(dtype, &sizes, Origin::Heap, op.location().to_string())?;
        for at in 0..contents.len().min(usize::try_from(sizes[0]).unwrap_or(0)) {
            self.memory.store(op, &view, &[at as i64], super::element(&contents, at))?;
        }
        self.memory.free(op, old.buffer)?;
        Ok(vec![datum(view)])
    }

    pub(super) fn copy(&mut self, op: Op<'c>, from: &View, to: &View) -> Result<()> {
        let contents = self.memory.read(op, from)?;
        self.tick(contents.len() as u64)?;
        self.memory.copied_elements += contents.len() as u64;
        self.memory.write(op, to, &contents)
    }

    fn clone_buffer(&mut self, op: Op<'c>) -> Result<Vec<Datum>> {
        let from = self.memref(op, 0)?;
        let dtype = self.memory.read(op, &from)?.dtype;
        // A clone has the layout of its type.
        let length =
            from.sizes.iter().zip(&from.strides).map(|(n, s)| (n - 1).max(0) * s).sum::<i64>() + from.offset + 1;
        let whole = self.memory.allocate(dtype, &[length], Origin::Heap, op.location().to_string())?;
        let view = View { buffer: whole.buffer, ..(*from).clone() };
        self.memory.clones += 1;
        self.copy(op, &from, &view)?;
        Ok(vec![datum(view)])
    }

    /// In order: each memref that is set, not retained and not freed yet is freed. A retained memref is owned where a set
    /// one has its buffer.
    fn conditional_dealloc(&mut self, op: Op<'c>) -> Result<Vec<Datum>> {
        let dealloc = Dealloc::of(op).ok_or_else(|| unsupported(op.name(), op))?;
        let buffer = |i| self.memref(op, i).map(|view| view.buffer);
        let listed = dealloc.memref_positions().map(buffer).collect::<Result<Vec<_>>>()?;
        let conditions = dealloc.condition_positions().map(|i| Ok(self.index(op, i)? & 1 == 1));
        let conditions = conditions.collect::<Result<Vec<_>>>()?;
        let retained = dealloc.retained_positions().map(buffer).collect::<Result<Vec<_>>>()?;
        let mut freed = Vec::new();
        for (buffer, _) in listed.iter().zip(&conditions).filter(|(_, is_set)| **is_set) {
            if !retained.contains(buffer) && !freed.contains(buffer) {
                freed.push(*buffer);
                self.memory.free(op, *buffer)?;
            }
        }
        let is_owned = |kept: &usize| listed.iter().zip(&conditions).any(|(b, is_set)| b == kept && *is_set);
        Ok(retained.iter().map(|kept| int(i64::from(is_owned(kept)))).collect())
    }

    /// Ops that return a view of memory.
    fn view(&mut self, op: Op<'c>) -> Result<Vec<Datum>> {
        let from = self.memref(op, 0)?;
        let ty = op.result(0).ty();
        let view = match op.name() {
            ops::memref::CAST | ops::memref::MEMORY_SPACE_CAST | ops::memref::ASSUME_ALIGNMENT => (*from).clone(),
            ops::memref::SUBVIEW => self.subview(op, &from, ty)?,
            ops::memref::REINTERPRET_CAST => {
                let [offset, sizes, strides] = self.slice_numbers(op)?;
                let offset = *offset.first().ok_or_else(|| unsupported(op.name(), op))?;
                View { buffer: from.buffer, offset, sizes, strides }
            }
            ops::memref::TRANSPOSE => {
                let map = op.attr("permutation").and_then(|a| a.as_affine_map());
                let map = map.ok_or_else(|| unsupported(op.name(), op))?;
                View { sizes: map.eval(&from.sizes, &[]), strides: map.eval(&from.strides, &[]), ..(*from).clone() }
            }
            ops::memref::EXPAND_SHAPE | ops::memref::COLLAPSE_SHAPE => self.reshaped(op, &from, ty)?,
            _ => return Err(unsupported(op.name(), op)),
        };
        if !view.fits(ty) {
            return Err(undefined(&format!("a {ty} that is {view:?}"), op));
        }
        Ok(vec![datum(view)])
    }

    fn slice_numbers(&self, op: Op<'c>) -> Result<[Vec<i64>; 3]> {
        let mut next = 1;
        let mut part = |name: &str| {
            let fixed = op.attr(name).and_then(|a| a.as_ints()).ok_or_else(|| unsupported(op.name(), op))?;
            self.mixed(op, &fixed, &mut next)
        };
        Ok([part("static_offsets")?, part("static_sizes")?, part("static_strides")?])
    }

    fn subview(&self, op: Op<'c>, from: &View, ty: Type<'c>) -> Result<View> {
        let [offsets, sizes, strides] = self.slice_numbers(op)?;
        let ends = offsets.iter().zip(&sizes).zip(&strides).map(|((o, n), s)| o + (n - 1).max(0) * s);
        let outside = offsets.iter().zip(ends).zip(&from.sizes).any(|((o, e), n)| *o < 0 || e >= (*n).max(1));
        if outside {
            return Err(undefined("a subview out of bounds", op));
        }
        let offset = from.offset + offsets.iter().zip(&from.strides).map(|(o, s)| o * s).sum::<i64>();
        let strides: Vec<i64> = strides.iter().zip(&from.strides).map(|(a, b)| a * b).collect();
        // Unit dimensions that the result type lacks are dropped.
        let wanted = ty.shape().ok_or_else(|| unsupported("an unranked subview", op))?;
        let mut kept = Vec::new();
        for (dim, size) in sizes.iter().enumerate() {
            let fits = wanted.get(kept.len()).is_some_and(|w| *w == DYNAMIC || w == size);
            let may_drop = *size == 1 && sizes.len() - dim > wanted.len() - kept.len().min(wanted.len());
            if fits && !(may_drop && wanted.get(kept.len()) != Some(&1)) {
                kept.push(dim);
            }
        }
        let pick = |from: &[i64]| kept.iter().map(|d| from[*d]).collect();
        Ok(View { buffer: from.buffer, offset, sizes: pick(&sizes), strides: pick(&strides) })
    }

    /// Expansions and collapses of contiguous memory.
    fn reshaped(&self, op: Op<'c>, from: &View, ty: Type<'c>) -> Result<View> {
        if from.strides != dense_strides(&from.sizes) {
            return Err(unsupported("a reshape of a view with gaps", op));
        }
        let shape = ty.shape().ok_or_else(|| unsupported(&format!("type {ty}"), op))?;
        let total: i64 = from.sizes.iter().product();
        let known: i64 = shape.iter().filter(|d| **d != DYNAMIC).product();
        let sizes: Vec<i64> = shape.iter().map(|d| if *d == DYNAMIC { total / known.max(1) } else { *d }).collect();
        if sizes.iter().product::<i64>() != total {
            return Err(unsupported(op.name(), op));
        }
        Ok(View { strides: dense_strides(&sizes), sizes, ..from.clone() })
    }
}
