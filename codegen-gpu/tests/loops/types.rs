//! Products of elements other than f32, in whole numbers that every type holds exactly.

use super::{Loops, PRIVATE, STAGED, SUBGROUP};
use crate::device::device;
use crate::program::{assert_close, compile};

/// Small whole numbers, exact in every type.
fn whole_numbers(case: &Loops) -> Vec<Vec<f32>> {
    case.inputs().iter().map(|v| v.iter().map(|x| (x * 4.0).round()).collect()).collect()
}

fn half_bits(x: f32) -> u32 {
    if x == 0.0 {
        return 0;
    }
    let bits = x.to_bits();
    (bits >> 16 & 0x8000) | ((bits >> 23 & 0xff) + 15 - 127) << 10 | (bits >> 13 & 0x3ff)
}
fn half_value(bits: u32) -> f32 {
    let magnitude = match bits & 0x7fff {
        0 => 0.0,
        b => f32::from_bits(((b >> 10) + 127 - 15) << 23 | (b & 0x3ff) << 13),
    };
    if bits & 0x8000 == 0 { magnitude } else { -magnitude }
}

fn pack(values: &[f32], element: &str) -> Vec<u32> {
    match element {
        "f32" => values.iter().map(|x| x.to_bits()).collect(),
        "i32" => values.iter().map(|x| *x as i32 as u32).collect(),
        "f16" => values.chunks(2).map(|c| c.iter().rev().fold(0, |w, x| w << 16 | half_bits(*x))).collect(),
        "i8" => values.chunks(4).map(|c| c.iter().rev().fold(0, |w, x| w << 8 | (*x as i32 as u32 & 0xff))).collect(),
        other => panic!("no packing of {other}"),
    }
}
fn unpack(words: &[u32], element: &str, count: usize) -> Vec<f32> {
    match element {
        "f32" => words.iter().map(|w| f32::from_bits(*w)).collect(),
        "i32" => words.iter().map(|w| *w as i32 as f32).collect(),
        "f16" => words.iter().flat_map(|w| [half_value(w & 0xffff), half_value(w >> 16)]).take(count).collect(),
        other => panic!("no unpacking of {other}"),
    }
}

/// Products of other types: results and inputs, and the body.
const TYPES: [(&str, &str, &str); 4] = [
    ("i32", "i32", "    %p = arith.muli %a, %b : i32\n    %s = arith.addi %c, %p : i32\n    linalg.yield %s : i32"),
    ("f16", "f16", "    %p = arith.mulf %a, %b : f16\n    %s = arith.addf %c, %p : f16\n    linalg.yield %s : f16"),
    (
        "f16",
        "f32",
        "    %x = arith.extf %a : f16 to f32\n    %y = arith.extf %b : f16 to f32\n    %p = arith.mulf %x, %y : f32\n    %s = arith.addf %c, %p : f32\n    linalg.yield %s : f32",
    ),
    (
        "i8",
        "i32",
        "    %x = arith.extsi %a : i8 to i32\n    %y = arith.extsi %b : i8 to i32\n    %p = arith.muli %x, %y : i32\n    %s = arith.addi %p, %c : i32\n    linalg.yield %s : i32",
    ),
];

#[test]
fn products_of_other_types() {
    let Some(device) = device() else { return };
    for (t, (from, to, body)) in TYPES.into_iter().enumerate() {
        for (i, (text, sizes)) in [
            ("b m k, b k n -> b m n", "b2/1 m17/16 n40/32 k24"),
            ("m k, n k -> m n", "m7 n9 k13"),
            ("k, k m -> m", "m100/64 k20"),
            ("y+i x+j q, i j q c -> y x c", "y2/1 x9/8 c16 i2 j2 q3"),
        ]
        .into_iter()
        .enumerate()
        {
            // The geometries take turns.
            for kernel in [[SUBGROUP, PRIVATE, STAGED][(t + i) % 3]] {
                let case = Loops { elements: (from, to), body, ..Loops::new(text, sizes) };
                let inputs = whole_numbers(&case);
                let (kernel, report, _) =
                    compile(&case.text(kernel), &device.description).unwrap_or_else(|d| panic!("{d}"));
                if !kernel.features.iter().all(|f| device.description.has(*f)) {
                    continue;
                }
                let what = format!("{from} to {to}, {text}");
                assert_eq!(report.kernels[0].strategy, "contraction", "{what}: {}", report.kernels[0].declined);
                let words = (0..).zip(&inputs).map(|(i, v)| pack(v, case.element(i))).collect::<Vec<_>>();
                let grid = case.grid();
                let size = |axis: usize| grid.iter().rev().nth(axis).map_or(1, |g| *g as u32);
                let out = device.run(&kernel, [size(0), size(1), size(2)], &words);
                let found = unpack(&out[2], to, inputs[2].len());
                let expected = case.expected(&inputs, |c, v| c + v.iter().product::<f64>());
                assert_close(&found, &expected, 0.0, &what);
            }
        }
    }
}
