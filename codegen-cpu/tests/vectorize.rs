//! Linalg ops of kernels as loops over vectors, against plain Rust, over extents with every kind of remainder.

use crate::harness::{Library, assert_close, can_run, compile, random, runs};
use monopour_codegen_cpu::object::{Listing, listing};
use monopour_ir::{Context, Module};
use monopour_program::CpuTarget;

/// Of an operand: per dimension the loops and their factors, and the shape.
type Operand = (Vec<Vec<(usize, usize)>>, Vec<usize>);

/// One generic: its loops, and of each operand the subscripts over the loops `d0`, `d1`, .. and the extents.
pub struct Case {
    loops: Vec<(usize, bool)>,
    operands: Vec<Operand>,
    /// Text of the body on `%x0`, `%x1`, .. and `%o`, which defines `%r`.
    body: &'static str,
    compute: fn(&[f32], f32) -> f32,
    /// Whether extents are hidden from the compiler.
    dynamic: bool,
    /// Whether the body adds the last loop's position besides.
    adds_position: bool,
    /// Whether the inputs are of bf16, and `%x0`, `%x1`, .. their elements as f32.
    narrow: bool,
    /// Whether the output is filled with 0 before.
    filled: bool,
}

const ADD: &str = "%r = arith.addf %o, %x0 : f32";
const MAX: &str = "%r = arith.maximumf %x0, %o : f32";
pub const PRODUCT: &str = "%p = arith.mulf %x0, %x1 : f32\n %r = arith.addf %o, %p : f32";

impl Case {
    /// Loops by letter, capitals sum; operands as words of letters, the output last; a subscript is `a`, or `a+2b`.
    pub fn new(loops: &[(char, usize)], operands: &str, body: &'static str, compute: fn(&[f32], f32) -> f32) -> Self {
        let letter = |c: char| loops.iter().position(|l| l.0.eq_ignore_ascii_case(&c)).unwrap();
        let subscript = |text: &str| -> Vec<(usize, usize)> {
            let terms = text.split('+').map(|t| {
                let (digits, name): (String, String) = t.chars().partition(char::is_ascii_digit);
                (letter(name.chars().next().unwrap()), digits.parse().unwrap_or(1))
            });
            terms.collect()
        };
        let extents: Vec<usize> = loops.iter().map(|l| l.1).collect();
        let operand = |word: &str| {
            let subscripts: Vec<_> = word.split(',').filter(|s| !s.is_empty()).map(subscript).collect();
            let shape = subscripts.iter().map(|s| s.iter().map(|(l, f)| (extents[*l] - 1) * f).sum::<usize>() + 1);
            let shape = shape.collect();
            (subscripts, shape)
        };
        let operands = operands.split(' ').map(operand).collect();
        let loops = loops.iter().map(|(c, e)| (*e, c.is_ascii_uppercase())).collect();
        Self { loops, operands, body, compute, dynamic: false, adds_position: false, narrow: false, filled: false }
    }

    fn dynamic(mut self) -> Self {
        self.dynamic = true;
        self
    }

    pub fn filled(mut self) -> Self {
        self.filled = true;
        self
    }

    pub fn narrow(mut self) -> Self {
        self.narrow = true;
        self
    }

    /// Type of the elements of an operand.
    fn element(&self, operand: usize) -> &'static str {
        if self.narrow && operand + 1 < self.operands.len() { "bf16" } else { "f32" }
    }

    fn kernel(&self, name: &str) -> String {
        let dims: Vec<String> = (0..self.loops.len()).map(|d| format!("d{d}")).collect();
        let (mut args, mut maps, mut casts, mut types) = (vec![], vec![], String::new(), vec![]);
        for (i, (subscripts, shape)) in self.operands.iter().enumerate() {
            let element = self.element(i);
            let ty = format!("memref<{}{element}>", shape.iter().map(|d| format!("{d}x")).collect::<String>());
            args.push(format!("%a{i}: {ty}"));
            let results: Vec<String> = subscripts
                .iter()
                .map(|s| s.iter().map(|(l, f)| format!("{f} * d{l}")).collect::<Vec<_>>().join(" + "))
                .collect();
            maps.push(format!("affine_map<({}) -> ({})>", dims.join(", "), results.join(", ")));
            let used = if self.dynamic { format!("memref<{}{element}>", "?x".repeat(shape.len())) } else { ty.clone() };
            casts += &format!("  %b{i} = memref.cast %a{i} : {ty} to {used}\n");
            types.push(used);
        }
        let last = self.operands.len() - 1;
        let iterators: Vec<&str> =
            self.loops.iter().map(|l| if l.1 { "\"reduction\"" } else { "\"parallel\"" }).collect();
        if self.filled {
            casts += "  %zero = arith.constant 0.0 : f32\n";
            casts += &format!("  linalg.fill ins(%zero : f32) outs(%b{last} : {})\n", types[last]);
        }
        let names = |prefix: &str| (0..last).map(|i| format!("%{prefix}{i}")).collect::<Vec<_>>().join(", ");
        let arg = if self.narrow { "n" } else { "x" };
        let block: String = (0..last).map(|i| format!("%{arg}{i}: {}, ", self.element(i))).collect();
        let wide = (0..last).filter(|_| self.narrow).map(|i| format!("  %x{i} = arith.extf %n{i} : bf16 to f32\n"));
        let wide: String = wide.collect();
        format!(
            "func.func private @{name}({}) attributes {{monopour.kernel = {{class = \"generic\"}}}} {{\n{casts}  \
             linalg.generic {{indexing_maps = [{}], iterator_types = [{}]}} ins({} : {}) outs(%b{last} : {}) {{\n  \
             ^bb0({block}%o: f32):\n{wide} {}\n linalg.yield %r : f32\n  }}\n  return\n}}\n",
            args.join(", "),
            maps.join(", "),
            iterators.join(", "),
            names("b"),
            types[..last].join(", "),
            types[last],
            self.body,
        )
    }

    fn expected(&self, data: &[Vec<f32>]) -> Vec<f32> {
        let flat = |operand: usize, at: &[usize]| {
            let (subscripts, shape) = &self.operands[operand];
            subscripts
                .iter()
                .zip(shape)
                .fold(0, |sum, (s, extent)| sum * extent + s.iter().map(|(l, f)| at[*l] * f).sum::<usize>())
        };
        let last = self.operands.len() - 1;
        let mut out = data[last].clone();
        if self.filled {
            out.fill(0.0);
        }
        let total: usize = self.loops.iter().map(|l| l.0).product();
        for n in 0..total {
            let (mut at, mut rest) = (vec![0; self.loops.len()], n);
            for (d, (extent, _)) in self.loops.iter().enumerate().rev() {
                at[d] = rest % extent;
                rest /= extent;
            }
            let inputs: Vec<f32> = (0..last).map(|i| data[i][flat(i, &at)]).collect();
            let o = &mut out[flat(last, &at)];
            let position = if self.adds_position { at[at.len() - 1] as f32 } else { 0.0 };
            *o = (self.compute)(&inputs, *o) + position;
        }
        out
    }
}

/// Compiles all cases as one module for each kind of CPU, and runs them between canaries.
pub fn check(cases: &[Case], tolerance: f32) {
    if !can_run() {
        return;
    }
    let text: String = cases.iter().enumerate().map(|(i, case)| case.kernel(&format!("k{i}"))).collect();
    for name in ["x86-64", "x86-64-v3", "x86-64-v4", "generic", "aarch64"] {
        let Some(target) = CpuTarget::parse(name).filter(runs) else { continue };
        let library = Library::load(&compile(&text, &target).unwrap());
        for (i, case) in cases.iter().enumerate() {
            let sizes = case.operands.iter().map(|(_, shape)| shape.iter().product::<usize>());
            let mut data: Vec<Vec<f32>> = sizes.enumerate().map(|(n, size)| random(size, (i * 8 + n) as u64)).collect();
            if case.narrow {
                let inputs = data.len() - 1;
                data[..inputs].iter_mut().flatten().for_each(|x| *x = f32::from_bits(x.to_bits() & 0xffff_0000));
            }
            let expected = case.expected(&data);
            if case.narrow {
                let inputs = data.len() - 1;
                data[..inputs].iter_mut().for_each(|values| *values = packed(values));
            }
            let size = expected.len();
            data.last_mut().unwrap().extend([42.0; 64]);
            let mut args: Vec<&mut Vec<f32>> = data.iter_mut().collect();
            library.run(&format!("k{i}"), &mut args, &[]);
            let found = data.last().unwrap();
            assert_eq!(found[size..], [42.0; 64], "case {i} on {name} writes past its end");
            assert_close(&found[..size], &expected, tolerance);
        }
    }
}

/// The upper halves of the values, two in each element.
fn packed(values: &[f32]) -> Vec<f32> {
    let half = |x: Option<&f32>| x.map_or(0, |x| x.to_bits() >> 16);
    values.chunks(2).map(|pair| f32::from_bits(half(pair.first()) | half(pair.get(1)) << 16)).collect()
}

const EXTENTS: [usize; 9] = [1, 4, 7, 16, 17, 40, 100, 131, 1000];

#[test]
fn sums_and_maxima_of_rows() {
    let mut cases = vec![];
    for n in EXTENTS {
        cases.push(Case::new(&[('i', 3), ('J', n)], "i,j i", ADD, |x, o| o + x[0]));
        cases.push(Case::new(&[('i', 3), ('J', n)], "i,j i", MAX, |x, o| o.max(x[0])));
        cases.push(Case::new(&[('i', 2), ('J', n)], "i,j i", ADD, |x, o| o + x[0]).dynamic());
    }
    // Over two dimensions, all of them, and with a term that is uniform along a row.
    cases.push(Case::new(&[('i', 5), ('H', 3), ('W', 37)], "i,h,w i", ADD, |x, o| o + x[0]));
    cases.push(Case::new(&[('I', 5), ('J', 131)], "i,j ", MAX, |x, o| o.max(x[0])));
    cases.push(Case::new(
        &[('i', 5), ('J', 131)],
        "i,j i i",
        "%d = arith.subf %x0, %x1 : f32\n %s = arith.mulf %d, %d : f32\n %r = arith.addf %s, %o : f32",
        |x, o| o + (x[0] - x[1]) * (x[0] - x[1]),
    ));
    check(&cases, 1e-5);
}

#[test]
fn columns_and_rows_of_pointwise_ops() {
    let mut cases = vec![];
    let body = "%e = math.exp %x0 : f32\n %d = arith.divf %e, %x1 : f32\n %r = arith.addf %d, %x2 : f32";
    for n in EXTENTS {
        cases.push(Case::new(&[('I', 9), ('j', n)], "i,j j", ADD, |x, o| o + x[0]));
        cases.push(Case::new(&[('i', 3), ('j', n)], "i,j i j i,j", body, |x, _| x[0].exp() / x[1] + x[2]));
        cases.push(Case::new(&[('i', 3), ('j', n)], "i,j j j i,j", body, |x, _| x[0].exp() / x[1] + x[2]).dynamic());
        // One operand is read across its rows.
        cases.push(Case::new(&[('i', 3), ('j', n)], "j,i i,j i,j", "%r = arith.mulf %x0, %x1 : f32", |x, _| {
            x[0] * x[1]
        }));
    }
    check(&cases, 1e-5);
}

#[test]
fn transposed_inputs() {
    let body = "%p = arith.mulf %x0, %x1 : f32\n %s = arith.addf %p, %x2 : f32\n %r = arith.addf %s, %o : f32";
    let mut cases = vec![];
    for (m, n) in [(16, 16), (4, 100), (17, 40), (40, 131), (3, 64), (100, 7)] {
        for dynamic in [false, true] {
            let loops = [('b', 2), ('i', m), ('j', n)];
            let copy = Case::new(&loops, "b,j,i b,i,j", "%r = arith.negf %x0 : f32", |x, _| -x[0]);
            let inner = Case::new(&loops, "j,b,i b,i,j", "%r = arith.negf %x0 : f32", |x, _| -x[0]);
            let update = Case::new(&loops, "j,i i,j b,j b,i,j", body, |x, o| x[0] * x[1] + x[2] + o);
            cases.extend([copy, inner, update].map(|case| Case { dynamic, ..case }));
        }
    }
    check(&cases, 1e-6);
}

#[test]
fn products_in_every_layout() {
    let mut cases = vec![];
    let product = |x: &[f32], o: f32| o + x[0] * x[1];
    for (m, n, k) in [(1, 1, 1), (7, 17, 5), (29, 131, 7), (5, 100, 33)] {
        let loops = [('m', m), ('n', n), ('K', k)];
        for operands in ["m,k k,n m,n", "k,m k,n m,n", "m,k n,k m,n", "k,m n,k m,n", "m,k k,n n,m"] {
            cases.push(Case::new(&loops, operands, PRODUCT, product));
        }
        cases.push(Case::new(&loops, "m,k k,n m,n", PRODUCT, product).dynamic());
        cases.push(Case::new(&loops, "m,k n,k m,n", PRODUCT, product).dynamic());
        cases.push(Case::new(&[('m', m), ('K', k)], "m,k k m", PRODUCT, product));
        cases.push(Case::new(&[('n', n), ('K', k)], "k k,n n", PRODUCT, product));
        let batched = [('b', 2), ('m', m), ('n', n), ('K', k)];
        cases.push(Case::new(&batched, "b,m,k b,n,k b,m,n", PRODUCT, product));
        cases.push(Case::new(&batched, "b,m,k k,n b,m,n", PRODUCT, product));
    }
    check(&cases, 1e-5);
}

/// Panels hold f32: of both inputs or one, whole or in blocks, in every layout.
#[test]
fn products_of_narrow_inputs() {
    let mut cases = vec![];
    let product = |x: &[f32], o: f32| o + x[0] * x[1];
    for (m, n, k) in [(7, 17, 5), (29, 131, 7), (9, 40, 600)] {
        let loops = [('m', m), ('n', n), ('K', k)];
        for operands in ["m,k k,n m,n", "k,m k,n m,n", "m,k n,k m,n", "k,m n,k m,n", "m,k k,n n,m"] {
            cases.push(Case::new(&loops, operands, PRODUCT, product).narrow());
        }
        cases.push(Case::new(&loops, "m,k k,n m,n", PRODUCT, product).narrow().dynamic());
        let batched = [('b', 2), ('m', m), ('n', n), ('J', 3), ('K', k)];
        cases.push(Case::new(&batched, "b,m,j,k b,j,k,n b,m,n", PRODUCT, product).narrow());
        cases.push(Case::new(&batched, "b,m,j,k j,k,n b,m,n", PRODUCT, product).narrow());
        let one_reads_more = [('m', m), ('n', n), ('J', 3), ('K', k)];
        cases.push(Case::new(&one_reads_more, "m,j,k k,n m,n", PRODUCT, product).narrow());
    }
    check(&cases, 1e-4);
}

#[test]
fn products_of_one_row_stream_their_matrix() {
    let product = |x: &[f32], o: f32| o + x[0] * x[1];
    let mut cases = vec![];
    for k in [1, 7, 8, 9, 100] {
        for n in [33, 64, 131, 1100] {
            cases.push(Case::new(&[('n', n), ('K', k)], "k k,n n", PRODUCT, product));
            cases.push(Case::new(&[('n', n), ('K', k)], "k k,n n", PRODUCT, product).dynamic());
            cases.push(Case::new(&[('m', 1), ('n', n), ('J', 1), ('K', k)], "m,k j,k,n m,n", PRODUCT, product));
        }
        cases.push(Case::new(&[('n', 100), ('J', 3), ('K', k)], "j,k j,k,n n", PRODUCT, product));
    }
    // Rows that turn out to be few, or more.
    for m in [1, 3, 16, 17, 30] {
        let loops = [('m', m), ('n', 131), ('J', 2), ('K', 19)];
        cases.push(Case::new(&loops, "m,j,k j,k,n m,n", PRODUCT, product).dynamic());
        let heads = [('h', 3), ('m', m), ('n', 40), ('K', 19)];
        cases.push(Case::new(&heads, "m,k k,h,n h,m,n", PRODUCT, product).dynamic());
        cases.push(Case::new(&heads, "h,m,k h,k,n h,m,n", PRODUCT, product).dynamic());
    }
    check(&cases, 1e-5);
}

/// A fill, a product and an epilogue, in one kernel; the bias is added along the second loop of the result.
fn dense_layer(name: &str, [m, n, k]: [usize; 3], transposed: bool) -> String {
    let (b, b_map) = if transposed { (format!("{n}x{k}"), "(j, k)") } else { (format!("{k}x{n}"), "(k, j)") };
    format!(
        r#"
func.func private @{name}(%A: memref<{m}x{k}xf32>, %B: memref<{b}xf32>, %bias: memref<{n}xf32>, %C: memref<{m}x{n}xf32>) attributes {{monopour.kernel = {{class = "contraction"}}}} {{
  %z = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f32
  linalg.fill ins(%z : f32) outs(%C : memref<{m}x{n}xf32>)
  linalg.generic {{indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> {b_map}>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]}}
    ins(%A, %B : memref<{m}x{k}xf32>, memref<{b}xf32>) outs(%C : memref<{m}x{n}xf32>) {{
  ^bb0(%x: f32, %y: f32, %o: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  }}
  linalg.generic {{indexing_maps = [affine_map<(j, i) -> (j)>, affine_map<(j, i) -> (i, j)>], iterator_types = ["parallel", "parallel"]}}
    ins(%bias : memref<{n}xf32>) outs(%C : memref<{m}x{n}xf32>) {{
  ^bb0(%x: f32, %o: f32):
    %s = arith.addf %o, %x : f32
    %r = arith.maximumf %s, %z : f32
    linalg.yield %r : f32
  }}
  linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}}
    outs(%C : memref<{m}x{n}xf32>) {{
  ^bb0(%o: f32):
    %r = arith.mulf %o, %half : f32
    linalg.yield %r : f32
  }}
  return
}}
"#
    )
}

#[test]
fn layers_with_all_that_surrounds_the_product() {
    if !can_run() {
        return;
    }
    // The last rows have rests that one step covers, beginning in the step before it.
    let shapes = [[1, 1, 1], [7, 17, 5], [29, 131, 70], [200, 3, 40], [17, 70, 1100], [9, 16, 2049]];
    let shapes = [&shapes[..], &[7, 13, 14, 23, 27, 55].map(|n| [9, n, 5])].concat();
    let kernels: String = shapes
        .iter()
        .enumerate()
        .map(|(i, s)| dense_layer(&format!("plain{i}"), *s, false) + &dense_layer(&format!("transposed{i}"), *s, true))
        .collect();
    for name in ["x86-64", "x86-64-v3", "x86-64-v4", "generic", "aarch64"] {
        let Some(target) = CpuTarget::parse(name).filter(runs) else { continue };
        let library = Library::load(&compile(&kernels, &target).unwrap());
        for (i, [m, n, k]) in shapes.iter().copied().enumerate() {
            let (mut a, mut b, mut bias) = (random(m * k, 1), random(k * n, 2), random(n, 3));
            for transposed in [false, true] {
                let at = |p: usize, j: usize| if transposed { j * k + p } else { p * n + j };
                let product = |r: usize, j: usize| (0..k).map(|p| a[r * k + p] * b[at(p, j)]).sum::<f32>();
                let expected: Vec<f32> =
                    (0..m * n).map(|e| (product(e / n, e % n) + bias[e % n]).max(0.0) * 0.5).collect();
                let mut c = vec![f32::NAN; m * n];
                c.extend([42.0; 64]);
                let kernel = format!("{}{i}", if transposed { "transposed" } else { "plain" });
                library.run(&kernel, &mut [&mut a, &mut b, &mut bias, &mut c], &[]);
                assert_eq!(c[m * n..], [42.0; 64], "{kernel} on {name} writes past its end");
                assert_close(&c[..m * n], &expected, 1e-5);
            }
        }
    }
}

/// An epilogue that reads the result shifted: the ops must stay apart.
const OVERLAP: &str = r#"
func.func private @k(%A: memref<32x64xf32>, %C: memref<64xf32>, %T: memref<64xf32>) attributes {monopour.kernel = {class = "generic"}} {
  %z = arith.constant 0.0 : f32
  %low = memref.subview %C[0] [32] [1] : memref<64xf32> to memref<32xf32, strided<[1]>>
  %high = memref.subview %C[32] [32] [1] : memref<64xf32> to memref<32xf32, strided<[1], offset: 32>>
  linalg.fill ins(%z : f32) outs(%C : memref<64xf32>)
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>], iterator_types = ["reduction", "parallel"]}
    ins(%A : memref<32x64xf32>) outs(%C : memref<64xf32>) {
  ^bb0(%x: f32, %o: f32):
    %s = arith.addf %o, %x : f32
    linalg.yield %s : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
    ins(%high : memref<32xf32, strided<[1], offset: 32>>) outs(%low : memref<32xf32, strided<[1]>>) {
  ^bb0(%x: f32, %o: f32):
    %s = arith.addf %o, %x : f32
    linalg.yield %s : f32
  }
  return
}
"#;

#[test]
fn ops_that_read_other_parts_of_the_result_stay_apart() {
    if !can_run() {
        return;
    }
    let mut a = random(32 * 64, 5);
    let sums: Vec<f32> = (0..64).map(|j| (0..32).map(|i| a[i * 64 + j]).sum()).collect();
    let expected: Vec<f32> = (0..64).map(|j| if j < 32 { sums[j] + sums[j + 32] } else { sums[j] }).collect();
    let library = Library::load(&compile(OVERLAP, &CpuTarget::host()).unwrap());
    let (mut c, mut t) = (vec![f32::NAN; 64], vec![0.0; 64]);
    library.run("k", &mut [&mut a, &mut c, &mut t], &[]);
    assert_close(&c, &expected, 1e-5);
}

#[test]
fn windows() {
    let product = |x: &[f32], o: f32| o + x[0] * x[1];
    let mut cases = vec![];
    for (w, f, c) in [(5, 33, 3), (15, 16, 8), (3, 64, 1)] {
        let loops = [('n', 1), ('h', 3), ('w', w), ('f', f), ('Y', 3), ('X', 2), ('C', c)];
        cases.push(Case::new(&loops, "n,h+y,w+x,c y,x,c,f n,h,w,f", PRODUCT, product));
        cases.push(Case::new(&loops, "n,2h+y,2w+3x,c y,x,c,f n,h,w,f", PRODUCT, product));
        cases.push(Case::new(&loops, "n,h+y,w+x,c y,x,c,f n,h,w,f", PRODUCT, product).dynamic());
        let planes = [('n', 2), ('f', f), ('h', 3), ('w', w), ('C', c), ('Y', 3), ('X', 2)];
        cases.push(Case::new(&planes, "n,c,h+y,w+x f,c,y,x n,f,h,w", PRODUCT, product));
        cases.push(Case::new(&planes, "n,c,2h+y,2w+x f,c,y,x n,f,h,w", PRODUCT, product));
        let depth = [('h', 3), ('w', w), ('c', f), ('Y', 3), ('X', 2)];
        cases.push(Case::new(&depth, "h+y,w+x,c y,x,c h,w,c", PRODUCT, product));
        // The first input only gives the window its extents.
        cases.push(Case::new(&depth, "h+y,2w+x,c y,x h,w,c", MAX, |x, o| o.max(x[0])));
        cases.push(Case::new(&[('w', 40), ('X', 5)], "w+x x w", ADD, |x, o| o + x[0]));
    }
    check(&cases, 1e-5);
}

/// Tiles of several vectors of a line, the last of which overlaps the one before it, or of one that is not full.
#[test]
fn windows_along_lines_of_any_length() {
    let product = |x: &[f32], o: f32| o + x[0] * x[1];
    let mut cases = vec![];
    for w in [3, 5, 7, 9, 13, 14, 15, 16, 17, 28, 33, 56, 112, 130] {
        let planes = [('f', 17), ('h', 2), ('w', w), ('C', 2), ('Y', 2), ('X', 3)];
        for image in ["c,h+y,w+x", "c,2h+y,2w+x"] {
            let case = || Case::new(&planes, &format!("{image} f,c,y,x f,h,w"), PRODUCT, product);
            cases.extend([case(), case().filled()]);
        }
    }
    check(&cases, 1e-5);
}

/// Windows of a whole line in a panel, where many channels read them; and those of narrow inputs, whose filters may have
/// panels in blocks.
#[test]
fn windows_that_many_channels_read() {
    let product = |x: &[f32], o: f32| o + x[0] * x[1];
    let mut cases = vec![];
    for w in [5, 7, 14, 17, 28] {
        let planes = [('f', 61), ('h', 2), ('w', w), ('C', 2), ('Y', 2), ('X', 3)];
        for image in ["c,2h+y,2w+x", "c,h+y,3w"] {
            let case = || Case::new(&planes, &format!("{image} f,c,y,x f,h,w"), PRODUCT, product);
            cases.extend([case(), case().filled(), case().filled().narrow()]);
        }
    }
    for w in [9, 28] {
        let deep = [('f', 70), ('w', w), ('C', 300), ('X', 2)];
        for image in ["c,w+x", "c,2w+x"] {
            let case = || Case::new(&deep, &format!("{image} f,c,x f,w"), PRODUCT, product);
            cases.extend([case().filled(), case().filled().narrow()]);
        }
    }
    check(&cases, 1e-4);
}

#[test]
fn windows_over_strided_lines() {
    let product = |x: &[f32], o: f32| o + x[0] * x[1];
    let planes = ["c,2h+y,2w+x", "c,2h+y,3w+x", "c,2h+y,4w+x", "c,2h+y,5w+x", "c,h+y,2w+3x"];
    let mut cases = vec![];
    for (w, image) in EXTENTS.into_iter().filter(|w| *w < 200).flat_map(|w| planes.map(|image| (w, image))) {
        let pool = [('c', 2), ('h', 2), ('w', w), ('Y', 2), ('X', 3)];
        cases.push(Case::new(&pool, &format!("{image} y,x c,h,w"), MAX, |x, o| o.max(x[0])));
        cases.push(Case::new(&pool, &format!("{image} y,x c,h,w"), MAX, |x, o| o.max(x[0])).dynamic());
        cases.push(Case::new(&pool, &format!("{image} c,y,x c,h,w"), PRODUCT, product));
        let unfolded = [('c', 2), ('y', 2), ('x', 3), ('h', 2), ('w', w)];
        cases.push(Case::new(&unfolded, &format!("{image} c,y,x,h,w"), "%r = arith.addf %x0, %x0 : f32", |x, _| {
            2.0 * x[0]
        }));
    }
    check(&cases, 1e-5);
}

#[test]
fn positions_of_columns() {
    let body = "%i = linalg.index 1 : index\n %n = arith.index_cast %i : index to i32\n %f = arith.sitofp %n : i32 to f32\n \
                %r = arith.addf %x0, %f : f32";
    let mut cases = vec![];
    for n in EXTENTS {
        for dynamic in [false, true] {
            let case = Case::new(&[('i', 2), ('j', n)], "i,j i,j", body, |x, _| x[0]);
            cases.push(Case { dynamic, adds_position: true, ..case });
        }
    }
    check(&cases, 1e-6);
}

/// The innermost loop's position is a constant in each copy of the body.
#[test]
fn innermost_loops_of_few_iterations() {
    let mut cases = vec![];
    let body = "%d = linalg.index 2 : index\n %c = arith.index_cast %d : index to i32\n %f = arith.sitofp %c : i32 to f32\n \
                %s = arith.mulf %x0, %x1 : f32\n %r = arith.addf %s, %f : f32";
    for n in [7, 16, 37, 100] {
        for few in [2, 4] {
            let loops = [('i', 3), ('j', n), ('k', few)];
            let case = || Case::new(&loops, "i,j i i,j,k", body, |x, _| x[0] * x[1]);
            cases.extend([false, true].map(|dynamic| Case { adds_position: true, dynamic, ..case() }));
        }
    }
    // Elements that lie two apart in an outer dimension, and a sum over both loops.
    let pairs = [('n', 9), ('B', 5), ('K', 16), ('H', 2)];
    cases.push(Case::new(&pairs, "b,k,h n,b,k n", PRODUCT, |x, o| o + x[0] * x[1]));
    check(&cases, 1e-5);
}

/// Rows that share an operand, and those that share nothing, with a rest.
#[test]
fn sums_of_several_rows() {
    let mut cases = vec![];
    let product = |x: &[f32], o: f32| o + x[0] * x[1];
    for (n, rows) in [(16, 3), (49, 4), (131, 9), (1000, 4), (1000, 9)] {
        let loops = [('m', rows), ('K', n)];
        cases.push(Case::new(&loops, "m,k k m", PRODUCT, product));
        cases.push(Case::new(&loops, "m,k k m", PRODUCT, product).dynamic());
        cases.push(Case::new(&loops, "m,k m", ADD, |x, o| o + x[0]).filled());
        cases.push(Case::new(&loops, "m,k m", MAX, |x, o| o.max(x[0])));
    }
    check(&cases, 1e-4);
}

/// LLVM IR of a case for x86-64-v4.
pub fn optimized(case: &Case) -> String {
    let v4 = CpuTarget::parse("x86-64-v4").unwrap();
    let module = format!("func.func @main(%cx: i64) {{ return }}\n{}", case.kernel("k"));
    let module = Module::parse(Context::new(), module.as_bytes(), "test.mlir").unwrap();
    listing(&module, &v4, Listing::OptimizedIr).unwrap()
}

#[test]
fn rows_and_packed_numbers_are_vectors() {
    let sum = |x: &[f32], o: f32| o + x[0];
    let zipped = Case::new(&[('j', 64), ('k', 2)], "j j,k", "%r = arith.negf %x0 : f32", |x, _| -x[0]);
    assert!(optimized(&zipped).contains("store <32 x float>"));
    // Two rows of four accumulators; eight chains of a depthwise convolution, which has no shared vectors.
    let rows = Case::new(&[('m', 8), ('K', 1024)], "m,k k m", PRODUCT, sum);
    assert_eq!(optimized(&rows).matches("phi <16 x float>").count(), 8);
    let depthwise = Case::new(&[('c', 16), ('w', 16), ('X', 30)], "c,w+x c,x c,w", PRODUCT, sum);
    assert_eq!(optimized(&depthwise).matches("phi <16 x float>").count(), 8);
}

#[test]
fn vectors_are_used() {
    let has = |case: &Case, what: &str| {
        let text = optimized(case);
        assert!(text.contains(what), "{what} in\n{text}");
    };
    let sum = |x: &[f32], o: f32| o + x[0];
    has(&Case::new(&[('i', 3), ('J', 1000)], "i,j i", ADD, sum), "fadd contract <16 x float>");
    has(&Case::new(&[('i', 3), ('J', 1000)], "i,j i", ADD, sum).dynamic(), "fadd contract <16 x float>");
    has(&Case::new(&[('i', 3), ('J', 1000)], "i,j i", MAX, sum), "load <16 x float>");
    has(&Case::new(&[('I', 9), ('j', 1000)], "i,j j", ADD, sum), "fadd contract <");
    has(&Case::new(&[('w', 64), ('X', 3)], "2w+x x w", MAX, sum), "shufflevector <64 x float>");
    // The window is long enough for a vector, and contiguous: the line is the better loop.
    has(&Case::new(&[('o', 9), ('w', 64), ('X', 7)], "2w+x o,x o,w", PRODUCT, sum), "shufflevector <16 x float>");
    // Rows of accumulators: fewer where the rows of the other operand map to one set of the cache.
    let rows = |k| {
        let case = Case::new(&[('o', 14), ('w', 32), ('K', k)], "k,w o,k o,w", PRODUCT, sum);
        optimized(&case).matches("phi <32 x float>").count()
    };
    assert_eq!((rows(1000), rows(1024), rows(3072)), (14, 7, 7));
    // A line of 14 is one vector per row, of 56 four, in both loops that sum: no shorter ones.
    let line = |w| {
        let case = Case::new(&[('o', 14), ('w', w), ('C', 64), ('X', 3)], "c,w+x o,c,x o,w", PRODUCT, sum).filled();
        ["<8 x float>", "<16 x float>"].map(|ty| optimized(&case).matches(&format!("phi {ty}")).count())
    };
    assert_eq!((line(14), line(56)), ([0, 2 * 14], [0, 2 * 28]));
    // Windows that many channels read are picked once, not in the loop over channels.
    let picked = |channels| {
        let loops = [('o', channels), ('w', 28), ('C', 64), ('X', 3)];
        let text = optimized(&Case::new(&loops, "c,2w+x o,c,x o,w", PRODUCT, sum).filled());
        (text.contains("alloca [6144 x float]"), text.matches("i32 0, i32 2, i32 4").count())
    };
    assert_eq!((picked(8), picked(640)), ((false, 2), (true, 2)));
    // A square in registers.
    let across = Case::new(&[('i', 64), ('j', 64)], "j,i i,j", "%r = arith.negf %x0 : f32", |x, _| -x[0]);
    has(&across, "shufflevector <16 x float>");
    // One row of the matrix after the other: the sums are in the result, not in registers.
    let one_row = |n| {
        let case = Case::new(&[('n', n), ('K', 1000)], "k k,n n", PRODUCT, |x, o| o + x[0] * x[1]);
        optimized(&case).matches("phi <").count()
    };
    assert_eq!((one_row(16), one_row(1000)), (1, 0));
    // Each element of a narrow input is widened in a vector of its own input, once.
    let narrow = Case::new(&[('m', 64), ('n', 128), ('K', 64)], "m,k k,n m,n", PRODUCT, sum).narrow();
    has(&narrow, "zext <16 x i16>");
    assert!(!optimized(&narrow).contains("zext i16"));
    let loops = [('h', 14), ('w', 14), ('f', 64), ('Y', 3), ('X', 3), ('C', 8)];
    has(&Case::new(&loops, "h+y,w+x,c y,x,c,f h,w,f", PRODUCT, sum), "fmul contract <32 x float>");
}
