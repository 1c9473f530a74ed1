//! The allocator of the `monopour` program, for benches of its passes: ours and upstream's are both measured with it.

/// MLIR's C++ allocates by it, too.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
