//! The program: the output of a compilation and the input of a session.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::constants::Constant;
use crate::dtype::DType;
use crate::host::HostCode;
use crate::kernel::Kernel;
use crate::target::Target;
use crate::trust::Trust;

/// Bytes of a contiguous tensor, `None` on overflow.
pub(crate) fn tensor_bytes(dtype: DType, shape: &[u64]) -> Option<u64> {
    shape.iter().try_fold(dtype.size_bytes(), |bytes, &extent| bytes.checked_mul(extent))
}

/// A compiled program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The source function's name.
    pub entry: String,
    /// Inputs and results.
    pub signature: Signature,
    /// Tensor data, by index in host code; shared by all variants.
    pub constants: Vec<Constant>,
    /// The program once per target, best first.
    pub variants: Vec<Variant>,
    /// The producer: `monopour 0.1.0`.
    pub producer: String,
    /// Whether its machine code may run.
    pub trust: Trust,
}

/// Inputs and results of a program, in the order of the source function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    /// Inputs, without constants.
    pub inputs: Vec<TensorDesc>,
    /// Results.
    pub results: Vec<TensorDesc>,
    /// Requirements on the sizes of a run's inputs beyond their types.
    pub sizes: SizeRules,
}

/// Sizes of inputs that must be equal for the program's ops to fit together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SizeRules {
    /// Classes of at least two equal sizes.
    pub equal: Vec<Vec<InputSize>>,
    /// Sizes with only one valid value.
    pub fixed: Vec<(InputSize, i64)>,
}

/// A size that varies by run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputSize {
    /// The input, by its position.
    pub input: u32,
    /// One of its dimensions; `None`: the input is an integer and the size itself.
    pub dim: Option<u32>,
}

impl Signature {
    /// The input of this name.
    pub fn input(&self, name: &str) -> Option<&TensorDesc> {
        self.inputs.iter().find(|input| input.name == name)
    }

    /// The result of this name.
    pub fn result(&self, name: &str) -> Option<&TensorDesc> {
        self.results.iter().find(|result| result.name == name)
    }

    /// The text of a size in messages: "dimension 1 of input `x`".
    pub fn size_text(&self, size: InputSize) -> String {
        let name = self.inputs.get(size.input as usize).map_or("?", |input| input.name.as_str());
        match size.dim {
            Some(dim) => format!("dimension {dim} of input `{name}`"),
            None => format!("input `{name}`"),
        }
    }
}

/// One input or result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TensorDesc {
    /// `arg0`, `result0`, ..., unless the source names it.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Sizes of the dimensions, [`DYNAMIC`] for one that varies by run; empty for a single element.
    pub shape: Vec<u64>,
    /// An input that the program may overwrite or return; always false for a result.
    pub donated: bool,
    /// A number rather than a tensor: host code takes it by value, without a buffer.
    pub scalar: bool,
}

/// The size of a dimension that varies by run.
pub const DYNAMIC: u64 = u64::MAX;

impl TensorDesc {
    /// A tensor that is not donated.
    pub fn tensor(name: impl Into<String>, dtype: DType, shape: Vec<u64>) -> TensorDesc {
        TensorDesc { name: name.into(), dtype, shape, donated: false, scalar: false }
    }

    /// Whether all sizes are known before a run.
    pub fn is_static(&self) -> bool {
        !self.shape.contains(&DYNAMIC)
    }

    /// Whether a tensor of these sizes fits this description.
    pub fn fits(&self, shape: &[u64]) -> bool {
        let same = |(expected, found): (&u64, &u64)| *expected == DYNAMIC || expected == found;
        self.shape.len() == shape.len() && self.shape.iter().zip(shape).all(same)
    }

    /// Bytes of the tensor. Saturates if the product overflows, which [`Program::verify`] rejects, and if a size is
    /// dynamic.
    pub fn size_bytes(&self) -> u64 {
        if self.is_static() { tensor_bytes(self.dtype, &self.shape).unwrap_or(u64::MAX) } else { u64::MAX }
    }

    /// Number of elements, saturating as [`TensorDesc::size_bytes`] does.
    pub fn elements(&self) -> u64 {
        self.shape.iter().try_fold(1u64, |n, &extent| n.checked_mul(extent)).unwrap_or(u64::MAX)
    }

    /// The MLIR spelling of the type, such as `tensor<2x?xf32>`, or `f32` of a number.
    pub fn type_text(&self) -> String {
        if self.scalar {
            return self.dtype.to_string();
        }
        let size = |extent: &u64| if *extent == DYNAMIC { "?x".to_owned() } else { format!("{extent}x") };
        format!("tensor<{}{}>", self.shape.iter().map(size).collect::<String>(), self.dtype)
    }
}

impl fmt::Display for TensorDesc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.type_text())
    }
}

/// The whole program for one target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variant {
    /// Its target, with requirements on the device or CPU.
    pub target: Target,
    /// Kernels that host code dispatches by index.
    pub kernels: Vec<Kernel>,
    /// By kernel: number of dispatches in the host function; one in a loop counts once.
    pub dispatches: Vec<u32>,
    /// The host function as native code, and on the CPU target the kernels too; without objects where there is none.
    pub host: NativeCode,
    /// The host function as data, for places where the native one cannot run or is not trusted; empty where there is none.
    pub host_data: HostCode,
    /// Offsets of transients in the arena.
    pub plan: MemoryPlan,
    /// All remaining copies, for `explain`.
    pub copies: Vec<CopyNote>,
    /// All allocations that are neither in the arena nor a result, for `explain`.
    pub allocations: Vec<AllocationNote>,
    /// What is alive when, and lower bounds, for `explain` and statistics.
    pub lives: Lives,
    /// The dispatches of the host function with their sources, in its order, for traces.
    pub sources: Vec<Source>,
}

/// A dispatch of the host function, and what it was made of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// The kernel, by position.
    pub kernel: u32,
    /// The op that the kernel computes, such as `linalg.matmul`; of fused ones the one that decides the tiles.
    pub op: String,
    /// Its location, `file:line:column`, or the name of a node of ONNX; empty when unknown.
    pub location: String,
    /// Whether a run makes it once: no loop or branch is around it.
    pub is_once: bool,
}

/// The buffers of a host function over its dispatches, and lower bounds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lives {
    /// Dispatches and copies of the host function's body, in order; a loop or a branch is one step.
    pub steps: Vec<LifeStep>,
    /// Buffers that the body allocates.
    pub buffers: Vec<Life>,
    /// No decisions and no plan take less, in this order or in any, or copy less.
    pub bounds: Bounds,
}

/// A step of a host function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LifeStep {
    /// The kernel, or the op.
    pub name: String,
    /// Source location, `file:line:column`; empty when unknown.
    pub location: String,
    /// The least bytes alive while it runs, inputs and constants not counted, donated inputs free after their last use.
    pub bound_bytes: u64,
}

/// A buffer of a host function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Life {
    /// Source location, `file:line:column`; empty when unknown.
    pub location: String,
    /// Bytes; `None` if they vary by run.
    pub bytes: Option<u64>,
    /// Offset in the arena; `None` for one of the pool, and for a result.
    pub offset: Option<u64>,
    /// The result that it is.
    pub result: Option<u32>,
    /// The first and the last step that use it; the last step of all for a result.
    pub first: u32,
    /// The last one, inclusive.
    pub last: u32,
}

/// Lower bounds of a program: see `docs/lower-bounds.md`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// Peak bytes of the steps in their order.
    pub peak_bytes: u64,
    /// Peak bytes of the steps in any order.
    pub any_order_bytes: u64,
    /// Whether some order of the steps has that peak in the bound's model; else it is what the largest step takes.
    pub is_any_order_exact: bool,
    /// Copies that updates of values cost.
    pub copies: u64,
    /// Their bytes.
    pub copied_bytes: u64,
}

/// An allocation made by each run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllocationNote {
    /// The reason why it is not in the arena.
    pub reason: String,
    /// Source location, `file:line:column`; empty when unknown.
    pub location: String,
    /// Bytes each time; `None` if it varies by run.
    pub bytes: Option<u64>,
}

/// Native code as ELF relocatables, on every operating system.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NativeCode {
    /// The architecture as in a target triple: `x86_64`, `aarch64`.
    pub arch: String,
    /// CPU features beyond the architecture's baseline that the code uses, by LLVM's names.
    pub features: Vec<String>,
    /// The relocatables, independent of each other: their undefined symbols are those of the runtime's closed table.
    pub objects: Vec<Vec<u8>>,
    /// The symbol of `void entry(int64_t cx)`, in the first of them.
    pub entry: String,
}

impl NativeCode {
    /// Bytes of all relocatables.
    pub fn size_bytes(&self) -> u64 {
        self.objects.iter().map(|object| object.len() as u64).sum()
    }
}

/// The memory plan of a variant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryPlan {
    /// Bytes of the arena that host code requests.
    pub arena_bytes: u64,
    /// Bytes that transients take as planned, before rounding; at most `arena_bytes`.
    pub planned_bytes: u64,
    /// The largest sum of sizes of transients live at once: a lower bound for any placement.
    pub lower_bound_bytes: u64,
    /// The placed allocations, by offset.
    pub transients: Vec<Transient>,
}

/// One placed allocation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transient {
    /// The value's name in the source, or a generated one.
    pub name: String,
    /// Offset in the arena.
    pub offset: u64,
    /// Size without padding.
    pub size_bytes: u64,
    /// The first dispatch or host op that uses it.
    pub first: u32,
    /// The last one, inclusive.
    pub last: u32,
}

/// A copy that the compiler left in the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyNote {
    /// The reason: the conflicting read and write.
    pub reason: String,
    /// Source location, `file:line:column`; empty when unknown.
    pub location: String,
    /// Bytes each time; `None` if it varies by run.
    pub bytes: Option<u64>,
    /// Number of times per run; `None` after a condition or in a loop of unknown length.
    pub times: Option<u64>,
}
