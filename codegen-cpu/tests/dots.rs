//! Products of narrow integers, against sums of extended factors in plain Rust: exact, and by the instructions for groups.

use crate::harness::{Library, can_run, compile, runs};
use monopour_codegen_cpu::object::{Listing, listing};
use monopour_ir::{Context, Module};
use monopour_program::CpuTarget;

/// The type of a factor: its bits, and whether it has a sign.
type Factor = (u32, bool);

const U8: Factor = (8, false);
const I8: Factor = (8, true);
const I16: Factor = (16, true);

/// `out[o, w] += a * b` over the loops `o`, `w`, and `c` and `x` that sum.
struct Case {
    /// Iterations of `o`, `w`, `c`, `x`.
    extents: [usize; 4],
    /// Per dimension of `a` and of `b`, the factor of each loop.
    subscripts: [&'static [[usize; 4]]; 2],
    factors: [Factor; 2],
    filled: bool,
    dynamic: bool,
}

const O: [usize; 4] = [1, 0, 0, 0];
const W: [usize; 4] = [0, 1, 0, 0];
const C: [usize; 4] = [0, 0, 1, 0];
const X: [usize; 4] = [0, 0, 0, 1];
const OX: [usize; 4] = [1, 0, 0, 1];
const WX: [usize; 4] = [0, 1, 0, 1];
const W2X: [usize; 4] = [0, 2, 0, 1];

impl Case {
    fn product([m, n, k]: [usize; 3], factors: [Factor; 2]) -> Self {
        let subscripts: [&[[usize; 4]]; 2] = [&[O, C], &[C, W]];
        Self { extents: [m, n, k, 1], subscripts, factors, filled: true, dynamic: false }
    }

    fn shapes(&self) -> [Vec<usize>; 2] {
        let extent = |s: &[usize; 4]| 1 + s.iter().zip(self.extents).map(|(f, e)| f * (e - 1)).sum::<usize>();
        self.subscripts.map(|subscripts| subscripts.iter().map(extent).collect())
    }

    fn kernel(&self, name: &str) -> String {
        let ty = |shape: &[usize], bits: u32| {
            format!("memref<{}i{bits}>", shape.iter().map(|e| format!("{e}x")).collect::<String>())
        };
        let shapes = self.shapes();
        let types = [0, 1].map(|i| ty(&shapes[i], self.factors[i].0));
        let out = ty(&self.extents[..2], 32);
        let map = |subscripts: &[[usize; 4]]| {
            let term = |(d, f): (usize, &usize)| (*f > 0).then(|| format!("d{d} * {f}"));
            let sum = |s: &[usize; 4]| s.iter().enumerate().filter_map(term).collect::<Vec<_>>().join(" + ");
            format!("affine_map<(d0, d1, d2, d3) -> ({})>", subscripts.iter().map(sum).collect::<Vec<_>>().join(", "))
        };
        let extension = |i: usize| if self.factors[i].1 { "extsi" } else { "extui" };
        let (mut casts, mut used) = (String::new(), [types[0].clone(), out.clone()]);
        if self.dynamic {
            used =
                [ty(&shapes[0][1..], self.factors[0].0), ty(&self.extents[1..2], 32)].map(|ty| ty.replace('<', "<?x"));
        }
        casts += &format!(
            "  %u = memref.cast %a : {} to {}\n  %v = memref.cast %o : {out} to {}\n",
            types[0], used[0], used[1]
        );
        if self.filled {
            casts += &format!("  %z = arith.constant 0 : i32\n  linalg.fill ins(%z : i32) outs(%v : {})\n", used[1]);
        }
        let window = self.extents[3] != 1;
        let sums = if window { ", \"reduction\"" } else { "" };
        let cut = |map: String| if window { map } else { map.replace(", d3)", ")") };
        format!(
            "func.func private @{name}(%a: {}, %b: {}, %o: {out}) attributes {{monopour.kernel = {{class = \"generic\"}}}} {{\n{casts}  \
             linalg.generic {{indexing_maps = [{}, {}, {}], iterator_types = [\"parallel\", \"parallel\", \"reduction\"{sums}]}} \
             ins(%u, %b : {}, {}) outs(%v : {}) {{\n  ^bb0(%x: i{}, %y: i{}, %s: i32):\n    %p = arith.{} %x : i{} to i32\n    \
             %q = arith.{} %y : i{} to i32\n    %t = arith.muli %p, %q : i32\n    %r = arith.addi %s, %t : i32\n    \
             linalg.yield %r : i32\n  }}\n  return\n}}\n",
            types[0],
            types[1],
            cut(map(self.subscripts[0])),
            cut(map(self.subscripts[1])),
            cut(map(&[O, W])),
            used[0],
            types[1],
            used[1],
            self.factors[0].0,
            self.factors[1].0,
            extension(0),
            self.factors[0].0,
            extension(1),
            self.factors[1].0,
        )
    }

    fn expected(&self, data: &[Vec<i64>; 2], out: &mut [i32]) {
        let shapes = self.shapes();
        let flat = |i: usize, at: &[usize; 4]| {
            let subscript = |s: &[usize; 4]| s.iter().zip(at).map(|(f, a)| f * a).sum::<usize>();
            self.subscripts[i].iter().zip(&shapes[i]).fold(0, |sum, (s, extent)| sum * extent + subscript(s))
        };
        if self.filled {
            out.fill(0);
        }
        let [m, n, c, x] = self.extents;
        for point in 0..m * n * c * x {
            let at = [point / (n * c * x), point / (c * x) % n, point / x % c, point % x];
            let product = data[0][flat(0, &at)] * data[1][flat(1, &at)];
            let sum = &mut out[at[0] * n + at[1]];
            *sum = sum.wrapping_add(product as i32);
        }
    }
}

/// Elements of a factor, the extremes among them.
fn elements(count: usize, (bits, signed): Factor, seed: u64) -> Vec<i64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let (low, high) = if signed { (-(1i64 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) };
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        match state % 4 {
            0 => low,
            1 => high,
            _ => low + (state >> 8) as i64 % (high - low + 1),
        }
    };
    (0..count).map(|_| next()).collect()
}

/// Bytes as the buffers that the harness passes.
pub fn as_buffer(bytes: &[u8]) -> Vec<f32> {
    let word = |chunk: &[u8]| std::array::from_fn(|i| chunk.get(i).copied().unwrap_or(0));
    bytes.chunks(4).map(|chunk| f32::from_bits(u32::from_le_bytes(word(chunk)))).collect()
}

fn check(cases: &[Case]) {
    if !can_run() {
        return;
    }
    let text: String = cases.iter().enumerate().map(|(i, case)| case.kernel(&format!("k{i}"))).collect();
    let x86 = ["x86-64", "x86-64-v3", "x86-64-v3-vnni", "x86-64-v4", "x86-64-v4-vnni", "x86-64-v4-amx"];
    for name in x86.into_iter().chain(["generic", "aarch64", "aarch64-dotprod", "aarch64-i8mm"]) {
        let Some(target) = CpuTarget::parse(name).filter(runs) else { continue };
        let library = Library::load(&compile(&text, &target).unwrap());
        for (i, case) in cases.iter().enumerate() {
            let shapes = case.shapes();
            let data = [0, 1].map(|n| elements(shapes[n].iter().product(), case.factors[n], (2 * i + n) as u64));
            let size = case.extents[0] * case.extents[1];
            let mut expected: Vec<i32> = elements(size, I16, i as u64).into_iter().map(|v| v as i32).collect();
            let mut out: Vec<f32> = expected.iter().map(|v| f32::from_bits(*v as u32)).chain([42.0; 64]).collect();
            case.expected(&data, &mut expected);
            let bytes = |n: usize| -> Vec<u8> {
                let size = case.factors[n].0 as usize / 8;
                data[n].iter().flat_map(|v| v.to_le_bytes()[..size].to_vec()).collect()
            };
            let (mut a, mut b) = (as_buffer(&bytes(0)), as_buffer(&bytes(1)));
            library.run(&format!("k{i}"), &mut [&mut a, &mut b, &mut out], &[]);
            assert_eq!(out[size..], [42.0; 64], "case {i} on {name} writes past its end");
            let found: Vec<i32> = out[..size].iter().map(|v| v.to_bits() as i32).collect();
            assert_eq!(found, expected, "case {i} on {name}");
        }
    }
}

#[test]
fn products_of_all_signs() {
    let mut cases = vec![];
    let sizes = [[4, 4, 4], [5, 7, 9], [14, 32, 64], [31, 50, 130], [128, 33, 300], [8, 100, 1030], [1, 64, 64]];
    let factors = [[U8, I8], [I8, U8], [I8, I8], [U8, U8], [I16, I8], [I16, I16], [U8, I16]];
    for (i, factors) in factors.into_iter().enumerate() {
        // Each kind of sizes meets several kinds of factors.
        cases.extend([0, 2, 3].map(|n| Case::product(sizes[(i + n) % sizes.len()], factors)));
    }
    check(&cases);
}

#[test]
fn products_of_other_layouts() {
    let mut cases = vec![];
    for factors in [[U8, I8], [I16, I8]] {
        for sizes in [[14, 32, 64], [9, 50, 131]] {
            let plain = || Case::product(sizes, factors);
            cases.push(Case { filled: false, ..plain() });
            cases.push(Case { dynamic: true, ..plain() });
            cases.push(Case { subscripts: [&[O, C], &[W, C]], ..plain() });
            cases.push(Case { subscripts: [&[C, O], &[C, W]], ..plain() });
            cases.push(Case { subscripts: [&[C, O], &[W, C]], ..plain() });
        }
    }
    check(&cases);
}

#[test]
fn factors_in_groups() {
    let mut cases = vec![];
    for factors in [[U8, I8], [I8, U8], [I8, I8], [U8, U8]] {
        for (i, extents) in
            [[14, 32, 16], [37, 33, 12], [128, 10, 75], [5, 50, 600], [9, 8, 30], [21, 16, 40]].into_iter().enumerate()
        {
            for terms in [4, 2] {
                let extents = [extents[0], extents[1], extents[2], terms];
                let subscripts: [&[[usize; 4]]; 2] = [&[O, C, X], &[C, W, X]];
                cases.push(Case { extents, subscripts, factors, filled: i % 2 == 0, dynamic: i % 3 == 1 });
                // A left factor whose terms lie apart is packed, the right one is not.
                let subscripts: [&[[usize; 4]]; 2] = [&[X, C, O], &[C, W, X]];
                cases.push(Case { extents, subscripts, factors, filled: i % 2 == 1, dynamic: false });
            }
        }
    }
    check(&cases);
}

#[test]
fn windows_of_an_image() {
    let mut cases = vec![];
    for factors in [[I8, U8], [I8, I8]] {
        for (channels, width) in [(8, 56), (3, 30), (64, 7), (20, 14)] {
            for image in [&[C, WX][..], &[C, W2X]] {
                let extents = [17, width, channels, 3];
                cases.push(Case { extents, subscripts: [&[O, X, C], image], factors, filled: true, dynamic: false });
                cases.push(Case { extents, subscripts: [&[O, C, X], image], factors, filled: false, dynamic: false });
            }
        }
    }
    // Panels of loops of few groups, cut along one of them.
    let deep = |factors| Case {
        extents: [300, 40, 28, 9],
        subscripts: [&[OX, C], &[X, C, W]],
        factors,
        filled: true,
        dynamic: false,
    };
    cases.extend([[U8, I8], [I8, I8], [I16, I16]].map(deep));
    check(&cases);
}

fn assembly(case: &Case, target: &str) -> String {
    let module = format!("func.func @main(%cx: i64) {{ return }}\n{}", case.kernel("k"));
    let module = Module::parse(Context::new(), module.as_bytes(), "test.mlir").unwrap();
    listing(&module, &CpuTarget::parse(target).unwrap(), Listing::Assembly).unwrap()
}

/// They are widened as they lie, side by side or in pages of their own.
#[test]
fn groups_of_two_are_not_interleaved() {
    let subscripts: [&[[usize; 4]]; 2] = [&[O, C, X], &[C, W, X]];
    for columns in [16, 768] {
        let extents = [56, columns, 64, 2];
        let case = Case { extents, subscripts, factors: [U8, I8], filled: true, dynamic: false };
        let text = assembly(&case, "x86-64-v3");
        let interleaves = ["vpunpck", "vpshufb", "vpinsr"].iter().any(|name| text.contains(name));
        assert!(text.contains("vpmovsxbw") && text.contains("vpmaddwd") && !interleaves, "{columns}:\n{text}");
    }
}

#[test]
fn groups_take_one_instruction() {
    // A tile of accumulators: two registers of columns for each of 14 rows, or 6.
    for (factors, target, instruction, least) in [
        ([U8, I8], "x86-64-v4-vnni", "vpdpbusd", 28),
        ([I8, U8], "x86-64-v4-vnni", "vpdpbusd", 28),
        ([I8, I8], "x86-64-v4-vnni", "vpdpwssd", 28),
        ([I16, I8], "x86-64-v4-vnni", "vpdpwssd", 28),
        ([U8, I8], "x86-64-v3-vnni", "vpdpbusd", 12),
        ([U8, I8], "x86-64-v4-amx", "tdpbusd", 4),
        ([I8, U8], "x86-64-v4-amx", "tdpbsud", 4),
        ([I8, I8], "x86-64-v4-amx", "tdpbssd", 4),
        ([U8, U8], "x86-64-v4-amx", "tdpbuud", 4),
        ([U8, I8], "x86-64-v4", "vpmaddwd", 28),
        ([U8, U8], "x86-64-v3", "vpmaddwd", 12),
        ([I8, I8], "x86-64", "pmaddwd", 12),
        ([U8, I8], "aarch64-i8mm", "usdot", 28),
        ([I8, U8], "aarch64-i8mm", "usdot", 28),
        ([U8, I8], "aarch64-dotprod", "sdot", 28),
        ([I8, I8], "aarch64-dotprod", "sdot", 28),
        ([U8, U8], "aarch64-dotprod", "udot", 28),
    ] {
        let text = assembly(&Case::product([56, 64, 64], factors), target);
        let found = text.matches(instruction).count();
        assert!(found >= least && !text.contains("pmulld"), "{found} {instruction} on {target}:\n{text}");
    }
}
