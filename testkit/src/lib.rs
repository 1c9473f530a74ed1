//! Test runner, oracle, reference evaluator, op suite.
