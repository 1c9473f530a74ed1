//! One binary for all tests of `monopour-frontend`.

mod errors;
mod programs;
mod structure;
mod support;
