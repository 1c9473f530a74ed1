//! Entry functions of kernels, with the signature that the runtime calls.
//!
//! Before: `llvm.func @k(%a: !llvm.ptr, %b: !llvm.ptr, %s: f32, %i: i64)`, in the order of the kernel's arguments.
//! After: that function, internal, as `@k.body`, and `llvm.func @k(%args: !llvm.ptr, %ids: !llvm.ptr)`, which loads each base
//! pointer, each scalar (from a slot of 8 bytes behind the pointers) and each tile id and calls it; LLVM inlines the one call.
//! Requires: buffers, then scalars, then tile ids, as many as `monopour.grid_rank` says (without it: the trailing index
//! arguments).

use crate::error;
use monopour_contract::attributes;
use monopour_ir::ops;
use monopour_ir::typed::llvm;
use monopour_ir::{
    Attr, Block, Builder, Context, Diagnostic, Diagnostics, InsertionPoint, Location, Module, Op, OpSpec, Region,
    Rewriter, Type, Value,
};

/// Dimensions of a task grid.
const MAX_IDS: usize = 3;

/// The buffers, scalars and tile ids of a kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KernelSignature<'c> {
    /// Number of leading memref arguments.
    pub args: usize,
    /// Types of the scalars behind them.
    pub scalars: Vec<Type<'c>>,
    /// Number of trailing `index` arguments.
    pub ids: usize,
}

/// Whether a function is a kernel.
pub fn is_kernel(func: Op) -> bool {
    func.attr(attributes::KERNEL).is_some()
}

/// Reads and checks the signature of a kernel.
///
/// # Errors
/// C0002.
pub fn kernel_signature<'c>(func: Op<'c>) -> Result<KernelSignature<'c>, Diagnostic> {
    let Some((inputs, results)) = func.function_type() else {
        return Err(error::kernel_signature(func, "is not a function"));
    };
    if !results.is_empty() {
        return Err(error::kernel_signature(func, "returns a value"));
    }
    let args = inputs.iter().take_while(|t| t.is_memref()).count();
    let rest = &inputs[args..];
    let ids = match func.attr(attributes::GRID_RANK).and_then(|a| a.as_int()) {
        Some(rank) => usize::try_from(rank).ok().filter(|rank| *rank <= rest.len()),
        None => Some(rest.iter().rev().take_while(|t| t.is_index()).count()),
    };
    let Some(ids) = ids.filter(|ids| rest[rest.len() - ids..].iter().all(|t| t.is_index())) else {
        return Err(error::kernel_signature(func, "does not end with its tile ids"));
    };
    if ids > MAX_IDS {
        return Err(error::kernel_signature(func, &format!("has {ids} tile ids, more than {MAX_IDS}")));
    }
    let scalars = rest[..rest.len() - ids].to_vec();
    if let Some(other) = scalars.iter().find(|t| scalar_bits(**t).is_none()) {
        return Err(error::kernel_signature(func, &format!("has an argument of type {other} after its buffers")));
    }
    for ty in &inputs[..args] {
        // A buffer of dynamic extent is passed as its base, of rank 0.
        let contiguous = ty.as_memref().is_some_and(|m| m.is_identity()) && ty.static_size_bytes().is_some();
        if !contiguous {
            return Err(error::kernel_signature(
                func,
                &format!("has a buffer of type {ty}, not contiguous of static shape"),
            ));
        }
    }
    Ok(KernelSignature { args, scalars, ids })
}

/// Bits of a scalar argument.
fn scalar_bits(ty: Type) -> Option<u32> {
    let bits = if ty.is_index() { Some(64) } else { ty.integer_width().or(ty.float_width()) };
    bits.filter(|bits| *bits <= 64)
}

/// Adds an entry for each of `kernels` (names and signatures before lowering) to a module in the llvm dialect.
///
/// # Errors
/// None on verified IR; MLIR's diagnostics otherwise.
pub(crate) fn add_entries(module: &Module, kernels: &[(String, KernelSignature)]) -> Result<(), Diagnostics> {
    let cx = module.context();
    let mut rewriter = Rewriter::new(cx);
    let symbols = module.symbols();
    for (name, signature) in kernels {
        let body = *symbols.get(name).expect("kernel survives lowering: it is a symbol");
        let body_name = format!("{name}.body");
        rewriter.set_attr(body, "sym_name", Attr::string(cx, &body_name));
        rewriter.set_attr(body, "linkage", linkage(cx, "internal"));
        // A buffer and its views are one argument, and buffers that are alive at once are apart: what is read of one does not
        // change where another is written. `vectorize/merge.rs` relies on it, too.
        let apart = Attr::parse(cx, "{llvm.noalias}").expect("an attribute of an argument parses");
        let none = Attr::parse(cx, "{}").expect("no attributes parse");
        let count = signature.args + signature.scalars.len() + signature.ids;
        let each: Vec<_> = (0..count).map(|i| if i < signature.args { apart } else { none }).collect();
        rewriter.set_attr(body, "arg_attrs", Attr::array(cx, &each));
        let entry = entry_function(cx, name, &body_name, signature, body.location())?;
        Builder::new(cx, InsertionPoint::After(body)).insert(entry);
    }
    Ok(())
}

/// LLVM's linkage `which`.
pub(crate) fn linkage<'c>(cx: Context<'c>, which: &str) -> Attr<'c> {
    Attr::parse(cx, &format!("#llvm.linkage<{which}>")).expect("linkage attribute parses")
}

fn entry_function<'c>(
    cx: Context<'c>,
    name: &str,
    body: &str,
    signature: &KernelSignature<'c>,
    loc: Location<'c>,
) -> Result<Op<'c>, Diagnostics> {
    let ptr = Type::parse(cx, "!llvm.ptr").expect("pointer type parses");
    let i64 = Type::integer(cx, 64);
    let block = Block::new(&[(ptr, loc), (ptr, loc)]);
    let mut b = Builder::new(cx, InsertionPoint::End(block));
    let mut operands = Vec::new();
    for i in 0..signature.args {
        operands.push(load_element(&mut b, block.arg(0), ptr, i, loc)?);
    }
    for (i, ty) in signature.scalars.iter().enumerate() {
        let slot = load_element(&mut b, block.arg(0), i64, signature.args + i, loc)?;
        operands.push(scalar(&mut b, slot, *ty, loc)?);
    }
    for i in 0..signature.ids {
        operands.push(load_element(&mut b, block.arg(1), i64, i, loc)?);
    }
    b.create(llvm::call(loc, body, &operands))?;
    b.create(OpSpec::new(ops::llvm::RETURN, loc))?;
    let region = Region::new();
    region.append(block);
    let ty = Type::parse(cx, "!llvm.func<void (ptr, ptr)>").expect("function type parses");
    OpSpec::new(ops::llvm::FUNC, loc)
        .attr("sym_name", Attr::string(cx, name))
        .attr("function_type", Attr::ty(ty))
        .attr("linkage", linkage(cx, "external"))
        .region(region)
        .build(cx)
}

/// Loads element `index` of the array of `ty` at `base`.
fn load_element<'c>(
    b: &mut Builder<'c>,
    base: Value<'c>,
    ty: Type<'c>,
    index: usize,
    loc: Location<'c>,
) -> Result<Value<'c>, Diagnostics> {
    let cx = b.context();
    let address = b.create(
        OpSpec::new(ops::llvm::GETELEMENTPTR, loc)
            .operands(&[base])
            .results(&[base.ty()])
            .attr("elem_type", Attr::ty(ty))
            .attr("rawConstantIndices", Attr::dense_i32(cx, &[index as i32])),
    )?;
    Ok(b.create(OpSpec::new(ops::llvm::LOAD, loc).operands(&[address.result(0)]).results(&[ty]))?.result(0))
}

/// The low bits of a slot as a `ty`.
fn scalar<'c>(b: &mut Builder<'c>, slot: Value<'c>, ty: Type<'c>, loc: Location<'c>) -> Result<Value<'c>, Diagnostics> {
    let cx = b.context();
    let bits = scalar_bits(ty).expect("invariant: the signature was checked");
    let mut value = slot;
    if bits < 64 {
        let narrow = Type::integer(cx, bits);
        let spec = OpSpec::new(ops::llvm::TRUNC, loc).operands(&[value]).results(&[narrow]);
        value = b.create(spec.attr("overflowFlags", no_overflow(cx)))?.result(0);
    }
    if ty.float_width().is_some() {
        value = b.create(OpSpec::new(ops::llvm::BITCAST, loc).operands(&[value]).results(&[ty]))?.result(0);
    }
    Ok(value)
}

fn no_overflow<'c>(cx: Context<'c>) -> Attr<'c> {
    Attr::parse(cx, "#llvm.overflow<none>").expect("overflow attribute parses")
}
