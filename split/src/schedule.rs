//! Lower the host function to a closed set of runtime calls on handles.
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
//! Requires: planned; every dispatch is a forall with one call; buffers contiguous and of static size.
//! Ensures: only `func.call` of [`RUNTIME_FUNCTIONS`], `arith.constant` and `func.return` remain in the host function. A memref
//! is a handle (the logical id of an allocation) and an offset in bytes that is folded into the calls.
//! Limits: host ops other than allocation, views, copies, dispatch (S0003); strided or dynamic buffers (S0004).

use crate::outline::grid;
use crate::{ARENA_ATTR, error};
use monopour_ir::conversion::{ConversionRewriter, ConversionTarget, Declined, Mode, PatternSet, convert};
use monopour_ir::{
    Attr, Block, Builder, Diagnostics, InsertionPoint, Location, Module, Op, OpSpec, Region, Rewriter, Type, Value,
};
use std::collections::HashMap;

/// The runtime's functions: name, number of `i64` arguments (the context first), whether they return an `i64`.
pub const RUNTIME_FUNCTIONS: [(&str, usize, bool); 10] = [
    ("monopour_rt_input", 2, true),
    ("monopour_rt_result", 3, false),
    ("monopour_rt_constant", 2, true),
    ("monopour_rt_alloc", 2, true),
    ("monopour_rt_arena", 2, true),
    ("monopour_rt_free", 2, false),
    ("monopour_rt_arg", 4, false),
    ("monopour_rt_dispatch", 5, false),
    ("monopour_rt_copy", 6, false),
    ("monopour_rt_fill", 5, false),
];

/// What the host function refers to by index.
#[derive(Clone, Debug, Default)]
pub struct Scheduled {
    /// Kernel functions, by kernel index.
    pub kernels: Vec<String>,
    /// `memref.global` symbols, by constant index.
    pub constants: Vec<String>,
    /// Copies per run: number and bytes.
    pub copies: Vec<u64>,
}

/// A buffer on the host: a handle, and the bytes of it that a value names.
#[derive(Clone, Copy)]
struct Buffer {
    handle: Value,
    offset_bytes: i64,
    size_bytes: i64,
}

/// Schedules `host`, a function of `module`: replaces it by a function of the same name on handles.
///
/// `known_constants`: symbols that already have a constant index, because another variant of the program uses them.
///
/// # Errors
/// S0003, S0004; see the module documentation.
pub fn run(module: &Module, host: Op, known_constants: Vec<String>) -> Result<Scheduled, Diagnostics> {
    declare_runtime(module, host)?;
    let out = Scheduled { constants: known_constants, ..Scheduled::default() };
    let mut state = State { cx_value: None, buffers: HashMap::new(), out };
    let mut target = ConversionTarget::new();
    target.dynamically_legal_op("func.func", is_scheduled);
    let cell = std::cell::RefCell::new(&mut state);
    let mut patterns = PatternSet::new();
    patterns.add_fn("func.func", |op, _, rw| cell.borrow_mut().lower_function(rw, op).map_err(Declined::Failed));
    convert(host, &target, &patterns, Mode::Partial)?;
    drop(patterns);
    Ok(state.out)
}

/// A function on `i64` only.
fn is_scheduled(func: Op) -> bool {
    func.function_type().is_some_and(|(inputs, results)| {
        results.is_empty() && inputs.len() == 1 && inputs[0].integer_width() == Some(64)
    })
}

fn declare_runtime(module: &Module, host: Op) -> Result<(), Diagnostics> {
    let cx = module.context();
    let i64_ty = Type::integer(cx, 64);
    let mut b = Builder::new(cx, InsertionPoint::Start(module.body()));
    for (name, arity, returns) in RUNTIME_FUNCTIONS {
        if module.symbol(name).is_some() {
            continue;
        }
        let results: &[Type] = if returns { &[i64_ty] } else { &[] };
        let ty = Type::function(cx, &vec![i64_ty; arity], results);
        let spec = OpSpec::new("func.func", host.location())
            .attr("sym_name", Attr::string(cx, name))
            .attr("function_type", Attr::ty(ty))
            .attr("sym_visibility", Attr::string(cx, "private"))
            .region(Region::new());
        b.create(spec)?;
    }
    Ok(())
}

struct State {
    cx_value: Option<Value>,
    buffers: HashMap<Value, Buffer>,
    out: Scheduled,
}

impl State {
    fn lower_function(&mut self, rw: &mut ConversionRewriter, func: Op) -> Result<(), Diagnostics> {
        let cx = func.context();
        let i64_ty = Type::integer(cx, 64);
        let loc = func.location();
        let old = func.body().expect("the host function has a body");
        let block = Block::new(&[(i64_ty, loc)]);
        let new_region = Region::new();
        new_region.append(block);
        self.cx_value = Some(block.arg(0));
        let mut b = Builder::new(cx, InsertionPoint::End(block));
        for (i, arg) in old.args().into_iter().enumerate() {
            self.input(&mut b, func, i, arg)?;
        }
        for op in old.ops() {
            self.lower(&mut b, op)?;
        }
        let name = func.symbol_name().unwrap_or_default();
        let spec = OpSpec::new("func.func", loc)
            .attr("sym_name", Attr::string(cx, &name))
            .attr("function_type", Attr::ty(Type::function(cx, &[i64_ty], &[])))
            .region(new_region);
        rw.set_point(InsertionPoint::Before(func));
        rw.create(spec)?;
        rw.erase(func);
        Ok(())
    }

    fn call(&mut self, b: &mut Builder, loc: Location, name: &str, args: &[Value]) -> Result<Op, Diagnostics> {
        let cx = b.context();
        let mut operands = vec![self.cx_value.expect("set at the start of the function")];
        operands.extend_from_slice(args);
        let returns = RUNTIME_FUNCTIONS.iter().any(|f| f.0 == name && f.2);
        let results: &[Type] = if returns { &[Type::integer(cx, 64)] } else { &[] };
        b.create(
            OpSpec::new("func.call", loc).attr("callee", Attr::symbol(cx, name)).operands(&operands).results(results),
        )
    }

    fn input(&mut self, b: &mut Builder, func: Op, index: usize, arg: Value) -> Result<(), Diagnostics> {
        let size_bytes = contiguous_bytes(func, arg.ty())?;
        let i = number(b, index as i64, func.location());
        let handle = self.call(b, func.location(), "monopour_rt_input", &[i])?.result(0);
        self.buffers.insert(arg, Buffer { handle, offset_bytes: 0, size_bytes });
        Ok(())
    }

    fn lower(&mut self, b: &mut Builder, op: Op) -> Result<(), Diagnostics> {
        match op.name() {
            "memref.alloc" => self.alloc(b, op),
            "memref.get_global" => self.constant(b, op),
            "memref.dealloc" => self.dealloc(b, op),
            "memref.copy" => self.copy(b, op),
            "scf.forall" => self.dispatch(b, op),
            "func.return" => self.results(b, op),
            name if crate::plan::VIEW_LIKE.contains(&name) => self.view(op),
            // Operands of views; the views fold them into byte offsets.
            "arith.constant" | "ub.poison" => Ok(()),
            _ => Err(error::not_schedulable(op).into()),
        }
    }

    fn alloc(&mut self, b: &mut Builder, op: Op) -> Result<(), Diagnostics> {
        let size_bytes = contiguous_bytes(op, op.result(0).ty())?;
        let bytes = number(b, size_bytes, op.location());
        let name = if op.attr(ARENA_ATTR).is_some() { "monopour_rt_arena" } else { "monopour_rt_alloc" };
        let handle = self.call(b, op.location(), name, &[bytes])?.result(0);
        self.buffers.insert(op.result(0), Buffer { handle, offset_bytes: 0, size_bytes });
        Ok(())
    }

    fn constant(&mut self, b: &mut Builder, op: Op) -> Result<(), Diagnostics> {
        let size_bytes = contiguous_bytes(op, op.result(0).ty())?;
        let name = op.attr("name").and_then(|a| a.as_symbol().map(str::to_owned)).unwrap_or_default();
        let index = index_of(&mut self.out.constants, name);
        let index = number(b, index, op.location());
        let handle = self.call(b, op.location(), "monopour_rt_constant", &[index])?.result(0);
        self.buffers.insert(op.result(0), Buffer { handle, offset_bytes: 0, size_bytes });
        Ok(())
    }

    fn dealloc(&mut self, b: &mut Builder, op: Op) -> Result<(), Diagnostics> {
        // The runtime keeps the arena from run to run.
        if crate::plan::is_arena_view(op.operand(0)) {
            return Ok(());
        }
        let buffer = self.buffer(op, op.operand(0))?;
        self.call(b, op.location(), "monopour_rt_free", &[buffer.handle])?;
        Ok(())
    }

    fn view(&mut self, op: Op) -> Result<(), Diagnostics> {
        let base = self.buffer(op, op.operand(0))?;
        let size_bytes = contiguous_bytes(op, op.result(0).ty())?;
        let offset_bytes = base.offset_bytes + view_offset_bytes(op)?;
        self.buffers.insert(op.result(0), Buffer { handle: base.handle, offset_bytes, size_bytes });
        Ok(())
    }

    fn copy(&mut self, b: &mut Builder, op: Op) -> Result<(), Diagnostics> {
        let (from, to) = (self.buffer(op, op.operand(0))?, self.buffer(op, op.operand(1))?);
        let loc = op.location();
        let (so, to_off, n) =
            (number(b, from.offset_bytes, loc), number(b, to.offset_bytes, loc), number(b, from.size_bytes, loc));
        self.call(b, loc, "monopour_rt_copy", &[from.handle, so, to.handle, to_off, n])?;
        self.out.copies.push(from.size_bytes as u64);
        Ok(())
    }

    fn dispatch(&mut self, b: &mut Builder, op: Op) -> Result<(), Diagnostics> {
        let grid = grid(op).ok_or_else(|| error::dynamic_grid(op))?;
        let call = op.body().and_then(Block::first_op).filter(|c| c.is("func.call"));
        let call = call.ok_or_else(|| error::not_schedulable(op))?;
        if grid.contains(&0) {
            return Ok(());
        }
        let loc = op.location();
        for arg in call.operands().into_iter().filter(|v| v.ty().is_memref()) {
            let buffer = self.buffer(call, arg)?;
            let (offset, size) = (number(b, buffer.offset_bytes, loc), number(b, buffer.size_bytes, loc));
            self.call(b, loc, "monopour_rt_arg", &[buffer.handle, offset, size])?;
        }
        let name = call.attr("callee").and_then(|a| a.as_symbol().map(str::to_owned)).unwrap_or_default();
        let mut args = vec![number(b, index_of(&mut self.out.kernels, name), loc)];
        // x is the innermost dimension of the forall.
        let extent = |axis: usize| grid.iter().rev().nth(axis).copied().unwrap_or(1);
        args.extend([0, 1, 2].map(|axis| number(b, extent(axis), loc)));
        self.call(b, loc, "monopour_rt_dispatch", &args)?;
        Ok(())
    }

    fn results(&mut self, b: &mut Builder, op: Op) -> Result<(), Diagnostics> {
        for (i, value) in op.operands().into_iter().enumerate() {
            let buffer = self.buffer(op, value)?;
            if buffer.offset_bytes != 0 {
                return Err(error::not_contiguous(op, &value.ty().to_string()).into());
            }
            let index = number(b, i as i64, op.location());
            self.call(b, op.location(), "monopour_rt_result", &[index, buffer.handle])?;
        }
        b.create(OpSpec::new("func.return", op.location()))?;
        Ok(())
    }

    fn buffer(&self, op: Op, value: Value) -> Result<Buffer, Diagnostics> {
        let known = self.buffers.get(&value).copied();
        known.ok_or_else(|| error::not_contiguous(op, &value.ty().to_string()).into())
    }
}

fn number(b: &mut Builder, value: i64, loc: Location) -> Value {
    let ty = Type::integer(b.context(), 64);
    b.constant(Attr::int(ty, value), ty, loc)
}

fn index_of(names: &mut Vec<String>, name: String) -> i64 {
    let found = names.iter().position(|n| *n == name).unwrap_or_else(|| {
        names.push(name);
        names.len() - 1
    });
    found as i64
}

/// Bytes of a static memref whose elements lie without gaps (its offset is the view's own business).
fn contiguous_bytes(op: Op, ty: Type) -> Result<i64, Diagnostics> {
    let contiguous = ty.as_memref().filter(|m| {
        let without_offset = monopour_ir::MemRefType { offset: 0, ..m.clone() };
        without_offset.is_identity()
    });
    let bytes = contiguous.and_then(|_| ty.static_size_bytes()).and_then(|b| i64::try_from(b).ok());
    bytes.ok_or_else(|| error::not_contiguous(op, &ty.to_string()).into())
}

fn view_offset_bytes(op: Op) -> Result<i64, Diagnostics> {
    if op.is("memref.view") {
        return op.operand(1).constant_int().ok_or_else(|| error::not_schedulable(op).into());
    }
    let ty = op.result(0).ty();
    let (from, to) = (op.operand(0).ty().as_memref(), ty.as_memref());
    let (Some(from), Some(to), Some(width)) = (from, to, ty.element_size_bytes()) else {
        return Err(error::not_contiguous(op, &ty.to_string()).into());
    };
    if from.offset == monopour_ir::DYNAMIC || to.offset == monopour_ir::DYNAMIC {
        return Err(error::not_contiguous(op, &ty.to_string()).into());
    }
    Ok((to.offset - from.offset) * width as i64)
}

/// Erases from a copy of `module` everything but the host function and what it calls of the runtime: what a GPU variant's
/// native code is made of.
pub fn keep_host_only(module: &Module, host_name: &str) {
    let mut rw = Rewriter::new(module.context());
    let keep = |op: Op| {
        let name = op.symbol_name().unwrap_or_default();
        name == host_name || RUNTIME_FUNCTIONS.iter().any(|f| f.0 == name)
    };
    for op in module.body().ops().into_iter().filter(|op| !keep(*op)) {
        rw.erase(op);
    }
}
