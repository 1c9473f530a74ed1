//! Our kernels against hand-written ones for a software adapter with subgroups of eight, in turns, by CPU time.
//!
//! The hand-written ones are `shaders/baseline/`; [`template`] unrolls their loops. Each runs as the only dispatch of a program, by
//! the same runtime as ours, and gives the same values.

#[allow(dead_code, reason = "each bench takes a part")]
#[path = "../measure.rs"]
mod measure;
mod products;
mod race;
mod template;
mod trust;

use measure::Output;
use monopour::options::Effort;
use monopour_testkit::HostTensor;
use monopour_testkit::programs::{Size, benchmark};
use products::PRODUCTS;
use race::{Contest, Side};
use std::process::{Command, ExitCode};

/// Disables Mesa's cache of compiled shaders, so that a first run compiles.
const NO_CACHE: (&str, &str) = ("MESA_SHADER_CACHE_DISABLE", "true");
/// The efforts, and what our CPU time may be of a baseline's.
const EFFORTS: [(Effort, &str, f64); 2] = [(Effort::Default, "default", 1.3), (Effort::Max, "max", 1.05)];
/// CPU milliseconds that a first run of a default kernel may take.
const FIRST_LIMIT: f64 = 450.0;

/// A hand-written kernel, and the program that it is one kernel of.
struct Case {
    name: &'static str,
    shader: &'static str,
    parameters: &'static [(&'static str, i64)],
    grid: [u64; 3],
}

const CASES: [Case; 8] = [
    case("matmul_512", include_str!("../../shaders/baseline/matmul.wgsl"), &[("N", 512)], [8, 8, 1]),
    case("matmul_1024", include_str!("../../shaders/baseline/matmul.wgsl"), &[("N", 1024)], [16, 16, 1]),
    case("ew8", include_str!("../../shaders/baseline/ew8.wgsl"), &[], [1024, 1, 1]),
    case("softmax", include_str!("../../shaders/baseline/softmax.wgsl"), &[], [512, 1, 1]),
    case("layernorm", include_str!("../../shaders/baseline/layernorm.wgsl"), &[], [128, 1, 1]),
    case("attn_512", include_str!("../../shaders/baseline/attention.wgsl"), &[], [16, 12, 1]),
    case("conv", include_str!("../../shaders/baseline/conv.wgsl"), &[], [4, 56, 1]),
    case("matvec_4096", include_str!("../../shaders/baseline/matvec.wgsl"), &[], [512, 1, 1]),
];

const fn case(
    name: &'static str,
    shader: &'static str,
    parameters: &'static [(&'static str, i64)],
    grid: [u64; 3],
) -> Case {
    Case { name, shader, parameters, grid }
}

impl Case {
    /// The program's text and inputs.
    fn program(&self) -> (String, Vec<HostTensor>) {
        if let Some(program) = benchmark(self.name, Size::Full) {
            return (program.text, program.inputs);
        }
        let (a, x) = ("tensor<4096x4096xf32>", "tensor<4096xf32>");
        let text = format!(
            "func.func @main(%a: {a}, %x: {x}) -> {x} {{\n  %z = arith.constant 0.0 : f32\n  %e = tensor.empty() : {x}\n  \
             %f = linalg.fill ins(%z : f32) outs(%e : {x}) -> {x}\n  %r = linalg.matvec ins(%a, %x : {a}, {x}) outs(%f : {x}) -> {x}\n  \
             return %r : {x}\n}}\n"
        );
        let ramp = |shape: &[usize]| {
            let values: Vec<f32> = (0..shape.iter().product()).map(|i| (i % 251) as f32 / 125.0 - 1.0).collect();
            HostTensor::from_f32(shape, &values).expect("as many values as the shape says")
        };
        (text, vec![ramp(&[4096, 4096]), ramp(&[4096])])
    }

    fn race(&self, effort: Effort, rounds: usize) -> Result<Contest, String> {
        let wgsl = [include_str!("../../shaders/baseline/pack.wgsl"), &template::expand(self.shader, self.parameters)];
        let (text, inputs) = self.program();
        let device = race::device()?;
        let ours = race::compiled(&device, (self.name, &text), effort)?;
        let theirs = race::hand_written(&ours, wgsl.concat(), self.grid);
        let (mut ours, mut theirs) = (Side::load(&device, ours, &inputs)?, Side::load(&device, theirs, &inputs)?);
        let found = race::race(&mut ours, &mut theirs, rounds)?;
        race::compare(&mut ours, &mut theirs).map_err(|message| format!("{}: {message}", self.name))?;
        Ok(found)
    }
}

fn report(full: bool, only: Option<&str>) -> Result<(String, Vec<String>), String> {
    let (mut out, mut missed) = (Output::default(), vec![]);
    out.place_and_date();
    match race::device() {
        Ok(device) => out.line(&format!("{}.", race::adapter(&device))),
        Err(why) => {
            out.line(&format!("skipped: {why}"));
            return Ok((out.text, missed));
        }
    }
    out.line("");
    for (effort, name, limit) in EFFORTS {
        out.line(&format!("Effort {name}, at most {limit} of the baseline:"));
        out.line("");
        out.line(
            "| program | CPU ms | baseline | ratio of minima | median of ratios | wall ms | baseline | first run, CPU ms | baseline |",
        );
        out.line("|---|---|---|---|---|---|---|---|---|");
        for case in CASES.iter().filter(|case| only.is_none_or(|name| case.name.contains(name))) {
            let found = case.race(effort, if full { 61 } else { 15 })?;
            out.line(&row(case.name, &found));
            if found.ratio() > limit {
                missed.push(format!("{}: {:.2} of the baseline's CPU time, {limit} allowed", case.name, found.ratio()));
            }
            if effort == Effort::Default && found.first_ms[0] > FIRST_LIMIT {
                missed.push(format!(
                    "{}: {:.0} ms for the first run, {FIRST_LIMIT} allowed",
                    case.name, found.first_ms[0]
                ));
            }
        }
        out.line("");
    }
    if PRODUCTS.iter().any(|product| only.is_none_or(|name| product.name.contains(name))) {
        out.line("| product | CPU ms | f32 of 1024 | ratio of minima | median of ratios | bound |");
        out.line("|---|---|---|---|---|---|");
    }
    for product in PRODUCTS.iter().filter(|product| only.is_none_or(|name| product.name.contains(name))) {
        let found = product.race(if full { 31 } else { 9 })?;
        let (ratio, [ours, plain], limit) = (found.ratio(), found.least_ms, product.limit);
        let name = product.name;
        out.line(&format!("| {name} | {ours:.1} | {plain:.1} | {ratio:.2} | {:.2} | {limit} |", found.median));
        if ratio > limit {
            missed.push(format!("{name}: {ratio:.2} of the time of the f32 product of 1024, {limit} allowed"));
        }
    }
    Ok((out.text, missed))
}

fn row(name: &str, found: &Contest) -> String {
    let (ratio, [ours, theirs], wall, first) = (found.ratio(), found.least_ms, found.wall_ms, found.first_ms);
    format!(
        "| {name} | {ours:.2} | {theirs:.2} | {ratio:.2} | {:.2} | {:.2} | {:.2} | {:.0} | {:.0} |",
        found.median, wall[0], wall[1], first[0], first[1]
    )
}

/// Again, without Mesa's cache.
fn without_cache() -> Option<ExitCode> {
    if std::env::var(NO_CACHE.0).is_ok_and(|value| value == NO_CACHE.1) {
        return None;
    }
    let program = std::env::current_exe().ok()?;
    let status = Command::new(program).args(std::env::args().skip(1)).env(NO_CACHE.0, NO_CACHE.1).status();
    Some(if status.is_ok_and(|status| status.success()) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn main() -> ExitCode {
    measure::run(|_| without_cache(), report)
}
