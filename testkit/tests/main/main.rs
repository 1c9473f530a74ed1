//! One binary for all tests of `monopour-testkit`.

mod evaluate;
mod oracle;
mod programs;
mod runner;
mod suite;
