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
//! The walk is one deterministic pass in pre-order over the ops that are illegal or may be, an op before its regions.
//! After each pattern the ops that it created or modified are visited, depth first, in the order of the changes;
//! ops that the walk has not reached wait for it. Users of a replaced value are not visited again: their operand types are unchanged.
//!
//! A pattern sees its op with the original operands and, through [`Adaptor`], the converted operands: with a [`TypeConverter`],
//! in the types that it gives them. It either declines without touching the IR, or erases, replaces or modifies its op. It erases
//! no op but its own and those it created. All of this is checked on every application (I0012); debug builds also verify
//! the ops that were created or modified, and their users. The driver never folds.
//!
//! On failure the partial result stays in place, valid; [`on_clone`] keeps the input instead. [`analyze_conversion`] changes nothing.
//! The design, against the RFC that asked for it: `docs/conversion.md`.

pub(crate) mod casts;
mod driver;
mod kinds;
mod observe;
mod options;
mod order;
mod pattern;
pub(crate) mod plain;
mod report;
mod rewriter;
mod signature;
mod stages;
mod target;
mod type_converter;
mod worklist;

pub use driver::{convert, convert_bridged, convert_with};
pub use observe::observe_conversions;
pub use options::{ConversionOptions, ConversionStats, Mode, PatternEvent};
pub use pattern::{Adaptor, ConversionPattern, Declined, PatternSet};
pub use rewriter::{Bridges, ConversionRewriter};
pub use stages::{ConversionAnalysis, Stage, analyze_conversion, convert_in_stages, on_clone};
pub use target::{ConversionTarget, Legality};
pub use type_converter::{Materialization, TypeConversion, TypeConverter};
pub use worklist::WorklistOrder;

type OpMap<'c, V> = crate::HandleMap<crate::Op<'c>, V>;
