//! Products whose factor is a constant, in panels, give the bits that they give with the factor as an input, row after row.

use crate::backend::{Monopour, from_runtime};
use crate::host::{devices, evaluated, f32s, ramp, run};
use monopour::program::DType;
use monopour::runtime::HostTensor;
use monopour::{CompileOptions, compile};
use monopour_testkit::approx::{Tolerance, compare};

/// Rows of the left factor, terms, and columns; a constant factor is transposed in memory; the columns are heads of 16 that the
/// result has in front of its rows.
struct Product {
    sizes: [usize; 3],
    transposed: bool,
    heads: bool,
}

impl Product {
    /// With the factor as a constant of these elements, or as an input; the number of rows is known at run time alone if `is_dynamic`.
    fn text(&self, elements: Option<&[f32]>, is_dynamic: bool) -> String {
        let [m, k, n] = self.sizes;
        let rows = if is_dynamic { "?".to_owned() } else { m.to_string() };
        let (shape, map) = if self.transposed && elements.is_some() {
            (format!("{n}x{k}"), "(n, k)")
        } else {
            (format!("{k}x{n}"), "(k, n)")
        };
        let (x, w, p) =
            (format!("tensor<{rows}x{k}xf32>"), format!("tensor<{shape}xf32>"), format!("tensor<{rows}x{n}xf32>"));
        let hex = |elements: &[f32]| -> String {
            elements.iter().flat_map(|x| x.to_le_bytes()).map(|byte| format!("{byte:02X}")).collect()
        };
        let (given, made) = match elements {
            Some(elements) => {
                ("%u: f32".to_owned(), format!("%w = arith.constant dense<\"0x{}\"> : {w}", hex(elements)))
            }
            None => (format!("%w: {w}"), String::new()),
        };
        let (result, finish) = if self.heads {
            let (h, r) = (format!("tensor<{rows}x{}x16xf32>", n / 16), format!("tensor<{}x{rows}x16xf32>", n / 16));
            let sizes = if is_dynamic { "%rows" } else { "" };
            let extent = if is_dynamic { "%rows".to_owned() } else { m.to_string() };
            let finish = format!(
                "%h = tensor.expand_shape %s [[0], [1, 2]] output_shape [{extent}, {}, 16] : {p} into {h}\n\
                 %e = tensor.empty({sizes}) : {r}\n\
                 %r = linalg.transpose ins(%h : {h}) outs(%e : {r}) permutation = [1, 0, 2]",
                n / 16
            );
            (r, finish)
        } else {
            (p.clone(), format!("%r = tensor.cast %s : {p} to {p}"))
        };
        format!(
            r#"func.func @main(%x: {x}, %o: {p}, %b: tensor<{n}xf32>, {given}) -> {result} {{
{made}
%zero = arith.constant 0 : index
%rows = tensor.dim %x, %zero : {x}
%p = linalg.generic {{indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> {map}>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}} ins(%x, %w : {x}, {w}) outs(%o : {p}) {{
^bb0(%a: f32, %c: f32, %s: f32):
  %q = arith.mulf %a, %c : f32
  %t = arith.addf %s, %q : f32
  linalg.yield %t : f32
}} -> {p}
%s = linalg.generic {{indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}} ins(%p, %b : {p}, tensor<{n}xf32>) outs(%o : {p}) {{
^bb0(%a: f32, %c: f32, %d: f32):
  %t = arith.addf %a, %c : f32
  %z = arith.constant 0.0 : f32
  %y = arith.maximumf %t, %z : f32
  linalg.yield %y : f32
}} -> {p}
{finish}
return %r : {result}
}}
"#
        )
    }

    fn inputs(&self) -> (Vec<HostTensor>, Vec<f32>) {
        let [m, k, n] = self.sizes;
        let own = |shape: &[usize]| {
            let extents: Vec<u64> = shape.iter().map(|size| *size as u64).collect();
            f32s(&extents, &ramp(shape.iter().product()))
        };
        (vec![own(&[m, k]), own(&[m, n]), own(&[n])], ramp(k * n).into_iter().rev().collect())
    }

    /// The constant's elements, of those of an input.
    fn constant(&self, factor: &[f32]) -> Vec<f32> {
        let [_, k, n] = self.sizes;
        let at = |i: usize| if self.transposed { i % k * n + i / k } else { i };
        (0..factor.len()).map(|i| factor[at(i)]).collect()
    }
}

/// Compares the product of a constant factor with that of an input, on all CPUs.
fn check(product: &Product, is_dynamic: bool) {
    let backends: Vec<Monopour> =
        [Some(Monopour::cpu()), Monopour::aarch64()].into_iter().flatten().chain(Monopour::lower_cpus()).collect();
    let (shared, factor) = product.inputs();
    let [_, k, n] = product.sizes.map(|size| size as u64);
    for backend in &backends {
        let run = |text: &str, last: HostTensor| {
            let options = CompileOptions { targets: vec![backend.target().clone()], ..Default::default() };
            let program = compile(text.as_bytes(), "test.mlir", &options).unwrap_or_else(|e| panic!("{e}\n{text}"));
            let inputs: Vec<_> = shared.iter().cloned().chain([last]).collect();
            let results = backend.results(program.program, &inputs, 1).unwrap_or_else(|e| panic!("{e}\n{text}"));
            let bytes = results[0].data().chunks_exact(4);
            bytes.map(|four| f32::from_le_bytes(four.try_into().expect("four bytes"))).collect::<Vec<_>>()
        };
        let constant = run(&product.text(Some(&product.constant(&factor)), is_dynamic), f32s(&[], &[0.0]));
        let input = run(&product.text(None, is_dynamic), f32s(&[k, n], &factor));
        let Product { sizes, transposed, heads } = product;
        // The last columns may be scalars on one side, and fused multiply-adds on the other.
        let whole = if sizes[2] % 16 == 0 { sizes[2] } else { sizes[2] / 64 * 64 };
        let same = |(i, (a, b)): (usize, (&f32, &f32))| {
            let near = i % sizes[2] >= whole && (a - b).abs() <= 2e-6 * b.abs().max(1.0);
            a.to_bits() == b.to_bits() || near
        };
        let all = constant.iter().zip(&input).enumerate().all(same) && constant.len() == input.len();
        assert!(all, "{sizes:?}, transposed: {transposed}, heads: {heads}");
    }
}

#[test]
fn panels_do_not_change_a_bit() {
    // Of 520 rows an input is copied to panels too, where the rows are known.
    let few = [[2, 5, 64], [3, 40, 96], [15, 7, 48], [33, 19, 128], [130, 64, 80], [8, 1, 64]];
    for (i, sizes) in few.into_iter().chain([[520, 70, 96], [520, 70, 96]]).enumerate() {
        for (transposed, heads) in [(false, false), (true, false), (false, true)] {
            check(&Product { sizes, transposed, heads }, i % 2 == 0);
        }
    }
}

/// Whole panels and a rest of 17, 6 and 15 columns are two products.
#[test]
fn ragged_columns_are_right() {
    for sizes in [[16, 5, 2065], [33, 40, 2054], [20, 3, 2063]] {
        for transposed in [false, true] {
            check(&Product { sizes, transposed, heads: false }, false);
        }
    }
}

/// The rows are the third operand of a product with weights that have a scale per column; it was a panic.
#[test]
fn the_rows_of_a_product_may_be_any_operand() {
    let text = r#"
func.func @main(%q: tensor<40x24xi8>, %s: tensor<40xf32>, %x: tensor<16x24xf32>) -> tensor<16x40xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x40xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<16x40xf32>) -> tensor<16x40xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (n)>,
      affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%q, %s, %x : tensor<40x24xi8>, tensor<40xf32>, tensor<16x24xf32>) outs(%f : tensor<16x40xf32>) {
  ^bb0(%a: i8, %b: f32, %c: f32, %o: f32):
    %g = arith.sitofp %a : i8 to f32
    %h = arith.mulf %g, %b : f32
    %m = arith.mulf %h, %c : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<16x40xf32>
  return %r : tensor<16x40xf32>
}"#;
    let bytes: Vec<u8> = (0..40 * 24).map(|i| (i % 11) as u8).collect();
    let inputs = [
        HostTensor::new(DType::I8, vec![40, 24], bytes).expect("as many bytes as elements"),
        f32s(&[40], &ramp(40)),
        f32s(&[16, 24], &ramp(16 * 24)),
    ];
    let expected = evaluated(text, &inputs);
    for device in devices() {
        let (results, stats, _) = run(text, &[], &device, &inputs);
        compare(&from_runtime(&results[0]), &expected[0], Tolerance { absolute: 1e-4, relative: 1e-5 })
            .unwrap_or_else(|e| panic!("{}: {e}", stats.device));
    }
}
