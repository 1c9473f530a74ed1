//! The op suite: one list of cases that every backend runs.
//!
//! A case is a program, a seed for its inputs, a tolerance, and how many dispatches it may take. What its result must be
//! is never written down: the evaluator says it. Backends differ in what they ignore, never in the cases themselves.

mod elementwise;
mod generic;
mod matmul;
mod mlp;

use crate::approx::{Tolerance, compare};
use crate::evaluate::evaluate;
use crate::host_tensor::{Dtype, HostTensor};
use crate::random::Rng;
use monopour_ir::{Context, Module};

/// One program of the suite.
#[derive(Clone, Debug)]
pub struct Case {
    /// `family/what/sizes`, unique.
    pub name: String,
    /// The program; its entry is `main`.
    pub text: String,
    /// Types and shapes of the inputs.
    pub inputs: Vec<(Dtype, Vec<usize>)>,
    /// How close a result in f32 must be to the evaluator's.
    pub tolerance: Tolerance,
    /// Dispatches of one run.
    pub dispatches: u32,
    /// Innermost iterations, for choosing what is quick.
    pub work: u64,
}

impl Case {
    /// The inputs that go with the case, the same on every machine.
    pub fn input_values(&self) -> Vec<HostTensor> {
        let seed =
            self.name.bytes().fold(0xcbf2_9ce4_8422_2325, |h: u64, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
        let mut rng = Rng::new(seed);
        self.inputs.iter().map(|(dtype, shape)| HostTensor::random(*dtype, shape, rng.next_u64())).collect()
    }

    /// What the program means on these inputs.
    ///
    /// # Errors
    /// The parser's or the evaluator's, as text.
    pub fn reference(&self, inputs: &[HostTensor]) -> Result<Vec<HostTensor>, String> {
        let module = Module::parse(Context::new(), self.text.as_bytes(), &self.name).map_err(|d| d.to_string())?;
        evaluate(&module, "main", inputs).map_err(|e| e.to_string())
    }
}

/// What one run cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cost {
    /// Kernel launches.
    pub dispatches: u64,
    /// Copies between buffers or within one.
    pub copies: u64,
    /// Transfers between host and device within the run.
    pub transfers: u64,
    /// Queue submissions; 0 on a CPU.
    pub submits: u64,
    /// Buffers, bind groups and pipelines that a warm run created.
    pub created_when_warm: u64,
    /// Buffers that were alive after the session ended.
    pub leaks: u64,
}

/// What a backend returns for a case.
#[derive(Clone, Debug)]
pub struct Run {
    /// The results.
    pub outputs: Vec<HostTensor>,
    /// What it cost, where the backend counts.
    pub cost: Option<Cost>,
}

/// Something that runs the cases.
pub trait Backend {
    /// Its name in failures.
    fn name(&self) -> &str;
    /// Compiles and runs a case.
    ///
    /// # Errors
    /// Why it could not, as text.
    fn run(&mut self, case: &Case, inputs: &[HostTensor]) -> Result<Run, String>;
    /// Submissions that a run may take.
    fn submits(&self) -> u64;
    /// Cases that are known to fail, each with its reason. One that passes is a failure, so that the list stays true.
    fn ignores(&self) -> &[(&str, &str)] {
        &[]
    }
}

/// What a run of the suite came to.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Cases that did what they must, counted once per backend.
    pub passed: usize,
    /// `backend: case: what went wrong`.
    pub failures: Vec<String>,
    /// `backend: case: reason`.
    pub ignored: Vec<String>,
}

impl Report {
    /// Panics with all failures; also when nothing ran.
    pub fn assert_passed(&self) {
        assert!(
            self.failures.is_empty(),
            "{} failed, {} passed\n{}",
            self.failures.len(),
            self.passed,
            self.failures.join("\n")
        );
        assert!(self.passed > 0, "no case ran");
    }
}

/// All cases.
pub fn all() -> Vec<Case> {
    let mut cases = matmul::cases();
    cases.extend(elementwise::cases());
    cases.extend(generic::cases());
    cases.extend(mlp::cases());
    cases
}

/// The programs that benches time: square products, and a perceptron whose weights are inputs.
pub fn benchmarks() -> Vec<Case> {
    vec![matmul::square(256), matmul::square(512), matmul::square(1024), mlp::large()]
}

/// The cases of a run: all of them, or a sample that is the same every time. Of the many sizes of one chain the sample
/// takes some, of every other family all that are quick.
pub fn selected(full: bool) -> Vec<Case> {
    const QUICK: u64 = 3_000_000;
    const SIZES: usize = 14;
    let mut cases = all();
    if full {
        return cases;
    }
    cases.retain(|c| c.work <= QUICK);
    let (mut sizes, others): (Vec<_>, Vec<_>) = cases.into_iter().partition(|c| c.name.starts_with(matmul::SIZES));
    let mut rng = Rng::new(7);
    while sizes.len() > SIZES {
        sizes.remove(rng.below(sizes.len() as u64) as usize);
    }
    sizes.into_iter().chain(others).collect()
}

/// Runs the cases on the backends: values against the evaluator, and what the run cost against what it may cost.
pub fn run(backends: &mut [Box<dyn Backend>], cases: &[Case]) -> Report {
    let mut report = Report::default();
    for case in cases {
        let inputs = case.input_values();
        let expected = match case.reference(&inputs) {
            Ok(expected) => expected,
            Err(message) => {
                report.failures.push(format!("evaluator: {}: {message}", case.name));
                continue;
            }
        };
        for backend in backends.iter_mut() {
            let outcome = backend.run(case, &inputs).and_then(|run| check(case, &run, &expected, backend.submits()));
            let ignored =
                backend.ignores().iter().find(|(name, _)| *name == case.name).map(|(_, reason)| (*reason).to_owned());
            let at = format!("{}: {}", backend.name(), case.name);
            match (outcome, ignored) {
                (Ok(()), None) => report.passed += 1,
                (Ok(()), Some(reason)) => {
                    report.failures.push(format!("{at}: passes, though it is ignored ({reason})"))
                }
                (Err(_), Some(reason)) => report.ignored.push(format!("{at}: {reason}")),
                (Err(message), None) => report.failures.push(format!("{at}: {message}")),
            }
        }
    }
    report
}

fn check(case: &Case, run: &Run, expected: &[HostTensor], submits: u64) -> Result<(), String> {
    if run.outputs.len() != expected.len() {
        return Err(format!("{} results, expected {}", run.outputs.len(), expected.len()));
    }
    for (i, (got, expected)) in run.outputs.iter().zip(expected).enumerate() {
        compare(got, expected, case.tolerance).map_err(|m| format!("result {i}: {m}"))?;
    }
    let Some(cost) = run.cost else { return Ok(()) };
    let allowed = Cost { dispatches: u64::from(case.dispatches), submits, ..Cost::default() };
    if cost == allowed { Ok(()) } else { Err(format!("it cost {cost:?}, expected {allowed:?}")) }
}

/// `tensor<4x5xf32>`.
fn tensor(shape: &[usize]) -> String {
    let dims: String = shape.iter().map(|d| format!("{d}x")).collect();
    format!("tensor<{dims}f32>")
}

/// A function `main` of f32 tensors `%0, %1, ..` whose body returns one value of type `result`.
fn function(inputs: &[Vec<usize>], result: &[usize], body: &str) -> String {
    let args: Vec<_> = inputs.iter().enumerate().map(|(i, s)| format!("%{i}: {}", tensor(s))).collect();
    format!("func.func @main({}) -> {} {{\n{body}}}\n", args.join(", "), tensor(result))
}

fn f32_inputs(shapes: &[Vec<usize>]) -> Vec<(Dtype, Vec<usize>)> {
    shapes.iter().map(|s| (Dtype::F32, s.clone())).collect()
}
