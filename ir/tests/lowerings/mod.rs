//! Upstream's conversions as patterns: what the conversion driver is tested and measured with.

#![allow(dead_code, reason = "each user takes a part")]

pub mod scf_to_cf;
pub mod to_llvm;
