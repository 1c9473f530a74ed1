//! One-Shot Bufferize: tensors become memrefs, in place wherever that is certain to be right.
//!
//! The way through the modules: [`op_model`] says what an op does to the memory of its tensors (`models/`, one file per dialect);
//! `collect` turns a function into facts; `monopour-analysis` decides; `insert_copies` makes the decisions part of the IR;
//! `buffer_type` predicts memref types; `rewrite` replaces the ops; `boundary` knows functions.
//!
//! [`run_one_shot`] is the entry. It never frees, and it does not canonicalize.

mod annotate;
mod boundary;
mod buffer_type;
mod collect;
mod insert_copies;
mod models;
mod one_shot;
pub mod op_model;
mod options;
mod rewrite;
mod shared_outputs;
mod slices;

pub use boundary::{ArgumentSummary, Callees};
pub use buffer_type::BufferTypes;
pub use one_shot::{Stats, run_one_shot, run_with_models};
pub use options::{AnalysisHeuristic, FunctionBoundaryTypeConversion, Options, UnknownTypeConversion};
pub use rewrite::Rewriting;
