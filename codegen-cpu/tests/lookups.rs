//! Products with numbers of 2 or 4 bits, against sums in plain Rust: of floats, where registers that hold 16 of these look up what
//! becomes of a number, and of rows of 8 bits, whose products are added as integers.

use crate::dots::as_buffer;
use crate::harness::{Library, can_run, compile, random, runs};
use monopour_codegen_cpu::object::{Listing, listing};
use monopour_ir::{Context, Module};
use monopour_program::CpuTarget;

/// `y[m, n] += x[m, b, t] * ((w[n, b, t] - zero[n, b]) * scale[n, b])`; of rows of 8 bits times a scale for each block of these.
#[derive(Clone, Copy, Debug)]
struct Case {
    rows: usize,
    columns: usize,
    blocks: usize,
    /// Bytes of a block.
    bytes: usize,
    bits: usize,
    /// Whether blocks have a zero point.
    zeros: bool,
    /// Whether the product is scaled, not the number.
    scaled_last: bool,
    /// Whether the number of rows is not known.
    dynamic: bool,
    /// Whether rows are of 8 bits, each place of a byte a line of a block.
    narrow: bool,
}

impl Case {
    fn per_byte(&self) -> usize {
        8 / self.bits
    }
    fn terms(&self) -> usize {
        self.bytes * self.per_byte()
    }

    fn kernel(&self, name: &str) -> String {
        let Case { rows, columns, blocks, bytes, bits, .. } = *self;
        let per = self.per_byte();
        let line = if self.narrow { format!("{per}x{bytes}xi8") } else { format!("{bytes}x{per}xf32") };
        let (x, w) = (format!("{rows}x{blocks}x{line}"), format!("{columns}x{blocks}x{bytes}xi8"));
        let (s, z) = (format!("{columns}x{blocks}xf32"), format!("{columns}x{blocks}xi8"));
        let r = format!("{rows}x{blocks}xf32");
        let rest = |ty: &str| ty.split_once('x').expect("there are dimensions").1.to_owned();
        let y = format!("{rows}x{columns}xf32");
        let rows = if self.dynamic { "?".to_owned() } else { rows.to_string() };
        let [xd, yd, rd] = [&x, &y, &r].map(|ty| format!("{rows}x{}", rest(ty)));
        let map = |list: &str| format!("affine_map<(m, n, b, i, p) -> ({list})>");
        let zero = if self.zeros { "%zf = arith.uitofp %zv : i8 to f32\n%v = arith.subf %q, %zf : f32\n" } else { "" };
        let value = if self.zeros { "%v" } else { "%q" };
        let product = if self.scaled_last {
            format!("%t = arith.mulf %xf, {value} : f32\n%r = arith.mulf %t, %sv : f32\n")
        } else {
            format!("%t = arith.mulf {value}, %sv : f32\n%r = arith.mulf %xf, %t : f32\n")
        };
        let (element, row) = if self.narrow {
            ("i8", "%xi = arith.sitofp %xv : i8 to f32\n%xf = arith.mulf %xi, %rv : f32\n")
        } else {
            ("f32", "%one = arith.constant 1.0 : f32\n%xf = arith.mulf %xv, %one : f32\n")
        };
        format!(
            "func.func private @{name}(%x: memref<{x}>, %w: memref<{w}>, %s: memref<{s}>, %z: memref<{z}>, %rows: memref<{r}>, \
             %y: memref<{y}>) \
             attributes {{monopour.kernel = {{class = \"generic\"}}}} {{\n\
             %xd = memref.cast %x : memref<{x}> to memref<{xd}>\n%yd = memref.cast %y : memref<{y}> to memref<{yd}>\n\
             %rd = memref.cast %rows : memref<{r}> to memref<{rd}>\n\
             %zero = arith.constant 0.0 : f32\nlinalg.fill ins(%zero : f32) outs(%yd : memref<{yd}>)\n\
             %width = arith.constant {bits} : i8\n%mask = arith.constant {mask} : i8\n\
             linalg.generic {{indexing_maps = [{mx}, {mw}, {mb}, {mb}, {mr}, {my}], iterator_types = [\"parallel\", \"parallel\", \
             \"reduction\", \"reduction\", \"reduction\"]}} ins(%xd, %w, %s, %z, %rd : memref<{xd}>, memref<{w}>, \
             memref<{s}>, memref<{z}>, memref<{rd}>) outs(%yd : memref<{yd}>) {{\n\
             ^bb0(%xv: {element}, %wv: i8, %sv: f32, %zv: i8, %rv: f32, %o: f32):\n{row}\
             %at = linalg.index 4 : index\n%place = arith.index_cast %at : index to i8\n%by = arith.muli %place, %width : i8\n\
             %moved = arith.shrui %wv, %by : i8\n%number = arith.andi %moved, %mask : i8\n%q = arith.uitofp %number : i8 to f32\n\
             {zero}{product}%u = arith.addf %o, %r : f32\nlinalg.yield %u : f32\n}}\nreturn\n}}\n",
            mask = (1 << bits) - 1,
            mx = map(if self.narrow { "m, b, p, i" } else { "m, b, i, p" }),
            mr = map("m, b"),
            mw = map("n, b, i"),
            mb = map("n, b"),
            my = map("m, n"),
        )
    }

    /// The sums, and those of their terms' sizes. `x` is in the order of the terms.
    fn expected(&self, x: &[f64], w: &[u8], s: &[f32], z: &[u8]) -> Vec<(f64, f64)> {
        let (depth, mask) = (self.blocks * self.terms(), (1 << self.bits) - 1);
        let element = |row: usize, column: usize| {
            let term = |t: usize| {
                let byte = w[(column * depth + t) / self.per_byte()];
                let number = byte >> (t % self.per_byte() * self.bits) & mask;
                let group = column * self.blocks + t / self.terms();
                let zero = if self.zeros { f64::from(z[group]) } else { 0.0 };
                x[row * depth + t] * (f64::from(number) - zero) * f64::from(s[group])
            };
            (0..depth).map(term).fold((0.0, 0.0), |(sum, size), term| (sum + term, size + term.abs()))
        };
        (0..self.rows * self.columns).map(|at| element(at / self.columns, at % self.columns)).collect()
    }
}

impl Case {
    /// Rows in memory, and their values in the order of the terms.
    fn row(&self, scales: &[f32], seed: u64) -> (Vec<f32>, Vec<f64>) {
        let count = self.rows * self.blocks * self.terms();
        if !self.narrow {
            let x = random(count, seed);
            let values = x.iter().map(|value| f64::from(*value)).collect();
            return (x, values);
        }
        // The extremes among them.
        let numbers: Vec<i8> =
            bytes(count, seed).iter().map(|byte| (*byte as i8).saturating_mul(2).max(-127)).collect();
        let value = |at: usize| {
            let (block, term) = (at / self.terms(), at % self.terms());
            let place = term % self.per_byte() * self.bytes + term / self.per_byte();
            f64::from(numbers[block * self.terms() + place]) * f64::from(scales[block])
        };
        let stored: Vec<u8> = numbers.iter().map(|number| *number as u8).collect();
        (as_buffer(&stored), (0..count).map(value).collect())
    }
}

fn bytes(count: usize, seed: u64) -> Vec<u8> {
    random(count, seed).iter().map(|value| ((value + 1.0) * 127.9) as u8).collect()
}

fn check(cases: &[Case]) {
    if !can_run() {
        return;
    }
    let text: String = cases.iter().enumerate().map(|(i, case)| case.kernel(&format!("k{i}"))).collect();
    let x86 = ["x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v3-vnni", "x86-64-v4", "x86-64-v4-vnni"];
    for name in x86.into_iter().chain(["aarch64", "aarch64-dotprod", "aarch64-i8mm"]) {
        let Some(target) = CpuTarget::parse(name).filter(runs) else { continue };
        let library = Library::load(&compile(&text, &target).unwrap());
        for (i, case) in cases.iter().enumerate() {
            let groups = case.columns * case.blocks;
            let (w, s, z) = (bytes(groups * case.bytes, i as u64 + 1), random(groups, 7), bytes(groups, 9));
            let r = random(case.rows * case.blocks, 5);
            let (mut x, values) = case.row(&r, i as u64);
            let expected = case.expected(&values, &w, &s, &z);
            let mut y = [vec![f32::NAN; expected.len()], vec![42.0; 64]].concat();
            let (mut r, mut s, mut w, mut z) = (r, s, as_buffer(&w), as_buffer(&z));
            library.run(&format!("k{i}"), &mut [&mut x, &mut w, &mut s, &mut z, &mut r, &mut y], &[]);
            assert_eq!(y[expected.len()..], [42.0; 64], "{case:?} on {name} writes past its end");
            for (at, ((sum, size), found)) in expected.iter().zip(&y).enumerate() {
                let error = (f64::from(*found) - sum).abs();
                assert!(error <= 1e-6 * size, "{case:?} on {name}: {found} at {at}, expected {sum}");
            }
        }
    }
}

const PLAIN: Case = Case {
    rows: 1,
    columns: 9,
    blocks: 3,
    bytes: 16,
    bits: 4,
    zeros: false,
    scaled_last: false,
    dynamic: false,
    narrow: false,
};

/// Blocks of every length, the last of which are no whole words.
const BYTES: [usize; 9] = [8, 16, 24, 32, 64, 4, 12, 20, 9];

#[test]
fn numbers_of_few_bits_are_right() {
    let mut cases = vec![];
    for (i, bytes) in BYTES.into_iter().enumerate() {
        for bits in [2, 4] {
            for (rows, columns) in [(1, 9), (1, 3), (2, 4), (7, 10), (5, 1), (16, 16)] {
                let (zeros, scaled_last, dynamic) = ((i + rows) % 2 == 0, (i + columns) % 3 == 0, (i + bits) % 5 == 0);
                cases.push(Case { rows, columns, bytes, bits, zeros, scaled_last, dynamic, ..PLAIN });
            }
        }
    }
    check(&cases);
}

#[test]
fn rows_of_8_bits_are_right() {
    let mut cases = vec![];
    for (i, bytes) in [16, 32, 64, 128, 48, 8, 20].into_iter().enumerate() {
        for bits in [2, 4] {
            for (rows, columns, blocks) in [(1, 9, 8), (1, 3, 7), (2, 4, 1), (7, 10, 5), (5, 1, 4), (16, 16, 3)] {
                let (zeros, scaled_last, dynamic) = ((i + rows) % 2 == 0, (i + columns) % 3 == 0, (i + bits) % 5 == 0);
                let sizes = Case { rows, columns, blocks, bytes, bits, ..PLAIN };
                cases.push(Case { zeros, scaled_last, dynamic, narrow: true, ..sizes });
            }
        }
    }
    check(&cases);
}

fn assembly(case: Case, target: &str) -> String {
    let module = format!("func.func @main(%cx: i64) {{ return }}\n{}", case.kernel("k"));
    let module = Module::parse(Context::new(), module.as_bytes(), "test.mlir").unwrap();
    listing(&module, &CpuTarget::parse(target).unwrap(), Listing::Assembly).unwrap()
}

#[test]
fn rows_of_8_bits_are_added_as_integers() {
    for (target, instruction) in [
        ("x86-64-v4-vnni", "vpdpbusd"),
        ("x86-64-v3-vnni", "vpdpbusd"),
        ("x86-64-v4", "vpmaddubsw"),
        ("x86-64-v3", "vpmaddubsw"),
        ("x86-64-v2", "pmaddubsw"),
        ("aarch64-dotprod", "sdot"),
        ("aarch64-i8mm", "usdot"),
    ] {
        for rows in [1, 8] {
            let text = assembly(Case { rows, columns: 64, blocks: 32, narrow: true, ..PLAIN }, target);
            let found = text.matches(instruction).count();
            assert!(found >= 8 && !text.contains("cvtsi2ss"), "{found} {instruction} on {target}:\n{text}");
            assert!(text.contains("prefetch") || text.contains("prfm"), "{text}");
        }
    }
}

#[test]
fn numbers_are_looked_up_in_a_register() {
    let numbers = Case { columns: 64, blocks: 32, ..PLAIN };
    let several = Case { rows: 8, ..numbers };
    for case in [numbers, several, Case { zeros: true, ..several }, Case { bits: 2, ..numbers }] {
        let text = assembly(case, "x86-64-v4");
        let found = text.matches("vpermd").count() + text.matches("vpermps").count();
        assert!(found >= 8 && !text.contains("vcvtdq2ps"), "{found} of {case:?}:\n{text}");
        assert!(text.contains("prefetch"), "{text}");
        assert!(!assembly(case, "x86-64-v3").contains("vpermps"), "{case:?}");
    }
    // No whole words: numbers are converted.
    assert!(assembly(Case { bytes: 12, ..numbers }, "x86-64-v4").contains("vcvtdq2ps"));
}
