//! Small windows: what several rows of a tile read is loaded once.

use crate::harness::{Library, can_run, compile, runs};
use crate::vectorize::{Case, PRODUCT, check, optimized};
use monopour_program::CpuTarget;

const MAX: &str = "%r = arith.maximumf %o, %x0 : f32";

/// Lines with every kind of rest, windows of up to 25 steps and longer ones, strides, dilation, channels in front and behind.
#[test]
fn windows_that_rows_share() {
    let product = |x: &[f32], o: f32| o + x[0] * x[1];
    let mut cases = vec![];
    for (h, w) in [(1, 7), (7, 16), (17, 38)] {
        for (i, j) in [(3, 3), (2, 3), (5, 5), (5, 6)] {
            let loops = [('c', 2), ('h', h), ('w', w), ('I', i), ('J', j)];
            for image in ["c,h+i,w+j", "c,2h+i,2w+j", "c,h+2i,w+j", "c,3h+i,w+2j"] {
                cases.push(Case::new(&loops, &format!("{image} c,i,j c,h,w"), PRODUCT, product).filled());
            }
            cases.push(Case::new(&loops, "c,2h+i,2w+j i,j c,h,w", MAX, |x, o| o.max(x[0])).filled());
            cases.push(Case::new(&loops, "c,h+i,w+j i,j c,h,w", MAX, |x, o| o.max(x[0])));
            for channels in [16, 40] {
                let behind = [('h', h), ('w', w), ('c', channels), ('I', i), ('J', j)];
                cases.push(Case::new(&behind, "h+i,w+j,c i,j,c h,w,c", PRODUCT, product).filled());
            }
            // Steps in another order than the elements that they read.
            let turned = [('c', 2), ('h', h), ('w', w), ('J', j), ('I', i)];
            cases.push(Case::new(&turned, "c,h+i,w+j c,i,j c,h,w", PRODUCT, product).filled());
        }
    }
    check(&cases, 1e-5);
}

#[test]
fn vectors_of_overlapping_windows_are_loaded_once() {
    let sum = |x: &[f32], o: f32| o + x[0];
    let loads = |h: usize| {
        let loops = [('h', h), ('w', 16), ('I', 3), ('J', 3)];
        let ir = optimized(&Case::new(&loops, "h+i,w+j i,j h,w", PRODUCT, sum).filled());
        ir.matches("load <16 x float>").count()
    };
    // Three of each of the lines that one, four and eight rows read.
    assert_eq!((loads(4), loads(8)), (3 * 6, 3 * 10));
}

/// The steps of a window over channels that fill no block of registers are written out, and their sum is in registers: each vector of the
/// result is written once.
#[test]
fn windows_of_ragged_channels_are_summed_in_registers() {
    let sum = |x: &[f32], o: f32| o + x[0] * x[1];
    for channels in [32, 72, 120] {
        let loops = [('h', 4), ('w', 28), ('c', channels), ('I', 3), ('J', 3)];
        let ir = optimized(&Case::new(&loops, "h+i,w+j,c i,j,c h,w,c", PRODUCT, sum).filled());
        let count = |op: &str| ir.lines().filter(|line| line.contains(op) && line.contains("<32 x float>")).count();
        let (products, stores) = (count(" = fmul "), count("store <32 x float>"));
        assert!(
            stores > 0 && products == 9 * stores,
            "{channels} channels: {products} products, {stores} stores\n{ir}"
        );
    }
}

/// Lines of an image are shorter than a square of registers, whole images are not: turned by squares, whatever the rest.
#[test]
fn short_lines_are_turned_as_one() {
    let sum = |x: &[f32], _: f32| x[0] + x[1];
    let mut cases = vec![];
    for (h, w) in [(1, 7), (7, 7), (14, 14), (3, 5), (4, 28)] {
        for channels in [16, 32, 33] {
            let loops = [('b', 2), ('h', h), ('w', w), ('c', channels)];
            cases.push(Case::new(&loops, "b,h,w,c b,c b,c,h,w", "%r = arith.addf %x0, %x1 : f32", sum));
            // Lines apart in memory: every second one of the image is read.
            cases.push(Case::new(&loops, "b,2h,w,c b,c b,c,h,w", "%r = arith.addf %x0, %x1 : f32", sum));
        }
    }
    let shuffles = |case: &Case| optimized(case).matches("shufflevector <16 x float>").count();
    // Of 7 x 7, and of 1 x 7, which is shorter than a square.
    assert!(shuffles(&cases[6]) > 0 && shuffles(&cases[0]) == 0);
    check(&cases, 0.0);
}

/// Bytes are turned by squares of 16 x 16, with every kind of rest.
#[test]
fn bytes_are_turned_by_squares() {
    if !can_run() {
        return;
    }
    for (rows, columns) in [(16, 16), (58, 32), (17, 40), (20, 15)] {
        let kernel = format!(
            r#"
func.func private @k(%A: memref<{rows}x{columns}xi8>, %C: memref<{columns}x{rows}xi8>) attributes {{monopour.kernel = {{class = "elementwise"}}}} {{
  linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j, i)>], iterator_types = ["parallel", "parallel"]}}
    ins(%A : memref<{rows}x{columns}xi8>) outs(%C : memref<{columns}x{rows}xi8>) {{
  ^bb0(%a: i8, %c: i8):
    linalg.yield %a : i8
  }}
  return
}}
"#
        );
        let bytes: Vec<u8> = (0..rows * columns).map(|i| (i * 37 % 251) as u8).collect();
        let words = |bytes: &[u8]| -> Vec<f32> {
            let whole = |word: &[u8]| (0..4).map(|at| u32::from(*word.get(at).unwrap_or(&0)) << (8 * at)).sum();
            bytes.chunks(4).map(|word| f32::from_bits(whole(word))).collect()
        };
        for name in ["x86-64", "x86-64-v3", "x86-64-v4", "aarch64"] {
            let Some(target) = CpuTarget::parse(name).filter(runs) else { continue };
            let library = Library::load(&compile(&kernel, &target).unwrap());
            let (mut a, mut c) = (words(&bytes), vec![0.0f32; rows * columns / 4]);
            library.run("k", &mut [&mut a, &mut c], &[]);
            let found: Vec<u8> = c.iter().flat_map(|word| word.to_bits().to_le_bytes()).collect();
            for (at, byte) in found.iter().enumerate() {
                assert_eq!(*byte, bytes[at % rows * columns + at / rows], "{name}, {rows} x {columns}, byte {at}");
            }
        }
    }
}

/// A maximum of windows of 3 x 3, of which some have a NaN at any place.
#[test]
fn nan_passes_through_windows() {
    if !can_run() {
        return;
    }
    const KERNEL: &str = r#"
func.func private @k(%A: memref<20x40xf32>, %C: memref<18x38xf32>) attributes {monopour.kernel = {class = "generic"}} {
  %w = memref.alloca() : memref<3x3xf32>
  %low = arith.constant 0xFF800000 : f32
  linalg.fill ins(%low : f32) outs(%C : memref<18x38xf32>)
  linalg.generic {indexing_maps = [affine_map<(y, x, i, j) -> (i, j)>, affine_map<(y, x, i, j) -> (y + i, x + j)>, affine_map<(y, x, i, j) -> (y, x)>],
      iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
    ins(%w, %A : memref<3x3xf32>, memref<20x40xf32>) outs(%C : memref<18x38xf32>) {
  ^bb0(%u: f32, %x: f32, %o: f32):
    %s = arith.maximumf %o, %x : f32
    linalg.yield %s : f32
  }
  return
}
"#;
    let mut a: Vec<f32> = (0..800).map(|i| (i * 37 % 101) as f32 - 50.0).collect();
    for at in [0, 39, 83, 260, 415, 461, 799] {
        a[at] = f32::NAN;
    }
    a[500] = f32::NEG_INFINITY;
    a[600] = f32::INFINITY;
    let window = |e: usize| (0..9).map(move |step| (e / 38 + step / 3) * 40 + e % 38 + step % 3);
    for name in ["x86-64", "x86-64-v3", "x86-64-v4", "aarch64"] {
        let Some(target) = CpuTarget::parse(name).filter(runs) else { continue };
        let library = Library::load(&compile(KERNEL, &target).unwrap());
        let mut c = vec![0.0f32; 18 * 38];
        library.run("k", &mut [&mut a, &mut c], &[]);
        for (e, found) in c.iter().enumerate() {
            let largest = window(e).map(|at| a[at]).fold(f32::NEG_INFINITY, f32::max);
            let is_nan = window(e).any(|at| a[at].is_nan());
            assert!(if is_nan { found.is_nan() } else { *found == largest }, "{name}, element {e}: {found}");
        }
    }
}

/// A line of 56 pixels has tiles of 14: with 28, the filter's nine vectors and the image's have no registers left.
#[test]
fn tiles_leave_registers_for_the_filter() {
    let product = |x: &[f32], o: f32| o + x[0] * x[1];
    let loops = [('h', 2), ('w', 56), ('c', 16), ('I', 3), ('J', 3)];
    let case = || Case::new(&loops, "h+i,w+j,c i,j,c h,w,c", PRODUCT, product).filled();
    check(&[case()], 1e-5);
    let ir = optimized(&case());
    let products = ir.lines().filter(|line| line.contains("fmul") && line.contains("<16 x float>")).count();
    assert_eq!(products, 14 * 9, "{ir}");
}
