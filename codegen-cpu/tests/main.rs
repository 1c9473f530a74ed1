//! Compiles modules, links the objects with the machine's C compiler and runs them.
//!
//! Without a C compiler the tests that run code print `skipped: no C compiler`; `REQUIRE_CC=1` makes that a failure.

mod blocks;
mod causal;
mod dots;
mod emulated;
mod errors;
mod harness;
mod host;
mod instructions;
mod kernels;
mod lookups;
mod math;
mod near;
mod objects;
mod panels;
mod past_caches;
mod quantisation;
mod rows;
mod sums;
mod vectorize;
mod windows;
