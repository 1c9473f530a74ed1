//! `docs/numerics.md`, row by row, on every kind of device.

use crate::backend::Monopour;
use monopour::CompileOptions;
use monopour::program::DType;
use monopour::runtime::HostTensor;
use monopour_testkit::suite::Backend;

/// A device and its target.
pub struct Place {
    pub gpu: bool,
    backend: Monopour,
}

/// The CPU, code for CPUs of fewer features, an emulated CPU, and a GPU, where they are.
pub fn places() -> Vec<Place> {
    let cpus = [Some(Monopour::cpu()), Monopour::aarch64()].into_iter().flatten().chain(Monopour::lower_cpus());
    let cpus = cpus.map(|backend| Place { gpu: false, backend });
    cpus.chain(Monopour::gpu().map(|backend| Place { gpu: true, backend })).collect()
}

impl Place {
    /// The bytes of each result, on this many threads.
    fn run_on(&self, text: &str, inputs: &[HostTensor], threads: usize) -> Vec<Vec<u8>> {
        let options =
            CompileOptions { targets: vec![self.backend.target().clone()], verify: true, ..Default::default() };
        let compiled = monopour::compile(text.as_bytes(), "numerics.mlir", &options);
        let program = compiled.unwrap_or_else(|d| panic!("{d}\n{text}")).program;
        let results = self.backend.results(program, inputs, threads).expect("it runs");
        results.iter().map(|r| r.data().to_vec()).collect()
    }
    pub fn run(&self, text: &str, inputs: &[HostTensor]) -> Vec<Vec<u8>> {
        self.run_on(text, inputs, 2)
    }
    fn floats(&self, text: &str, inputs: &[HostTensor]) -> Vec<Vec<f32>> {
        self.run(text, inputs).iter().map(|r| each(r, f32::from_le_bytes)).collect()
    }
    fn ints(&self, text: &str, inputs: &[HostTensor]) -> Vec<Vec<i32>> {
        self.run(text, inputs).iter().map(|r| each(r, i32::from_le_bytes)).collect()
    }
    pub fn name(&self) -> &str {
        self.backend.name()
    }
}

/// The elements in some bytes.
pub fn each<const N: usize, T>(bytes: &[u8], decode: fn([u8; N]) -> T) -> Vec<T> {
    bytes.chunks_exact(N).map(|c| decode(c.try_into().expect("chunks have the length"))).collect()
}

fn floats(values: &[f32]) -> HostTensor {
    let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    HostTensor::new(DType::F32, vec![values.len() as u64], bytes).expect("the length fits")
}

fn matrix(columns: usize, values: &[f32]) -> HostTensor {
    let shape = vec![(values.len() / columns) as u64, columns as u64];
    let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    HostTensor::new(DType::F32, shape, bytes).expect("the length fits")
}

fn ints(values: &[i32]) -> HostTensor {
    let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    HostTensor::new(DType::I32, vec![values.len() as u64], bytes).expect("the length fits")
}

/// `main` of elementwise results over `n` elements: per result its element type and ops that define `%r` of `%a, %b, ..`.
pub fn pointwise(n: usize, inputs: &[&str], results: &[(&str, &str)]) -> String {
    let names = ["a", "b", "c"];
    let id = "affine_map<(i) -> (i)>";
    let params: Vec<String> = inputs.iter().enumerate().map(|(i, t)| format!("%in{i}: tensor<{n}x{t}>")).collect();
    let types: Vec<String> = results.iter().map(|r| format!("tensor<{n}x{}>", r.0)).collect();
    let mut body = String::new();
    for (k, (ty, ops)) in results.iter().enumerate() {
        let ins: Vec<String> = (0..inputs.len()).map(|i| format!("%in{i}")).collect();
        let in_types: Vec<String> = inputs.iter().map(|t| format!("tensor<{n}x{t}>")).collect();
        let args: Vec<String> = inputs.iter().enumerate().map(|(i, t)| format!("%{}: {t}", names[i])).collect();
        let maps = vec![id; inputs.len() + 1].join(", ");
        body += &format!(
            "  %e{k} = tensor.empty() : tensor<{n}x{ty}>\n  %y{k} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [\"parallel\"]}} ins({} : {}) outs(%e{k} : tensor<{n}x{ty}>) {{\n  ^bb0({}, %o: {ty}):\n    {}\n    linalg.yield %r : {ty}\n  }} -> tensor<{n}x{ty}>\n",
            ins.join(", "),
            in_types.join(", "),
            args.join(", "),
            ops.replace('\n', "\n    ")
        );
    }
    let returned: Vec<String> = (0..results.len()).map(|k| format!("%y{k}")).collect();
    format!(
        "func.func @main({}) -> ({}) {{\n{body}  return {} : {}\n}}\n",
        params.join(", "),
        types.join(", "),
        returned.join(", "),
        types.join(", ")
    )
}

/// `main` that reduces the rows of an `m x n` matrix with `combine`, from `init`.
fn row_reduction(m: usize, n: usize, init: &str, combine: &str) -> String {
    format!(
        "func.func @main(%x: tensor<{m}x{n}xf32>) -> tensor<{m}xf32> {{\n  %i = arith.constant {init} : f32\n  %e = tensor.empty() : tensor<{m}xf32>\n  %f = linalg.fill ins(%i : f32) outs(%e : tensor<{m}xf32>) -> tensor<{m}xf32>\n  %y = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = [\"parallel\", \"reduction\"]}} ins(%x : tensor<{m}x{n}xf32>) outs(%f : tensor<{m}xf32>) {{\n  ^bb0(%a: f32, %o: f32):\n    %r = {combine} %o, %a : f32\n    linalg.yield %r : f32\n  }} -> tensor<{m}xf32>\n  return %y : tensor<{m}xf32>\n}}\n"
    )
}

/// Numbers between -1 and 1, always the same.
fn numbers(count: usize) -> Vec<f32> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    (0..count)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
        })
        .collect()
}

#[test]
fn nan_through_maximum_and_minimum() {
    let nan = f32::NAN;
    let (a, b) = ([1.0, nan, 1.0, nan, -2.0], [2.0, 2.0, nan, nan, -3.0]);
    let op = |name: &str| format!("%r = arith.{name} %a, %b : f32");
    let names = ["maximumf", "minimumf", "maxnumf", "minnumf"].map(op);
    let text = pointwise(5, &["f32", "f32"], &names.each_ref().map(|o| ("f32", o.as_str())));
    for place in places() {
        let out = place.floats(&text, &[floats(&a), floats(&b)]);
        for (passing, whole) in [(&out[0], [2.0, -2.0]), (&out[1], [1.0, -3.0])] {
            assert!(passing[1..4].iter().all(|x| x.is_nan()), "{}: {passing:?}", place.name());
            assert_eq!([passing[0], passing[4]], whole, "{}", place.name());
        }
        for (dropping, whole) in [(&out[2], [2.0, -2.0]), (&out[3], [1.0, -3.0])] {
            assert_eq!([dropping[0], dropping[4]], whole, "{}", place.name());
            assert!(dropping[3].is_nan(), "{}: {dropping:?}", place.name());
            // A GPU may give either operand.
            let one_number = |x: f32, number: f32| x == number || (place.gpu && x.is_nan());
            assert!(one_number(dropping[1], 2.0) && one_number(dropping[2], 1.0), "{}: {dropping:?}", place.name());
        }
    }
}

/// Its maximum may drop NaNs, its sum does not.
#[test]
fn nan_through_softmax() {
    for n in [19, 64, 300] {
        let mut values = numbers(6 * n);
        for (row, column) in [(0, 0), (1, n / 2), (2, n - 1), (3, n - 1)] {
            values[row * n + column] = f32::NAN;
        }
        values[3 * n] = f32::INFINITY;
        values[4 * n..5 * n].fill(f32::NEG_INFINITY);
        let ty = format!("tensor<6x{n}xf32>");
        let text = format!(
            "func.func @main(%x: {ty}) -> {ty} {{\n  %e = tensor.empty() : {ty}\n  \
             %s = linalg.softmax dimension(1) ins(%x : {ty}) outs(%e : {ty}) -> {ty}\n  return %s : {ty}\n}}\n"
        );
        for place in places() {
            let out = &place.floats(&text, &[matrix(n, &values)])[0];
            assert!(out[..5 * n].iter().all(|x| x.is_nan()), "{} {n}: {out:?}", place.name());
            let sum: f32 = out[5 * n..].iter().sum();
            assert!((sum - 1.0).abs() < 1e-5, "{} {n}: {sum}", place.name());
        }
    }
}

/// Whatever the order of the elements and the lane of the NaN.
#[test]
fn nan_through_reductions() {
    for n in [19, 24] {
        let mut values = numbers(4 * n);
        for (row, column) in [(0, 0), (1, n / 2), (2, n - 1)] {
            values[row * n + column] = f32::NAN;
        }
        for (combine, init) in
            [("arith.maximumf", "0xFF800000"), ("arith.minimumf", "0x7F800000"), ("arith.addf", "0.0")]
        {
            for place in places() {
                let out = &place.floats(&row_reduction(4, n, init, combine), &[matrix(n, &values)])[0];
                assert!(out[..3].iter().all(|x| x.is_nan()), "{} {combine} of {n}: {out:?}", place.name());
                assert!(out[3].is_finite(), "{} {combine} of {n}: {out:?}", place.name());
            }
        }
    }
}

#[test]
fn comparisons_with_nan() {
    let predicates = ["oeq", "one", "olt", "ord", "ueq", "une", "ult", "uno"];
    let ops = predicates.map(|p| format!("%t = arith.cmpf {p}, %a, %b : f32\n%r = arith.extui %t : i1 to i32"));
    let (low, high) = ops.split_at(4);
    for (ops, with_nan) in [(low, 0), (high, 1)] {
        let results: Vec<(&str, &str)> = ops.iter().map(|o| ("i32", o.as_str())).collect();
        let text = pointwise(2, &["f32", "f32"], &results);
        for place in places() {
            let out = place.ints(&text, &[floats(&[f32::NAN, 1.0]), floats(&[1.0, 1.0])]);
            let found: Vec<i32> = out.iter().map(|o| o[0]).collect();
            assert_eq!(found, [with_nan; 4], "{}", place.name());
            // 1 and 1: equal and ordered; neither less nor different.
            let found: Vec<i32> = out.iter().map(|o| o[1]).collect();
            let expected = if with_nan == 0 { [1, 0, 0, 1] } else { [1, 0, 0, 0] };
            assert_eq!(found, expected, "{}", place.name());
        }
    }
}

#[test]
fn infinities() {
    let inf = f32::INFINITY;
    let text = pointwise(
        4,
        &["f32", "f32"],
        &[
            ("f32", "%r = arith.addf %a, %b : f32"),
            ("f32", "%r = arith.mulf %a, %b : f32"),
            ("f32", "%r = arith.divf %b, %a : f32"),
            ("f32", "%r = arith.maximumf %a, %b : f32"),
            ("f32", "%k = arith.constant 0xFF800000 : f32\n%m = arith.maximumf %k, %b : f32\n%r = math.exp %m : f32"),
        ],
    );
    for place in places() {
        let out = place.floats(&text, &[floats(&[inf, inf, -inf, inf]), floats(&[1.0, -inf, 2.0, 0.0])]);
        let name = place.name();
        assert_eq!([out[0][0], out[0][2], out[0][3]], [inf, -inf, inf], "{name}");
        assert!(out[0][1].is_nan() && out[1][3].is_nan(), "{name}: {out:?}");
        assert_eq!(out[1][..3], [inf, -inf, -inf], "{name}");
        assert_eq!([out[2][0], out[2][2], out[2][3]], [0.0, 0.0, 0.0], "{name}");
        assert_eq!(out[3], [inf, inf, 2.0, inf], "{name}");
        assert_eq!([out[4][1], out[4][3]], [0.0, 1.0], "{name}");
    }
}

/// `(1 + 2^-12)^2 - (1 + 2^-11)` is 2^-24 with one rounding and 0 with two.
#[test]
fn contraction_of_products_and_sums() {
    let text =
        pointwise(8, &["f32", "f32", "f32"], &[("f32", "%p = arith.mulf %a, %b : f32\n%r = arith.addf %p, %c : f32")]);
    let (a, c) = (1.0 + 2f32.powi(-12), -(1.0 + 2f32.powi(-11)));
    for place in places() {
        let out = place.floats(&text, &[floats(&[a; 8]), floats(&[a; 8]), floats(&[c; 8])]);
        let (once, twice) = (2f32.powi(-24), 0.0);
        assert!(out[0].iter().all(|x| *x == once || *x == twice), "{}: {:?}", place.name(), out[0]);
        assert!(out[0].iter().all(|x| *x == out[0][0]), "{}: every lane rounds alike: {:?}", place.name(), out[0]);
    }
}

/// A product and a constant factor: rounded in the order of the program, or with the constant multiplied first.
#[test]
fn constant_factors_of_products() {
    let values = numbers(4096);
    let body = "%p = arith.mulf %a, %a : f32\n%k = arith.constant 200.0 : f32\n%r = arith.mulf %p, %k : f32";
    let text = pointwise(4096, &["f32"], &[("f32", body)]);
    for place in places() {
        let out = &place.floats(&text, &[floats(&values)])[0];
        for (x, found) in values.iter().zip(out) {
            let (in_order, constant_first) = ((x * x) * 200.0, (x * 200.0) * x);
            let right = *found == in_order || place.gpu && *found == constant_first;
            assert!(right, "{}: {x} gives {found}, not {in_order}", place.name());
        }
    }
}

/// Sums are within the bound of any order, exact for whole numbers, and reproducible.
#[test]
fn reassociation_in_sums() {
    for (m, n) in [(3, 1000), (3, 1001), (1, 150_000)] {
        let text = row_reduction(m, n, "0.0", "arith.addf");
        let values = numbers(m * n);
        let whole: Vec<f32> = values.iter().map(|x| (x * 50.0).round()).collect();
        for place in places() {
            let what = format!("{} {m}x{n}", place.name());
            let found = &place.floats(&text, &[matrix(n, &values)])[0];
            for (row, found) in values.chunks(n).zip(found) {
                let exact: f64 = row.iter().map(|x| f64::from(*x)).sum();
                let size: f64 = row.iter().map(|x| f64::from(x.abs())).sum();
                let bound = n as f64 * f64::from(f32::EPSILON) / 2.0 * size;
                assert!((f64::from(*found) - exact).abs() <= bound, "{what}: {found} is not {exact}");
            }
            let sums: Vec<f32> = whole.chunks(n).map(|r| r.iter().sum()).collect();
            assert_eq!(place.floats(&text, &[matrix(n, &whole)])[0], sums, "{what}");
            let bits = |threads| place.run_on(&text, &[matrix(n, &values)], threads);
            let first = bits(1);
            assert_eq!(first, bits(1), "{what}: two runs");
            assert_eq!(first, bits(2), "{what}: another number of threads");
        }
    }
}

#[test]
fn denormals() {
    let small = 1e-40f32;
    let text = pointwise(4, &["f32"], &[("f32", "%k = arith.constant 0.5 : f32\n%r = arith.mulf %a, %k : f32")]);
    for place in places() {
        let out = &place.floats(&text, &[floats(&[small, -small, f32::MIN_POSITIVE, 4.0])])[0];
        assert_eq!(out[3], 2.0);
        for (found, kept) in out[..3].iter().zip([small * 0.5, -small * 0.5, f32::MIN_POSITIVE * 0.5]) {
            let flushed = place.gpu && *found == 0.0;
            assert!(*found == kept || flushed, "{}: {out:?}", place.name());
        }
    }
}

#[test]
fn integers_wrap() {
    let text = pointwise(
        3,
        &["i32", "i32"],
        &[
            ("i32", "%r = arith.addi %a, %b : i32"),
            ("i32", "%r = arith.subi %a, %b : i32"),
            ("i32", "%r = arith.muli %a, %b : i32"),
        ],
    );
    let (a, b) = ([i32::MAX, i32::MIN, 123_456_789], [1, 1, 987_654_321]);
    for place in places() {
        let out = place.ints(&text, &[ints(&a), ints(&b)]);
        let expected = |f: fn(i32, i32) -> i32| a.iter().zip(&b).map(|(a, b)| f(*a, *b)).collect::<Vec<_>>();
        assert_eq!(out[0], expected(i32::wrapping_add), "{}", place.name());
        assert_eq!(out[1], expected(i32::wrapping_sub), "{}", place.name());
        assert_eq!(out[2], expected(i32::wrapping_mul), "{}", place.name());
    }
}

/// A divisor of 0 counts as 1, and -1 negates, which wraps: in scalars and in vectors.
#[test]
fn integer_division_by_zero() {
    let ops = ["divsi", "remsi", "floordivsi", "ceildivsi", "divui", "remui", "ceildivui"];
    let bodies = ops.map(|op| format!("%r = arith.{op} %a, %b : i32"));
    let results: Vec<(&str, &str)> = bodies.iter().map(|body| ("i32", body.as_str())).collect();
    let text = pointwise(19, &["i32", "i32"], &results);
    let (some, by) = ([7, 7, i32::MIN, -9, 7, -7], [2, 0, -1, 4, -1, 0]);
    let repeated = |from: [i32; 6]| -> Vec<i32> { (0..19).map(|i| from[i % 6]).collect() };
    let expected = [
        [3, 7, i32::MIN, -2, -7, -7],
        [1, 0, 0, -1, 0, 0],
        [3, 7, i32::MIN, -3, -7, -7],
        [4, 7, i32::MIN, -2, -7, -7],
        [3, 7, 0, 0x3FFF_FFFD, 0, -7],
        [1, 0, i32::MIN, 3, 7, 0],
        [4, 7, 1, 0x3FFF_FFFE, 1, -7],
    ];
    for place in places() {
        let out = place.ints(&text, &[ints(&repeated(some)), ints(&repeated(by))]);
        for ((op, found), expected) in ops.iter().zip(&out).zip(expected) {
            assert_eq!(*found, repeated(expected), "{op} on {}", place.name());
        }
    }
}

#[test]
fn floats_to_integers_out_of_range() {
    let text = pointwise(
        6,
        &["f32"],
        &[("i32", "%r = arith.fptosi %a : f32 to i32"), ("i32", "%r = arith.fptoui %a : f32 to i32")],
    );
    for place in places() {
        let out = place.ints(&text, &[floats(&[1.9, f32::NAN, 1e20, f32::INFINITY, 2_147_483_520.0, 0.5])]);
        for result in &out {
            assert_eq!([result[0], result[4], result[5]], [1, 2_147_483_520, 0], "{}", place.name());
        }
    }
}

#[test]
fn bools_are_bytes_of_0_and_1() {
    let values: Vec<f32> = numbers(37);
    let text = pointwise(37, &["f32"], &[("i1", "%k = arith.constant 0.0 : f32\n%r = arith.cmpf ogt, %a, %k : f32")]);
    let back = pointwise(37, &["i1"], &[("i32", "%r = arith.extui %a : i1 to i32")]);
    let expected: Vec<u8> = values.iter().map(|x| u8::from(*x > 0.0)).collect();
    for place in places() {
        assert_eq!(place.run(&text, &[floats(&values)])[0], expected, "{}", place.name());
        let bools = HostTensor::new(DType::I1, vec![37], expected.clone()).expect("a byte each");
        let ints: Vec<u8> = place.ints(&back, &[bools])[0].iter().map(|x| *x as u8).collect();
        assert_eq!(ints, expected, "{}", place.name());
    }
}

#[test]
fn indices_are_eight_bytes_in_memory() {
    let text = "func.func @main(%x: tensor<5xindex>) -> (tensor<5xindex>, tensor<5xi32>) {\n  %e = tensor.empty() : tensor<5xindex>\n  %f = tensor.empty() : tensor<5xi32>\n  %y:2 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = [\"parallel\"]} ins(%x : tensor<5xindex>) outs(%e, %f : tensor<5xindex>, tensor<5xi32>) {\n  ^bb0(%a: index, %o: index, %p: i32):\n    %i = linalg.index 0 : index\n    %k = arith.constant 1000000 : index\n    %m = arith.muli %i, %k : index\n    %r = arith.addi %m, %a : index\n    %q = arith.index_cast %r : index to i32\n    linalg.yield %r, %q : index, i32\n  } -> (tensor<5xindex>, tensor<5xi32>)\n  return %y#0, %y#1 : tensor<5xindex>, tensor<5xi32>\n}\n";
    let input: Vec<i64> = vec![0, 1, -2, 40, -5_000_000];
    let tensor = HostTensor::new(DType::Index, vec![5], input.iter().flat_map(|v| v.to_le_bytes()).collect())
        .expect("eight bytes each");
    let expected: Vec<i64> = input.iter().enumerate().map(|(i, x)| i as i64 * 1_000_000 + x).collect();
    for place in places() {
        let out = place.run(text, std::slice::from_ref(&tensor));
        assert_eq!(each(&out[0], i64::from_le_bytes), expected, "{}", place.name());
        let narrow: Vec<i32> = expected.iter().map(|x| *x as i32).collect();
        assert_eq!(each(&out[1], i32::from_le_bytes), narrow, "{}", place.name());
    }
}

/// On the CPU an index has 64 bits, also in a register.
#[test]
fn indices_of_the_cpu_have_64_bits() {
    let wide = "%k = arith.constant 3000000000 : index\n%i = arith.index_cast %a : i32 to index\n%m = arith.muli %i, %k : index\n%d = arith.constant 1000000000 : index\n%q = arith.divsi %m, %d : index\n%r = arith.index_cast %q : index to i32";
    let text = pointwise(3, &["i32"], &[("i32", wide)]);
    let cpu = places().remove(0);
    assert_eq!(cpu.ints(&text, &[ints(&[1, 7, -5])])[0], [3, 21, -15]);
}

/// Reads out of range are clamped.
#[test]
fn extracts_out_of_range() {
    let text = "func.func @main(%x: tensor<6xf32>, %at: tensor<5xi32>) -> tensor<5xf32> {\n  %e = tensor.empty() : tensor<5xf32>\n  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = [\"parallel\"]} ins(%at : tensor<5xi32>) outs(%e : tensor<5xf32>) {\n  ^bb0(%a: i32, %o: f32):\n    %i = arith.index_cast %a : i32 to index\n    %r = tensor.extract %x[%i] : tensor<6xf32>\n    linalg.yield %r : f32\n  } -> tensor<5xf32>\n  return %y : tensor<5xf32>\n}\n";
    let x = [10.0, 11.0, 12.0, 13.0, 14.0, 15.0];
    for place in places() {
        let inside = place.floats(text, &[floats(&x), ints(&[5, 0, 3, 3, 1])]);
        assert_eq!(inside[0], [15.0, 10.0, 13.0, 13.0, 11.0], "{}", place.name());
        let out = place.floats(text, &[floats(&x), ints(&[2, -1, 6, i32::MAX, 5])]);
        assert_eq!(out[0], [12.0, 10.0, 15.0, 15.0, 15.0], "{}", place.name());
    }
}

/// A number below half of the last place, added three times: rounding only at the end would give one more.
#[test]
fn bf16_is_rounded_at_each_op() {
    let steps = "%k = arith.constant 128.0 : bf16\n%u = arith.addf %k, %a : bf16\n%v = arith.addf %u, %a : bf16\n%r = arith.addf %v, %a : bf16";
    let halves = "%r = arith.truncf %b : f32 to bf16";
    let text = pointwise(7, &["bf16", "f32"], &[("bf16", steps), ("bf16", halves)]);
    let third = HostTensor::new(DType::Bf16, vec![7], [0xabu8, 0x3e].repeat(7)).expect("the length fits");
    // Ties, one in each direction; NaN; infinities, one of them by overflow.
    let bits =
        [0x3f80_8000, 0x3f81_8000, 0x3f80_8001, 0xffff_ffff, 0x7f80_0000, 0xff7f_ffff, 0x8000_0000].map(f32::from_bits);
    for place in places() {
        let out = place.run(&text, &[third.clone(), floats(&bits)]);
        assert_eq!(each(&out[0], u16::from_le_bytes), [0x4300; 7], "{}", place.name());
        let found = each(&out[1], u16::from_le_bytes);
        assert!(found[3] & 0x7fff > 0x7f80, "{}: a NaN stays one, found {:#x}", place.name(), found[3]);
        assert_eq!(
            [&found[..3], &found[4..]].concat(),
            [0x3f80, 0x3f82, 0x3f81, 0x7f80, 0xff80, 0x8000],
            "{}",
            place.name()
        );
    }
}

/// The value of a positive finite f16.
fn half_value(bits: u16) -> f32 {
    let (exponent, mantissa) = (i32::from(bits >> 10), f32::from(bits & 0x3ff));
    match exponent {
        0 => mantissa * 2f32.powi(-24),
        _ => (1024.0 + mantissa) * 2f32.powi(exponent - 25),
    }
}

/// Each positive f16 and the midpoint above it, with the f32 around that: to nearest, ties to even. The largest midpoint is
/// the first number that overflows.
#[test]
fn f16_is_rounded_to_nearest_even_everywhere() {
    const INFINITY: u16 = 0x7c00;
    let (mut values, mut expected) = (vec![], vec![]);
    for bits in 0..INFINITY {
        let middle = (f64::from(half_value(bits)) + f64::from(half_value(bits + 1))) / 2.0;
        let middle = middle as f32;
        values.extend([half_value(bits), middle.next_down(), middle, middle.next_up()]);
        expected.extend([bits, bits, bits + (bits & 1), bits + 1]);
    }
    values.extend([f32::INFINITY, f32::MAX, 1e-30, 0.0]);
    expected.extend([INFINITY, INFINITY, 0, 0]);
    values.extend(values.clone().into_iter().map(|v| -v));
    expected.extend(expected.clone().into_iter().map(|bits| bits | 0x8000));
    let n = values.len();
    let there = pointwise(n, &["f32"], &[("f16", "%r = arith.truncf %a : f32 to f16")]);
    let back = pointwise(n, &["f16"], &[("f32", "%r = arith.extf %a : f16 to f32")]);
    for place in places() {
        let found = place.run(&there, &[floats(&values)]).remove(0);
        let wrong = each(&found, u16::from_le_bytes).into_iter().zip(&expected).position(|(f, e)| f != *e);
        assert_eq!(wrong.map(|at| (values[at], expected[at])), None, "{}", place.name());
        let halves = HostTensor::new(DType::F16, vec![n as u64], found).expect("the length fits");
        let found = place.floats(&back, &[halves]).remove(0);
        let exact = |i: usize| !i.is_multiple_of(4) || found[i].to_bits() == values[i].to_bits();
        let count = usize::from(INFINITY) * 4;
        assert_eq!((0..count).find(|i| !exact(*i)), None, "{}: an f16 is an f32", place.name());
    }
}

/// A NaN stays one; a sum of ones ends where the last place is two.
#[test]
fn f16_is_rounded_at_each_op() {
    let steps = "%k = arith.constant 2048.0 : f16\n%u = arith.addf %k, %a : f16\n%v = arith.addf %u, %a : f16\n%r = arith.addf %v, %a : f16";
    let text = pointwise(5, &["f16", "f32"], &[("f16", steps), ("f16", "%r = arith.truncf %b : f32 to f16")]);
    let ones = HostTensor::new(DType::F16, vec![5], [0x00u8, 0x3c].repeat(5)).expect("the length fits");
    for place in places() {
        let out = place.run(&text, &[ones.clone(), floats(&[f32::from_bits(0xffff_ffff); 5])]);
        assert_eq!(each(&out[0], u16::from_le_bytes), [0x6800; 5], "{}", place.name());
        let nans = each(&out[1], u16::from_le_bytes);
        assert!(nans.iter().all(|bits| bits & 0x7fff > 0x7c00), "{}: found {:#x}", place.name(), nans[0]);
    }
}

/// An f64 just above the midpoint of two f16 or bf16, by less than an f32 resolves: rounding twice would go down.
#[test]
fn doubles_are_rounded_once_to_sixteen_bits() {
    let text = pointwise(
        2,
        &["f64"],
        &[("bf16", "%r = arith.truncf %a : f64 to bf16"), ("f16", "%r = arith.truncf %a : f64 to f16")],
    );
    let tiny = 2f64.powi(-40);
    let values = [1.0 + 2f64.powi(-8) + tiny, 1.0 + 2f64.powi(-11) + tiny];
    let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    let input = HostTensor::new(DType::F64, vec![2], bytes).expect("the length fits");
    for place in places() {
        let out = place.run(&text, std::slice::from_ref(&input));
        assert_eq!(each(&out[0], u16::from_le_bytes), [0x3f81, 0x3f80], "{}", place.name());
        assert_eq!(each(&out[1], u16::from_le_bytes), [0x3c04, 0x3c01], "{}", place.name());
    }
}

/// A negative exponent gives the truncated fraction.
#[test]
fn powers_of_integers_with_negative_exponents() {
    let text = pointwise(6, &["i32", "i32"], &[("i32", "%r = math.ipowi %a, %b : i32")]);
    for place in places() {
        let out = place.ints(&text, &[ints(&[2, 1, -1, -1, 0, 3]), ints(&[-1, -5, -5, -4, -2, 4])]);
        assert_eq!(out[0], [0, 1, -1, 1, 0, 81], "{}", place.name());
    }
}
