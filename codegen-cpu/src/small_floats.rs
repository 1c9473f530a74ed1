//! bf16 without LLVM's, and f16 where the CPU has no conversions of it: arithmetic in f32, each result rounded to nearest
//! even, and moves as 16-bit integers.
//!
//! Before / after:
//!
//! ```text
//! %s = arith.addf %a, %b : vector<8xbf16>      %x = arith.shli (arith.extui %a); ..; %s = arith.addf %x, %y : vector<8xf32>
//! memref.store .. : memref<64xbf16>            .. : memref<64xi16>
//! ```
//!
//! LLVM lowers bf16 arithmetic to library calls on most CPUs, and may move a bf16 by converting it to f32 and back; those of
//! f16 are calls on x86-64 below F16C.

use monopour_ir::ops;
use monopour_ir::{Attr, Diagnostics, Module, Rewriter, Type, Value, WalkOrder, run_passes};
use monopour_math::expand_halves;
use monopour_program::CpuTarget;

/// Emulates arithmetic in f32.
const EMULATE: [&str; 2] = [
    "builtin.module(func.func(arith-emulate-unsupported-floats{source-types=bf16 target-type=f32}))",
    "builtin.module(func.func(arith-emulate-unsupported-floats{source-types=f16 target-type=f32}))",
];
/// Expands the conversions of bf16 that are left to integer arithmetic.
const EXPAND: &str = "builtin.module(func.func(arith-expand{include-bf16=true}))";

/// A float type of 16 bits that is held as an integer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Narrow {
    Brain,
    Half,
}

impl Narrow {
    /// Whether a type, or its element type, is this one.
    fn is(self, ty: Type) -> bool {
        let element = ty.element();
        element.float_width() == Some(16) && (element == Type::f16(ty.context())) == (self == Narrow::Half)
    }

    /// The same type with element type `i16`.
    fn plain<'c>(self, ty: Type<'c>) -> Option<Type<'c>> {
        let (text, name) = (ty.to_string(), if self == Narrow::Half { "f16" } else { "bf16" });
        text.contains(name).then(|| Type::parse(ty.context(), &text.replace(name, "i16")))?
    }
}

/// The types that `cpu` has no instructions for; bf16 first, whose name ends in the other's.
fn narrow(cpu: &CpuTarget) -> &'static [Narrow] {
    let converts = cpu.arch != "x86_64" || cpu.has("f16c");
    if converts { &[Narrow::Brain] } else { &[Narrow::Brain, Narrow::Half] }
}

/// Whether `cpu` widens the elements of a float type of 16 bits in an instruction or two.
pub(crate) fn is_widened_at_once(ty: Type, cpu: &CpuTarget) -> bool {
    let emulated = Narrow::Half.is(ty) && narrow(cpu).contains(&Narrow::Half);
    ty.element().float_width() == Some(16) && !emulated
}

/// The type in which kernels hold a scalar of type `ty`.
pub(crate) fn held<'c>(ty: Type<'c>, cpu: &CpuTarget) -> Type<'c> {
    let found = narrow(cpu).iter().find(|kind| kind.is(ty));
    found.and_then(|kind| kind.plain(ty)).unwrap_or(ty)
}

/// Removes the types that `cpu` lacks from `module`. Requires: no linalg op, and no math function of these types.
///
/// # Errors
/// MLIR's: an op that needs the type.
pub(crate) fn run(module: &Module, cpu: &CpuTarget) -> Result<(), Diagnostics> {
    for kind in narrow(cpu).iter().filter(|kind| occurs(module, **kind)) {
        run_passes(module.op(), EMULATE[*kind as usize])?;
        round_each(module, *kind);
        match kind {
            Narrow::Brain => run_passes(module.op(), EXPAND)?,
            Narrow::Half => expand_halves(module.op())?,
        }
        retype(module, *kind)?;
    }
    Ok(())
}

fn occurs(module: &Module, kind: Narrow) -> bool {
    let mut found = false;
    module.op().walk(WalkOrder::Pre, |op| {
        let args = op.regions().into_iter().flat_map(|r| r.blocks()).flat_map(|b| b.args());
        found |= op.results().into_iter().chain(args).any(|v| kind.is(v.ty()));
    });
    found
}

/// Keeps each rounding: upstream folds a truncation and the extension behind it, so that a sum of three would be rounded
/// once.
fn round_each(module: &Module, kind: Narrow) {
    let cx = module.context();
    let none = Attr::parse(cx, "#arith.fastmath<none>").expect("the attribute of arith parses");
    let mut rw = Rewriter::new(cx);
    for name in [ops::arith::EXTF, ops::arith::TRUNCF] {
        for op in module.op().find_all(name) {
            if kind.is(op.operand(0).ty()) || kind.is(op.result(0).ty()) {
                rw.set_attr(op, "fastmath", none);
            }
        }
    }
}

fn retype(module: &Module, kind: Narrow) -> Result<(), Diagnostics> {
    let mut rw = Rewriter::new(module.context());
    let ops = module.op().nested(WalkOrder::Pre);
    for op in &ops {
        let args = op.regions().into_iter().flat_map(|r| r.blocks()).flat_map(|b| b.args());
        let values: Vec<Value> = op.results().into_iter().chain(args).collect();
        for value in values.into_iter().filter(|v| kind.is(v.ty())) {
            if let Some(ty) = kind.plain(value.ty()) {
                rw.set_type(value, ty);
            }
        }
        for (name, attr) in op.attrs() {
            if let Some(attr) = retyped(&attr, kind) {
                rw.set_attr(*op, name, attr);
            }
        }
    }
    for op in ops.into_iter().filter(|op| op.is(ops::arith::BITCAST) && op.operand(0).ty() == op.result(0).ty()) {
        rw.replace_op(op, &[op.operand(0)]);
    }
    module.op().verify_with_diagnostics()
}

/// A type or constant attribute of this type, retyped.
fn retyped<'c>(attr: &Attr<'c>, kind: Narrow) -> Option<Attr<'c>> {
    if let Some(ty) = attr.as_type() {
        return kind.plain(ty).map(Attr::ty);
    }
    let ty = attr.value_type();
    if !kind.is(ty) {
        return None;
    }
    let plain = kind.plain(ty)?;
    match attr.as_float() {
        Some(value) => {
            let bits = if kind == Narrow::Half { half_bits(value) } else { ((value as f32).to_bits() >> 16) as u16 };
            Some(Attr::int(plain, i64::from(bits as i16)))
        }
        None => attr.elements_with_type(plain),
    }
}

/// The bits of a number that is an f16.
fn half_bits(value: f64) -> u16 {
    let bits = (value as f32).to_bits();
    let (sign, magnitude) = ((bits >> 16) as u16 & 0x8000, bits & 0x7fff_ffff);
    sign | match magnitude {
        // NaN, quiet whatever it was.
        m if m > 255 << 23 => 0x7e00,
        m if m == 255 << 23 => 0x7c00,
        m if m >= 113 << 23 => ((m - (112 << 23)) >> 13) as u16,
        // Denormals are multiples of 2^-24.
        m => (f32::from_bits(m) * 2f32.powi(24)) as u16,
    }
}
