//! Distribution and emission: exact text, validity, and results on a device.

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
