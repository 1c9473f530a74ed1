//! Lowers the host function to a closed set of runtime calls on handles.
//!
//! Before:
//! ```mlir
//! func.func @main(%x: memref<64x784xf32>) -> memref<64x10xf32> {
//!   %r = memref.alloc() : memref<64x10xf32>
//!   scf.forall (%i) in (4) { func.call @main_dispatch_0(%x, %r, %i) }
//!   return %r
//! }
//! ```
//! After:
//! ```mlir
//! func.func @main(%cx: i64) {
//!   %x = call @monopour_rt_input(%cx, %c0) : (i64, i64) -> i64
//!   %r = call @monopour_rt_alloc(%cx, %c2560) : (i64, i64) -> i64
//!   call @monopour_rt_arg(%cx, %x, %c0, %c200704) : ..
//!   call @monopour_rt_arg(%cx, %r, %c0, %c2560) : ..
//!   call @monopour_rt_dispatch(%cx, %c0, %c4, %c1, %c1) : ..
//!   call @monopour_rt_result(%cx, %c0, %r) : ..
//!   return
//! }
//! ```
//! Requires: planned; every dispatch is a forall with one call.
//! Handles of inputs and constants are requested at their first use (`sink.rs`).
//! Ensures: only `func.call` of [`RuntimeFunction`], `scf.{for,if,while}` and scalar ops remain in the host function. A memref
//! is a handle (the logical id of an allocation), an offset in bytes, and the sizes and strides that its type leaves open, each
//! an `i64`: so it passes through loops and branches. A read or write of an element waits for the device.
//! Limits: host ops outside of the op set (S0003); a result that does not begin its buffer (S0004).

use crate::buffers::{Buffer, Num, number, width};
use crate::checks;
use crate::constants::Known;
use crate::outline::{Extent, grid};
use crate::sources::Site;
use crate::{error, poison, regions, scalars};
use monopour_contract::{RuntimeFunction, Trap, attributes};
use monopour_ir::ops;
use monopour_ir::parallel::module_of;
use monopour_ir::typed::arith::CmpIPredicate;
use monopour_ir::{
    Attr, Block, Builder, DYNAMIC, Diagnostics, InsertionPoint, Location, Module, Op, OpSpec, Region, Rewriter, Type,
    Value,
};
use std::collections::HashMap;

/// Workgroups in a row of a folded grid: a size that every device supports.
const GRID_ROW: i64 = monopour_program::GRID_ROW as i64;

/// Objects that the host function refers to by index.
#[derive(Clone, Debug, Default)]
pub struct Scheduled {
    /// Kernel functions, by kernel index.
    pub kernels: Vec<String>,
    /// By kernel index: number of dispatches of the host function. One in a loop counts once.
    pub dispatches: Vec<u32>,
    /// `memref.global` symbols of constants that are not known, in the order of their indices.
    pub constants: Vec<String>,
    /// Bytes of each copy of static size.
    pub copies: Vec<u64>,
    /// The dispatches, in the host function's order.
    pub sites: Vec<Site>,
}

/// Schedules `host`, a function of `module`: replaces it by a function of the same name on handles.
///
/// `known`: the constants that have an index already, from other variants of the program. `poison`: fill buffers before
/// their first write and behind their last use.
///
/// # Errors
/// S0003, S0004; see the module documentation.
pub fn run(module: &Module, host: Op, known: Known, poison: bool) -> Result<Scheduled, Diagnostics> {
    declare_runtime(module, host)?;
    let mut state = State {
        cx_value: None,
        buffers: HashMap::new(),
        scalars: HashMap::new(),
        requests: HashMap::new(),
        kernels: module.functions().into_iter().filter_map(KernelInfo::read).collect(),
        indices: known.indices,
        known: known.count,
        poison,
        out: Scheduled::default(),
    };
    state.lower_function(&mut Rewriter::new(module.context()), host)?;
    Ok(state.out)
}

fn declare_runtime(module: &Module, host: Op) -> Result<(), Diagnostics> {
    let cx = module.context();
    let i64_ty = Type::integer(cx, 64);
    let mut b = Builder::new(cx, InsertionPoint::Start(module.body()));
    for function in RuntimeFunction::ALL {
        let name = function.name();
        if module.symbol(name).is_some() {
            continue;
        }
        let results = vec![i64_ty; usize::from(function.result().is_some())];
        let ty = Type::function(cx, &vec![i64_ty; function.arguments().len()], &results);
        let spec = OpSpec::new(ops::func::FUNC, host.location())
            .attr("sym_name", Attr::string(cx, name))
            .attr("function_type", Attr::ty(ty))
            .attr("sym_visibility", Attr::string(cx, "private"))
            .region(Region::new());
        b.create(spec)?;
    }
    Ok(())
}

/// Attributes of a kernel for its calls.
#[derive(Clone, Copy, Default)]
struct KernelInfo {
    /// Number of trailing tile ids; 0 once a kernel reads its ids itself.
    ids: usize,
    /// For a kernel of a folded grid: the most workgroups in flight.
    most: Option<i64>,
}

impl KernelInfo {
    fn read(func: Op) -> Option<(String, KernelInfo)> {
        let int = |name: &str| func.attr(name).and_then(|a| a.as_int());
        let rank = int(attributes::GRID_RANK).filter(|_| func.attr(attributes::WORKGROUP_SIZE).is_none());
        let ids = usize::try_from(rank.unwrap_or(0)).unwrap_or(0);
        func.attr(attributes::KERNEL)?;
        Some((func.symbol_name()?, KernelInfo { ids, most: int(attributes::LINEAR_GRID) }))
    }
}

/// Values lowered so far.
pub(crate) struct State<'c> {
    pub(crate) cx_value: Option<Value<'c>>,
    buffers: HashMap<Value<'c>, Buffer<'c>>,
    scalars: HashMap<Value<'c>, Value<'c>>,
    /// Numbers of requests for places.
    pub(crate) requests: HashMap<Value<'c>, i64>,
    kernels: HashMap<String, KernelInfo>,
    /// Indices of kernels and constants, which are symbols of one module.
    indices: HashMap<String, i64>,
    /// Constants of other variants, whose indices come first.
    known: usize,
    /// Whether buffers are filled where their contents begin and end.
    pub(crate) poison: bool,
    out: Scheduled,
}

impl<'c> State<'c> {
    fn lower_function(&mut self, rw: &mut Rewriter<'c>, func: Op<'c>) -> Result<(), Diagnostics> {
        let cx = func.context();
        let i64_ty = Type::integer(cx, 64);
        let loc = func.location();
        let old = func.body().expect("the host function has a body");
        let block = Block::new(&[(i64_ty, loc)]);
        let new_region = Region::new();
        new_region.append(block);
        let name = func.symbol_name().unwrap_or_default();
        let spec = OpSpec::new(ops::func::FUNC, loc)
            .attr("sym_name", Attr::string(cx, &name))
            .attr("function_type", Attr::ty(Type::function(cx, &[i64_ty], &[])))
            .region(new_region);
        self.cx_value = Some(block.arg(0));
        let mut b = Builder::new(cx, InsertionPoint::End(block));
        for (i, arg) in old.args().into_iter().enumerate() {
            self.input(&mut b, func, i, arg)?;
        }
        self.lower_block(&mut b, old)?;
        crate::sink::run(block, rw);
        rw.set_point(InsertionPoint::Before(func));
        rw.create(spec)?;
        rw.erase(func);
        Ok(())
    }

    /// Lowers every op of a block to the insertion point.
    pub(crate) fn lower_block(&mut self, b: &mut Builder<'c>, block: Block<'c>) -> Result<(), Diagnostics> {
        block.ops().into_iter().try_for_each(|op| self.lower(b, op))
    }

    /// Calls a function of the runtime.
    pub(crate) fn call(
        &mut self,
        b: &mut Builder<'c>,
        loc: Location<'c>,
        function: RuntimeFunction,
        args: &[Value<'c>],
    ) -> Result<Op<'c>, Diagnostics> {
        let cx = b.context();
        let mut operands = vec![self.cx_value.expect("set at the start of the function")];
        operands.extend_from_slice(args);
        debug_assert_eq!(operands.len(), function.arguments().len(), "invariant: {function:?} is called as declared");
        let results = vec![Type::integer(cx, 64); usize::from(function.result().is_some())];
        let callee = Attr::symbol(cx, function.name());
        b.create(OpSpec::new(ops::func::CALL, loc).attr("callee", callee).operands(&operands).results(&results))
    }

    fn input(&mut self, b: &mut Builder<'c>, func: Op<'c>, index: usize, arg: Value<'c>) -> Result<(), Diagnostics> {
        let loc = func.location();
        let i = number(b, index as i64, loc);
        let Some(memref) = arg.ty().as_memref() else {
            let bits = self.call(b, loc, RuntimeFunction::InputScalar, &[i])?.result(0);
            let value = scalars::from_bits(b, loc, bits, arg.ty())?;
            self.scalars.insert(arg, value);
            return Ok(());
        };
        let handle = self.call(b, loc, RuntimeFunction::Input, &[i])?.result(0);
        let mut sizes = vec![];
        for (dim, _) in memref.shape.iter().enumerate().filter(|(_, size)| **size == DYNAMIC) {
            let dim = number(b, dim as i64, loc);
            sizes.push(Num::Value(self.call(b, loc, RuntimeFunction::InputDim, &[i, dim])?.result(0)));
        }
        let buffer = Buffer::fresh(b, loc, handle, &memref, &sizes)?;
        self.buffers.insert(arg, buffer);
        Ok(())
    }

    fn lower(&mut self, b: &mut Builder<'c>, op: Op<'c>) -> Result<(), Diagnostics> {
        match op.name() {
            ops::memref::ALLOC => self.alloc(b, op),
            ops::memref::GET_GLOBAL => self.constant(b, op),
            ops::memref::DEALLOC => self.dealloc(b, op),
            ops::memref::COPY => self.copy(b, op),
            ops::memref::LOAD => self.load(b, op),
            ops::memref::STORE => self.store(b, op),
            ops::memref::DIM => self.dim(b, op),
            ops::memref::EXTRACT_STRIDED_METADATA => self.metadata(b, op),
            ops::memref::REINTERPRET_CAST => self.reinterpret(b, op),
            ops::memref::EXTRACT_ALIGNED_POINTER_AS_INDEX => {
                let handle = self.buffer(op, op.operand(0))?.handle;
                let value = scalars::from_bits(b, op.location(), handle, op.result(0).ty())?;
                self.scalars.insert(op.result(0), value);
                Ok(())
            }
            ops::scf::FORALL => self.dispatch(b, op),
            ops::scf::IF | ops::scf::FOR | ops::scf::WHILE => regions::lower(self, b, op),
            ops::scf::YIELD | ops::scf::CONDITION => regions::terminate(self, b, op),
            ops::func::RETURN => self.results(b, op),
            ops::cf::ASSERT => checks::assert(self, b, op),
            ops::arith::SELECT if op.result(0).ty().is_memref() => self.select(b, op),
            ops::ub::POISON if op.result(0).ty().is_memref() => poison::undefined(self, b, op),
            name if crate::plan::VIEW_LIKE.contains(&name) => self.view(b, op),
            _ if matches!(op.dialect(), "arith" | "math" | "ub") && op.regions().is_empty() => self.scalar_op(b, op),
            _ => Err(error::not_schedulable(op).into()),
        }
    }

    /// Clones an op on scalars.
    fn scalar_op(&mut self, b: &mut Builder<'c>, op: Op<'c>) -> Result<(), Diagnostics> {
        let mut missing = None;
        for operand in op.operands() {
            if !self.scalars.contains_key(&operand) {
                missing = Some(operand);
            }
        }
        if missing.is_some() || op.results().iter().any(|r| r.ty().shape().is_some() && !r.ty().is_vector()) {
            return Err(error::not_schedulable(op).into());
        }
        let mut rw = Rewriter::new(op.context());
        let copy = rw.clone_op(op, |v| self.scalars.get(&v).copied().unwrap_or(v));
        b.insert(copy);
        self.scalars.extend(op.results().into_iter().zip(copy.results()));
        Ok(())
    }

    fn constant(&mut self, b: &mut Builder<'c>, op: Op<'c>) -> Result<(), Diagnostics> {
        let (loc, ty) = (op.location(), op.result(0).ty());
        let memref = ty.as_memref().filter(|_| ty.static_size_bytes().is_some());
        let memref = memref.ok_or_else(|| error::not_contiguous(op, &ty.to_string()))?;
        let name = op.attr("name").and_then(|a| a.as_symbol().map(str::to_owned)).unwrap_or_default();
        let index = index_of(&mut self.indices, self.known, &mut self.out.constants, name);
        let index = number(b, index, loc);
        let handle = self.call(b, loc, RuntimeFunction::Constant, &[index])?.result(0);
        let buffer = Buffer::fresh(b, loc, handle, &memref, &[])?;
        self.buffers.insert(op.result(0), buffer);
        Ok(())
    }

    /// A view that is left: at a static offset, of static sizes, or the same memory under another type.
    fn view(&mut self, b: &mut Builder<'c>, op: Op<'c>) -> Result<(), Diagnostics> {
        if let Some(request) = self.requests.get(&op.operand(0)).copied() {
            return self.place(b, op, request);
        }
        let mut buffer = self.buffer(op, op.operand(0))?;
        let ty = op.result(0).ty();
        let memref = ty.as_memref().ok_or_else(|| error::not_schedulable(op))?;
        if op.is(ops::memref::CAST) || op.is(ops::memref::MEMORY_SPACE_CAST) {
            self.buffers.insert(op.result(0), buffer);
            return Ok(());
        }
        let known = |d: &i64| *d != DYNAMIC;
        if memref.offset == DYNAMIC || !memref.shape.iter().chain(&memref.strides).all(known) {
            return Err(error::not_contiguous(op, &ty.to_string()).into());
        }
        if op.is(ops::memref::VIEW) {
            let bytes = self.num(b, op, op.operand(1))?;
            buffer.base = buffer.base.plus(bytes, b, op.location())?;
        }
        buffer.offset = Num::Const(memref.offset);
        buffer.sizes = memref.shape.iter().map(|d| Num::Const(*d)).collect();
        buffer.strides = memref.strides.iter().map(|d| Num::Const(*d)).collect();
        self.buffers.insert(op.result(0), buffer);
        Ok(())
    }

    fn metadata(&mut self, b: &mut Builder<'c>, op: Op<'c>) -> Result<(), Diagnostics> {
        let loc = op.location();
        let buffer = self.buffer(op, op.operand(0))?;
        let base = Buffer { offset: Num::Const(0), sizes: vec![], strides: vec![], whole: true, ..buffer.clone() };
        self.buffers.insert(op.result(0), base);
        let numbers = [&[buffer.offset][..], &buffer.sizes, &buffer.strides].concat();
        for (result, number) in op.results().into_iter().skip(1).zip(numbers) {
            let bits = number.value(b, loc);
            let value = scalars::from_bits(b, loc, bits, result.ty())?;
            self.scalars.insert(result, value);
        }
        Ok(())
    }

    fn reinterpret(&mut self, b: &mut Builder<'c>, op: Op<'c>) -> Result<(), Diagnostics> {
        let base = self.buffer(op, op.operand(0))?;
        let mut dynamic = op.operands().into_iter().skip(1);
        let mut mixed = |state: &mut Self, name: &str| -> Result<Vec<Num<'c>>, Diagnostics> {
            let known = op.attr(name).and_then(|a| a.as_ints()).unwrap_or_default();
            let each = known.into_iter().map(|n| match (n, n == DYNAMIC) {
                (_, true) => dynamic.next().map_or(Ok(Num::Const(0)), |v| state.num(b, op, v)),
                (n, false) => Ok(Num::Const(n)),
            });
            each.collect()
        };
        let offset = mixed(self, "static_offsets")?.first().copied().unwrap_or(Num::Const(0));
        let sizes = mixed(self, "static_sizes")?;
        let strides = mixed(self, "static_strides")?;
        // A base of rank 0 stands for all elements from there on; GPU kernels take it as a vector of unknown length.
        let whole = sizes.is_empty() || op.attr(attributes::WHOLE).is_some();
        self.buffers.insert(op.result(0), Buffer { offset, sizes, strides, whole, ..base });
        Ok(())
    }

    fn select(&mut self, b: &mut Builder<'c>, op: Op<'c>) -> Result<(), Diagnostics> {
        let memref = op.result(0).ty().as_memref().ok_or_else(|| error::not_schedulable(op))?;
        let condition = self.scalar(op, op.operand(0))?;
        let (loc, i64_ty) = (op.location(), Type::integer(b.context(), 64));
        let (yes, no) = (self.buffer(op, op.operand(1))?, self.buffer(op, op.operand(2))?);
        let pairs = yes.flatten(b, loc, &memref).into_iter().zip(no.flatten(b, loc, &memref));
        let mut chosen = vec![];
        for (yes, no) in pairs {
            let spec = OpSpec::new(ops::arith::SELECT, loc).operands(&[condition, yes, no]).results(&[i64_ty]);
            chosen.push(b.create(spec)?.result(0));
        }
        self.buffers.insert(op.result(0), Buffer::unflatten(&chosen, &memref));
        Ok(())
    }

    fn dim(&mut self, b: &mut Builder<'c>, op: Op<'c>) -> Result<(), Diagnostics> {
        let loc = op.location();
        let sizes = self.buffer(op, op.operand(0))?.sizes;
        let at = self.num(b, op, op.operand(1))?;
        let mut found = sizes.first().copied().unwrap_or(Num::Const(0));
        match at {
            Num::Const(at) => found = usize::try_from(at).ok().and_then(|at| sizes.get(at).copied()).unwrap_or(found),
            Num::Value(at) => {
                for (dim, size) in sizes.into_iter().enumerate().skip(1) {
                    let dim = number(b, dim as i64, loc);
                    let same = scalars::compare(b, loc, CmpIPredicate::Eq, at, dim)?;
                    let operands = [same, size.value(b, loc), found.value(b, loc)];
                    let ty = Type::integer(b.context(), 64);
                    let spec = OpSpec::new(ops::arith::SELECT, loc).operands(&operands).results(&[ty]);
                    found = Num::Value(b.create(spec)?.result(0));
                }
            }
        }
        let bits = found.value(b, loc);
        let value = scalars::from_bits(b, loc, bits, op.result(0).ty())?;
        self.scalars.insert(op.result(0), value);
        Ok(())
    }

    /// Handle, byte offset and width of the element of a load or store; checks its indices.
    fn element(&mut self, b: &mut Builder<'c>, op: Op<'c>, at: usize) -> Result<[Value<'c>; 3], Diagnostics> {
        let (loc, ty) = (op.location(), op.operand(at).ty());
        let buffer = self.buffer(op, op.operand(at))?;
        let mut offset = buffer.offset;
        for (dim, index) in op.operands().into_iter().skip(at + 1).enumerate() {
            let index = self.num(b, op, index)?;
            let inside = matches!((index, buffer.sizes[dim]), (Num::Const(i), Num::Const(n)) if 0 <= i && i < n);
            if !inside {
                let (index, size) = (index.value(b, loc), buffer.sizes[dim].value(b, loc));
                let outside = scalars::compare(b, loc, CmpIPredicate::Uge, index, size)?;
                checks::trap_when(self, b, loc, outside, Trap::Index, "")?;
            }
            let step = index.times(buffer.strides[dim], b, loc)?;
            offset = offset.plus(step, b, loc)?;
        }
        let start = Buffer { offset, ..buffer.clone() }.start(b, op, ty)?.value(b, loc);
        Ok([buffer.handle, start, number(b, width(op, ty)?, loc)])
    }

    fn load(&mut self, b: &mut Builder<'c>, op: Op<'c>) -> Result<(), Diagnostics> {
        let place = self.element(b, op, 0)?;
        let bits = self.call(b, op.location(), RuntimeFunction::Read, &place)?.result(0);
        let value = scalars::from_bits(b, op.location(), bits, op.result(0).ty())?;
        self.scalars.insert(op.result(0), value);
        Ok(())
    }

    fn store(&mut self, b: &mut Builder<'c>, op: Op<'c>) -> Result<(), Diagnostics> {
        let [handle, start, bytes] = self.element(b, op, 1)?;
        let value = self.scalar(op, op.operand(0))?;
        let bits = scalars::to_bits(b, op.location(), value)?;
        self.call(b, op.location(), RuntimeFunction::Write, &[handle, start, bytes, bits])?;
        Ok(())
    }

    fn copy(&mut self, b: &mut Builder<'c>, op: Op<'c>) -> Result<(), Diagnostics> {
        let loc = op.location();
        let (from, to) = (op.operand(0), op.operand(1));
        for ty in [from.ty(), to.ty()] {
            if !crate::views::lies_without_gaps(ty) {
                return Err(error::not_contiguous(op, &ty.to_string()).into());
            }
        }
        let (source, target) = (self.buffer(op, from)?, self.buffer(op, to)?);
        let bytes = source.bytes(b, op, from.ty())?;
        if let Num::Const(bytes) = bytes {
            self.out.copies.push(bytes as u64);
        }
        let args = [
            source.handle,
            source.start(b, op, from.ty())?.value(b, loc),
            target.handle,
            target.start(b, op, to.ty())?.value(b, loc),
            bytes.value(b, loc),
        ];
        self.call(b, loc, RuntimeFunction::Copy, &args)?;
        Ok(())
    }

    fn dispatch(&mut self, b: &mut Builder<'c>, op: Op<'c>) -> Result<(), Diagnostics> {
        let grid = grid(op).ok_or_else(|| error::dynamic_grid(op))?;
        let call = op.body().and_then(Block::first_op).filter(|c| c.is(ops::func::CALL));
        let call = call.ok_or_else(|| error::not_schedulable(op))?;
        if grid.contains(&Extent::Static(0)) {
            return Ok(());
        }
        let loc = op.location();
        let name = call.callee().unwrap_or_default();
        let info = self.kernels.get(name).copied().unwrap_or_default();
        let ids = op.body().map(Block::args).unwrap_or_default();
        let at_end = call.operands().into_iter().rev().take_while(|v| ids.contains(v)).count();
        for arg in call.operands().into_iter().take(call.num_operands() - info.ids.max(at_end)) {
            if !arg.ty().is_memref() {
                let value = self.scalar(call, arg)?;
                let bits = scalars::to_bits(b, loc, value)?;
                self.call(b, loc, RuntimeFunction::Scalar, &[bits])?;
                continue;
            }
            let buffer = self.buffer(call, arg)?;
            let start = buffer.start(b, call, arg.ty())?;
            let bytes = if buffer.whole { Num::Const(-1) } else { buffer.bytes(b, call, arg.ty())? };
            let (start, bytes) = (start.value(b, loc), bytes.value(b, loc));
            self.call(b, loc, RuntimeFunction::Arg, &[buffer.handle, start, bytes])?;
        }
        let kernel = index_of(&mut self.indices, 0, &mut self.out.kernels, name.to_owned());
        self.out.dispatches.resize(self.out.kernels.len(), 0);
        self.out.dispatches[kernel as usize] += 1;
        self.out.sites.push(Site::of(op, kernel as u32));
        let mut args = vec![number(b, kernel, loc)];
        // x is the innermost dimension of the forall.
        let mut extents = [Num::Const(1); 3];
        for (axis, extent) in grid.iter().rev().enumerate() {
            extents[axis] = match extent {
                Extent::Static(n) => Num::Const(*n),
                Extent::Dynamic(value) => self.num(b, op, *value)?,
            };
        }
        if let Some(most) = info.most {
            extents = fold(b, loc, extents, most)?;
        }
        args.extend(extents.map(|n| n.value(b, loc)));
        let once = op.attr(attributes::BORDER).is_some();
        let function = if once { RuntimeFunction::DispatchOnce } else { RuntimeFunction::Dispatch };
        self.call(b, loc, function, &args)?;
        Ok(())
    }

    fn results(&mut self, b: &mut Builder<'c>, op: Op<'c>) -> Result<(), Diagnostics> {
        let loc = op.location();
        for (i, value) in op.operands().into_iter().enumerate() {
            let index = number(b, i as i64, loc);
            let Some(memref) = value.ty().as_memref() else {
                let value = self.scalar(op, value)?;
                let bits = scalars::to_bits(b, loc, value)?;
                self.call(b, loc, RuntimeFunction::ResultScalar, &[index, bits])?;
                continue;
            };
            let buffer = self.buffer(op, value)?;
            let begins = |n: Num<'c>| !matches!(n, Num::Const(n) if n != 0);
            if !begins(buffer.offset) || !begins(buffer.base) {
                return Err(error::not_contiguous(op, &value.ty().to_string()).into());
            }
            for (dim, size) in memref.shape.iter().enumerate().filter(|(_, size)| **size == DYNAMIC) {
                debug_assert!(*size == DYNAMIC, "filtered");
                let (dim_value, extent) = (number(b, dim as i64, loc), buffer.sizes[dim].value(b, loc));
                self.call(b, loc, RuntimeFunction::ResultDim, &[index, dim_value, extent])?;
            }
            self.call(b, loc, RuntimeFunction::Result, &[index, buffer.handle])?;
        }
        b.create(OpSpec::new(ops::func::RETURN, loc))?;
        Ok(())
    }

    /// The buffer of a memref.
    pub(crate) fn buffer(&self, op: Op<'c>, value: Value<'c>) -> Result<Buffer<'c>, Diagnostics> {
        let known = self.buffers.get(&value).cloned();
        known.ok_or_else(|| error::not_contiguous(op, &value.ty().to_string()).into())
    }

    /// Sets the buffer of a memref.
    pub(crate) fn set_buffer(&mut self, value: Value<'c>, buffer: Buffer<'c>) {
        self.buffers.insert(value, buffer);
    }

    /// The new value of a scalar.
    pub(crate) fn scalar(&self, op: Op<'c>, value: Value<'c>) -> Result<Value<'c>, Diagnostics> {
        self.scalars.get(&value).copied().ok_or_else(|| error::not_schedulable(op).into())
    }

    /// Sets the new value of a scalar.
    pub(crate) fn set_scalar(&mut self, value: Value<'c>, new: Value<'c>) {
        self.scalars.insert(value, new);
    }

    /// An index or integer as a number.
    ///
    /// # Errors
    /// As [`State::scalar`].
    pub(crate) fn num(&self, b: &mut Builder<'c>, op: Op<'c>, value: Value<'c>) -> Result<Num<'c>, Diagnostics> {
        if let Some(known) = value.constant_int() {
            return Ok(Num::Const(known));
        }
        let value = self.scalar(op, value)?;
        Ok(Num::Value(scalars::to_bits(b, op.location(), value)?))
    }
}

/// The grid of a kernel with linear workgroup ids: rows of equal length, at most [`GRID_ROW`] long, at most `most`
/// workgroups in all, each of which takes several tiles in turn.
fn fold<'c>(
    b: &mut Builder<'c>,
    loc: Location<'c>,
    [x, y, z]: [Num<'c>; 3],
    most: i64,
) -> Result<[Num<'c>; 3], Diagnostics> {
    let all = x.times(y, b, loc)?.times(z, b, loc)?.min(Num::Const(most), b, loc)?;
    let rows = all.ceil_div(Num::Const(GRID_ROW), b, loc)?;
    // An empty grid has no rows: no division by zero.
    let divisor = rows.max(Num::Const(1), b, loc)?;
    Ok([all.ceil_div(divisor, b, loc)?, rows, Num::Const(1)])
}

/// The index of a name; new ones are numbered from `first` on.
fn index_of(indices: &mut HashMap<String, i64>, first: usize, names: &mut Vec<String>, name: String) -> i64 {
    *indices.entry(name).or_insert_with_key(|name| {
        names.push(name.clone());
        (first + names.len()) as i64 - 1
    })
}

/// A copy of the host function and the runtime functions that it calls: the native code of a GPU variant.
pub fn host_only<'c>(module: &'c Module<'c>, host_name: &str) -> Module<'c> {
    let keep = |op: &Op<'c>| {
        let name = op.symbol_name().unwrap_or_default();
        name == host_name || RuntimeFunction::parse(&name).is_some()
    };
    let kept: Vec<Op> = module.body().ops().into_iter().filter(keep).collect();
    module_of(module, &kept)
}
