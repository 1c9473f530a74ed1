//! Products of halves on cooperative matrices, for an H200: which ones, their values, what lies beyond their edges.

use super::host::Settings;
use super::targets::h200;
use super::{Interpreted, compiled, executed};
use expect_test::expect;
use monopour::program::{Kernel, Program};
use monopour_ir::ops;
use monopour_testkit::approx::{Tolerance, compare};
use monopour_testkit::device::full_is_asked_for;
use monopour_testkit::host_tensor::Data;
use monopour_testkit::spirv::Module;
use monopour_testkit::suite::{Backend, Case, all, run};
use monopour_testkit::{Dtype, HostTensor, text};

/// The cases of the suite with batch, rows, columns and depth.
fn cases() -> Vec<(Case, [usize; 4])> {
    let sizes = |case: &Case| {
        let sizes: Vec<usize> = case.name.rsplit('/').next()?.split('x').map_while(|size| size.parse().ok()).collect();
        sizes.try_into().ok()
    };
    let cases = all().into_iter().filter(|case| case.family() == "widened");
    cases.filter_map(|case| sizes(&case).map(|sizes| (case, sizes))).collect()
}

/// The order of the dimensions of the factors: two letters, `n` for rows times columns in memory, `t` for transposed.
fn layout(case: &Case) -> (bool, bool) {
    let name = case.name.split('/').nth(1).unwrap_or_default().as_bytes();
    (name[0] == b't', name[1] == b't')
}

fn has_matrices(program: &Program) -> bool {
    program.variants[0].kernels.iter().any(|kernel| {
        let Kernel::Gpu(kernel) = kernel else { return false };
        Module::parse(&kernel.spirv).is_ok_and(|module| module.has_matrices())
    })
}

/// All products whose rows, columns and depth are of vectors of four, in memory as well. A tile of 48 positions that are
/// neighbours in memory has no even part for each invocation.
#[test]
fn products_of_halves_run_on_matrices() {
    let target = h200();
    let mut on_matrices = 0;
    for (case, [_, m, n, depth]) in cases() {
        let (left_transposed, right_transposed) = layout(&case);
        let is_even = |positions: usize| positions.is_multiple_of(4) && positions != 48;
        // Of two reductions the inner one is made of whole steps.
        let is_whole = !case.name.contains("/heads_") || depth.is_multiple_of(32);
        // Columns that lie along the reduction may be of any number.
        let is_wide = (!left_transposed || is_even(m)) && (right_transposed || n.is_multiple_of(4) && is_even(n));
        let is_expected = is_wide && is_whole;
        let program = compiled(&case, &target).unwrap_or_else(|e| panic!("{}: {e}", case.name));
        assert_eq!(has_matrices(&program), is_expected, "{}", case.name);
        on_matrices += usize::from(is_expected);
    }
    assert!(on_matrices > 80, "{on_matrices} cases");
}

/// Convolutions of halves whose windows have lines of whole matrices, and their results, also of networks whose images get
/// their channels last.
#[test]
fn convolutions_of_halves_run_on_matrices() {
    let target = h200();
    let cases: Vec<Case> = all().into_iter().filter(|case| case.family() == "images").collect();
    let mut on_matrices = vec![];
    for case in &cases {
        let program = compiled(case, &target).unwrap_or_else(|e| panic!("{}: {e}", case.name));
        if has_matrices(&program) {
            on_matrices.push(case.name.split('/').skip(1).collect::<Vec<_>>().join("/"));
        }
    }
    on_matrices.sort();
    expect![[r#"
        finished/1x16x16x32_3x3x32x128_s1
        finished/2x12x12x16_3x3x16x64_s1
        finished/3x15x15x32_3x3x32x64_s2
        finished/4x7x5x16_3x3x16x100_s1
        network_f16/1x3x12x12_16_64
        sums/1x16x16x32_3x3x32x128_s1
        sums/2x12x12x16_3x3x16x64_s1
        sums/3x15x15x32_3x3x32x64_s2
        sums/4x7x5x16_3x3x16x100_s1"#]]
    .assert_eq(&on_matrices.join("\n"));
    let mut backends: Vec<Box<dyn Backend>> = vec![Box::new(Interpreted::new(target))];
    run(&mut backends, &cases).assert_passed();
}

/// A sample of the cases, or all of them, for subgroups of 32, and of any other size that holds the matrices.
#[test]
fn products_on_matrices_are_right() {
    let step = if full_is_asked_for() { 1 } else { 7 };
    for (at, lanes) in [32, 16, 64].into_iter().enumerate() {
        let mut target = h200();
        (target.description.subgroup_min_size, target.description.subgroup_max_size) = (lanes, lanes);
        target.sizes = vec![lanes];
        let cases: Vec<Case> = cases().into_iter().map(|(case, _)| case).skip(at).step_by(step).collect();
        let on_matrices = |case: &&Case| compiled(case, &target).is_ok_and(|program| has_matrices(&program));
        let count = cases.iter().filter(on_matrices).count();
        assert!(count * 2 > cases.len(), "subgroups of {lanes}: {count} of {}", cases.len());
        let mut backends: Vec<Box<dyn Backend>> = vec![Box::new(Interpreted::new(target))];
        run(&mut backends, &cases).assert_passed();
    }
}

/// In a factor of these dimensions along its positions and along the reduction: infinity in the first element, which is
/// what is loaded in place of elements out of range; NaN in all of position 1 of the second batch, which position 0
/// is followed by in memory.
fn spoil(factor: &mut HostTensor, positions: usize, depth: usize, is_along_depth: bool) {
    let Data::Float(values) = &mut factor.data else { panic!("factors are floats") };
    values[0] = f64::INFINITY;
    for k in 0..depth {
        let within = if is_along_depth { depth + k } else { k * positions + 1 };
        values[positions * depth + within] = f64::NAN;
    }
}

/// NaN and infinities of other rows, columns and batches do not show beyond a ragged edge of the reduction.
#[test]
fn nothing_leaks_over_the_edge_of_a_reduction() {
    let target = h200();
    let mut found = 0;
    for (case, [batch, m, n, k]) in cases()
        .into_iter()
        .filter(|(case, sizes)| sizes[0] == 2 && [20, 100].contains(&sizes[3]) && case.name.contains("_plain/"))
    {
        let program = compiled(&case, &target).unwrap_or_else(|e| panic!("{}: {e}", case.name));
        assert!(has_matrices(&program), "{}", case.name);
        let mut inputs = case.input_values();
        let (left_transposed, right_transposed) = layout(&case);
        spoil(&mut inputs[0], m, k, !left_transposed);
        spoil(&mut inputs[1], n, k, right_transposed);
        let expected = case.reference(&inputs).unwrap_or_else(|e| panic!("{}: {e}", case.name));
        // A row and a column of each batch.
        let spoiled = expected[0].to_f64().iter().filter(|value| !value.is_finite()).count();
        assert_eq!(spoiled, batch * (m + n - 1), "{}", case.name);
        for seed in 0..2 {
            let (outputs, _) = executed(&program, &inputs, Settings { subgroup_size: 32, seed })
                .unwrap_or_else(|e| panic!("{}: {e}", case.name));
            compare(&outputs[0], &expected[0], case.tolerance).unwrap_or_else(|e| panic!("{}: {e}", case.name));
        }
        found += 1;
    }
    assert_eq!(found, 8, "two depths in four layouts");
}

/// A case of a program with one result; `work`: its multiplications.
fn case_of(name: &str, p: text::Program, result: &text::Value, work: usize) -> Case {
    let (text, inputs) = p.finish(&[result]);
    let tolerance = Tolerance { absolute: 2e-3, relative: 2e-3 };
    let name = format!("widened/{name}");
    Case {
        name,
        text,
        inputs,
        tolerance,
        dispatches: None,
        gpu_dispatches: None,
        laid_out: None,
        copies: Some(0),
        work: work as u64,
    }
}

/// As many tiles of 128 as all units of the device need, with ragged edges of rows, columns and reduction.
#[test]
fn large_tiles_are_right() {
    let [m, n, k] = [1572, 2052, 20];
    let mut p = text::Program::new();
    let (x, y) = (p.input(Dtype::F16, &[m, k]), p.input(Dtype::F16, &[k, n]));
    let initial = p.zeros(Dtype::F32, &[m, n]);
    let product = p.named(ops::linalg::MATMUL, &[&x, &y], &initial);
    let result = p.pointwise(Dtype::F16, &[&product], "%s = arith.truncf %a : f32 to f16");
    let case = Case { dispatches: Some(1), ..case_of("large", p, &result, m * n * k) };
    let program = compiled(&case, &h200()).unwrap_or_else(|e| panic!("{e}"));
    assert!(has_matrices(&program));
    let mut backends: Vec<Box<dyn Backend>> = vec![Box::new(Interpreted::new(h200()))];
    run(&mut backends, &[case]).assert_passed();
}

/// Three products of one input, which an op reads together: one dispatch of scalar sums, or three on matrices.
#[test]
fn products_of_one_input_stay_apart_where_matrices_gain_more() {
    for (size, on_matrices) in [(64, false), (256, true)] {
        let mut p = text::Program::new();
        let [x, a, b, c] = [(); 4].map(|()| p.input(Dtype::F16, &[size, size]));
        let products = [a, b, c].map(|weights| {
            let initial = p.zeros(Dtype::F32, &[size, size]);
            p.named(ops::linalg::MATMUL, &[&x, &weights], &initial)
        });
        let [a, b, c] = &products;
        let result = p.pointwise(Dtype::F32, &[a, b, c], "%t = arith.addf %a, %b : f32; %s = arith.mulf %t, %c : f32");
        let case = case_of(&format!("of_one_input/{size}"), p, &result, 3 * size * size * size);
        let program = compiled(&case, &h200()).unwrap_or_else(|e| panic!("{e}"));
        let dispatches = program.variants[0].dispatches.iter().sum::<u32>();
        assert_eq!(has_matrices(&program), on_matrices, "{size}");
        assert_eq!(dispatches > 2, on_matrices, "{size}: {dispatches}");
    }
}

/// An epilogue of a product, of whose body `%a` is the sum in f32.
struct Epilogue {
    name: &'static str,
    /// What it reads beside the sum, with the indices.
    reads: Vec<(Dtype, &'static str)>,
    result: Dtype,
    body: &'static str,
}

fn epilogues() -> [Epilogue; 6] {
    let (wide, half) = (Dtype::F32, Dtype::F16);
    let of = |name, reads: &[_], result, body| Epilogue { name, reads: reads.to_vec(), result, body };
    let bias = "%x = arith.extf %b : f16 to f32; %y = arith.addf %a, %x : f32; %s = arith.truncf %y : f32 to f16";
    let residual = "%x = arith.extf %b : f16 to f32; %y = arith.addf %a, %x : f32; %t = math.tanh %y : f32; \
                    %r = arith.extf %c : f16 to f32; %z = arith.addf %t, %r : f32; %s = arith.truncf %z : f32 to f16";
    [
        of("narrowed", &[], half, "%s = arith.truncf %a : f32 to f16"),
        of("kept", &[], wide, "%s = arith.negf %a : f32"),
        of("bias", &[(half, "n")], half, bias),
        of("rows", &[(wide, "m")], wide, "%s = arith.mulf %a, %b : f32"),
        of("residual", &[(half, "n"), (half, "m, n")], half, residual),
        of("turned", &[(wide, "n, m")], wide, "%s = arith.subf %a, %b : f32"),
    ]
}

/// Whole tiles are computed and stored by matrices, whichever elements an invocation holds: no sums in workgroup memory.
#[test]
fn whole_tiles_are_stored_as_matrices() {
    let [m, n, k] = [128, 192, 64];
    for Epilogue { name, reads, result, body } in epilogues() {
        let mut p = text::Program::new();
        let (x, y) = (p.input(Dtype::F16, &[m, k]), p.input(Dtype::F16, &[k, n]));
        let initial = p.zeros(Dtype::F32, &[m, n]);
        let product = p.named(ops::linalg::MATMUL, &[&x, &y], &initial);
        let shape = |of: &str| match of {
            "n" => vec![n],
            "m" => vec![m],
            "m, n" => vec![m, n],
            _ => vec![n, m],
        };
        let inputs: Vec<_> = reads.iter().map(|(dtype, of)| (p.input(*dtype, &shape(of)), of)).collect();
        let mut ins = vec![(&product, "m, n")];
        ins.extend(inputs.iter().map(|(value, of)| (value, **of)));
        let to = p.empty(result, &[m, n]);
        let r = p.generic("m n", &ins, (&to, "m, n"), body);
        let case = Case { dispatches: Some(1), ..case_of(&format!("epilogue/{name}"), p, &r, m * n * k) };
        for lanes in [32, 16, 64] {
            let mut target = h200();
            (target.description.subgroup_min_size, target.description.subgroup_max_size) = (lanes, lanes);
            target.sizes = vec![lanes];
            let program = compiled(&case, &target).unwrap_or_else(|e| panic!("{name}: {e}"));
            let Kernel::Gpu(kernel) = &program.variants[0].kernels[0] else { panic!("{name}: no GPU's kernel") };
            assert_eq!(shared_variables(&kernel.spirv), 2, "{name}: the copies of the factors alone");
            let mut backends: Vec<Box<dyn Backend>> = vec![Box::new(Interpreted::new(target))];
            run(&mut backends, std::slice::from_ref(&case)).assert_passed();
        }
    }
}

/// Variables in workgroup memory.
fn shared_variables(words: &[u32]) -> usize {
    const VARIABLE: u32 = 59;
    const WORKGROUP: u32 = 4;
    let mut rest = &words[5..];
    let mut count = 0;
    while let Some(first) = rest.first() {
        count += usize::from(first & 0xffff == VARIABLE && rest[3] == WORKGROUP);
        rest = &rest[(first >> 16) as usize..];
    }
    count
}

/// Of 160 keys the first 64 are seen, in two blocks of 32: the others are not multiplied, unless their scores count.
#[test]
fn blocks_behind_a_causal_mask_are_computed_where_they_count() {
    let products = |least: &str| {
        let name = format!("attention/masked_halves/2x64x160x32/0/{least}");
        let case = all().into_iter().find(|case| case.name == name).unwrap_or_else(|| panic!("{name}"));
        let program = compiled(&case, &h200()).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(has_matrices(&program), "{name}");
        let (inputs, settings) = (case.input_values(), Settings { subgroup_size: 32, seed: 3 });
        let (outputs, outcome) = executed(&program, &inputs, settings).unwrap_or_else(|e| panic!("{name}: {e}"));
        let expected = case.reference(&inputs).unwrap_or_else(|e| panic!("{name}: {e}"));
        compare(&outputs[0], &expected[0], case.tolerance).unwrap_or_else(|e| panic!("{name}: {e}"));
        outcome.counts.iter().map(|counts| counts.products).sum::<u64>()
    };
    let [never, far, near] = ["0xFF800000", "-1.0e9", "-2.0"].map(products);
    assert!(far < never * 21 / 20, "{far} of {never}");
    assert!(near > never * 2, "{near} of {never}");
}
