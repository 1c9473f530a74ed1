//! Random programs against the evaluator, and without leaks.

use crate::backend::{Monopour, to_runtime};
use crate::host::devices;
use monopour::runtime::{Device, HostForm, Options, Session};
use monopour::{CompileOptions, TargetDescription, compile};
use monopour_ir::{Context, Module};
use monopour_testkit::approx::{Tolerance, compare};
use monopour_testkit::device::full_is_asked_for;
use monopour_testkit::generate_graphs::{self, Features};
use monopour_testkit::random::seeds;
use monopour_testkit::suite::{Backend, selected};
use monopour_testkit::text::Input;
use monopour_testkit::{
    Dtype, EvalError, HostTensor, evaluate_in_type, generate, generate_guards, generate_half_images, generate_images,
    generate_shapes,
};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The allowed error of a result of a type, by its largest finite magnitude.
type Allowed = fn(Dtype, f64) -> Tolerance;

/// All types are exact but f32; devices may flush denormals.
fn tolerance(dtype: Dtype, largest: f64) -> Tolerance {
    let flushed = |exponent: i32| Tolerance { absolute: 2f64.powi(exponent), relative: 0.0 };
    match dtype {
        Dtype::F16 => flushed(-14),
        Dtype::Bf16 => flushed(-126),
        Dtype::F64 => flushed(-1022),
        Dtype::F32 => Tolerance { absolute: 5e-5 * largest, relative: 1e-4 },
        _ => Tolerance::EXACT,
    }
}

type Expected = Result<Vec<HostTensor>, EvalError>;

fn evaluate(text: &str, inputs: &[HostTensor]) -> Result<Expected, String> {
    Context::scope(|cx| {
        let module = Module::parse(cx, text.as_bytes(), "random.mlir").map_err(|d| d.to_string())?;
        Ok(evaluate_in_type(&module, "main", inputs))
    })
}

fn check_program(
    backend: &Monopour,
    (text, inputs): (&str, &[HostTensor]),
    expected: &Expected,
    allowed: Allowed,
) -> Result<(), String> {
    for poison in [false, true] {
        check_compiled(backend, (text, inputs, poison), expected, allowed)
            .map_err(|message| if poison { format!("with poisoned buffers: {message}") } else { message })?;
    }
    Ok(())
}

/// `poison`: whether buffers are filled before their first write and behind their last use.
fn check_compiled(
    backend: &Monopour,
    (text, inputs, poison): (&str, &[HostTensor], bool),
    expected: &Expected,
    allowed: Allowed,
) -> Result<(), String> {
    let targets = vec![backend.target().clone()];
    let options = CompileOptions { targets, verify: true, poison, ..Default::default() };
    let compiled = compile(text.as_bytes(), "random.mlir", &options).map_err(|d| d.to_string())?;
    let run = backend.run_program(compiled.program, inputs);
    if let Err(EvalError::Undefined { what, .. }) = expected {
        // Only host code reports undefined cases.
        let checked = |e: &String| e.starts_with("a check of the program failed");
        return if run.as_ref().is_err_and(checked) { Ok(()) } else { Err(format!("{what} has gone unnoticed")) };
    }
    let (run, expected) = (run?, expected.as_ref().map_err(ToString::to_string)?);
    if run.outputs.len() != expected.len() {
        return Err(format!("{} results, expected {}", run.outputs.len(), expected.len()));
    }
    for (got, expected) in run.outputs.iter().zip(expected) {
        // Products of products: errors grow as values do, so the tolerance is relative to the largest.
        let finite = expected.to_f64().into_iter().filter(|v| v.is_finite());
        let largest = finite.fold(1.0f64, |m, v| m.max(v.abs()));
        compare(got, expected, allowed(got.dtype, largest))?;
    }
    let cost = run.cost.ok_or("no cost")?;
    if cost.leaks + cost.transfers + cost.created_when_warm == 0 { Ok(()) } else { Err(format!("it cost {cost:?}")) }
}

fn check(backend: &Monopour, seeds: Range<u64>, make: impl Fn(u64) -> (String, Vec<Input>)) {
    check_all(std::slice::from_ref(backend), seeds, make, tolerance);
}

/// On several backends, whose results are compared with one run of the evaluator.
fn check_all(backends: &[Monopour], seeds: Range<u64>, make: impl Fn(u64) -> (String, Vec<Input>), allowed: Allowed) {
    let mut failures = vec![];
    let total = seeds.end - seeds.start;
    for seed in seeds {
        let (text, inputs) = make(seed);
        let values: Vec<_> = inputs.iter().zip(seed..).map(|(input, s)| input.values(s)).collect();
        let expected = evaluate(&text, &values).unwrap_or_else(|message| panic!("seed {seed}: {message}\n{text}"));
        for backend in backends {
            let run = || check_program(backend, (&text, &values), &expected, allowed);
            if let Err(message) = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| Err("panicked".to_owned())) {
                failures.push(format!("{}: seed {seed}: {message}\n{text}", backend.name()));
            }
        }
    }
    let names: Vec<_> = backends.iter().map(Backend::name).collect();
    println!("{}: {total} random programs, {} wrong", names.join(", "), failures.len());
    assert!(failures.is_empty(), "{} failed\n{}", failures.len(), failures.join("\n"));
}

/// Small perceptron-like programs: products and elementwise ops on shared destinations.
fn product_program(seed: u64) -> (String, Vec<Input>) {
    let text = generate::program(seed, 6);
    let module = Module::parse(Context::new(), text.as_bytes(), "random.mlir").expect("a generated program parses");
    let (types, _) = module.symbol("main").and_then(|f| f.function_type()).expect("an entry");
    let shape =
        |t: &monopour_ir::Type| t.shape().unwrap_or_default().into_iter().map(|d| d as usize).collect::<Vec<_>>();
    (text, types.iter().map(|t| Input::new(Dtype::F32, &shape(t))).collect())
}

/// The number of ops follows from the seed, so that a short graph shows what a long one hides.
fn graph(seed: u64) -> (String, Vec<Input>) {
    generate_graphs::graph(seed, 2 + (seed % 7) as usize)
}

/// The host function as native code and as data: equal bits, equal counts, or the same error. `programs` have a name, a text,
/// and inputs.
fn check_forms(
    (device, target): &(Device, TargetDescription),
    programs: impl Iterator<Item = (String, String, Vec<HostTensor>)>,
) {
    let options = CompileOptions { targets: vec![target.clone()], ..Default::default() };
    let mut failures = vec![];
    let (mut values, mut errors) = (0, 0);
    for (name, text, inputs) in programs {
        let inputs: Vec<_> = inputs.iter().map(to_runtime).collect();
        let program =
            compile(text.as_bytes(), "random.mlir", &options).unwrap_or_else(|d| panic!("{d}\n{text}")).program;
        let program = Arc::new(program);
        let run = |host: HostForm| {
            let options = Options { threads: 1, host, ..Options::default() };
            let mut session =
                Session::load(device, program.clone(), &options).unwrap_or_else(|e| panic!("{e}\n{text}"));
            let results = session.run(&inputs).map_err(|error| format!("{}: {error}", error.code()));
            (results, session.stats().counts)
        };
        let (native, data) = (run(HostForm::Native), run(HostForm::Data));
        *if native.0.is_ok() { &mut values } else { &mut errors } += 1;
        if native != data {
            failures.push(format!("{name}: {native:?}\n{data:?}\n{text}"));
        }
    }
    println!("programs in both forms: {values} with values, {errors} ended, {} differ", failures.len());
    assert!(failures.is_empty(), "{} differ\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn both_forms_of_the_host_function_agree_on_random_programs() {
    let made = |make: &dyn Fn(u64) -> (String, Vec<Input>), seed: u64| {
        let (text, inputs) = make(seed);
        let inputs = inputs.iter().zip(seed..).map(|(input, s)| input.values(s)).collect();
        (format!("seed {seed}"), text, inputs)
    };
    for device in &devices() {
        let all = if device.0.description().is_some() { 1000 } else { 10_000 };
        check_forms(device, seeds(8, all).map(|seed| made(&guarded, seed)));
        check_forms(device, seeds(8, all).map(|seed| made(&wide_graph(Features::EVERYTHING), seed)));
    }
}

/// Some cases of the sample, or all cases.
#[test]
fn both_forms_of_the_host_function_agree_on_the_op_suite() {
    let full = full_is_asked_for();
    for device in &devices() {
        let cases = selected(full).into_iter().step_by(if full { 1 } else { 8 });
        check_forms(device, cases.map(|case| (case.name.clone(), case.text.clone(), case.input_values())));
    }
}

/// The types of WebGPU, and those packed into its words.
const PORTABLE: &[Dtype] = &[
    Dtype::Bf16,
    Dtype::Int(1),
    Dtype::Int(8),
    Dtype::Int(16),
    Dtype::Int(32),
    Dtype::Unsigned(8),
    Dtype::Unsigned(16),
    Dtype::Unsigned(32),
];

/// As [`graph`], with dynamic sizes and other types.
fn wide_graph(features: Features) -> impl Fn(u64) -> (String, Vec<Input>) {
    move |seed| generate_graphs::graph_with(seed, 4 + (seed % 13) as usize, features)
}

/// Indices out of range, divisors of zero, and slices at dynamic offsets.
fn guarded(seed: u64) -> (String, Vec<Input>) {
    generate_guards::program(seed, 2 + (seed % 9) as usize)
}

#[test]
fn random_guards_are_right_on_the_cpu() {
    check(&Monopour::cpu(), seeds(25, 1000), guarded);
}

#[test]
fn random_guards_are_right_on_a_gpu() {
    if let Some(gpu) = Monopour::gpu() {
        check(&gpu, seeds(25, 1000), guarded);
    }
}

/// Networks of convolutions, long enough that images change their layout.
fn images(seed: u64) -> (String, Vec<Input>) {
    generate_images::network(seed, 3 + (seed % 9) as usize)
}

#[test]
fn random_images_are_right_on_the_cpu() {
    check_all(&[Monopour::cpu()], seeds(20, 1000), images, tolerance);
}

/// Batches of any size, as most exported models have them.
#[test]
fn random_batches_of_images_are_right_on_the_cpu() {
    let batches = |seed: u64| generate_images::network_of_batches(seed, 3 + (seed % 9) as usize);
    check_all(&[Monopour::cpu()], seeds(12, 1000), batches, tolerance);
}

/// Their first loop and another one are one dimension of the grid.
#[test]
fn random_batches_of_images_are_right_on_the_gpu() {
    let batches = |seed: u64| generate_images::network_of_batches(seed, 3 + (seed % 9) as usize);
    if let Some(gpu) = Monopour::gpu() {
        check_all(&[gpu], seeds(3, 25), batches, tolerance);
    }
}

/// The last layer of a classifier in f16, on a batch of any size: sums of another type than the results lie on a task's stack.
#[test]
fn layers_of_half_precision_take_batches_of_any_size() {
    let layer = |seed: u64| {
        let map = |to: &str| format!("affine_map<(n, o, k) -> ({to})>");
        let maps = ["n, k", "k, o", "n, o"].map(map).join(", ");
        let same = ["affine_map<(n, o) -> (n, o)>"; 2].join(", ");
        let text = format!(
            "func.func @main(%x: tensor<?x32xf16>, %w: tensor<32x1000xf16>) -> tensor<?x1000xf16> {{
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x32xf16>
  %z = arith.constant 0.0 : f32
  %e = tensor.empty(%n) : tensor<?x1000xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<?x1000xf32>) -> tensor<?x1000xf32>
  %s = linalg.generic {{indexing_maps = [{maps}], iterator_types = [\"parallel\", \"parallel\", \"reduction\"]}}
      ins(%x, %w : tensor<?x32xf16>, tensor<32x1000xf16>) outs(%f : tensor<?x1000xf32>) {{
  ^bb0(%a: f16, %b: f16, %o: f32):
    %c = arith.extf %a : f16 to f32
    %d = arith.extf %b : f16 to f32
    %m = arith.mulf %c, %d : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  }} -> tensor<?x1000xf32>
  %h = tensor.empty(%n) : tensor<?x1000xf16>
  %r = linalg.generic {{indexing_maps = [{same}], iterator_types = [\"parallel\", \"parallel\"]}}
      ins(%s : tensor<?x1000xf32>) outs(%h : tensor<?x1000xf16>) {{
  ^bb0(%a: f32, %o: f16):
    %t = arith.truncf %a : f32 to f16
    linalg.yield %t : f16
  }} -> tensor<?x1000xf16>
  return %r : tensor<?x1000xf16>
}}\n"
        );
        let batch = [0, 1, 5, 130][seed as usize];
        (text, vec![Input::new(Dtype::F16, &[batch, 32]), Input::new(Dtype::F16, &[32, 1000])])
    };
    let allowed: Allowed = |_, largest| Tolerance { absolute: 2e-3 * largest, relative: 0.0 };
    let backends: Vec<Monopour> = [Some(Monopour::cpu()), Monopour::gpu()].into_iter().flatten().collect();
    check_all(&backends, 0..4, layer, allowed);
}

/// Sums of f32 in another order may be rounded to the other neighbour of f16, and what is computed of them.
#[test]
fn random_images_of_half_precision_are_right_on_the_cpu() {
    let allowed: Allowed = |_, largest| Tolerance { absolute: 2e-3 * largest, relative: 0.0 };
    check_all(&[Monopour::cpu()], seeds(4, 300), generate_half_images::network, allowed);
}

/// One op at a time, of any shape, type and values.
fn check_shapes(backends: &[Monopour]) {
    check_all(backends, seeds(25, 3000), generate_shapes::program, generate_shapes::tolerance);
}

/// Every kind of program on CPUs that are not this machine's.
fn check_everything(cpus: &[Monopour]) {
    if cpus.is_empty() {
        return;
    }
    check_shapes(cpus);
    check_all(cpus, seeds(3, 1000), wide_graph(Features::EVERYTHING), tolerance);
    check_all(cpus, seeds(3, 300), graph, tolerance);
    check_all(cpus, seeds(3, 300), guarded, tolerance);
    check_all(cpus, seeds(3, 300), images, tolerance);
    check_all(cpus, seeds(3, 100), product_program, tolerance);
}

#[test]
fn random_programs_are_right_on_cpus_of_fewer_features() {
    check_everything(&Monopour::lower_cpus());
}

#[test]
fn random_programs_are_right_on_aarch64() {
    check_everything(&Monopour::all_aarch64());
}

#[test]
fn random_shapes_are_right_on_the_cpu() {
    check_shapes(&[Monopour::cpu()]);
}

#[test]
fn random_shapes_are_right_on_a_gpu() {
    if let Some(gpu) = Monopour::gpu() {
        check_shapes(&[gpu]);
    }
}

/// The next program without types of 64 bits; those of attributes are none of the program.
fn portable_shape(seed: u64) -> (String, Vec<Input>) {
    let is_portable = |text: &str| {
        let text = ["tensor<1xi64>", "tensor<2xi64>"].iter().fold(text.to_owned(), |text, ty| text.replace(ty, ""));
        !text.contains("f64") && !text.contains("i64")
    };
    let mut programs = (0..).map(|turn| generate_shapes::program(seed + turn * 1_000_000));
    programs.find(|(text, _)| is_portable(text)).expect("there are many")
}

#[test]
fn random_shapes_are_right_on_a_portable_gpu() {
    if let Some(gpu) = Monopour::portable() {
        check_all(&[gpu], seeds(15, 3000), portable_shape, generate_shapes::tolerance);
    }
}

#[test]
fn random_products_are_right_on_the_cpu() {
    check(&Monopour::cpu(), seeds(8, 300), product_program);
}

#[test]
fn random_products_are_right_on_a_gpu() {
    if let Some(gpu) = Monopour::gpu() {
        check(&gpu, seeds(8, 300), product_program);
    }
}

#[test]
fn random_graphs_are_right_on_the_cpu() {
    check(&Monopour::cpu(), seeds(25, 1000), graph);
}

#[test]
fn random_graphs_are_right_on_a_gpu() {
    if let Some(gpu) = Monopour::gpu() {
        check(&gpu, seeds(25, 1000), graph);
    }
}

#[test]
fn random_graphs_of_everything_are_right_on_the_cpu() {
    check(&Monopour::cpu(), seeds(25, 3000), wide_graph(Features::EVERYTHING));
}

#[test]
fn random_graphs_of_everything_are_right_on_a_gpu() {
    if let Some(gpu) = Monopour::gpu() {
        check(&gpu, seeds(25, 3000), wide_graph(Features::EVERYTHING));
    }
}

#[test]
fn random_graphs_of_everything_are_right_on_a_portable_gpu() {
    if let Some(portable) = Monopour::portable() {
        check(&portable, seeds(15, 3000), wide_graph(Features { types: PORTABLE, ..Features::EVERYTHING }));
    }
}
