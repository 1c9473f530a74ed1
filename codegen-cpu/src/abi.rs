//! The signature under which the runtime calls a kernel.
//!
//! Before: `llvm.func @k(%a: !llvm.ptr, %b: !llvm.ptr, %i: i64)`, in the order of the kernel's arguments.
//! After: that function, internal, as `@k.body`, and `llvm.func @k(%args: !llvm.ptr, %ids: !llvm.ptr)`, which loads each base
//! pointer and each tile id and calls it; LLVM inlines the one call.

use crate::error;
use monopour_ir::{
    Attr, Block, Builder, Context, Diagnostic, Diagnostics, InsertionPoint, Location, Module, Op, OpSpec, Region,
    Rewriter, Type, Value,
};

/// Marks a kernel.
const KERNEL_ATTR: &str = "monopour.kernel";
/// Dimensions of a task grid.
const MAX_IDS: usize = 3;

/// How many buffers and tile ids a kernel takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KernelSignature {
    /// Leading memref arguments.
    pub args: usize,
    /// Trailing `index` arguments.
    pub ids: usize,
}

/// Whether a function is a kernel.
pub fn is_kernel(func: Op) -> bool {
    func.attr(KERNEL_ATTR).is_some()
}

/// Reads and checks the signature of a kernel.
///
/// # Errors
/// C0002.
pub fn kernel_signature(func: Op) -> Result<KernelSignature, Diagnostic> {
    let Some((inputs, results)) = func.function_type() else {
        return Err(error::kernel_signature(func, "is not a function"));
    };
    if !results.is_empty() {
        return Err(error::kernel_signature(func, "returns a value"));
    }
    let args = inputs.iter().take_while(|t| t.is_memref()).count();
    let ids = inputs.len() - args;
    if let Some(other) = inputs[args..].iter().find(|t| !t.is_index()) {
        return Err(error::kernel_signature(func, &format!("has an argument of type {other} after its buffers")));
    }
    if ids > MAX_IDS {
        return Err(error::kernel_signature(func, &format!("has {ids} tile ids, more than {MAX_IDS}")));
    }
    for ty in &inputs[..args] {
        let contiguous = ty.as_memref().is_some_and(|m| m.is_identity()) && ty.static_size_bytes().is_some();
        if !contiguous {
            return Err(error::kernel_signature(
                func,
                &format!("has a buffer of type {ty}, not contiguous of static shape"),
            ));
        }
    }
    Ok(KernelSignature { args, ids })
}

/// Gives each of `kernels` (names and signatures before lowering) its entry, in a module in the llvm dialect.
///
/// # Errors
/// None on verified IR; MLIR's diagnostics otherwise.
pub(crate) fn add_entries(module: &Module, kernels: &[(String, KernelSignature)]) -> Result<(), Diagnostics> {
    let cx = module.context();
    let mut rewriter = Rewriter::new(cx);
    for (name, signature) in kernels {
        let body = module.symbol(name).expect("kernel survives lowering: it is a symbol");
        let body_name = format!("{name}.body");
        rewriter.set_attr(body, "sym_name", Attr::string(cx, &body_name));
        rewriter.set_attr(body, "linkage", linkage(cx, "internal"));
        let entry = entry_function(cx, name, &body_name, *signature, body.location())?;
        Builder::new(cx, InsertionPoint::After(body)).insert(entry);
    }
    Ok(())
}

fn linkage(cx: Context, which: &str) -> Attr {
    Attr::parse(cx, &format!("#llvm.linkage<{which}>")).expect("linkage attribute parses")
}

fn entry_function(
    cx: Context,
    name: &str,
    body: &str,
    signature: KernelSignature,
    loc: Location,
) -> Result<Op, Diagnostics> {
    let ptr = Type::parse(cx, "!llvm.ptr").expect("pointer type parses");
    let i64 = Type::integer(cx, 64);
    let block = Block::new(&[(ptr, loc), (ptr, loc)]);
    let mut b = Builder::new(cx, InsertionPoint::End(block));
    let mut operands = Vec::new();
    for i in 0..signature.args {
        operands.push(load_element(&mut b, block.arg(0), ptr, i, loc)?);
    }
    for i in 0..signature.ids {
        operands.push(load_element(&mut b, block.arg(1), i64, i, loc)?);
    }
    b.create(
        OpSpec::new("llvm.call", loc)
            .attr("callee", Attr::symbol(cx, body))
            .attr("operandSegmentSizes", Attr::dense_i32(cx, &[operands.len() as i32, 0]))
            .attr("op_bundle_sizes", Attr::dense_i32(cx, &[]))
            .operands(&operands),
    )?;
    b.create(OpSpec::new("llvm.return", loc))?;
    let region = Region::new();
    region.append(block);
    let ty = Type::parse(cx, "!llvm.func<void (ptr, ptr)>").expect("function type parses");
    OpSpec::new("llvm.func", loc)
        .attr("sym_name", Attr::string(cx, name))
        .attr("function_type", Attr::ty(ty))
        .attr("linkage", linkage(cx, "external"))
        .region(region)
        .build(cx)
}

/// Loads element `index` of the array of `ty` at `base`.
fn load_element(b: &mut Builder, base: Value, ty: Type, index: usize, loc: Location) -> Result<Value, Diagnostics> {
    let cx = b.context();
    let address = b.create(
        OpSpec::new("llvm.getelementptr", loc)
            .operands(&[base])
            .results(&[base.ty()])
            .attr("elem_type", Attr::ty(ty))
            .attr("rawConstantIndices", Attr::dense_i32(cx, &[index as i32])),
    )?;
    Ok(b.create(OpSpec::new("llvm.load", loc).operands(&[address.result(0)]).results(&[ty]))?.result(0))
}
