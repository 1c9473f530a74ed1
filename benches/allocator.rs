//! The allocator of the `monopour` program, for benches of its passes: both sides are measured with it.

/// MLIR's C++ uses it, too.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
