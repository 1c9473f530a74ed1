//! Exact text of the emitter, and every op of its set on the device.

use crate::contraction::{Case, Epilogue};
use crate::device::device;
use crate::program::{buffer, compile, lavapipe, outlined, validate};
use expect_test::expect_file;
use monopour_codegen_gpu::{distribute, emit};
use monopour_ir::{Context, Module};
use monopour_program::GpuFeature;

const SUBGROUP: &str = r#"class = "contraction", workgroup_size = array<i32: 8, 1, 1>, register_tile = array<i64: 2, 8>, vector_width = 8 : i64, share = "subgroup", subgroup_size = 8 : i64"#;
const PRIVATE: &str = r#"class = "contraction", workgroup_size = array<i32: 4, 4, 1>, register_tile = array<i64: 2, 4>, vector_width = 4 : i64, share = "none""#;

#[test]
fn contraction_with_shared_operands() {
    let case = Case { epilogue: Epilogue::BiasRelu, tile: (2, 64), ..Case::new(4, 64, 16) };
    let (kernel, _, _) = compile(&case.text(SUBGROUP), &lavapipe()).expect("it compiles");
    expect_file!["snapshots/contraction_shared.wgsl"].assert_eq(&kernel.wgsl);
}

#[test]
fn contraction_with_private_operands() {
    let case = Case { epilogue: Epilogue::BiasRelu, tile: (8, 16), ..Case::new(8, 16, 8) };
    let (kernel, _, _) =
        compile(&case.text(PRIVATE), &monopour_program::GpuDescription::portable()).expect("it compiles");
    assert!(kernel.features.is_empty(), "a portable kernel needs no feature");
    expect_file!["snapshots/contraction_private.wgsl"].assert_eq(&kernel.wgsl);
}

#[test]
fn elementwise_in_vectors_and_the_fallback() {
    let x = buffer(&[64]);
    let id = "affine_map<(i) -> (i)>";
    let body = format!(
        "linalg.generic {{indexing_maps = [{id}, {id}], iterator_types = [\"parallel\"]}} ins(%a0 : {x}) outs(%a1 : {x}) {{\n^bb0(%p: f32, %q: f32):\n  %1 = math.exp %p : f32\n  linalg.yield %1 : f32\n}}"
    );
    let vectors = r#"class = "elementwise", workgroup_size = array<i32: 4, 1, 1>, vector_width = 8 : i64"#;
    let scalars = r#"class = "generic", workgroup_size = array<i32: 5, 1, 1>"#;
    let (kernel, _, _) =
        compile(&outlined(&[x.clone(), x.clone()], &[1], vectors, &body), &lavapipe()).expect("it compiles");
    expect_file!["snapshots/elementwise.wgsl"].assert_eq(&kernel.wgsl);
    let (kernel, _, _) = compile(&outlined(&[x.clone(), x], &[1], scalars, &body), &lavapipe()).expect("it compiles");
    expect_file!["snapshots/fallback.wgsl"].assert_eq(&kernel.wgsl);
}

#[test]
fn the_entry_point_keeps_its_name() {
    let x = buffer(&[8]);
    let body = format!("  %z = arith.constant 0.0 : f32\n  linalg.fill ins(%z : f32) outs(%a0 : {x})");
    let scalars = r#"class = "generic", workgroup_size = array<i32: 8, 1, 1>"#;
    for (symbol, entry) in
        [("@main_dispatch_0", "main_dispatch_0"), ("@\"graph-1.x\"", "graph_u002d_1_u002e_x"), ("@fn", "fn_")]
    {
        let text = outlined(std::slice::from_ref(&x), &[1], scalars, &body).replace("@kernel", symbol);
        let module =
            Module::parse(Context::new(), text.as_bytes(), "test.mlir").unwrap_or_else(|d| panic!("{d}\n{text}"));
        distribute::run(&module, &lavapipe()).expect("it distributes");
        let function = module.functions().into_iter().find(|f| !f.is_public()).expect("the kernel is there");
        let kernel = emit::run(&module, function).expect("it emits");
        assert_eq!(kernel.name, entry);
        assert!(kernel.wgsl.contains(&format!("fn {entry}(")), "{}", kernel.wgsl);
        validate(&kernel);
    }
}

#[test]
fn equal_input_gives_equal_output() {
    let text = Case { epilogue: Epilogue::BiasRelu, ..Case::new(20, 70, 30) }.text(SUBGROUP);
    let compiled = || compile(&text, &lavapipe()).expect("it compiles");
    let (first, second) = (compiled(), compiled());
    assert_eq!(first.0, second.0);
    assert_eq!(first.2, second.2);
}

/// Emits and runs a hand-written distributed kernel over one buffer of 4-byte elements, one invocation per element.
fn run(element: &str, body: &str, data: Vec<u32>) -> Option<Vec<u32>> {
    let device = device()?;
    let n = data.len();
    let text = format!(
        "func.func private @kernel(%a: memref<{n}x{element}>) attributes {{monopour.workgroup_size = array<i32: {n}, 1, 1>}} {{\n  %t = gpu.thread_id x\n  %x = memref.load %a[%t] : memref<{n}x{element}>\n{body}\n  memref.store %r, %a[%t] : memref<{n}x{element}>\n  return\n}}"
    );
    let module = Module::parse(Context::new(), text.as_bytes(), "test.mlir").unwrap_or_else(|d| panic!("{d}\n{text}"));
    let kernel = emit::run(&module, module.symbol("kernel").expect("the kernel is there"))
        .unwrap_or_else(|d| panic!("{d}\n{text}"));
    validate(&kernel);
    device.run(&kernel, [1, 1, 1], &[data]).pop()
}

/// An op and its reference.
type Case64 = (&'static str, Box<dyn Fn(f64) -> f64>);
type Case32 = (&'static str, fn(i32) -> i32);
type Predicate = (&'static str, fn(f32) -> bool);

/// Sweeps the functions against f64: relative errors with a floor, as `docs/numerics.md` states them.
#[test]
fn math_functions_are_accurate() {
    let erf = |x: f64| {
        (0..200).fold((0.0, x), |(s, t), n| (s + t / f64::from(2 * n + 1), -t * x * x / f64::from(n + 1))).0
            * std::f64::consts::FRAC_2_SQRT_PI
    };
    // Name, reference, domain, relative error, and the magnitude below which the error is absolute.
    let cases: Vec<(Case64, [f64; 2], [f64; 2])> = vec![
        (("math.exp", Box::new(f64::exp)), [-80.0, 80.0], [1e-5, 0.0]),
        (("math.exp2", Box::new(f64::exp2)), [-120.0, 120.0], [2e-5, 0.0]),
        (("math.expm1", Box::new(f64::exp_m1)), [-2.0, 2.0], [2e-6, 0.0]),
        (("math.log", Box::new(f64::ln)), [0.001, 100.0], [2e-6, 1.0]),
        (("math.log2", Box::new(f64::log2)), [0.001, 100.0], [2e-6, 1.0]),
        (("math.log10", Box::new(f64::log10)), [0.001, 100.0], [2e-6, 1.0]),
        (("math.log1p", Box::new(f64::ln_1p)), [-0.9, 10.0], [2e-6, 0.01]),
        (("math.sin", Box::new(f64::sin)), [-6.0, 6.0], [2e-6, 1.0]),
        (("math.cos", Box::new(f64::cos)), [-6.0, 6.0], [2e-6, 1.0]),
        (("math.tan", Box::new(f64::tan)), [-1.2, 1.2], [4e-6, 1.0]),
        (("math.asin", Box::new(f64::asin)), [-1.0, 1.0], [6e-6, 1.0]),
        (("math.acos", Box::new(f64::acos)), [-1.0, 1.0], [6e-6, 1.0]),
        (("math.atan", Box::new(f64::atan)), [-20.0, 20.0], [4e-6, 1.0]),
        (("math.sinh", Box::new(f64::sinh)), [-5.0, 5.0], [4e-6, 1.0]),
        (("math.cosh", Box::new(f64::cosh)), [-5.0, 5.0], [4e-6, 1.0]),
        (("math.tanh", Box::new(f64::tanh)), [-100.0, 100.0], [2e-6, 1.0]),
        (("math.erf", Box::new(erf)), [-4.0, 4.0], [5e-6, 0.01]),
        (("math.erfc", Box::new(move |x| 1.0 - erf(x))), [-4.0, 4.0], [2e-6, 1.0]),
        (("math.cbrt", Box::new(f64::cbrt)), [-30.0, 30.0], [1e-6, 0.0]),
        (("math.sqrt", Box::new(f64::sqrt)), [0.0, 30.0], [2e-7, 0.0]),
        (("math.rsqrt", Box::new(|x| 1.0 / x.sqrt())), [0.01, 30.0], [1e-6, 0.0]),
        (("math.absf", Box::new(f64::abs)), [-3.0, 3.0], [0.0, 0.0]),
        (("math.ceil", Box::new(f64::ceil)), [-3.0, 3.0], [0.0, 0.0]),
        (("math.floor", Box::new(f64::floor)), [-3.0, 3.0], [0.0, 0.0]),
        (("math.trunc", Box::new(f64::trunc)), [-3.0, 3.0], [0.0, 0.0]),
        (("math.round", Box::new(f64::round)), [-3.0, 3.0], [0.0, 0.0]),
        (("math.roundeven", Box::new(f64::round_ties_even)), [-3.0, 3.0], [0.0, 0.0]),
    ];
    for ((name, f), [from, to], [relative, floor]) in cases {
        let inputs: Vec<f32> = (0..=240).map(|i| (from + (to - from) * f64::from(i) / 240.0) as f32).collect();
        let bits = inputs.iter().map(|x| x.to_bits()).collect();
        let Some(out) = run("f32", &format!("  %r = {name} %x : f32"), bits) else { return };
        for (x, r) in inputs.iter().zip(out) {
            let (found, expected) = (f64::from(f32::from_bits(r)), f(f64::from(*x)));
            let allowed = relative * expected.abs().max(floor);
            assert!((found - expected).abs() <= allowed, "{name}({x}) is {found}, expected {expected}");
        }
    }
}

#[test]
fn powers_of_negative_bases_and_special_values() {
    let Some(device) = device() else { return };
    let cases = [
        (-2.0f32, 2.0f32, 4.0f32),
        (-2.0, 3.0, -8.0),
        (-2.0, -1.0, -0.5),
        (-2.0, 0.5, f32::NAN),
        (0.0, 0.0, 1.0),
        (0.0, 2.0, 0.0),
        (0.0, -1.0, f32::INFINITY),
        (1.0, 1000.0, 1.0),
        (2.5, 1.5, 3.952_847),
        (9.0, 0.5, 3.0),
    ];
    let (n, space) = (cases.len(), "#gpu.address_space<global>");
    let ty = format!("memref<{n}xf32, {space}>");
    let text = format!(
        "func.func private @kernel(%a: {ty}, %b: {ty}) attributes {{monopour.workgroup_size = array<i32: {n}, 1, 1>}} {{\n  %t = gpu.thread_id x\n  %x = memref.load %a[%t] : {ty}\n  %y = memref.load %b[%t] : {ty}\n  %r = math.powf %x, %y : f32\n  memref.store %r, %a[%t] : {ty}\n  return\n}}"
    );
    let module = Module::parse(Context::new(), text.as_bytes(), "test.mlir").unwrap_or_else(|d| panic!("{d}\n{text}"));
    let kernel =
        emit::run(&module, module.symbol("kernel").expect("the kernel is there")).unwrap_or_else(|d| panic!("{d}"));
    let column = |f: fn(&(f32, f32, f32)) -> f32| cases.iter().map(|c| f(c).to_bits()).collect::<Vec<u32>>();
    let out = device.run(&kernel, [1, 1, 1], &[column(|c| c.0), column(|c| c.1)]);
    for ((x, y, expected), found) in cases.iter().zip(&out[0]) {
        let found = f32::from_bits(*found);
        let fine = found == *expected
            || (found - expected).abs() <= 1e-5 * expected.abs()
            || (found.is_nan() && expected.is_nan());
        assert!(fine, "{x} to the power of {y} is {found}, expected {expected}");
    }
}

#[test]
fn functions_at_the_edges() {
    let cases: [(&str, f32, f32); 12] = [
        ("math.tanh", f32::INFINITY, 1.0),
        ("math.tanh", -200.0, -1.0),
        ("math.exp", 200.0, f32::INFINITY),
        ("math.exp", f32::NEG_INFINITY, 0.0),
        ("math.log", 0.0, f32::NEG_INFINITY),
        ("math.sqrt", -1.0, f32::NAN),
        ("math.log", -1.0, f32::NAN),
        ("math.erf", 50.0, 1.0),
        ("math.cbrt", 0.0, 0.0),
        ("math.expm1", 1e-6, 1e-6),
        ("math.log1p", 1e-6, 1e-6),
        ("math.exp", f32::NAN, f32::NAN),
    ];
    for (name, x, expected) in cases {
        let Some(out) = run("f32", &format!("  %r = {name} %x : f32"), vec![x.to_bits()]) else { return };
        let found = f32::from_bits(out[0]);
        let fine = found == expected
            || (found - expected).abs() <= 1e-5 * expected.abs()
            || (found.is_nan() && expected.is_nan());
        assert!(fine, "{name}({x}) is {found}, expected {expected}");
    }
}

#[test]
fn integer_ops_follow_arith() {
    let inputs: Vec<i32> = vec![-9, -8, -1, 0, 1, 7, 8, i32::MAX];
    let cases: Vec<Case32> = vec![
        ("  %c = arith.constant 4 : i32\n  %r = arith.divsi %x, %c : i32", |x| x / 4),
        ("  %c = arith.constant 4 : i32\n  %r = arith.remsi %x, %c : i32", |x| x % 4),
        ("  %c = arith.constant 4 : i32\n  %r = arith.floordivsi %x, %c : i32", |x| x.div_euclid(4)),
        ("  %c = arith.constant 4 : i32\n  %r = arith.ceildivsi %x, %c : i32", |x| {
            x / 4 + i32::from(x > 0 && x % 4 != 0)
        }),
        ("  %c = arith.constant 4 : i32\n  %r = arith.divui %x, %c : i32", |x| (x as u32 / 4) as i32),
        ("  %c = arith.constant 4 : i32\n  %r = arith.ceildivui %x, %c : i32", |x| (x as u32).div_ceil(4) as i32),
        ("  %c = arith.constant 3 : i32\n  %r = arith.shrsi %x, %c : i32", |x| x >> 3),
        ("  %c = arith.constant 3 : i32\n  %r = arith.shrui %x, %c : i32", |x| (x as u32 >> 3) as i32),
        ("  %c = arith.constant 3 : i32\n  %r = arith.shli %x, %c : i32", |x| x << 3),
        ("  %c = arith.constant 5 : i32\n  %r = arith.maxui %x, %c : i32", |x| (x as u32).max(5) as i32),
        ("  %c = arith.constant 5 : i32\n  %r = arith.minsi %x, %c : i32", |x| x.min(5)),
        (
            "  %c = arith.constant 5 : i32\n  %b = arith.cmpi ult, %x, %c : i32\n  %r = arith.extui %b : i1 to i32",
            |x| i32::from((x as u32) < 5),
        ),
        (
            "  %c = arith.constant 5 : i32\n  %b = arith.cmpi slt, %x, %c : i32\n  %r = arith.extsi %b : i1 to i32",
            |x| -i32::from(x < 5),
        ),
        ("  %b = arith.trunci %x : i32 to i1\n  %r = arith.extui %b : i1 to i32", |x| x & 1),
        ("  %f = arith.sitofp %x : i32 to f32\n  %g = arith.negf %f : f32\n  %r = arith.fptosi %g : f32 to i32", |x| {
            if x == i32::MAX { i32::MIN } else { -x }
        }),
        ("  %f = arith.bitcast %x : i32 to f32\n  %r = arith.bitcast %f : f32 to i32", |x| x),
    ];
    for (body, f) in cases {
        let Some(out) = run("i32", body, inputs.iter().map(|x| *x as u32).collect()) else { return };
        let found: Vec<i32> = out.into_iter().map(|x| x as i32).collect();
        assert_eq!(found, inputs.iter().map(|x| f(*x)).collect::<Vec<_>>(), "{body}");
    }
}

#[test]
fn comparisons_of_floats_know_nan() {
    let inputs = [1.0f32, 2.0, 3.0, f32::NAN];
    let cases: [Predicate; 8] = [
        ("oeq", |x| x == 2.0),
        ("one", |x| !x.is_nan() && x != 2.0),
        ("une", |x| x != 2.0),
        ("ult", |x| x < 2.0 || x.is_nan()),
        ("uge", |x| x >= 2.0 || x.is_nan()),
        ("ueq", |x| x == 2.0 || x.is_nan()),
        ("ord", |x| !x.is_nan()),
        ("uno", f32::is_nan),
    ];
    for (predicate, f) in cases {
        let body = format!(
            "  %c = arith.constant 2.0 : f32\n  %b = arith.cmpf {predicate}, %x, %c : f32\n  %r = arith.uitofp %b : i1 to f32"
        );
        let Some(out) = run("f32", &body, inputs.map(f32::to_bits).to_vec()) else { return };
        let found: Vec<bool> = out.into_iter().map(|x| f32::from_bits(x) == 1.0).collect();
        assert_eq!(found, inputs.map(f).to_vec(), "{predicate}");
    }
}

#[test]
fn loops_branches_and_local_memory() {
    // A while loop halves until below 3; the results rotate through private and workgroup memory.
    let body = "  %c0 = arith.constant 0 : index\n  %c1 = arith.constant 1 : index\n  %c2 = arith.constant 2 : i32\n  %c3 = arith.constant 3 : i32\n  %c4 = arith.constant 4 : index\n\
      \x20 %w = scf.while (%v = %x) : (i32) -> i32 {\n    %go = arith.cmpi sge, %v, %c3 : i32\n    scf.condition(%go) %v : i32\n  } do {\n  ^bb0(%v: i32):\n    %h = arith.divsi %v, %c2 : i32\n    scf.yield %h : i32\n  }\n\
      \x20 %p = memref.alloca() : memref<4xi32>\n  scf.for %i = %c0 to %c4 step %c1 {\n    %n = arith.index_cast %i : index to i32\n    %s = arith.addi %w, %n : i32\n    memref.store %s, %p[%i] : memref<4xi32>\n  }\n\
      \x20 %even = arith.remui %t, %c4 : index\n  %l = memref.load %p[%even] : memref<4xi32>\n  %m = memref.alloca() : memref<4xi32, #gpu.address_space<workgroup>>\n  memref.store %l, %m[%t] : memref<4xi32, #gpu.address_space<workgroup>>\n  gpu.barrier\n\
      \x20 %nx = arith.addi %t, %c1 : index\n  %wrap = arith.remui %nx, %c4 : index\n  %other = memref.load %m[%wrap] : memref<4xi32, #gpu.address_space<workgroup>>\n  %odd = arith.cmpi ne, %t, %c0 : index\n  %r = scf.if %odd -> i32 {\n    scf.yield %other : i32\n  } else {\n    %neg = arith.subi %c2, %other : i32\n    scf.yield %neg : i32\n  }";
    let Some(out) = run("i32", body, vec![20, 7, 2, 5]) else { return };
    // After halving: 2, 1, 2, 2; plus the position: 2, 2, 4, 5; rotated; the first is subtracted from 2.
    assert_eq!(out.into_iter().map(|x| x as i32).collect::<Vec<_>>(), vec![0, 4, 5, 2]);
}

#[test]
fn bools_in_local_memory() {
    for space in ["", ", #gpu.address_space<workgroup>"] {
        let body = format!(
            "  %c4 = arith.constant 4 : i32\n  %b = arith.cmpi sgt, %x, %c4 : i32\n  %m = memref.alloca() : memref<4xi1{space}>\n  memref.store %b, %m[%t] : memref<4xi1{space}>\n\
             \x20 gpu.barrier\n  %l = memref.load %m[%t] : memref<4xi1{space}>\n  %r = arith.extui %l : i1 to i32"
        );
        let Some(out) = run("i32", &body, vec![3, 4, 5, 6]) else { return };
        assert_eq!(out, vec![0, 0, 1, 1]);
    }
}

#[test]
fn other_widths_where_the_adapter_has_them() {
    let Some(device) = device() else { return };
    let has = |feature| device.description.features.contains(&feature);
    let kernel = |element: &str, body: &str| {
        let text = format!(
            "func.func private @kernel(%a: memref<2x{element}>) attributes {{monopour.workgroup_size = array<i32: 2, 1, 1>}} {{\n  %t = gpu.thread_id x\n  %x = memref.load %a[%t] : memref<2x{element}>\n{body}\n  memref.store %r, %a[%t] : memref<2x{element}>\n  return\n}}"
        );
        let module =
            Module::parse(Context::new(), text.as_bytes(), "test.mlir").unwrap_or_else(|d| panic!("{d}\n{text}"));
        let kernel =
            emit::run(&module, module.symbol("kernel").expect("the kernel is there")).unwrap_or_else(|d| panic!("{d}"));
        validate(&kernel);
        kernel
    };
    if has(GpuFeature::Int64) {
        let made = kernel("i64", "  %c = arith.constant 10000000000 : i64\n  %r = arith.muli %x, %c : i64");
        assert_eq!(made.features, vec![GpuFeature::Int64]);
        let out = device.run(&made, [1, 1, 1], &[bytemuck::cast_slice(&[3i64, -7]).to_vec()]);
        assert_eq!(bytemuck::pod_collect_to_vec::<u32, i64>(&out[0]), [30_000_000_000, -70_000_000_000]);
        // Shifts without a sign, of a number and of each lane.
        let made = kernel(
            "i64",
            "  %c = arith.constant 20 : i64\n  %s = arith.shrui %x, %c : i64\n  %v = vector.broadcast %s : i64 to vector<2xi64>\n  %d = arith.constant dense<20> : vector<2xi64>\n  %l = arith.shli %v, %d : vector<2xi64>\n  %w = arith.shrui %l, %d : vector<2xi64>\n  %r = vector.extract %w[1] : i64 from vector<2xi64>",
        );
        let out = device.run(&made, [1, 1, 1], &[bytemuck::cast_slice(&[3i64 << 21, -7]).to_vec()]);
        assert_eq!(bytemuck::pod_collect_to_vec::<u32, i64>(&out[0]), [6, (1 << 44) - 1]);
    }
    if has(GpuFeature::F64) {
        let made = kernel(
            "f64",
            "  %c = arith.constant 1.0e-12 : f64\n  %s = arith.addf %x, %c : f64\n  %r = math.sqrt %s : f64",
        );
        let out = device.run(&made, [1, 1, 1], &[bytemuck::cast_slice(&[1.0f64, 4.0]).to_vec()]);
        assert_eq!(
            bytemuck::pod_collect_to_vec::<u32, f64>(&out[0]),
            [(1.0f64 + 1e-12).sqrt(), (4.0f64 + 1e-12).sqrt()]
        );
        let made = kernel(
            "f64",
            "  %c = arith.constant 0xFFF0000000000000 : f64\n  %n = arith.maxnumf %x, %c : f64\n  %r = arith.divf %n, %c : f64",
        );
        assert!(made.features.contains(&GpuFeature::Int64), "an infinity comes from its bits");
        if has(GpuFeature::Int64) {
            let out = device.run(&made, [1, 1, 1], &[bytemuck::cast_slice(&[1.0f64, -4.0]).to_vec()]);
            let found = bytemuck::pod_collect_to_vec::<u32, f64>(&out[0]);
            assert_eq!(found.iter().map(|x| x.to_bits()).collect::<Vec<_>>(), [1 << 63, 0], "{found:?}");
        }
    }
    if has(GpuFeature::F16) {
        // 1.5 and -2.0 in half precision.
        let made = kernel(
            "f16",
            "  %f = arith.extf %x : f16 to f32\n  %c = arith.constant 2.0 : f16\n  %y = arith.mulf %x, %c : f16\n  %g = arith.truncf %f : f32 to f16\n  %r = arith.addf %y, %g : f16",
        );
        let out = device.run(&made, [1, 1, 1], &[vec![0xc000_3e00]]);
        // 4.5 and -6.0.
        assert_eq!(out[0], vec![0xc600_4480]);
    }
}
