//! A case of the suite, and pieces of programs shared by families.

use crate::approx::Tolerance;
use crate::evaluate::evaluate;
use crate::host_tensor::{Dtype, HostTensor};
use crate::random::Rng;
use crate::text::{Input, Program, Value};
use monopour_ir::{Context, Module};

/// The default tolerance of a result in f32.
pub(super) const USUAL: Tolerance = Tolerance { absolute: 1e-5, relative: 1e-5 };
/// That of f16, whose unit in the last place is 2^-11 of a value.
pub(super) const HALF: Tolerance = Tolerance { absolute: 2e-3, relative: 2e-3 };

/// That of bf16: 2^-8 of a value.
pub(super) const BRAIN: Tolerance = Tolerance { absolute: 1e-2, relative: 1e-2 };

/// What a CPU lays out for all tasks by a dispatch of its own, where its registers ask for it.
#[derive(Clone, Copy, Debug)]
pub enum LaidOut {
    /// Columns of a factor, to panels (of a product of 512 rows and more).
    Columns {
        /// Their number.
        count: usize,
        /// Terms of each sum.
        depth: usize,
    },
    /// Windows of an image with lines of so many elements.
    Lines(usize),
}

impl LaidOut {
    /// Whether a CPU does that whose registers hold so many elements.
    pub(super) fn happens(self, lanes: usize) -> bool {
        match self {
            LaidOut::Columns { count, depth } => {
                // Panels of two registers, or of one.
                let width = [2 * lanes, lanes].into_iter().find(|width| count.is_multiple_of(*width));
                width.is_some_and(|width| depth > width)
            }
            LaidOut::Lines(length) => length < lanes / 2,
        }
    }
}

/// One program of the suite.
#[derive(Clone, Debug)]
pub struct Case {
    /// `family/what/sizes`, unique.
    pub name: String,
    /// The program; its entry is `main`.
    pub text: String,
    /// Types, shapes and ranges of the inputs.
    pub inputs: Vec<Input>,
    /// Tolerance to the evaluator's result.
    pub tolerance: Tolerance,
    /// Dispatches of one run, where fusion promises a number.
    pub dispatches: Option<u32>,
    /// Dispatches of one run on a GPU, where fusion promises another number there.
    pub gpu_dispatches: Option<u32>,
    /// What a CPU may lay out by one dispatch more, once for all tasks.
    pub laid_out: Option<LaidOut>,
    /// Copies of one run, where bufferization promises a number.
    pub copies: Option<u32>,
    /// Innermost iterations, for the choice of a quick sample.
    pub work: u64,
}

impl Case {
    /// A case of a program, with no copy and any number of dispatches.
    pub(super) fn new(name: impl Into<String>, program: Program, results: &[&Value]) -> Self {
        let work = program.work();
        let some = |dtype: Dtype| results.iter().any(|r| r.dtype == dtype);
        let narrow = if some(Dtype::F16) { HALF } else { USUAL };
        let tolerance = if some(Dtype::Bf16) { BRAIN } else { narrow };
        let (text, inputs) = program.finish(results);
        Self {
            name: name.into(),
            text,
            inputs,
            tolerance,
            dispatches: None,
            gpu_dispatches: None,
            laid_out: None,
            copies: Some(0),
            work,
        }
    }
    /// A case of text alone.
    pub(super) fn of_text(name: &str, text: &str, inputs: Vec<Input>) -> Self {
        let work = inputs.iter().map(|i| i.shape.iter().product::<usize>() as u64).sum();
        Self {
            name: name.into(),
            text: text.into(),
            inputs,
            tolerance: USUAL,
            dispatches: None,
            gpu_dispatches: None,
            laid_out: None,
            copies: None,
            work,
        }
    }
    /// Promises a number of dispatches.
    pub(super) fn dispatches(self, dispatches: u32) -> Self {
        Self { dispatches: Some(dispatches), ..self }
    }
    /// Promises another number of dispatches on GPUs.
    pub(super) fn on_gpus(self, dispatches: u32) -> Self {
        Self { gpu_dispatches: Some(dispatches), ..self }
    }
    /// Promises a dispatch more on CPUs that lay something out.
    pub(super) fn laid_out(self, what: LaidOut) -> Self {
        Self { laid_out: Some(what), ..self }
    }
    /// Without an expected number of copies.
    pub(super) fn may_copy(self) -> Self {
        Self { copies: None, ..self }
    }
    /// With another tolerance.
    pub(super) fn within(self, absolute: f64, relative: f64) -> Self {
        Self { tolerance: Tolerance { absolute, relative }, ..self }
    }

    /// The first part of the name.
    pub fn family(&self) -> &str {
        self.name.split('/').next().unwrap_or_default()
    }

    /// The inputs of the case, the same on every machine.
    pub fn input_values(&self) -> Vec<HostTensor> {
        let seed =
            self.name.bytes().fold(0xcbf2_9ce4_8422_2325, |h: u64, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
        let mut rng = Rng::new(seed);
        self.inputs.iter().map(|input| input.values(rng.next_u64())).collect()
    }

    /// The results of the program on these inputs, by the evaluator.
    ///
    /// # Errors
    /// The parser's or the evaluator's, as text.
    pub fn reference(&self, inputs: &[HostTensor]) -> Result<Vec<HostTensor>, String> {
        Context::scope(|cx| {
            let module = Module::parse(cx, self.text.as_bytes(), &self.name).map_err(|d| d.to_string())?;
            evaluate(&module, "main", inputs).map_err(|e| e.to_string())
        })
    }
}

/// `2x3x4`.
pub(super) fn by(shape: &[usize]) -> String {
    if shape.is_empty() {
        return "scalar".to_owned();
    }
    shape.iter().map(ToString::to_string).collect::<Vec<_>>().join("x")
}

/// `tensor<4x5xf32>`.
pub(super) fn tensor(shape: &[usize]) -> String {
    crate::text::tensor(Dtype::F32, shape)
}

/// A function `main` of f32 tensors `%0, %1, ..` whose body returns one value of type `result`.
pub(super) fn function(inputs: &[Vec<usize>], result: &[usize], body: &str) -> String {
    let args: Vec<_> = inputs.iter().enumerate().map(|(i, s)| format!("%{i}: {}", tensor(s))).collect();
    format!("func.func @main({}) -> {} {{\n{body}}}\n", args.join(", "), tensor(result))
}

pub(super) fn f32_of(shape: &[usize]) -> Input {
    Input::new(Dtype::F32, shape)
}

/// This number as an index.
pub(super) fn index_of(value: f64) -> Input {
    Input::new(Dtype::Index, &[]).within(value, value + 1.0)
}

pub(super) fn f32_inputs(shapes: &[Vec<usize>]) -> Vec<Input> {
    shapes.iter().map(|s| Input::new(Dtype::F32, s)).collect()
}
