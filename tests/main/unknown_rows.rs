//! Products whose number of rows is known at run time alone, on CPUs: the rows of any number of them are those of many, each right,
//! and a single row computes its weights as it reads them.

use crate::backend::{Monopour, from_runtime};
use crate::host::{evaluated, f32s, ramp, raw};
use monopour::program::DType;
use monopour::runtime::{self, Device, DeviceChoice, Options, Session};
use monopour::{CompileOptions, compile};
use monopour_testkit::approx::{self, Tolerance};
use monopour_testkit::suite::Backend;
use monopour_testkit::{Dtype, HostTensor};
use std::fmt::Write;
use std::sync::Arc;

/// The most rows of a case: two tasks, of which the last is short.
const MOST: usize = 200;

/// How the weights are stored.
#[derive(Clone, Copy, Debug)]
enum Weights {
    /// A constant of f32.
    Constant,
    /// An input, its columns side by side or its terms.
    Input { transposed: bool },
    /// A constant of f16.
    Half,
    /// A constant of i8, with a scale for each column.
    Bytes,
    /// A constant of 4 bits, two to a byte, terms side by side, with a scale for each column and half of the terms.
    Nibbles,
}

/// A constant of these bytes.
fn constant(name: &str, ty: &str, bytes: impl IntoIterator<Item = u8>) -> String {
    let hex = bytes.into_iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02X}").expect("a string takes all");
        hex
    });
    format!("{name} = arith.constant dense<\"0x{hex}\"> : {ty}\n")
}

impl Weights {
    /// Ops that make `%w`, its type, and its subscripts.
    fn text(self, [k, n]: [usize; 2]) -> (String, String, &'static str) {
        let plain = format!("tensor<{k}x{n}xf32>");
        let of_columns = || constant("%s", &format!("tensor<{n}xf32>"), scales(n));
        let bytes = |count: usize| (0..count).map(|i| (i * 37 % 251) as u8);
        match self {
            Self::Constant => {
                let elements = ramp(k * n).into_iter().rev().flat_map(f32::to_le_bytes);
                (constant("%w", &plain, elements), plain, "(k, n)")
            }
            Self::Input { transposed: false } => (String::new(), plain, "(k, n)"),
            Self::Input { transposed: true } => (String::new(), format!("tensor<{n}x{k}xf32>"), "(n, k)"),
            Self::Half => {
                // Numbers of a sign, three bits of an exponent and some of a mantissa.
                let halves = (0..k * n).flat_map(|i| {
                    (0x3000 | u16::try_from(i * 97 % 0x0C00).expect("16 bits") | (i as u16 & 1) << 15).to_le_bytes()
                });
                let stored = format!("tensor<{k}x{n}xf16>");
                let made = format!(
                    "%e = tensor.empty() : {plain}\n\
                     %w = linalg.generic {{indexing_maps = [affine_map<(k, n) -> (k, n)>, affine_map<(k, n) -> (k, n)>], iterator_types = [\"parallel\", \"parallel\"]}} ins(%h : {stored}) outs(%e : {plain}) {{\n\
                     ^bb0(%a: f16, %z: f32):\n  %f = arith.extf %a : f16 to f32\n  linalg.yield %f : f32\n}} -> {plain}\n"
                );
                (constant("%h", &stored, halves) + &made, plain, "(k, n)")
            }
            Self::Bytes => {
                let stored = format!("tensor<{k}x{n}xi8>");
                let made = format!(
                    "%e = tensor.empty() : {plain}\n\
                     %w = linalg.generic {{indexing_maps = [affine_map<(k, n) -> (k, n)>, affine_map<(k, n) -> (n)>, affine_map<(k, n) -> (k, n)>], iterator_types = [\"parallel\", \"parallel\"]}} ins(%h, %s : {stored}, tensor<{n}xf32>) outs(%e : {plain}) {{\n\
                     ^bb0(%a: i8, %v: f32, %z: f32):\n  %f = arith.sitofp %a : i8 to f32\n  %g = arith.mulf %f, %v : f32\n  linalg.yield %g : f32\n}} -> {plain}\n"
                );
                (constant("%h", &stored, bytes(k * n)) + &of_columns() + &made, plain, "(k, n)")
            }
            Self::Nibbles => {
                let (stored, blocks) =
                    (format!("tensor<{n}x2x{}xi8>", k / 4), format!("tensor<{n}x2x{}x2xf32>", k / 4));
                let of_scales = format!("tensor<{n}x2xf32>");
                let made = format!(
                    "%e = tensor.empty() : {blocks}\n\
                     %four = arith.constant 4 : i8\n%low = arith.constant 15 : i8\n%mid = arith.constant 8.0 : f32\n\
                     %d = linalg.generic {{indexing_maps = [affine_map<(n, g, b, h) -> (n, g, b)>, affine_map<(n, g, b, h) -> (n, g)>, affine_map<(n, g, b, h) -> (n, g, b, h)>], iterator_types = [\"parallel\", \"parallel\", \"parallel\", \"parallel\"]}} ins(%h, %s : {stored}, {of_scales}) outs(%e : {blocks}) {{\n\
                     ^bb0(%a: i8, %v: f32, %z: f32):\n\
                       %i = linalg.index 3 : index\n  %j = arith.index_cast %i : index to i8\n  %by = arith.muli %j, %four : i8\n\
                       %q = arith.shrui %a, %by : i8\n  %r = arith.andi %q, %low : i8\n  %f = arith.uitofp %r : i8 to f32\n\
                       %l = arith.subf %f, %mid : f32\n  %g = arith.mulf %l, %v : f32\n  linalg.yield %g : f32\n}} -> {blocks}\n\
                     %w = tensor.collapse_shape %d [[0], [1, 2, 3]] : {blocks} into tensor<{n}x{k}xf32>\n"
                );
                let all = constant("%h", &stored, bytes(n * k / 2)) + &constant("%s", &of_scales, scales(2 * n));
                (all + &made, format!("tensor<{n}x{k}xf32>"), "(n, k)")
            }
        }
    }
}

fn scales(count: usize) -> impl Iterator<Item = u8> {
    (0..count).flat_map(|i| (0.004 + (i % 7) as f32 * 0.001).to_le_bytes())
}

/// A product.
#[derive(Clone, Copy, Debug)]
struct Product {
    weights: Weights,
    /// Terms and columns.
    sizes: [usize; 2],
    /// Whether it begins at 0, not at the bias.
    is_filled: bool,
}

impl Product {
    /// The product, with a bias and no negative results, of rows that `?` counts.
    fn text(&self) -> String {
        let [k, n] = self.sizes;
        let (made, ty, map) = self.weights.text(self.sizes);
        let given = if matches!(self.weights, Weights::Input { .. }) { format!(", %w: {ty}") } else { String::new() };
        let start = match self.is_filled {
            true => format!("linalg.fill ins(%none : f32) outs(%o : tensor<?x{n}xf32>) -> tensor<?x{n}xf32>"),
            false => {
                format!("linalg.broadcast ins(%b : tensor<{n}xf32>) outs(%o : tensor<?x{n}xf32>) dimensions = [0]")
            }
        };
        format!(
            r#"func.func @main(%x: tensor<?x{k}xf32>, %b: tensor<{n}xf32>{given}) -> tensor<?x{n}xf32> {{
%zero = arith.constant 0 : index
%none = arith.constant 0.0 : f32
%rows = tensor.dim %x, %zero : tensor<?x{k}xf32>
{made}%o = tensor.empty(%rows) : tensor<?x{n}xf32>
%c = {start}
%p = linalg.generic {{indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> {map}>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}} ins(%x, %w : tensor<?x{k}xf32>, {ty}) outs(%c : tensor<?x{n}xf32>) {{
^bb0(%a: f32, %f: f32, %z: f32):
  %q = arith.mulf %a, %f : f32
  %t = arith.addf %z, %q : f32
  linalg.yield %t : f32
}} -> tensor<?x{n}xf32>
%r = linalg.generic {{indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}} ins(%p, %b : tensor<?x{n}xf32>, tensor<{n}xf32>) outs(%o : tensor<?x{n}xf32>) {{
^bb0(%a: f32, %f: f32, %z: f32):
  %t = arith.addf %a, %f : f32
  %y = arith.maximumf %t, %none : f32
  linalg.yield %y : f32
}} -> tensor<?x{n}xf32>
return %r : tensor<?x{n}xf32>
}}
"#
        )
    }

    fn inputs(&self, rows: usize) -> Vec<runtime::HostTensor> {
        let [k, n] = self.sizes;
        let own = |shape: [usize; 2], elements: &[f32]| f32s(&shape.map(|size| size as u64), elements);
        let given = match self.weights {
            Weights::Input { transposed: false } => Some(own([k, n], &ramp(k * n))),
            Weights::Input { transposed: true } => Some(own([n, k], &ramp(k * n))),
            _ => None,
        };
        let shared = [own([rows, k], &ramp(MOST * k)[..rows * k]), f32s(&[n as u64], &ramp(n))];
        shared.into_iter().chain(given).collect()
    }

    /// Dispatches for so many rows.
    fn dispatches(&self, rows: usize) -> u64 {
        // A few rows compute integers that lie along the terms, in lines of 16 bytes.
        let few = if matches!(self.weights, Weights::Nibbles) && self.sizes[0] >= 64 { 16 } else { 1 };
        let is_apart = matches!(self.weights, Weights::Bytes | Weights::Nibbles) && !(0..=few).contains(&rows);
        1 + u64::from(is_apart) + u64::from(!self.is_filled)
    }
}

/// Compares the product of each number of rows with the first rows of the reference.
fn check(product: &Product, all: &[usize]) {
    let (text, [_, n]) = (product.text(), product.sizes);
    let [expected] = &evaluated(&text, &product.inputs(MOST))[..] else { panic!("one result") };
    let expected = expected.to_bytes();
    let compare = |result: &runtime::HostTensor, rows: usize, name: &str| {
        let first = HostTensor::from_bytes(Dtype::F32, &[rows, n], &expected[..rows * n * 4]).expect("the first rows");
        let near = Tolerance { absolute: 1e-4, relative: 2e-5 };
        approx::compare(&from_runtime(result), &first, near)
            .unwrap_or_else(|e| panic!("{product:?}, {rows} rows on {name}: {e}"));
    };
    let compiled = |backend: &Monopour| {
        let options = CompileOptions { targets: vec![backend.target().clone()], verify: true, ..Default::default() };
        compile(text.as_bytes(), "test.mlir", &options).unwrap_or_else(|e| panic!("{e}\n{text}")).program
    };
    let device = Device::open(&DeviceChoice::Cpu).expect("there is always a CPU");
    for backend in std::iter::once(Monopour::cpu()).chain(Monopour::lower_cpus()) {
        let program = Arc::new(compiled(&backend));
        let mut session = Session::load(&device, program, &Options::default()).expect("loads");
        for rows in all {
            let results =
                session.run(&product.inputs(*rows)).unwrap_or_else(|e| panic!("{product:?}, {rows} rows: {e}"));
            compare(&results[0], *rows, backend.name());
            assert_eq!(session.stats().counts.copies, 0, "{product:?}, {rows} rows");
            assert_eq!(session.stats().counts.dispatches, product.dispatches(*rows), "{product:?}, {rows} rows");
        }
        assert!(session.close().is_clean());
    }
    if let Some(backend) = Monopour::aarch64() {
        let program = compiled(&backend);
        for rows in all.iter().step_by(5) {
            let results = backend.results(program.clone(), &product.inputs(*rows), 1).unwrap_or_else(|e| panic!("{e}"));
            compare(&results[0], *rows, backend.name());
        }
    }
}

/// Each rest of a register tile, few rows and many, a whole task and a short one behind it.
fn each_rest() -> Vec<usize> {
    (1..=45).chain([100, 128, 129, 130, 145, MOST]).collect()
}

#[test]
fn any_number_of_rows_is_right() {
    use Weights::{Bytes, Constant, Half, Input, Nibbles};
    let forms = [Constant, Input { transposed: false }, Input { transposed: true }, Half, Bytes, Nibbles];
    for weights in forms {
        // Whole panels, and a rest that no vector divides.
        for n in [96, 37] {
            check(&Product { weights, sizes: [40, n], is_filled: true }, &each_rest());
        }
    }
    for (k, n) in [(64, 96), (136, 37)] {
        check(&Product { weights: Nibbles, sizes: [k, n], is_filled: true }, &each_rest());
    }
}

/// Each term updates the result in memory, or each block of them does.
#[test]
fn any_number_of_rows_is_right_in_place() {
    let rows = [1, 2, 16, 17, 18, 20, 23, 27, 28, 29, 33, 100, 130];
    let forms = [Weights::Constant, Weights::Input { transposed: false }, Weights::Input { transposed: true }];
    for (weights, is_filled) in forms.into_iter().flat_map(|weights| [(weights, false), (weights, true)]) {
        check(&Product { weights, sizes: [600, 96], is_filled }, &rows);
    }
}

/// Sums of products of bytes, which CPUs add in groups.
#[test]
fn any_number_of_rows_of_bytes_is_exact() {
    let (k, n) = (44, 80);
    let bytes = |count: usize, by: usize| (0..count).map(move |i| (i * by % 251) as u8);
    let weights = constant("%w", &format!("tensor<{k}x{n}xi8>"), bytes(k * n, 37));
    let text = format!(
        r#"func.func @main(%x: tensor<?x{k}xi8>) -> tensor<?x{n}xi32> {{
%zero = arith.constant 0 : index
%none = arith.constant 0 : i32
%rows = tensor.dim %x, %zero : tensor<?x{k}xi8>
{weights}%o = tensor.empty(%rows) : tensor<?x{n}xi32>
%c = linalg.fill ins(%none : i32) outs(%o : tensor<?x{n}xi32>) -> tensor<?x{n}xi32>
%p = linalg.generic {{indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}} ins(%x, %w : tensor<?x{k}xi8>, tensor<{k}x{n}xi8>) outs(%c : tensor<?x{n}xi32>) {{
^bb0(%a: i8, %f: i8, %z: i32):
  %d = arith.extui %a : i8 to i32
  %g = arith.extsi %f : i8 to i32
  %q = arith.muli %d, %g : i32
  %t = arith.addi %z, %q : i32
  linalg.yield %t : i32
}} -> tensor<?x{n}xi32>
return %p : tensor<?x{n}xi32>
}}
"#
    );
    let input = |rows: usize| raw(DType::I8, &[rows as u64, k as u64], &bytes(rows * k, 59).collect::<Vec<_>>());
    let [expected] = &evaluated(&text, &[input(MOST)])[..] else { panic!("one result") };
    let expected = expected.to_bytes();
    let device = Device::open(&DeviceChoice::Cpu).expect("there is always a CPU");
    for backend in std::iter::once(Monopour::cpu()).chain(Monopour::lower_cpus()) {
        let options = CompileOptions { targets: vec![backend.target().clone()], verify: true, ..Default::default() };
        let program = compile(text.as_bytes(), "test.mlir", &options).unwrap_or_else(|e| panic!("{e}")).program;
        let mut session = Session::load(&device, Arc::new(program), &Options::default()).expect("loads");
        for rows in each_rest() {
            let results = session.run(&[input(rows)]).unwrap_or_else(|e| panic!("{rows} rows: {e}"));
            assert_eq!(results[0].data(), &expected[..rows * n * 4], "{rows} rows on {}", backend.name());
        }
        assert!(session.close().is_clean());
    }
}

/// A batch and rows of unknown numbers, and a residual of them: a single row of all is one dispatch, which computes its weights. So
/// do weights of f16 that are transposed once they are extended.
#[test]
fn a_single_row_of_a_batch_computes_its_weights() {
    let (k, n) = (40, 48);
    let (x, p, w) = (format!("tensor<?x?x{k}xf32>"), format!("tensor<?x?x{n}xf32>"), format!("tensor<{k}x{n}xf32>"));
    let (bytes, ..) = Weights::Bytes.text([k, n]);
    let (halves, wide, _) = Weights::Half.text([n, k]);
    let turned = format!(
        "{}%u = tensor.empty() : {w}\n%w = linalg.transpose ins(%wide : {wide}) outs(%u : {w}) permutation = [1, 0]\n",
        halves.replace("%w =", "%wide =")
    );
    for weights in [bytes, turned] {
        let text = format!(
            r#"func.func @main(%x: {x}, %r: {p}) -> {p} {{
%zero = arith.constant 0 : index
%one = arith.constant 1 : index
%none = arith.constant 0.0 : f32
%batch = tensor.dim %x, %zero : {x}
%rows = tensor.dim %x, %one : {x}
{weights}%o = tensor.empty(%batch, %rows) : {p}
%c = linalg.fill ins(%none : f32) outs(%o : {p}) -> {p}
%p = linalg.generic {{indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (k, n)>, affine_map<(b, m, n, k) -> (b, m, n)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}} ins(%x, %w : {x}, {w}) outs(%c : {p}) {{
^bb0(%a: f32, %f: f32, %z: f32):
  %q = arith.mulf %a, %f : f32
  %t = arith.addf %z, %q : f32
  linalg.yield %t : f32
}} -> {p}
%y = linalg.add ins(%r, %p : {p}, {p}) outs(%o : {p}) -> {p}
return %y : {p}
}}
"#
        );
        let device = Device::open(&DeviceChoice::Cpu).expect("there is always a CPU");
        for backend in std::iter::once(Monopour::cpu()).chain(Monopour::lower_cpus()) {
            let options =
                CompileOptions { targets: vec![backend.target().clone()], verify: true, ..Default::default() };
            let program =
                compile(text.as_bytes(), "test.mlir", &options).unwrap_or_else(|e| panic!("{e}\n{text}")).program;
            let mut session = Session::load(&device, Arc::new(program), &Options::default()).expect("loads");
            for [batch, rows] in [[1, 1], [2, 1], [1, 5], [3, 7], [1, 40], [0, 1]] {
                let of = |last: usize| f32s(&[batch as u64, rows as u64, last as u64], &ramp(batch * rows * last));
                let inputs = [of(k), of(n)];
                let results = session.run(&inputs).unwrap_or_else(|e| panic!("{batch} x {rows}: {e}"));
                let near = Tolerance { absolute: 1e-4, relative: 2e-5 };
                approx::compare(&from_runtime(&results[0]), &evaluated(&text, &inputs)[0], near)
                    .unwrap_or_else(|e| panic!("{batch} x {rows} on {}: {e}", backend.name()));
                let counts = session.stats().counts;
                assert_eq!(counts.copies, 0, "{batch} x {rows}");
                if batch * rows == 1 {
                    assert_eq!(counts.dispatches, 1, "on {}", backend.name());
                }
            }
            assert!(session.close().is_clean());
        }
    }
}
