//! The only door to MLIR: contexts, modules, typed views of the IR, a rewriter with a journal, passes, diagnostics.
//!
//! The modules, lowest first:
//!
//! * `erased`, `handle`, `handle_map`: use-after-erase checks, all handles over melior's references, hash maps keyed by them.
//! * `string`, `diagnostic`, `context`: strings of the C API, diagnostics and locations, the MLIR context.
//! * `types`, `attrs`, `affine`, `linear`, `fields`: types, attributes, affine maps and their linear forms, dictionaries as plain data of `monopour-contract`.
//! * `value`, `op`, `block`: values with their uses, ops with walks and printing, blocks and regions.
//! * [`ops`]: names of ops; `names`: printed names of values.
//! * `module`, `source_text`: parsing text and bytecode, text that is refused before.
//! * `builder`, `template`, `recreate`: creating ops.
//! * `rewriter`, `rewriter/`: changes with a journal; erasing.
//! * `segments`, [`typed`], `typed/`: operand segments; typed views and builders of ops, a file per dialect; enum attributes.
//! * [`interfaces`], [`control_flow`], [`bufferizable`]: upstream's op interfaces.
//! * [`conversion`], `conversion/`: the dialect conversion driver.
//! * `structure`, `call_graph`, `associative`, `reshapes`: structural keys, calls of functions, the ops of reductions, reshapes that upstream's passes crash on or make slow.
//! * [`bodies`], [`causal`]: the scalar bodies of attention; masks of keys behind a row's place.
//! * `legal_ir`: the ops and types that are legal after a phase.
//! * `pass`, `transform`, `llvm`: upstream's passes, transform scripts, object code.
//! * [`parallel`]: parts of a module on several threads; [`opt`]: `mlir-opt`'s main with our passes.
//! * `floor`: conversions without a driver, for a bench.
//!
//! Handles ([`Op`], [`Value`], [`Block`], [`Region`], [`Type`], [`Attr`]) are those of melior with one lifetime, `'c`, that of
//! their context: small, `Copy`, compared by identity, and convertible both ways (`to_melior`, `From`).
//! **Invariant of the whole crate:** no handle, name or module leaves its context, which the compiler checks, and an op is
//! used only until it is erased, which debug builds check: a use after that is a panic that names the op.
//! [`Type`] and [`Attr`] are uniqued and live as long as their context. Ops are erased only through [`Rewriter`], and with the
//! [`Module`] that owns them. A context made by [`Context::new`] is never freed; [`Context::scope`] frees one after its last use.

#![allow(unsafe_code, reason = "this crate is the FFI boundary to MLIR's C API; see the crate invariant")]

/// Calls one function of MLIR's C API.
macro_rules! c {
    ($f:ident($($a:expr),* $(,)?)) => {{
        #[allow(unused_unsafe, clippy::multiple_unsafe_ops_per_block, reason = "arguments may themselves be calls")]
        // SAFETY: every handle given refers to a live object (crate invariant), and pointers come from live Rust values.
        let result = unsafe { mlir_sys::$f($($a),*) };
        result
    }};
}

mod affine;
mod associative;
mod attrs;
mod block;
pub mod bodies;
pub mod bufferizable;
mod builder;
mod call_graph;
pub mod causal;
mod context;
pub mod control_flow;
pub mod conversion;
mod diagnostic;
mod erased;
mod fields;
#[cfg(feature = "floor")]
mod floor;
mod handle;
mod handle_map;
pub mod interfaces;
mod legal_ir;
mod linear;
mod llvm;
mod module;
mod names;
mod op;
pub mod ops;
pub mod opt;
pub mod parallel;
mod pass;
mod recreate;
mod reshapes;
mod resources;
mod rewriter;
mod segments;
mod source_text;
mod string;
mod structure;
mod template;
mod transform;
pub mod typed;
mod types;
mod value;

pub use affine::AffineExprKind;
pub use associative::Associative;
pub use builder::{Builder, InsertionPoint, OpSpec};
pub use call_graph::CallGraph;
pub use diagnostic::{Diagnostic, Diagnostics, Severity};
#[cfg(feature = "floor")]
pub use floor::convert_without_driver;
pub use handle::{AffineExpr, AffineMap, Attr, Block, Context, Location, Op, Region, Type, Value};
pub use handle_map::{HandleMap, PointerHasher};
pub use legal_ir::LegalIr;
pub use linear::LinearForm;
pub use llvm::{LlvmOutput, LlvmTarget, approximate_math, emit_llvm};
pub use module::{Module, ResourceRanges};
pub use names::ValueNames;
pub use op::{PrintOptions, WalkOrder};
pub use pass::{CANONICALIZE, CANONICALIZE_PROGRAM, run_passes};
pub use reshapes::{drop_added_units, open_collapses, open_dynamic_expansions};
pub use rewriter::{Change, Rewriter};
pub use structure::StructuralKey;
pub use template::{OpParts, OpTemplate};
pub use transform::apply_named_sequence;
pub use types::{DYNAMIC, MemRefType, TensorType, VectorType};
pub use value::Use;
