//! One binary for all tests of `monopour-testkit`.

mod batch;
mod evaluate;
mod evaluate_control;
mod lifetimes;
mod oracle;
mod programs;
mod runner;
mod spirv;
mod suite;
