//! Products of f16 factors that are summed in f32, of enough rows and columns for matrices that a subgroup holds: layouts,
//! batches, ragged edges, epilogues.

use super::case::Case;
use crate::host_tensor::Dtype;
use crate::random::Rng;
use crate::text::{Program, Value};

/// At, between and over the tiles, all of them multiples of two elements, most of four.
const POSITIONS: [usize; 8] = [48, 64, 100, 112, 128, 130, 192, 256];
/// Depths of the reduction: whole matrices of 16, and parts of one.
const DEPTHS: [usize; 6] = [16, 20, 32, 48, 96, 100];

/// Whether the reduction is the last dimension of the factors: a row of the left one by a column of the right one.
#[derive(Clone, Copy)]
enum Layout {
    /// `m x k`, `k x n`.
    Plain,
    /// `m x k`, `n x k`.
    RightTransposed,
    /// `k x m`, `k x n`.
    LeftTransposed,
    /// `k x m`, `n x k`.
    BothTransposed,
}

const LAYOUTS: [(&str, Layout); 4] = [
    ("nn", Layout::Plain),
    ("nt", Layout::RightTransposed),
    ("tn", Layout::LeftTransposed),
    ("tt", Layout::BothTransposed),
];

/// What follows the product, or comes before it.
#[derive(Clone, Copy)]
enum Around {
    Nothing,
    /// Rounded to f16.
    Rounded,
    /// Plus a row, then no less than zero.
    BiasRelu,
    /// Plus a matrix of f32.
    Residual,
    /// Added to half of a matrix of f32.
    Started,
}

const AROUND: [(&str, Around); 5] = [
    ("plain", Around::Nothing),
    ("rounded", Around::Rounded),
    ("bias_relu", Around::BiasRelu),
    ("residual", Around::Residual),
    ("started", Around::Started),
];

pub(super) fn cases() -> Vec<Case> {
    let mut out = vec![];
    let mut rng = Rng::new(16);
    for m in POSITIONS {
        for n in POSITIONS {
            let (depth, batch) = (*rng.pick(&DEPTHS), *rng.pick(&[1, 1, 3]));
            out.push(case(*rng.pick(&LAYOUTS), *rng.pick(&AROUND), [batch, m, n, depth]));
        }
    }
    for layout in LAYOUTS {
        out.extend(DEPTHS.map(|depth| case(layout, AROUND[0], [2, 64, 112, depth])));
        out.extend(AROUND.map(|around| case(layout, around, [1, 100, 116, 52])));
    }
    out.push(accumulated());
    for sizes in [[3, 64, 96, 32], [2, 100, 64, 96], [3, 64, 64, 40]] {
        out.extend([("heads_nn", "g, k, n"), ("heads_nt", "g, n, k")].map(|(name, right)| heads(name, right, sizes)));
    }
    out
}

/// Sums over the heads and their elements, which lie apart in the left factor: the projection behind an attention.
fn heads(name: &str, right: &str, [g, m, n, k]: [usize; 4]) -> Case {
    let mut p = Program::new();
    let shape = if right.ends_with('n') { [g, k, n] } else { [g, n, k] };
    let (x, y) = (p.input(Dtype::F16, &[g, m, k]), p.input(Dtype::F16, &shape));
    let zero = p.zeros(Dtype::F32, &[m, n]);
    let product = p.generic("m n g! k!", &[(&x, "g, m, k"), (&y, right)], (&zero, "m, n"), MULTIPLY_ADD);
    Case::new(format!("widened/{name}/{g}x{m}x{n}x{k}"), p, &[&product]).dispatches(1).within(1e-4, 1e-4)
}

fn case((layout, transposed): (&str, Layout), (name, around): (&str, Around), sizes: [usize; 4]) -> Case {
    let [b, m, n, k] = sizes;
    let mut p = Program::new();
    let (left, right) = maps(transposed);
    let mut factor = |map: &str| {
        let shape: Vec<usize> = map.split(", ").map(|d| size_of(d, sizes)).collect();
        p.input(Dtype::F16, &shape)
    };
    let (x, y) = (factor(left), factor(right));
    let initial = match around {
        Around::Started => {
            let start = p.f32(&[b, m, n]);
            p.pointwise(Dtype::F32, &[&start], "%h = arith.constant 0.5 : f32; %s = arith.mulf %a, %h : f32")
        }
        _ => p.zeros(Dtype::F32, &[b, m, n]),
    };
    let product = p.generic("b m n k!", &[(&x, left), (&y, right)], (&initial, "b, m, n"), MULTIPLY_ADD);
    let result = followed(&mut p, around, product);
    let case = Case::new(format!("widened/{layout}_{name}/{b}x{m}x{n}x{k}"), p, &[&result]);
    // What the sums begin with is a kernel of its own.
    let case = if matches!(around, Around::Started) { case } else { case.dispatches(1) };
    if result.dtype == Dtype::F16 { case } else { case.within(1e-4, 1e-4) }
}

const MULTIPLY_ADD: &str = "%x = arith.extf %a : f16 to f32; %y = arith.extf %b : f16 to f32; \
    %m = arith.mulf %x, %y : f32; %s = arith.addf %o, %m : f32";

/// The dimensions of the factors.
fn maps(layout: Layout) -> (&'static str, &'static str) {
    match layout {
        Layout::Plain => ("b, m, k", "b, k, n"),
        Layout::RightTransposed => ("b, m, k", "b, n, k"),
        Layout::LeftTransposed => ("b, k, m", "b, k, n"),
        Layout::BothTransposed => ("b, k, m", "b, n, k"),
    }
}

fn size_of(dimension: &str, [b, m, n, k]: [usize; 4]) -> usize {
    match dimension {
        "b" => b,
        "m" => m,
        "n" => n,
        _ => k,
    }
}

/// The epilogue.
fn followed(p: &mut Program, around: Around, product: Value) -> Value {
    match around {
        Around::Nothing | Around::Started => product,
        Around::Rounded => p.pointwise(Dtype::F16, &[&product], "%s = arith.truncf %a : f32 to f16"),
        Around::BiasRelu => {
            let bias = p.f32(&product.shape()[2..]);
            let body = "%t = arith.addf %a, %b : f32; %z = arith.constant 0.0 : f32; %s = arith.maximumf %t, %z : f32";
            p.pointwise(Dtype::F32, &[&product, &bias], body)
        }
        Around::Residual => {
            let other = p.f32(product.shape());
            p.pointwise(Dtype::F32, &[&product, &other], "%s = arith.addf %a, %b : f32")
        }
    }
}

/// The named op, added to a matrix of the caller.
fn accumulated() -> Case {
    let mut p = Program::new();
    let (x, y) = (p.input(Dtype::F16, &[64, 48]), p.input(Dtype::F16, &[48, 64]));
    let start = p.f32(&[64, 64]);
    p.add_work(64 * 64 * 48);
    let r = p.named(monopour_ir::ops::linalg::MATMUL, &[&x, &y], &start);
    Case::new("widened/accumulated/64x64x48", p, &[&r]).may_copy().within(1e-4, 1e-4)
}
