//! Math functions without a math library.
//!
//! Before: `%y = math.exp2 %x : vector<16xf32>`, on any CPU.
//! After: arithmetic, `math.fma`, and rounding where the CPU has an instruction for it.
//! f16 and bf16 are computed in f32. Functions of f32, scalar and vector alike, are expanded here (`functions`, `trigonometry`,
//! `rounding`; `double` for f64) or by upstream's polynomials; `docs/numerics.md` states the error bounds, and tests check them.
//! Ensures: every `math` op that is left has an instruction on the target.
//! Limits: functions without an expansion (of f64, those that `double` does not list) are rejected (C0004).

mod double;
mod emit;
mod functions;
mod remainder;
mod rounding;
mod trigonometry;

use crate::error;
use emit::{Compare, Emit, Expand};
use monopour_ir::conversion::{Adaptor, ConversionRewriter, ConversionTarget, Declined, Mode, PatternSet, convert};
use monopour_ir::{Diagnostics, Module, Op, OpSpec, Value, WalkOrder, approximate_math, run_passes};
use monopour_program::CpuTarget;
use std::collections::BTreeMap;

/// Low precision through f32, and ops that upstream writes with others.
const PREPARE: &str = "builtin.module(math-extend-to-supported-types,func.func(math-expand-ops{ops=cosh,fpowi,rsqrt}))";
/// Ops with an instruction (or a short fixed sequence) on every CPU.
const NATIVE: [&str; 10] = [
    "math.absf",
    "math.absi",
    "math.copysign",
    "math.ctlz",
    "math.cttz",
    "math.ctpop",
    "math.sqrt",
    "math.isnan",
    "math.isfinite",
    "math.clampf",
];
/// Ops with an instruction where [`has_rounding`].
const ROUNDING: [&str; 4] = ["math.ceil", "math.floor", "math.trunc", "math.roundeven"];

/// Replaces math functions under `module`.
///
/// # Errors
/// C0004.
pub(crate) fn run(module: &Module, target: &CpuTarget) -> Result<(), Diagnostics> {
    let mut found = false;
    module.op().walk(WalkOrder::Pre, |op| found |= op.dialect() == "math" || op.is(remainder::REMAINDER.0));
    if !found {
        return Ok(());
    }
    run_passes(module.op(), PREPARE)?;
    expand_functions(module)?;
    approximate_math(module.op())?;
    // Upstream's polynomials use `math.floor` and `math.fma`, so these come last.
    expand_instructions(module, target)?;
    check(module, target)
}

/// Ours instead of upstream's, where upstream's are wrong at special values or too inexact; and those of f64, of which upstream
/// has none.
fn expand_functions(module: &Module) -> Result<(), Diagnostics> {
    let mut target = ConversionTarget::new();
    let mut patterns = PatternSet::new();
    let mut all: BTreeMap<&'static str, [Option<Expand>; 2]> = BTreeMap::new();
    for (name, expand) in functions::EXPANSIONS.iter().chain(&trigonometry::EXPANSIONS).chain(&rounding::ROUND) {
        all.entry(name).or_default()[0] = Some(*expand);
    }
    for (name, expand) in double::EXPANSIONS.iter().chain(&rounding::ROUND) {
        all.entry(name).or_default()[1] = Some(*expand);
    }
    for (name, expansions) in all {
        let of = move |op: Op| match width(op) {
            Some(32) => expansions[0].filter(|_| op.attr(emit::NORMAL).is_none()),
            Some(64) => expansions[1],
            _ => None,
        };
        target.dynamically_legal_op(name, move |op| of(op).is_none());
        patterns.add_fn(name, move |op, adaptor, rewriter| {
            let expand = of(op).expect("invariant: an op without expansion is legal");
            emit::pattern(expand)(op, adaptor, rewriter)
        });
    }
    let (name, expand) = remainder::REMAINDER;
    target.dynamically_legal_op(name, |op| width(op) == Some(64));
    patterns.add_fn(name, emit::pattern(expand));
    convert(module.op(), &target, &patterns, Mode::Partial)?;
    Ok(())
}

/// What this CPU has no instruction for.
fn expand_instructions(module: &Module, cpu: &CpuTarget) -> Result<(), Diagnostics> {
    let mut target = ConversionTarget::new();
    let mut patterns = PatternSet::new();
    target.illegal_op("math.isinf");
    patterns.add_fn("math.isinf", emit::pattern(is_infinite));
    if !has_rounding(cpu) {
        for (name, expand) in &rounding::WITHOUT_INSTRUCTION {
            target.illegal_op(name);
            patterns.add_fn(name, emit::pattern(*expand));
        }
    }
    if !has_fma(cpu) {
        target.illegal_op("math.fma");
        patterns.add_fn("math.fma", split_fma);
    }
    convert(module.op(), &target, &patterns, Mode::Partial)?;
    Ok(())
}

/// Upstream has no lowering of it.
fn is_infinite(e: &mut Emit<'_>, operands: &[Value]) -> Value {
    let size = e.abs(operands[0]);
    e.compare_c(Compare::Eq, size, f64::INFINITY)
}

fn width(op: Op) -> Option<u32> {
    op.results().first()?.ty().element().float_width()
}

fn has_fma(target: &CpuTarget) -> bool {
    target.arch == "aarch64" || target.features.iter().any(|f| f == "fma")
}

fn has_rounding(target: &CpuTarget) -> bool {
    target.arch == "aarch64" || target.features.iter().any(|f| f == "sse4.1")
}

/// Without the instruction a fused multiply-add is a library call; two roundings are within the stated bounds.
fn split_fma(op: Op, adaptor: &Adaptor<'_>, rewriter: &mut ConversionRewriter) -> Result<(), Declined> {
    let ty = op.result(0).ty();
    let factors = [adaptor.operand(0), adaptor.operand(1)];
    let product = rewriter.create(OpSpec::new("arith.mulf", op.location()).operands(&factors).results(&[ty]))?;
    let terms = [product.result(0), adaptor.operand(2)];
    let sum = rewriter.create(OpSpec::new("arith.addf", op.location()).operands(&terms).results(&[ty]))?;
    rewriter.replace_op(op, &[sum.result(0)]);
    Ok(())
}

fn check(module: &Module, target: &CpuTarget) -> Result<(), Diagnostics> {
    let has_instruction = |op: Op| {
        NATIVE.contains(&op.name())
            || (has_rounding(target) && ROUNDING.contains(&op.name()))
            || (has_fma(target) && op.is("math.fma"))
    };
    let mut diagnostics = Diagnostics::default();
    module.op().walk(WalkOrder::Pre, |op| {
        if op.dialect() == "math" && !has_instruction(op) {
            diagnostics.0.push(error::math_function(op));
        }
    });
    if diagnostics.0.is_empty() { Ok(()) } else { Err(diagnostics) }
}
