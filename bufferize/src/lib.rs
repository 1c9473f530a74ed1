//! One-Shot Bufferize: tensors become memrefs, in place wherever that is certain to be right.
//!
//! The modules, lowest first:
//!
//! * `options`, `failures`, `remarks`: the pass' options, errors as upstream reports them, remarks about copies.
//! * `effects`: memory effects of an op, in the analysis's terms over values of the IR.
//! * `scope`, `blocks`, `block_order`: which ops are bufferized, and in which order blocks and ops come.
//! * `memref_types`, `globals`: types of buffers, constants as globals.
//! * `boundary`: functions and their callers; `summaries`: decided functions for their callers.
//! * [`op_model`]: the trait that describes an op, and the registry; `buffer_type` and `block_types` predict memref types by it,
//!   `rewriting` and `building` serve its rewrites.
//! * `models/`: our op models, one file per dialect, and the registry that holds them.
//! * `collect`: a function as facts (`slices`: its offsets as normal forms; `shared_memory`: memrefs that tensors share).
//! * `analysis`, `annotate`: the analysis as a trait, and decisions as attributes.
//! * `shared_outputs`, `insert_copies`, `loop_copies`, `loaded_globals`, `own_place`: decisions become part of the IR.
//! * `rewrite`: tensors into memrefs; `one_shot` runs all of it.
//! * [`eliminate_empty_tensors()`] with `empty_origins`, `subset_extraction` and `place_guards`, [`order_dispatches()`],
//!   `alternate`, `sink_insertions`, `move_reads`, `kept_parts`, `reuse_buffers` with `own_tiles` ([`improve()`] runs these with the first), [`empty_tensor_to_alloc_tensor()`]: passes before; [`finalize()`] ends partial runs.
//!
//! [`run_one_shot`] is the entry. It never frees, and it does not canonicalize.
//! [`analyse`] stops before the rewrite and gives facts and decisions of each function;
//! [`run_with_decisions`] lets a callback change the decisions:
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
//! [`Options::copy_before_write`] copies before every write without an analysis: slow and trivially right.

mod alternate;
mod analysis;
mod annotate;
mod block_order;
mod block_types;
mod blocks;
mod boundary;
mod buffer_type;
mod building;
mod collect;
mod copied;
mod effects;
mod eliminate_empty_tensors;
mod empty_origins;
mod empty_tensor_to_alloc_tensor;
mod expansions;
mod failures;
mod finalize;
mod globals;
mod improve;
mod index_ops;
mod insert_copies;
mod kept_parts;
mod loaded_globals;
mod loop_copies;
mod memref_types;
mod models;
mod move_reads;
mod one_shot;
pub mod op_model;
mod options;
mod order_dispatches;
mod order_insertions;
mod own_empties;
mod own_place;
mod own_tiles;
mod part_sizes;
mod place_guards;
mod private_layouts;
mod remarks;
mod reuse_buffers;
mod rewrite;
mod rewriting;
mod scope;
mod shared_memory;
mod shared_outputs;
mod sink_insertions;
mod slices;
mod subset_extraction;
mod summaries;

pub use analysis::{Analysis, CopyBeforeWrite, Greedy};
pub use boundary::Callees;
pub use buffer_type::BufferTypes;
pub use eliminate_empty_tensors::{Eliminated, eliminate_empty_tensors, eliminate_empty_tensors_into};
pub use empty_tensor_to_alloc_tensor::empty_tensor_to_alloc_tensor;
pub use finalize::{Finalized, finalize};
pub use improve::{Improved, improve};
pub use one_shot::{
    Chooser, FunctionAnalysis, Stats, analyse, run_one_shot, run_one_shot_into, run_with_analysis, run_with_decisions,
    run_with_models,
};
pub use options::{AnalysisHeuristic, FunctionBoundaryTypeConversion, Options, Strategy, UnknownTypeConversion};
pub use order_dispatches::order_dispatches;
pub use rewriting::Rewriting;
