//! The dialect conversion driver: illegal ops are rewritten by patterns until the target calls every op legal.
//!
//! There is no rollback. Every change is in the IR at once, and the IR is valid after every pattern:
//! where a value is replaced by one of another type, a `builtin.unrealized_conversion_cast` back to the old type stands
//! right after the new definition. Such casts are shared per (value, type), folded when they meet, and dropped with their last use.
//!
//! ```text
//! %0 = arith.addi %a, %b : index               %0 = llvm.add %a64, %b64 : i64
//! "use"(%0) : (index) -> ()           ==>      %c = builtin.unrealized_conversion_cast %0 : i64 to index
//!                                              "use"(%c) : (index) -> ()
//! ```
//!
//! The walk is one deterministic pass in pre-order, an op before its regions.
//! After each pattern the ops that it created or changed in place are visited, depth first, in the order of the changes;
//! ops that the walk has yet to reach wait for it.
//!
//! A pattern sees its op with the original operands and, through [`Adaptor`], the operands in their new types.
//! It either declines without touching the IR, or erases, replaces or changes its op. Both are checked on every application (I0012).
//!
//! Limits: one value is replaced by one value (no 1:N); on failure the partial result stays in place (give it a clone to keep the input).

mod driver;
mod pattern;
mod rewriter;
mod target;

pub use driver::{ConversionOptions, ConversionStats, Mode, PatternEvent, convert, convert_with};
pub use pattern::{Adaptor, ConversionPattern, Declined, PatternSet};
pub use rewriter::{Bridges, ConversionRewriter, HandleMap, PointerHasher};
pub use target::{ConversionTarget, Legality};
