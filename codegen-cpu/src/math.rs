//! Math functions without a math library.
//!
//! f16 is computed in f32; functions of f32 become polynomials (scalars and vectors alike), others are expanded to those first.
//! Ensures: every `math` op that is left has an instruction on the target. `docs/numerics.md` states the error bounds.
//! Limits: functions of f64, and those without an expansion, are rejected (C0004).

use crate::error;
use monopour_ir::{Diagnostics, Module, Op, OpSpec, Rewriter, WalkOrder, approximate_math, run_passes};
use monopour_program::CpuTarget;

/// Ops that upstream expands to other math ops or to arithmetic.
const EXPAND: &str = "sinh,cosh,tan,asinh,acosh,atanh,exp2,powf,fpowi,rsqrt,round";
/// Expansions for CPUs without rounding instructions.
const EXPAND_ROUNDING: &str = "ceil,roundeven";
/// Ops with an instruction (or a short fixed sequence) on every CPU.
const NATIVE: [&str; 13] = [
    "math.absf", "math.absi", "math.copysign", "math.ctlz", "math.cttz", "math.ctpop", "math.sqrt", "math.isnan", "math.isinf",
    "math.isfinite", "math.isnormal", "math.fma", "math.clampf",
];
/// Ops with an instruction where [`has_rounding`].
const ROUNDING: [&str; 4] = ["math.ceil", "math.floor", "math.trunc", "math.roundeven"];

/// Replaces math functions under `module`.
///
/// # Errors
/// C0004.
pub(crate) fn run(module: &Module, target: &CpuTarget) -> Result<(), Diagnostics> {
    if !uses_math(module) {
        return Ok(());
    }
    run_passes(module.op(), "builtin.module(math-extend-to-supported-types)")?;
    run_passes(module.op(), &format!("builtin.module(func.func(math-expand-ops{{ops={EXPAND}}}))"))?;
    approximate_math(module.op())?;
    // Polynomials round by `math.floor` and the like, so this comes after them.
    if !has_rounding(target) {
        run_passes(module.op(), &format!("builtin.module(func.func(math-expand-ops{{ops={EXPAND_ROUNDING}}}))"))?;
    }
    if !has_fma(target) {
        split_fma(module)?;
    }
    check(module, target)
}

fn uses_math(module: &Module) -> bool {
    let mut found = false;
    module.op().walk(WalkOrder::Pre, |op| found |= op.dialect() == "math");
    found
}

fn has_fma(target: &CpuTarget) -> bool {
    target.arch == "aarch64" || target.features.iter().any(|f| f == "fma")
}

fn has_rounding(target: &CpuTarget) -> bool {
    target.arch == "aarch64" || target.features.iter().any(|f| f == "sse4.1")
}

/// Without the instruction a fused multiply-add is a library call; two roundings are within the stated bounds.
fn split_fma(module: &Module) -> Result<(), Diagnostics> {
    let mut rewriter = Rewriter::new(module.context());
    for fma in module.op().find_all("math.fma") {
        let ty = fma.result(0).ty();
        rewriter.set_point(monopour_ir::InsertionPoint::Before(fma));
        let product = rewriter.create(OpSpec::new("arith.mulf", fma.location()).operands(&[fma.operand(0), fma.operand(1)]).results(&[ty]))?;
        let sum = rewriter.create(OpSpec::new("arith.addf", fma.location()).operands(&[product.result(0), fma.operand(2)]).results(&[ty]))?;
        rewriter.replace_op(fma, &[sum.result(0)]);
    }
    Ok(())
}

fn check(module: &Module, target: &CpuTarget) -> Result<(), Diagnostics> {
    let native = |op: Op| NATIVE.contains(&op.name()) || (has_rounding(target) && ROUNDING.contains(&op.name()));
    let mut diagnostics = Diagnostics::default();
    module.op().walk(WalkOrder::Pre, |op| {
        if op.dialect() == "math" && !native(op) {
            diagnostics.0.push(error::math_function(op));
        }
    });
    if diagnostics.0.is_empty() { Ok(()) } else { Err(diagnostics) }
}
