//! Distribution and emission: what is written, that it is valid, and that it computes the right numbers on a device.

mod contraction;
mod device;
mod doubles;
mod elementwise;
mod emit;
mod errors;
mod loops;
mod memory;
mod program;
mod row_forms;
mod rows;
mod tiles;
