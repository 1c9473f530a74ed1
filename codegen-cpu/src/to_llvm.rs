//! Lowers the module to the llvm dialect.
//!
//! Before: kernels over memrefs with `linalg`, `vector`, `scf`, `affine`, `arith`, `math`; a host function of runtime calls.
//! After: only `llvm` ops; memref arguments are bare pointers; each kernel has its entry ([`crate::abi`]).
//! Requires: kernel arguments contiguous and static, or bases of rank 0 (C0002).
//! Limits: an op without a lowering (C0001), a call out of the object (C0008).

use crate::abi::{self, KernelSignature};
use crate::{
    causal, copies, error, host_loops, host_parts, local_memory, loop_order, math, quantisation, small_floats,
    vectorize,
};
use monopour_contract::RuntimeFunction;
use monopour_ir::ops;
use monopour_ir::{
    Diagnostics, Module, Op, Rewriter, Value, WalkOrder, apply_named_sequence, open_collapses, open_dynamic_expansions,
    run_passes,
};
use monopour_program::CpuTarget;
use std::collections::BTreeSet;

/// Unrolls vectors of several dimensions to rows; a transform script, so that it prints and can be tried by hand.
const LOWER_VECTORS: &str = include_str!("lower_vectors.mlir");
/// Leftover linalg ops become loops before vectors are lowered, so that both get the same clean-up.
const LINALG: &str = "builtin.module(func.func(convert-linalg-to-loops))";
/// Everything structured to a control-flow graph over one-dimensional vectors.
const STRUCTURE: &str = "builtin.module(func.func(lower-vector-mask,convert-vector-to-scf{full-unroll=true}),\
    fold-memref-alias-ops,lower-affine,expand-strided-metadata,lower-affine,\
    func.func(loop-invariant-code-motion),cse,convert-scf-to-cf,arith-expand)";
/// To the llvm dialect.
const TO_LLVM: &str = "builtin.module(convert-vector-to-llvm,finalize-memref-to-llvm,convert-math-to-llvm,convert-index-to-llvm,\
    convert-arith-to-llvm,convert-cf-to-llvm,convert-ub-to-llvm,convert-func-to-llvm{use-bare-ptr-memref-call-conv=1},\
    reconcile-unrealized-casts,canonicalize,cse)";

/// Ops on vectors of one dimension that MLIR lowers as they are.
const SINGLE: [&str; 10] = [
    ops::vector::BITCAST,
    ops::vector::BROADCAST,
    ops::vector::EXTRACT,
    ops::vector::EXTRACT_STRIDED_SLICE,
    ops::vector::FMA,
    ops::vector::FROM_ELEMENTS,
    ops::vector::INSERT,
    ops::vector::LOAD,
    ops::vector::SHUFFLE,
    ops::vector::STORE,
];

/// Dialects that the pipelines lower.
const DIALECTS: [&str; 13] =
    ["affine", "arith", "builtin", "cf", "func", "index", "linalg", "llvm", "math", "memref", "scf", "ub", "vector"];

/// A copy of `module` in the llvm dialect.
///
/// # Errors
/// C0001 to C0004, C0008.
pub fn run<'c>(module: &Module<'c>, target: &CpuTarget) -> Result<Module<'c>, Diagnostics> {
    let kernels = collect_kernels(module, target)?;
    check_all(module, |op| DIALECTS.contains(&op.dialect()) && !op.is(ops::scf::FORALL) && !op.is(ops::scf::PARALLEL))?;
    check_calls(module)?;
    let lowered = module.duplicate();
    strip_argument_attrs(&lowered);
    drop_unread_globals(&lowered);
    let hosts = hosts(&lowered);
    hosts.iter().try_for_each(|name| host_loops::run(&lowered, name))?;
    hosts.iter().try_for_each(|name| host_parts::run(&lowered, name))?;
    local_memory::run(&lowered)?;
    copies::run(&lowered)?;
    causal::run(&lowered)?;
    quantisation::run(&lowered, target);
    vectorize::run(&lowered, target)?;
    loop_order::run(&lowered)?;
    run_passes(lowered.op(), LINALG)?;
    if has_rows(&lowered) {
        let script = Module::parse(module.context(), LOWER_VECTORS.as_bytes(), "lower_vectors.mlir")?;
        apply_named_sequence(lowered.op(), &script, "__transform_main")?;
    }
    math::run(&lowered, target)?;
    open_dynamic_expansions(lowered.op())?;
    open_collapses(lowered.op())?;
    small_floats::run(&lowered, target)?;
    run_passes(lowered.op(), STRUCTURE)?;
    run_passes(lowered.op(), TO_LLVM)?;
    check_all(&lowered, |op| op.dialect() == "llvm" || op.is(ops::builtin::MODULE))?;
    hosts.iter().for_each(|name| host_parts::keep_apart(&lowered, name));
    abi::add_entries(&lowered, &kernels)?;
    lowered.op().verify_with_diagnostics()?;
    Ok(lowered)
}

/// Whether there is a vector op that [`LOWER_VECTORS`] takes apart. Vectorized loops have none; the script's patterns alone
/// take 5 ms.
fn has_rows(module: &Module) -> bool {
    let mut found = false;
    module.op().walk(WalkOrder::Pre, |op| {
        let is_single = |value: Value| value.ty().as_vector().is_none_or(|vector| vector.shape.len() == 1);
        let mut values = op.operands().into_iter().chain(op.results());
        found |= op.dialect() == "vector" && !(SINGLE.contains(&op.name()) && values.all(is_single));
    });
    found
}

fn collect_kernels<'c>(
    module: &'c Module<'c>,
    target: &CpuTarget,
) -> Result<Vec<(String, KernelSignature<'c>)>, Diagnostics> {
    let mut kernels = Vec::new();
    for func in module.functions().into_iter().filter(|f| abi::is_kernel(*f)) {
        let mut signature = abi::kernel_signature(func)?;
        signature.scalars.iter_mut().for_each(|ty| *ty = small_floats::held(*ty, target));
        kernels.push((func.symbol_name().unwrap_or_default(), signature));
    }
    Ok(kernels)
}

/// The names of the functions that the runtime calls and that are no kernels.
fn hosts(module: &Module) -> Vec<String> {
    let functions = module.functions().into_iter();
    functions.filter(|f| f.is_public() && !abi::is_kernel(*f)).filter_map(|f| f.symbol_name()).collect()
}

/// Every callee is defined here or in the runtime.
fn check_calls(module: &Module) -> Result<(), Diagnostics> {
    let symbols = module.symbols();
    for call in module.op().find_all(ops::func::CALL) {
        let callee = call.callee().unwrap_or_default();
        let defined = symbols.get(callee).is_some_and(|f| f.body().is_some());
        if !defined && RuntimeFunction::parse(callee).is_none() {
            return Err(error::foreign_call(call, callee).into());
        }
    }
    Ok(())
}

/// Drops constants that no code reads: the weights, which host code names by index and the artifact holds.
fn drop_unread_globals(module: &Module) {
    let reads = module.op().find_all(ops::memref::GET_GLOBAL);
    let read: BTreeSet<String> =
        reads.iter().filter_map(|op| op.attr("name")?.as_symbol().map(str::to_owned)).collect();
    let mut rewriter = Rewriter::new(module.context());
    for global in module.op().find_all(ops::memref::GLOBAL) {
        if !global.symbol_name().is_some_and(|name| read.contains(&name)) {
            rewriter.erase(global);
        }
    }
}

/// Our argument attributes stop the translation to LLVM.
fn strip_argument_attrs(module: &Module) {
    let mut rewriter = Rewriter::new(module.context());
    for func in module.functions() {
        rewriter.remove_attr(func, "arg_attrs");
        rewriter.remove_attr(func, "res_attrs");
    }
}

/// Reports every op for which `can_lower` is false.
fn check_all<'c>(module: &'c Module<'c>, can_lower: impl Fn(Op<'c>) -> bool) -> Result<(), Diagnostics> {
    let mut diagnostics = Diagnostics::default();
    module.op().walk(WalkOrder::Pre, |op| {
        if !can_lower(op) {
            diagnostics.0.push(error::cannot_lower(op));
        }
    });
    if diagnostics.0.is_empty() { Ok(()) } else { Err(diagnostics) }
}
