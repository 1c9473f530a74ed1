//! The op suite: one list of cases that every backend runs.
//!
//! A case is a program, ranges for its inputs, a tolerance, and limits on dispatches and copies. Its expected result is the
//! evaluator's. Backends differ in the cases that they ignore, never in the cases themselves.

mod alias;
mod attention;
mod broadcast;
mod carried;
mod case;
mod casts;
mod contract;
mod control;
mod convolution;
mod dynamic;
mod dynamic_windows;
mod edges;
mod elementwise;
mod gather;
mod generic;
mod guards;
mod images;
mod integers;
mod layouts;
mod math;
mod matmul;
mod mlp;
mod packed_blocks;
mod packed_weights;
mod packs;
mod parts;
mod plain;
mod reduce;
mod reshape;
mod rotated;
mod rows;
mod several_results;
mod side_by_side;
mod skinny;
mod slices;
mod tensors;
mod types;
mod vectors;
mod widened;

use crate::approx::{compare, worst_error};
use crate::host_tensor::HostTensor;
use crate::random::Rng;
use case::{BRAIN, HALF};
pub use case::{Case, LaidOut};
pub use rows::{layer_norm, softmax};
use std::collections::BTreeMap;

/// The cost of one run.
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

/// The results of a backend for a case.
#[derive(Clone, Debug)]
pub struct Run {
    /// The results.
    pub outputs: Vec<HostTensor>,
    /// Its cost, where the backend counts.
    pub cost: Option<Cost>,
}

/// A backend of the suite.
pub trait Backend {
    /// Its name in failures.
    fn name(&self) -> &str;
    /// Compiles and runs a case.
    ///
    /// # Errors
    /// Why it could not, as text.
    fn run(&mut self, case: &Case, inputs: &[HostTensor]) -> Result<Run, String>;
    /// Allowed submissions of a run.
    fn submits(&self) -> u64;
    /// Elements of f32 in a register of a CPU; `None` on other devices.
    fn lanes(&self) -> Option<usize> {
        None
    }
    /// Whether a product may be two dispatches: parts of its reduction side by side, and their sum.
    fn cuts_reductions(&self) -> bool {
        false
    }
    /// Cases known to fail, each with its reason; a name that ends in `*` is a prefix. One that passes is a failure, so that
    /// the list stays true.
    fn ignores(&self) -> &[(&str, &str)] {
        &[]
    }
}

/// The outcome of a run of the suite.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Cases that passed, counted once per backend.
    pub passed: usize,
    /// `backend: case: what went wrong`.
    pub failures: Vec<String>,
    /// `backend: case: reason`.
    pub ignored: Vec<String>,
    /// Per family, the number of passed cases and their worst error, relative to `1 + |reference|`.
    pub families: BTreeMap<String, (usize, f64)>,
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

    /// Adds the results of another report.
    pub fn merge(&mut self, other: Report) {
        self.passed += other.passed;
        self.failures.extend(other.failures);
        self.ignored.extend(other.ignored);
        for (family, (count, worst)) in other.families {
            let entry = self.families.entry(family).or_default();
            *entry = (entry.0 + count, entry.1.max(worst));
        }
    }

    fn add(&mut self, case: &Case, error: f64) {
        self.passed += 1;
        // The error of half precision would hide that of single precision.
        let half =
            if case.tolerance == HALF || case.tolerance == BRAIN || case.name.contains("f16") { " (f16)" } else { "" };
        let (count, worst) = self.families.entry(format!("{}{half}", case.family())).or_default();
        *count += 1;
        *worst = worst.max(error);
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for line in &self.ignored {
            writeln!(f, "ignored: {line}")?;
        }
        for (family, (count, worst)) in &self.families {
            writeln!(f, "{family:20} {count:4} cases, worst error {worst:.1e}")?;
        }
        write!(f, "{} cases passed, {} failed, {} ignored", self.passed, self.failures.len(), self.ignored.len())
    }
}

/// All cases.
pub fn all() -> Vec<Case> {
    let families = [
        matmul::cases,
        elementwise::cases,
        generic::cases,
        mlp::cases,
        math::cases,
        integers::cases,
        casts::cases,
        types::cases,
        broadcast::cases,
        reduce::cases,
        rotated::cases,
        rows::cases,
        several_results::cases,
        contract::cases,
        convolution::cases,
        images::cases,
        side_by_side::cases,
        skinny::cases,
        slices::cases,
        reshape::cases,
        gather::cases,
        guards::cases,
        packed_blocks::cases,
        packed_weights::cases,
        packs::cases,
        parts::cases,
        attention::cases,
        control::cases,
        dynamic::cases,
        layouts::cases,
        carried::cases,
        plain::cases,
        dynamic_windows::cases,
        alias::cases,
        edges::cases,
        tensors::cases,
        vectors::cases,
        widened::cases,
    ];
    families.iter().flat_map(|f| f()).collect()
}

/// The cases of a run: all of them, or a fixed sample of quick cases, of each family and of the many sizes of a chain of
/// products.
pub fn selected(full: bool) -> Vec<Case> {
    const QUICK: u64 = 1_000_000;
    const PER_FAMILY: usize = 5;
    let cases = all();
    if full {
        return cases;
    }
    let mut families: BTreeMap<String, Vec<Case>> = BTreeMap::new();
    for case in cases.into_iter().filter(|c| c.work <= QUICK) {
        families.entry(case.family().to_owned()).or_default().push(case);
    }
    let mut rng = Rng::new(7);
    let mut out = vec![];
    for (_, mut family) in families {
        while family.len() > PER_FAMILY {
            family.remove(rng.below(family.len() as u64) as usize);
        }
        out.append(&mut family);
    }
    out
}

/// Runs the cases on the backends: values against the evaluator, cost against the case's limits.
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
            let outcome = backend.run(case, &inputs).and_then(|run| check(case, &run, &expected, &**backend));
            let covers =
                |name: &str| name.strip_suffix('*').map_or(name == case.name, |start| case.name.starts_with(start));
            let ignored =
                backend.ignores().iter().find(|(name, _)| covers(name)).map(|(_, reason)| (*reason).to_owned());
            let at = format!("{}: {}", backend.name(), case.name);
            match (outcome, ignored) {
                (Ok(error), None) => report.add(case, error),
                (Ok(_), Some(reason)) => report.failures.push(format!("{at}: passes, though it is ignored ({reason})")),
                (Err(_), Some(reason)) => report.ignored.push(format!("{at}: {reason}")),
                (Err(message), None) => report.failures.push(format!("{at}: {message}")),
            }
        }
    }
    report
}

/// The worst error of the results, or the failure.
fn check(case: &Case, run: &Run, expected: &[HostTensor], backend: &dyn Backend) -> Result<f64, String> {
    let (submits, lanes) = (backend.submits(), backend.lanes());
    if run.outputs.len() != expected.len() {
        return Err(format!("{} results, expected {}", run.outputs.len(), expected.len()));
    }
    let mut worst = 0f64;
    for (i, (got, expected)) in run.outputs.iter().zip(expected).enumerate() {
        compare(got, expected, case.tolerance).map_err(|m| format!("result {i}: {m}"))?;
        worst = worst.max(worst_error(got, expected));
    }
    let Some(cost) = run.cost else { return Ok(worst) };
    let on_gpu = case.gpu_dispatches.filter(|_| submits > 0);
    let laid_out = case.laid_out.zip(lanes).is_some_and(|(what, lanes)| what.happens(lanes));
    let promised = on_gpu.or(case.dispatches).map(|count| u64::from(count) + u64::from(laid_out));
    let is_cut = |count: u64| backend.cuts_reductions() && (count..=2 * count).contains(&cost.dispatches);
    let allowed = Cost {
        dispatches: promised.filter(|count| !is_cut(*count)).unwrap_or(cost.dispatches),
        copies: case.copies.map_or(cost.copies, u64::from),
        // A run that waits for a scalar submits its commands so far.
        submits: if case.dispatches.is_some() { submits } else { cost.submits },
        ..Cost::default()
    };
    if cost == allowed { Ok(worst) } else { Err(format!("it cost {cost:?}, expected {allowed:?}")) }
}
