//! One binary for all tests of `monopour-testkit`.

mod evaluate;
