//! Loads a program and runs it: wgpu devices, pools, CPU threads. No LLVM.
