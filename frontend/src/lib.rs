//! From a model to tiled and fused linalg on tensors.
//!
//! The phases, in order; their results are tensors:
//!
//! * [`import`]: a model file to canonical linalg, weights mapped; one file per step, in the order of `import/mod.rs`.
//! * [`onnx`]: ONNX models as such a module, for [`import`].
//! * [`computed_constants`]: what is computed of constants alone, for whoever computes it once.
//! * [`fuse`]: elementwise fusion and dispatches. `siblings`, `several_results`: ops that read one value, or
//!   what one of them makes, as one op (`joined_op`);
//!   `side_by_side`: products of one input as one op, for GPUs;
//!   `packed_factors`: factors in blocks or parts of bytes as parts of their products, for GPUs; `split_division`: quotients in maps as loops; `specialize`: fills
//!   and products as named ops; `softmax_maximum`: maxima that need no NaNs; `split_reduction`: long reductions in two;
//!   `joined_halves`: halves that pointwise ops read together, `merged_reductions`: their two dimensions as one of products; `early_scales`: what is computed of tensors before they are repeated, `early_joins`: before they are put together; `rolls`: what is put together of one tensor; `grouped_rows`: rows of grouped heads; `odd_products`: products of padded factors, on software adapters;
//!   `split_k`: parts of long reductions side by side, on discrete GPUs;
//!   `rounded_weights`: where weights of 16 bits are rounded; `turned`: epilogues in another order, for CPUs; `fuse_form`: roles of ops, on `block_graph`; `rows_form`: row groups.
//! * [`attention`]: the dispatches of an attention as one.
//! * [`narrow`]: factors of integer products in 8 or 16 bits, for CPUs.
//! * [`layouts`]: channels of images in blocks or last, for CPUs, and last on hardware GPUs.
//! * [`grouped`]: constant factors of 8-bit products in groups of four terms, for CPUs.
//! * [`unfold`]: windows of convolutions as dimensions, for CPUs.
//! * [`widen`]: constant filters of half precision as f32, for CPUs.
//! * [`collapse_lines`]: short lines of images as columns of a product, for CPUs; rows in several dimensions as one, on hardware GPUs.
//! * [`ragged_columns`]: products of columns that no register divides as two, for CPUs.
//! * [`panels`]: constant factors of float products in panels of columns, for CPUs.
//! * [`windows`]: dispatches over tensors larger than a binding, in parts.
//! * [`tile`]: one `scf.forall` per dispatch. `isolate`: a dispatch in a module of its own; `transforms`: the generated
//!   scripts; `rows_tile`, with `rows_slice`: row groups; `grid`: at most three grid dimensions;
//!   `whole_slices`: slices of whole outputs; `padded_inputs`, `padded_results`: pads inside of tiles.
//! * [`place`]: memory spaces as tensor encodings, block mappings.
//! * [`borders`]: fills of which insertions leave a border.
//!
//! Shared by them:
//!
//! * `linalg`: maps, iterators and operands of an op; `products`: loops of contractions and convolutions; `rows`: ops of row
//!   groups.
//! * `dispatch`: the ops of one dispatch with their roles; `kernel`, `kernel_cpu`: the cost models of GPU and CPU;
//!   `kernel_rows`: of reductions along rows, `kernel_columns`: across rows, `kernel_images`: of convolutions on hardware, `kernel_matrices`: of what
//!   takes cooperative matrices, on GPUs; `large_tiles`: products that fill a GPU; `deviation`: kernels beside the cost model's,
//!   between which [`tuning`] chooses by measurement, and `effort` before.

pub mod attention;
mod block_graph;
pub mod borders;
mod channel_lanes;
pub mod collapse_lines;
pub mod computed_constants;
mod computed_tables;
mod deviation;
mod dispatch;
mod early_joins;
mod early_scales;
mod effort;
pub mod fuse;
mod fuse_form;
mod fuse_limits;
mod grid;
pub mod grouped;
mod grouped_rows;
pub mod import;
mod isolate;
mod joined_halves;
mod joined_op;
mod joins;
mod kept_sizes;
mod kernel;
mod kernel_attention;
mod kernel_columns;
mod kernel_cpu;
mod kernel_images;
mod kernel_matrices;
mod kernel_rows;
mod large_tiles;
pub mod layouts;
mod linalg;
mod merged_reductions;
pub mod narrow;
mod odd_products;
pub mod onnx;
mod packed_factors;
mod padded_inputs;
mod padded_results;
mod pads;
pub mod panels;
pub mod place;
mod products;
pub mod quantised_rows;
pub mod ragged_columns;
mod rolls;
mod rounded_weights;
mod rows;
mod rows_form;
mod rows_slice;
mod rows_tile;
mod several_results;
mod siblings;
mod side_by_side;
mod single_rows;
mod sliced_transposes;
mod softmax_maximum;
mod specialize;
mod split_division;
mod split_k;
mod split_reduction;
mod stored_order;
mod target;
pub mod tile;
mod transforms;
pub mod tuning;
mod turned;
pub mod unfold;
mod whole_slices;
pub mod widen;
pub mod windows;

pub use effort::Effort;
pub use import::{ImportOptions, Imported, Weight, WeightTable};
pub use target::TargetDescription;
pub use tile::{TileOptions, TileReport};
