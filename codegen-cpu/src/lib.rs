//! Host function and CPU kernels through LLVM to object code.
