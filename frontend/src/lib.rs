//! From a model to tiled and fused linalg on tensors.
//!
//! The phases, in order: [`import`] (a model file to canonical linalg, weights mapped), [`fuse`] (elementwise fusion, dispatch
//! roots with their producers), [`tile`] (one `scf.forall` per dispatch, by a generated transform script), [`place`] (memory
//! spaces as tensor encodings, block mappings). Everything is still a tensor after all of them.

mod block_graph;
mod dispatch;
pub mod fuse;
mod fuse_form;
mod grid;
pub mod import;
mod isolate;
mod kernel;
mod kernel_cpu;
mod linalg;
mod pack;
pub mod place;
mod products;
mod rows;
mod rows_form;
mod rows_slice;
mod rows_tile;
mod specialize;
mod split_reduction;
pub mod tile;
mod transforms;
mod whole_slices;
pub mod windows;

pub use import::{ImportOptions, Imported, Weight, WeightTable};
pub use tile::{TargetDescription, TileOptions, TileReport};
