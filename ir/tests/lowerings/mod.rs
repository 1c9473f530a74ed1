//! Upstream's conversions as patterns, for tests and benches of the conversion driver.

#![allow(dead_code, reason = "each user takes a part")]

pub mod scf_to_cf;
pub mod to_llvm;
