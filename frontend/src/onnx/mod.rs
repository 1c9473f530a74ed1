//! ONNX models to linalg on tensors.
//!
//! ```text
//! model.onnx --proto, tensor, data_type--> messages --graph, functions--> nodes in order, functions inlined
//!   --lower--> func.func of linalg on tensors, constants with their weights
//! ```
//!
//! * [`Model`]: an open file. `lower`: its function. `nodes`: the nodes, one by one, by the [`Registry`]; `batch_norms`: norms as weights.
//! * `symbolic`: sizes as expressions; `operand`: values with their types, and with their elements where these are known.
//! * `builder`: ops on these values, `predicate`: comparisons; `structured`: its linalg ops; `reshape`: its views; `fold`: known elements;
//!   `run_time`: sizes that data decides; `narrow`, `narrow_ops`: elements of less than 16 bits.
//! * `node`: what a lowering reads of its node; `ops`: the lowerings, a file per family.

mod batch_norms;
pub mod builder;
mod data_type;
mod fold;
mod functions;
pub mod graph;
mod lower;
mod model;
mod narrow;
mod narrow_ops;
pub mod node;
mod nodes;
pub mod operand;
mod ops;
pub mod predicate;
pub mod proto;
mod registry;
mod reshape;
mod run_time;
mod structured;
pub mod symbolic;
mod tensor;

pub use builder::{Builder, Failure};
pub use data_type::DataType;
pub use lower::{lower, missing_ops};
pub use model::Model;
pub use narrow::{Narrowing, Round};
pub use node::NodeContext;
pub use operand::Operand;
pub use registry::{Entry, Registry, Results};
pub use structured::{Expr, Iterator as LoopKind, Structured};
pub use tensor::{Files, Tensor, read_tensor};

use monopour_ir::Diagnostic;

/// Something wrong with a model, before it has a location.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    code: &'static str,
    message: String,
    help: &'static str,
}

impl Problem {
    fn at(self, file: &str) -> Diagnostic {
        let mut diagnostic = Diagnostic::global(self.code, self.message).with_help(self.help);
        file.clone_into(&mut diagnostic.location);
        diagnostic
    }
}

/// A shape as text.
pub(crate) fn operand_shape(shape: &[symbolic::Dim]) -> String {
    format!("[{}]", shape.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
}
