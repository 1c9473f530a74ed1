//! Workgroup tiles over invocations, then naga, WGSL and SPIR-V.
