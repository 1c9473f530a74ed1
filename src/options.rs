//! Options of a compilation.

use crate::report::Dump;
use monopour_program::CpuTarget;
use monopour_runtime::Device;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// One target of a compilation: a GPU or a CPU by its description.
pub use monopour_frontend::TargetDescription;

pub use monopour_frontend::Effort;
/// Measured choices of kernels.
pub use monopour_frontend::tuning::Tuning;

/// `gpu` or `cpu`.
pub fn target_kind(target: &TargetDescription) -> &'static str {
    match target {
        TargetDescription::Gpu(_) => "gpu",
        TargetDescription::Cpu(_) => "cpu",
    }
}

/// The target that fits an open device.
pub fn target_of(device: &Device) -> TargetDescription {
    match device.description() {
        Some(description) => TargetDescription::Gpu(description.clone()),
        None => TargetDescription::Cpu(CpuTarget::host()),
    }
}

/// What decides which operands are in place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strategy {
    /// The compiler's own choice.
    #[default]
    Minimal,
    /// One-Shot Bufferize's order of visits, each operand in place if it still can be.
    Greedy,
    /// Upstream's own passes.
    Upstream,
    /// Nothing is in place: each write copies its operand.
    CopyBeforeWrite,
}

impl Strategy {
    /// All of them, the ones that copy less first.
    pub const ALL: [Strategy; 4] = [Strategy::Minimal, Strategy::Greedy, Strategy::Upstream, Strategy::CopyBeforeWrite];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Strategy::Minimal => "minimal",
            Strategy::Greedy => "greedy",
            Strategy::Upstream => "upstream",
            Strategy::CopyBeforeWrite => "copy-before-write",
        }
    }
}

/// Options of [`crate::compile`].
#[derive(Clone, Debug, Default)]
pub struct CompileOptions {
    /// Targets, best first; a variant each.
    pub targets: Vec<TargetDescription>,
    /// The function to compile; default `main`, or the only public one.
    pub entry: Option<String>,
    /// A safetensors file, or a folder of them, that gives `dense_resource` constants their values.
    pub weights: Option<PathBuf>,
    /// Names of inputs that the program may overwrite and return, besides those that the model marks.
    pub donate: Vec<String>,
    /// Sizes for symbolic dimensions of an ONNX model.
    pub dims: BTreeMap<String, i64>,
    /// What decides which operands are in place, for comparisons.
    pub strategy: Strategy,
    /// Fill buffers with NaNs before their first write and behind their last use, so that what is read there shows in the
    /// results: for tests of the compiler. Slow.
    pub poison: bool,
    /// A transform script that replaces the generated one.
    pub schedule: Option<PathBuf>,
    /// Verify the IR after each phase (debug builds always do).
    pub verify: bool,
    /// Phases after which the IR is kept as text in the report.
    pub dump_after: Vec<String>,
    /// A folder for the native objects of kernels and host functions, which need not exist: those of earlier compilations are
    /// taken from it, new ones kept there, the ones used longest ago dropped beyond 256 MiB. The command line has
    /// `objects` in the user's folder of caches. Default: none.
    /// Native code is loaded from it: it has to be as trusted as the program.
    pub object_cache: Option<PathBuf>,
    /// Kernels chosen by measurement ([`crate::tune`]) for variants of one device; the cost model chooses all others.
    pub tuning: Option<Tuning>,
    /// How long drivers may take to compile kernels that run faster for it.
    pub effort: Effort,
    /// Round rows that weights of 2 to 8 bits in blocks multiply to 8 bits, with a scale for each block, also where the model
    /// does not allow it (`accuracy_level` 4 of MatMulNBits does): faster on CPUs, and as exact as ONNX Runtime, which rounds
    /// rows of weights of DequantizeLinear unless it is told not to. Each row keeps 7 bits of its block's largest.
    pub rounded_rows: bool,
    /// A callback for each phase.
    pub watch: Option<Watch>,
    /// A callback for each text that is kept, as soon as it is: a compilation that fails has no report.
    pub on_dump: Option<OnDump>,
}

impl CompileOptions {
    /// Options for one target, that of an open device.
    pub fn for_device(device: &Device) -> Self {
        Self { targets: vec![target_of(device)], ..Self::default() }
    }
}

/// A callback with the phase's name and the kind of target, as each phase begins.
#[derive(Clone)]
pub struct Watch(Arc<dyn Fn(&'static str, &'static str) + Send + Sync>);

impl Watch {
    /// Calls `f` with the phase and the target.
    pub fn new(f: impl Fn(&'static str, &'static str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(f))
    }

    pub(crate) fn begins(&self, phase: &'static str, target: &'static str) {
        (self.0)(phase, target);
    }
}

/// A callback with a phase's text.
#[derive(Clone)]
pub struct OnDump(Arc<dyn Fn(&Dump) + Send + Sync>);

impl OnDump {
    /// Calls `f` with each text.
    pub fn new(f: impl Fn(&Dump) + Send + Sync + 'static) -> Self {
        Self(Arc::new(f))
    }

    pub(crate) fn call(&self, dump: &Dump) {
        (self.0)(dump);
    }
}

impl fmt::Debug for OnDump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnDump")
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watch")
    }
}
