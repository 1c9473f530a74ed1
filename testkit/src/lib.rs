//! Test runner, oracle, reference evaluator, op suite.

pub mod evaluate;
pub mod host_tensor;
pub mod random;

pub use evaluate::{EvalError, Weights, evaluate, evaluate_with_weights};
pub use host_tensor::{Data, Dtype, HostTensor};
