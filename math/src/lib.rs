//! Functions of floats as arithmetic, for code without a math library.
//!
//! Before: `%y = math.exp2 %x : vector<16xf32>`.
//! After: ops of `arith`, `math.fma` and rounding ops, on values of the same shape, scalars and vectors alike.
//! Requires: for f64, integers of 64 bits.
//!
//! Both code generators choose from the same tables, so that a function has one error on all of their devices;
//! `docs/numerics.md` states it. The tables:
//!
//! * `functions`: f32; `trigonometry`: circular functions of f32; `double`, with `arcs` and `error_function`: f64.
//! * `remainder`: `arith.remf`; `rounding`, `instructions`: ops that some CPUs lack.
//!
//! `half` has the conversions of f16. `emit` is the builder of expansions.

mod arcs;
mod double;
mod emit;
mod error_function;
mod functions;
mod half;
mod instructions;
mod remainder;
mod rounding;
mod trigonometry;

pub use double::DOUBLE;
pub use functions::SINGLE;
pub use half::expand_halves;
pub use instructions::{FUSED, INFINITE};
pub use remainder::{DOUBLE_REMAINDER, REMAINDER};
pub use rounding::{ROUND, ROUNDING};
pub use trigonometry::CIRCULAR;

use emit::{Emit, Expand};
use monopour_contract::attributes;
use monopour_ir::conversion::{ConversionTarget, Mode, PatternSet, convert};
use monopour_ir::{Diagnostics, Op};
use std::collections::BTreeMap;

/// The expansion of a function of floats, for some widths.
#[derive(Clone, Copy)]
pub struct Function {
    name: &'static str,
    bits: &'static [u32],
    expand: Expand,
}

impl Function {
    const fn new(name: &'static str, bits: &'static [u32], expand: Expand) -> Self {
        Self { name, bits, expand }
    }
    const fn of_single(name: &'static str, expand: Expand) -> Self {
        Self::new(name, &[32], expand)
    }
    const fn of_double(name: &'static str, expand: Expand) -> Self {
        Self::new(name, &[64], expand)
    }

    /// Whether `op` is this function of one of these widths.
    pub fn takes(&self, op: Op) -> bool {
        op.is(self.name)
            && op.operand(0).ty().element().float_width().is_some_and(|w| self.bits.contains(&w))
            && op.attr(attributes::NORMAL).is_none()
    }
}

/// The compiler of the expanded code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compiler {
    /// Keeps the arithmetic as written.
    Exact,
    /// May reassociate sums and products: drivers make `x - n (a + b)` of `(x - n a) - n b`.
    Loose,
}

/// Expands the functions of `tables`, and those that their expansions use, in `root`.
///
/// # Errors
/// The conversion driver's.
pub fn expand(root: Op, tables: &[&[Function]], compiler: Compiler) -> Result<(), Diagnostics> {
    let mut by_name: BTreeMap<&'static str, Vec<Function>> = BTreeMap::new();
    for function in tables.iter().copied().flatten() {
        by_name.entry(function.name).or_default().push(*function);
    }
    let of = |op: Op| by_name[op.name()].iter().find(|f| f.takes(op)).map(|f| f.expand);
    let mut target = ConversionTarget::new();
    let mut patterns = PatternSet::new();
    for name in by_name.keys() {
        target.dynamically_legal_op(name, |op| of(op).is_none());
        patterns.add_fn(name, |op, adaptor, rewriter| {
            let expand = of(op).expect("invariant: an op without expansion is legal");
            let value = expand(&mut Emit::before(op, rewriter, compiler), adaptor.operands());
            rewriter.replace_op(op, &[value]);
            Ok(())
        });
    }
    convert(root, &target, &patterns, Mode::Partial).map(drop)
}
