//! Test runner, oracle, reference evaluator, op suite.
//!
//! - [`runner`] runs file tests (`<crate>/tests/<pass>/*.mlir`), [`directive`] parses their headers, [`oracle`] runs
//!   `mlir-opt`.
//! - [`mod@evaluate`] is the reference evaluator; [`approx`] compares with tolerance, [`host_tensor`] holds the values.
//! - [`evaluate::lifetimes`] checks the lifetimes of buffers; [`batch`] runs bufferized functions natively.
//! - [`barriers`] and [`bounds`] check distributed GPU kernels; [`spirv`] runs emitted ones.
//! - [`suite`] is the list of op cases that every backend runs; [`text`] builds programs.
//! - Random programs, by [`random`]: [`generate`] (products), [`generate_graphs`] (tensor graphs), [`generate_guards`]
//!   (undefined cases), [`generate_functions`] (bufferization), [`generate_memrefs`] (deallocation).
//! - [`programs`] are the benchmark programs with their values, [`growing`] programs of scalable size.
//! - `onnx` builds ONNX models (feature `onnx`).
//! - [`device`] reads the environment variables of device tests.

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
pub mod generate_half_images;
pub mod generate_images;
pub mod generate_memrefs;
pub mod generate_shapes;
pub mod growing;
pub mod host_tensor;
#[cfg(feature = "onnx")]
pub mod onnx;
pub mod oracle;
pub mod programs;
pub mod random;
pub mod runner;
pub mod spirv;
pub mod suite;
pub mod text;

pub use evaluate::{Defect, EvalError, Weights, evaluate, evaluate_in_type, evaluate_with_weights};
pub use host_tensor::{Data, Dtype, HostTensor};
