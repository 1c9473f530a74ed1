//! Test runner, oracle, reference evaluator, op suite.
//!
//! - [`runner`] runs file tests (`<crate>/tests/<pass>/*.mlir`), [`directive`] reads their headers, [`oracle`] asks `mlir-opt`.
//! - [`mod@evaluate`] says what a program on tensors means; [`approx`] compares with it.
//! - [`evaluate::lifetimes`] runs programs on memrefs and watches each buffer; [`generate_memrefs`] makes such programs.
//! - [`suite`] is the one list of op cases that every backend runs; [`generate`] makes random programs; both write [`text`].
//! - [`programs`] are the benchmark programs with their values.
//! - [`growing`] are programs that grow with a number, for benches and tests of complexity.

pub mod approx;
pub mod barriers;
pub mod batch;
pub mod bounds;
pub mod device;
pub mod directive;
pub mod evaluate;
pub mod generate;
pub mod generate_functions;
pub mod generate_graphs;
pub mod generate_guards;
pub mod generate_memrefs;
pub mod growing;
pub mod host_tensor;
pub mod oracle;
pub mod programs;
pub mod random;
pub mod runner;
pub mod suite;
pub mod text;

pub use evaluate::{Defect, EvalError, Weights, evaluate, evaluate_in_type, evaluate_with_weights};
pub use host_tensor::{Data, Dtype, HostTensor};
