//! Math functions without a math library.
//!
//! Before: `%y = math.exp2 %x : vector<16xf32>`, on any CPU.
//! After: arithmetic, `math.fma`, and rounding where the CPU has an instruction for it.
//! f16 and bf16 are computed in f32. Functions of f32, scalar and vector alike, are expanded by `monopour-math` or by upstream's
//! polynomials, those of f64 by `monopour-math` alone; `docs/numerics.md` states the error bounds, and tests check them.
//! Ensures: every `math` op that is left has an instruction on the target.
//! Limits: functions without an expansion are rejected (C0004).

use crate::error;
use monopour_ir::ops;
use monopour_ir::{Diagnostics, Module, Op, WalkOrder, approximate_math, run_passes};
use monopour_math::{
    CIRCULAR, Compiler, DOUBLE, DOUBLE_REMAINDER, FUSED, Function, INFINITE, REMAINDER, ROUND, ROUNDING, SINGLE, expand,
};
use monopour_program::CpuTarget;

/// Narrow floats through f32, and ops that upstream expands.
const PREPARE: &str = "builtin.module(math-extend-to-supported-types,func.func(math-expand-ops{ops=cosh,fpowi,rsqrt}))";
/// Expansions of ours: for f32 where upstream's are wrong at special values or too inexact, and for f64, where it has none.
const FUNCTIONS: [&[Function]; 5] = [SINGLE, CIRCULAR, DOUBLE, ROUND, REMAINDER];
/// Ops with an instruction (or a short fixed sequence) on every CPU.
const NATIVE: [&str; 10] = [
    ops::math::ABSF,
    ops::math::ABSI,
    ops::math::COPYSIGN,
    ops::math::CTLZ,
    ops::math::CTTZ,
    ops::math::CTPOP,
    ops::math::SQRT,
    ops::math::ISNAN,
    ops::math::ISFINITE,
    ops::math::CLAMPF,
];
/// Ops with an instruction where [`has_rounding`].
const WITH_ROUNDING: [&str; 4] = [ops::math::CEIL, ops::math::FLOOR, ops::math::TRUNC, ops::math::ROUNDEVEN];

/// Replaces math functions under `module`.
///
/// # Errors
/// C0004.
pub(crate) fn run(module: &Module, target: &CpuTarget) -> Result<(), Diagnostics> {
    let mut found = false;
    module.op().walk(WalkOrder::Pre, |op| found |= op.dialect() == "math" || op.is(ops::arith::REMF));
    if !found {
        return Ok(());
    }
    run_passes(module.op(), PREPARE)?;
    expand(module.op(), &FUNCTIONS, Compiler::Exact)?;
    if has_fma(target) {
        expand(module.op(), &[DOUBLE_REMAINDER], Compiler::Exact)?;
    }
    approximate_math(module.op())?;
    // Upstream's polynomials use `math.floor` and `math.fma`, so these come last.
    expand(module.op(), &missing_instructions(target), Compiler::Exact)?;
    check(module, target)
}

/// Expansions of ops that this CPU has no instruction for.
fn missing_instructions(cpu: &CpuTarget) -> Vec<&'static [Function]> {
    let mut tables = vec![INFINITE];
    if !has_rounding(cpu) {
        tables.push(ROUNDING);
    }
    if !has_fma(cpu) {
        // Without the instruction a fused multiply-add is a library call.
        tables.push(FUSED);
    }
    tables
}

pub(crate) fn has_fma(target: &CpuTarget) -> bool {
    target.arch == "aarch64" || target.features.iter().any(|f| f == "fma")
}

fn has_rounding(target: &CpuTarget) -> bool {
    target.arch == "aarch64" || target.features.iter().any(|f| f == "sse4.1")
}

fn check(module: &Module, target: &CpuTarget) -> Result<(), Diagnostics> {
    let has_instruction = |op: Op| {
        NATIVE.contains(&op.name())
            || (has_rounding(target) && WITH_ROUNDING.contains(&op.name()))
            || (has_fma(target) && op.is(ops::math::FMA))
    };
    let mut diagnostics = Diagnostics::default();
    module.op().walk(WalkOrder::Pre, |op| {
        if op.dialect() == "math" && !has_instruction(op) {
            diagnostics.0.push(error::math_function(op));
        }
    });
    if diagnostics.0.is_empty() { Ok(()) } else { Err(diagnostics) }
}
