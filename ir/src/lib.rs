//! The only door to MLIR.
