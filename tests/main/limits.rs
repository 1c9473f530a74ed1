//! Limits of a device, exactly met and exceeded by one: right values, in another way where one more does not fit, or a diagnostic.

use crate::backend::Monopour;
use crate::host::{devices, f32s, ramp, raw};
use monopour::program::{CpuTarget, DType, GpuDescription, GpuRequirements, Kernel, MAX_NUMBER_BYTES, Program, Target};
use monopour::runtime::{HostTensor, Model, Options};
use monopour::{CompileOptions, Diagnostics, TargetDescription, compile};
use monopour_testkit::HostTensor as Values;
use monopour_testkit::device::full_is_asked_for;
use monopour_testkit::suite::{Backend, Case, Run, run, selected};
use std::fmt::Write;
use std::sync::Arc;

/// The GPU as it is, and with the limits of every WebGPU device.
fn backends() -> Vec<Monopour> {
    [Monopour::gpu(), Monopour::portable()].into_iter().flatten().collect()
}

fn description(backend: &Monopour) -> GpuDescription {
    let TargetDescription::Gpu(description) = backend.target() else { unreachable!("a GPU") };
    description.clone()
}

fn compiled(text: &str, description: &GpuDescription) -> Result<Program, Diagnostics> {
    let targets = vec![TargetDescription::Gpu(description.clone())];
    let options = CompileOptions { targets, verify: true, ..Default::default() };
    compile(text.as_bytes(), "limits.mlir", &options).map(|compiled| compiled.program)
}

fn requirements(program: &Program) -> &GpuRequirements {
    let Target::Gpu(target) = &program.variants[0].target else { unreachable!("it was compiled for a GPU") };
    &target.requires
}

/// Runs it and compares the first result.
fn check(backend: &Monopour, text: &str, program: Program, inputs: &[HostTensor], expected: &[f32]) {
    let results = backend.results(program, inputs, 2).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let found = results[0].to_f32().expect("floats");
    assert_eq!(found.len(), expected.len());
    for (at, (f, e)) in found.iter().zip(expected).enumerate() {
        assert!((f - e).abs() <= 1e-5 * e.abs().max(1.0), "element {at}: {f}, expected {e}\n{text}");
    }
}

/// The code of the one error.
fn refused(text: &str, description: &GpuDescription) -> (&'static str, String) {
    let diagnostics = compiled(text, description).map(|_| ()).expect_err(text);
    (diagnostics.0[0].code, diagnostics.0[0].message.clone())
}

/// `n` products of a row of two and a column of two.
fn products(n: &str) -> String {
    let (x, y, z) = (format!("tensor<{n}x1x2xf32>"), format!("tensor<{n}x2x1xf32>"), format!("tensor<{n}x1x1xf32>"));
    let (size, sizes) = match n {
        "?" => (format!("  %c0 = arith.constant 0 : index\n  %n = tensor.dim %x, %c0 : {x}\n"), "%n"),
        _ => (String::new(), ""),
    };
    format!(
        "func.func @main(%x: {x}, %y: {y}) -> {z} {{\n  %zero = arith.constant 0.0 : f32\n{size}  %e = tensor.empty({sizes}) : {z}\n  \
         %f = linalg.fill ins(%zero : f32) outs(%e : {z}) -> {z}\n  \
         %r = linalg.batch_matmul ins(%x, %y : {x}, {y}) outs(%f : {z}) -> {z}\n  return %r : {z}\n}}"
    )
}

#[test]
fn workgroups_of_a_dimension() {
    for backend in backends() {
        let device = description(&backend);
        let most = device.limits.max_workgroups_per_dimension as usize;
        let dynamic = compiled(&products("?"), &device).unwrap_or_else(|d| panic!("{d}"));
        for n in [most, most + 1] {
            let values = |count: usize| (0..count).map(|i| (i % 251) as f32 - 125.0).collect::<Vec<f32>>();
            let (x, y) = (values(2 * n), values(2 * n + 3)[3..].to_vec());
            let expected: Vec<f32> = (0..n).map(|i| x[2 * i] * y[2 * i] + x[2 * i + 1] * y[2 * i + 1]).collect();
            let inputs = [f32s(&[n as u64, 1, 2], &x), f32s(&[n as u64, 2, 1], &y)];
            let text = products(&n.to_string());
            let fixed = compiled(&text, &device).unwrap_or_else(|d| panic!("{d}"));
            check(&backend, &text, fixed, &inputs, &expected);
            check(&backend, "dynamic sizes", dynamic.clone(), &inputs, &expected);
        }
    }
}

/// One op that adds this many tensors.
fn sum_of(inputs: usize) -> String {
    let t = "tensor<40xf32>";
    let names = |prefix: &str, suffix: &str| {
        (0..inputs).map(|i| format!("%{prefix}{i}{suffix}")).collect::<Vec<_>>().join(", ")
    };
    let (maps, types) = (vec!["affine_map<(i) -> (i)>"; inputs + 1].join(", "), vec![t; inputs].join(", "));
    let mut body = String::from("  %t0 = arith.addf %a0, %a1 : f32\n");
    for i in 2..inputs {
        writeln!(body, "  %t{} = arith.addf %t{}, %a{i} : f32", i - 1, i - 2).expect("a string takes all text");
    }
    format!(
        "func.func @main({}) -> {t} {{\n  %e = tensor.empty() : {t}\n  \
         %r = linalg.generic {{indexing_maps = [{maps}], iterator_types = [\"parallel\"]}} ins({} : {types}) outs(%e : {t}) {{\n  \
         ^bb0({}, %o: f32):\n{body}  linalg.yield %t{} : f32\n  }} -> {t}\n  return %r : {t}\n}}",
        names("x", &format!(": {t}")),
        names("x", ""),
        names("a", ": f32"),
        inputs - 2,
    )
}

/// As many ops, each of which adds one tensor more.
fn sums_in_turn(inputs: usize) -> String {
    let t = "tensor<40xf32>";
    let args: Vec<String> = (0..inputs).map(|i| format!("%x{i}: {t}")).collect();
    let mut body = format!("  %s0 = arith.addf %x0, %x1 : {t}\n");
    for i in 2..inputs {
        writeln!(body, "  %s{} = arith.addf %s{}, %x{i} : {t}", i - 1, i - 2).expect("a string takes all text");
    }
    format!("func.func @main({}) -> {t} {{\n{body}  return %s{} : {t}\n}}", args.join(", "), inputs - 2)
}

#[test]
fn storage_buffers_of_a_kernel() {
    for backend in backends() {
        let device = description(&backend);
        let most = device.limits.max_storage_buffers as usize;
        let tensor = |i: usize| ramp(40).iter().map(|v| v + i as f32).collect::<Vec<f32>>();
        let inputs: Vec<HostTensor> = (0..=most).map(|i| f32s(&[40], &tensor(i))).collect();
        let sum = |n: usize| (0..40).map(|at| (0..n).map(|i| tensor(i)[at]).sum()).collect::<Vec<f32>>();
        // The result takes one.
        let text = sum_of(most - 1);
        let program = compiled(&text, &device).unwrap_or_else(|d| panic!("{d}"));
        assert_eq!(requirements(&program).limits.max_storage_buffers as usize, most);
        check(&backend, &text, program, &inputs[..most - 1], &sum(most - 1));
        let expected = format!("the kernel needs {} storage buffers, the device offers {most}", most + 1);
        assert_eq!(refused(&sum_of(most), &device), ("G0008", expected));
        // Several ops are several dispatches then.
        for n in [most - 1, most, most + 1] {
            let text = sums_in_turn(n);
            let program = compiled(&text, &device).unwrap_or_else(|d| panic!("{d}"));
            check(&backend, &text, program, &inputs[..n], &sum(n));
        }
    }
}

/// A product of 16x16 matrices to which as many ops add these tensors.
fn product_plus(added: usize) -> String {
    let t = "tensor<16x16xf32>";
    let args: String = (0..added).map(|i| format!(", %y{i}: {t}")).collect();
    let mut body = String::new();
    for i in 0..added {
        let before = if i == 0 { "p".to_owned() } else { format!("s{}", i - 1) };
        writeln!(body, "  %s{i} = arith.addf %{before}, %y{i} : {t}").expect("a string takes all text");
    }
    format!(
        "func.func @main(%a: {t}, %b: {t}{args}) -> {t} {{\n  %z = arith.constant 0.0 : f32\n  %e = tensor.empty() : {t}\n  \
         %f = linalg.fill ins(%z : f32) outs(%e : {t}) -> {t}\n  %p = linalg.matmul ins(%a, %b : {t}, {t}) outs(%f : {t}) -> {t}\n\
         {body}  return %s{} : {t}\n}}",
        added - 1
    )
}

/// A product and what finishes it are one dispatch as far as the buffers allow.
#[test]
fn storage_buffers_of_a_product() {
    for backend in backends() {
        let device = description(&backend);
        let most = device.limits.max_storage_buffers as usize;
        let (a, b) = (ramp(256), ramp(300)[44..].to_vec());
        let product = |at: usize| (0..16).map(|k| a[at / 16 * 16 + k] * b[k * 16 + at % 16]).sum::<f32>();
        for added in [most - 3, most - 2, most + 1] {
            let text = product_plus(added);
            let program = compiled(&text, &device).unwrap_or_else(|d| panic!("{d}"));
            let is_one = program.variants[0].kernels.len() == 1;
            assert_eq!(is_one, added == most - 3, "{added} added");
            let mut inputs = vec![f32s(&[16, 16], &a), f32s(&[16, 16], &b)];
            inputs.extend((0..added).map(|i| f32s(&[16, 16], &[i as f32; 256])));
            let total: f32 = (0..added).map(|i| i as f32).sum();
            let expected: Vec<f32> = (0..256).map(|at| product(at) + total).collect();
            check(&backend, &text, program, &inputs, &expected);
        }
    }
}

/// Rows of 48 divided by their sums, and as many ops, each of which adds one tensor more.
fn rows_plus(added: usize) -> String {
    let (t, rows) = ("tensor<12x48xf32>", "tensor<12xf32>");
    let args: String = (0..added).map(|i| format!(", %y{i}: {t}")).collect();
    let (all, row) = ("affine_map<(i, j) -> (i, j)>", "affine_map<(i, j) -> (i)>");
    let mut body = format!(
        "  %z = arith.constant 0.0 : f32\n  %er = tensor.empty() : {rows}\n  %e = tensor.empty() : {t}\n  \
         %f = linalg.fill ins(%z : f32) outs(%er : {rows}) -> {rows}\n  \
         %s = linalg.generic {{indexing_maps = [{all}, {row}], iterator_types = [\"parallel\", \"reduction\"]}} ins(%x : {t}) outs(%f : {rows}) {{\n  \
         ^bb0(%a: f32, %o: f32):\n  %r = arith.addf %o, %a : f32\n  linalg.yield %r : f32\n  }} -> {rows}\n  \
         %d = linalg.generic {{indexing_maps = [{all}, {row}, {all}], iterator_types = [\"parallel\", \"parallel\"]}} ins(%x, %s : {t}, {rows}) outs(%e : {t}) {{\n  \
         ^bb0(%a: f32, %b: f32, %o: f32):\n  %r = arith.divf %a, %b : f32\n  linalg.yield %r : f32\n  }} -> {t}\n"
    );
    for i in 0..added {
        let before = if i == 0 { "d".to_owned() } else { format!("s{}", i - 1) };
        writeln!(body, "  %s{i} = arith.addf %{before}, %y{i} : {t}").expect("a string takes all text");
    }
    format!("func.func @main(%x: {t}{args}) -> {t} {{\n{body}  return %s{} : {t}\n}}", added - 1)
}

/// Rows and what is done with them are one dispatch as far as the buffers allow.
#[test]
fn storage_buffers_of_rows() {
    for backend in backends() {
        let device = description(&backend);
        let most = device.limits.max_storage_buffers as usize;
        let x: Vec<f32> = ramp(576).iter().map(|v| v.abs() + 1.0).collect();
        let sums: Vec<f32> = x.chunks(48).map(|row| row.iter().sum()).collect();
        for added in [most - 2, most - 1, most + 3] {
            let text = rows_plus(added);
            let program = compiled(&text, &device).unwrap_or_else(|d| panic!("{d}"));
            let kernels = program.variants[0].kernels.len();
            // The rows, and the result.
            assert_eq!(kernels == 1, added == most - 2, "{added} added: {kernels} kernels");
            let bound = requirements(&program).limits.max_storage_buffers as usize;
            assert!(bound <= most, "{added} added: {bound} buffers");
            let mut inputs = vec![f32s(&[12, 48], &x)];
            inputs.extend((0..added).map(|i| f32s(&[12, 48], &[i as f32; 576])));
            let total: f32 = (0..added).map(|i| i as f32).sum();
            let expected: Vec<f32> = (0..576).map(|at| x[at] / sums[at / 48] + total).collect();
            check(&backend, &text, program, &inputs, &expected);
        }
    }
}

/// Adds this many numbers to each element.
fn plus_numbers(numbers: usize) -> String {
    let t = "tensor<8xf32>";
    let args: String = (0..numbers).map(|i| format!(", %n{i}: f32")).collect();
    let mut body = String::from("  %t0 = arith.addf %a, %n0 : f32\n");
    for i in 1..numbers {
        writeln!(body, "  %t{i} = arith.addf %t{}, %n{i} : f32", i - 1).expect("a string takes all text");
    }
    format!(
        "func.func @main(%x: {t}{args}) -> {t} {{\n  %e = tensor.empty() : {t}\n  \
         %r = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = [\"parallel\"]}} ins(%x : {t}) outs(%e : {t}) {{\n  \
         ^bb0(%a: f32, %o: f32):\n{body}  linalg.yield %t{} : f32\n  }} -> {t}\n  return %r : {t}\n}}",
        numbers - 1
    )
}

#[test]
fn immediates_and_numbers_of_a_kernel() {
    for (at, backend) in backends().into_iter().enumerate() {
        let device = description(&backend);
        let (immediates, buffer) = (device.limits.max_immediate_bytes as usize / 4, MAX_NUMBER_BYTES as usize / 4);
        // So many take drivers long to compile.
        let most = if at == 0 { buffer } else { immediates };
        for n in [immediates, immediates + 1, most].into_iter().filter(|n| *n > 0) {
            let text = plus_numbers(n);
            let program = compiled(&text, &device).unwrap_or_else(|d| panic!("{d}"));
            let Kernel::Gpu(kernel) = &program.variants[0].kernels[0] else {
                unreachable!("it was compiled for a GPU")
            };
            assert_eq!((kernel.number_bytes() as usize, kernel.takes_number_buffer()), (4 * n, n > immediates));
            let number = |i: usize| (i % 5) as f32 - 2.0;
            let total: f32 = (0..n).map(number).sum();
            let mut inputs = vec![f32s(&[8], &ramp(8))];
            inputs.extend((0..n).map(|i| raw(DType::F32, &[], &number(i).to_le_bytes())));
            check(&backend, "numbers", program, &inputs, &ramp(8).iter().map(|v| v + total).collect::<Vec<_>>());
        }
        let expected =
            format!("the kernel needs {} bytes of scalars, the device offers {MAX_NUMBER_BYTES}", 4 * buffer + 4);
        assert_eq!(refused(&plus_numbers(buffer + 1), &device), ("G0008", expected));
    }
}

/// The suite on a device with as much workgroup memory as a case takes on one with more, or with less.
struct Confined {
    gpu: Monopour,
    /// Bytes that are missing.
    less: u32,
}

impl Backend for Confined {
    fn name(&self) -> &str {
        "gpu:confined"
    }

    fn submits(&self) -> u64 {
        1
    }

    fn run(&mut self, case: &Case, inputs: &[Values]) -> Result<Run, String> {
        let mut description = description(&self.gpu);
        let wanted = shared(&compiled(&case.text, &description).map_err(|d| d.to_string())?);
        description.limits.max_workgroup_storage_bytes = wanted - self.less;
        let program = compiled(&case.text, &description).map_err(|d| d.to_string())?;
        let taken = shared(&program);
        // The cost model is cautious about these.
        let is_cautious = ["attention", "convolution", "images"].iter().any(|class| case.name.contains(class));
        if taken > wanted - self.less || (self.less == 0 && taken < wanted && !is_cautious) {
            return Err(format!("{taken} bytes of workgroup memory, {wanted} less {} are there", self.less));
        }
        // The suite's counts are those of a device with more.
        self.gpu.run_program(program, inputs).map(|run| Run { cost: None, ..run })
    }
}

fn shared(program: &Program) -> u32 {
    requirements(program).limits.max_workgroup_storage_bytes
}

/// Every case that takes workgroup memory, in as much as it takes, and in less.
#[test]
fn workgroup_memory_of_a_kernel() {
    let confined = |less: u32| Monopour::portable().map(|gpu| Box::new(Confined { gpu, less }) as Box<dyn Backend>);
    let mut backends: Vec<_> = [0, 1].into_iter().filter_map(confined).collect();
    let takes =
        |case: &Case| compiled(&case.text, &GpuDescription::portable()).is_ok_and(|program| shared(&program) > 0);
    let full = full_is_asked_for();
    let cases: Vec<_> = selected(full).into_iter().filter(takes).step_by(if full { 1 } else { 4 }).collect();
    assert!(cases.len() > 10, "{} cases", cases.len());
    if !backends.is_empty() {
        let report = run(&mut backends, &cases);
        println!("{report}");
        report.assert_passed();
    }
}

/// `count` sums of columns, of so many factors each, in one kernel: it takes as much workgroup memory as there is.
fn column_sums(count: usize) -> String {
    let (x, y) = ("tensor<512x256xf32>", "tensor<256xf32>");
    let results = vec![y; count].join(", ");
    let maps = vec!["affine_map<(i, j) -> (j)>"; count].join(", ");
    let list =
        |prefix: &str, suffix: &str| (0..count).map(|i| format!("%{prefix}{i}{suffix}")).collect::<Vec<_>>().join(", ");
    let mut body = String::new();
    for i in 0..count {
        writeln!(body, "  %c{i} = arith.constant {i}.0 : f32\n  %p{i} = arith.mulf %a, %c{i} : f32\n  %t{i} = arith.addf %p{i}, %o{i} : f32")
            .expect("a string takes all text");
    }
    let types = vec!["f32"; count].join(", ");
    let inits = vec!["%f"; count].join(", ");
    let names = (0..count).map(|i| format!("%r#{i}")).collect::<Vec<_>>().join(", ");
    format!(
        "func.func @main(%x: {x}) -> ({results}) {{\n  %z = arith.constant 0.0 : f32\n  %e = tensor.empty() : {y}\n  \
         %f = linalg.fill ins(%z : f32) outs(%e : {y}) -> {y}\n  \
         %r:{count} = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, {maps}], iterator_types = [\"reduction\", \"parallel\"]}} ins(%x : {x}) outs({inits} : {results}) {{\n  \
         ^bb0(%a: f32, {}):\n{body}  linalg.yield {} : {types}\n  }} -> ({results})\n  return {names} : {results}\n}}",
        list("o", ": f32"),
        list("t", ""),
    )
}

/// What is compiled for 48 KiB is not taken where there are 32, and a variant for less is.
#[test]
fn artifacts_for_more_workgroup_memory() {
    let Some(backend) = Monopour::gpu() else { return };
    let device = description(&backend);
    let with = |kib: u32| {
        let mut description = GpuDescription::portable();
        description.limits.max_workgroup_storage_bytes = kib << 10;
        description.limits.max_storage_buffers = device.limits.max_storage_buffers;
        description.name = format!("{kib} KiB");
        TargetDescription::Gpu(description)
    };
    let text = column_sums(11);
    let compiled = |targets: Vec<TargetDescription>| {
        let options = CompileOptions { targets, verify: true, ..Default::default() };
        compile(text.as_bytes(), "limits.mlir", &options).unwrap_or_else(|d| panic!("{d}")).program
    };
    let offered = device.limits.max_workgroup_storage_bytes;
    let large = compiled(vec![with(48)]);
    let taken = shared(&large);
    assert!(taken > offered && taken <= 48 << 10, "{taken} of {offered}");
    let error = backend.results(large, &[], 1).unwrap_err();
    assert!(error.contains(&format!("workgroup memory {taken} (the device offers {offered})")), "{error}");
    let both = compiled(vec![with(48), with(offered >> 10)]);
    let values: Vec<f32> = (0..512 * 256).map(|i| ((i / 256 * 7 + i % 256) % 23) as f32 - 11.0).collect();
    let column = |j: usize| (0..512).map(|i| values[i * 256 + j]).sum::<f32>();
    let inputs = [f32s(&[512, 256], &values)];
    let results = backend.results(both, &inputs, 1).unwrap_or_else(|e| panic!("{e}"));
    for (factor, found) in results.iter().enumerate() {
        let expected: Vec<f32> = (0..256).map(|j| column(j) * factor as f32).collect();
        assert_eq!(found.to_f32().expect("floats"), expected, "sum {factor}");
    }
}

/// Of several variants that fit, the one for the device runs, whichever comes first.
#[test]
fn the_best_variant_that_fits_is_loaded() {
    for (device, target) in devices() {
        let label = |program: &Arc<Program>| {
            let model = Model::load(&device, program.clone(), &Options::default()).unwrap_or_else(|e| panic!("{e}"));
            model.variant().target.label()
        };
        let plain = match &target {
            TargetDescription::Gpu(_) => TargetDescription::Gpu(GpuDescription::portable()),
            TargetDescription::Cpu(_) => TargetDescription::Cpu(CpuTarget::parse("generic").expect("it is a name")),
        };
        for targets in [vec![plain.clone(), target.clone()], vec![target.clone(), plain]] {
            let options = CompileOptions { targets, ..Default::default() };
            let program = compile(products("64").as_bytes(), "limits.mlir", &options).unwrap_or_else(|d| panic!("{d}"));
            let own = match &target {
                TargetDescription::Gpu(gpu) => format!("gpu:{}", gpu.name),
                TargetDescription::Cpu(cpu) => format!("cpu:{}", cpu.cpu),
            };
            assert_eq!(label(&Arc::new(program.program)), own);
        }
    }
}
