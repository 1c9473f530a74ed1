//! One-Shot Bufferize: tensors become memrefs, in place wherever that is certain to be right.
//!
//! The way through the modules: [`op_model`] says what an op does to the memory of its tensors (`models/`, one file per dialect);
//! `collect` turns a function into facts (`shared_memory` those of memrefs that tensors share); `monopour-analysis` decides;
//! `insert_copies` makes the decisions part of the IR, with `loop_copies` and `loaded_globals` for what decisions do not say;
//! `buffer_type` and `block_types` predict memref types; `rewrite` replaces the ops, with what `building` makes;
//! `boundary` knows functions, `annotate` shows decisions, `one_shot` runs all of it.
//!
//! [`eliminate_empty_tensors`] may run before: what is computed to be inserted is computed in its place (`empty_origins`,
//! `subset_extraction`, `block_order`). [`finalize`] ends partial runs.
//! [`run_one_shot`] is the entry. It never frees, and it does not canonicalize.
//! [`analyse`] stops before the rewrite and gives facts and decisions of each function;
//! [`run_with_decisions`] lets a callback change what was decided:
//!
//! ```text
//! run_with_decisions(module, &options, &mut |name, facts, decisions| {
//!     checker::check(facts, &decisions)?;
//!     decisions.with(facts, operand, Placement::InPlace)
//! })?;
//! ```
//!
//! [`run_with_analysis`] replaces the analysis altogether ([`Analysis`]).
//!
//! [`Options::copy_before_write`] decides nothing and copies before every write: the slow program that is surely right.

mod analysis;
mod annotate;
mod block_order;
mod block_types;
mod blocks;
mod boundary;
mod buffer_type;
mod building;
mod collect;
mod effects;
mod eliminate_empty_tensors;
mod empty_origins;
mod empty_tensor_to_alloc_tensor;
mod failures;
mod finalize;
mod globals;
mod insert_copies;
mod loaded_globals;
mod loop_copies;
mod memref_types;
mod models;
mod one_shot;
pub mod op_model;
mod options;
mod own_place;
mod remarks;
mod rewrite;
mod rewriting;
mod scope;
mod shared_memory;
mod shared_outputs;
mod slices;
mod subset_extraction;
mod summaries;

pub use analysis::{Analysis, CopyBeforeWrite, Greedy};
pub use boundary::Callees;
pub use buffer_type::BufferTypes;
pub use eliminate_empty_tensors::{Eliminated, eliminate_empty_tensors, eliminate_empty_tensors_into};
pub use empty_tensor_to_alloc_tensor::empty_tensor_to_alloc_tensor;
pub use finalize::{Finalized, finalize};
pub use one_shot::{
    Chooser, FunctionAnalysis, Stats, analyse, run_one_shot, run_one_shot_into, run_with_analysis, run_with_decisions,
    run_with_models,
};
pub use options::{AnalysisHeuristic, FunctionBoundaryTypeConversion, Options, UnknownTypeConversion};
pub use rewriting::Rewriting;
