//! Matrix products with epilogues, at sizes that are no multiples of a tile.

use super::case::{Case, LaidOut, f32_inputs, function, tensor};
use crate::approx::Tolerance;
use std::fmt::Write;

/// Below, at and above the tiles; primes; one that no lane count divides and one that is large.
const DIMENSIONS: [usize; 6] = [1, 7, 10, 63, 65, 1000];

/// The epilogue of the product.
#[derive(Clone, Copy, PartialEq)]
enum Epilogue {
    Nothing,
    Bias,
    BiasRelu,
    Tanh,
    Residual,
    /// A second input with one element per row.
    PerRow,
    /// Scale, bias, relu, residual, one op each.
    Chain,
}

/// The layout of the operands.
#[derive(Clone, Copy, PartialEq)]
enum Operands {
    Plain,
    TransposedA,
    TransposedB,
    /// The same, by a `linalg.transpose` before the product.
    TransposeOpA,
    TransposeOpB,
}

pub(super) fn cases() -> Vec<Case> {
    let mut out = vec![];
    for m in DIMENSIONS {
        for n in DIMENSIONS {
            for k in DIMENSIONS {
                out.push(case("bias_relu", m, n, k, Operands::Plain, Epilogue::BiasRelu));
            }
        }
    }
    let epilogues = [
        ("plain", Epilogue::Nothing),
        ("bias", Epilogue::Bias),
        ("tanh", Epilogue::Tanh),
        ("residual", Epilogue::Residual),
        ("per_row", Epilogue::PerRow),
        ("chain", Epilogue::Chain),
    ];
    let shapes = [(64, 64, 64), (65, 63, 10), (1, 1000, 7), (1000, 10, 65)];
    for (name, epilogue) in epilogues {
        out.extend(shapes.iter().map(|(m, n, k)| case(name, *m, *n, *k, Operands::Plain, epilogue)));
    }
    let operands = [
        ("transposed_a", Operands::TransposedA),
        ("transposed_b", Operands::TransposedB),
        ("transpose_op_a", Operands::TransposeOpA),
        ("transpose_op_b", Operands::TransposeOpB),
    ];
    for (name, operands) in operands {
        out.extend(shapes.iter().map(|(m, n, k)| case(name, *m, *n, *k, operands, Epilogue::BiasRelu)));
    }
    out
}

fn case(name: &str, m: usize, n: usize, k: usize, operands: Operands, epilogue: Epilogue) -> Case {
    let a = if matches!(operands, Operands::TransposedA | Operands::TransposeOpA) { vec![k, m] } else { vec![m, k] };
    let b = if matches!(operands, Operands::TransposedB | Operands::TransposeOpB) { vec![n, k] } else { vec![k, n] };
    let mut inputs = vec![a, b];
    let mut body = product(m, n, k, operands);
    write_epilogue(&mut body, epilogue, &mut inputs, m, n);
    Case {
        name: format!("matmul/{name}/{m}x{n}x{k}"),
        text: function(&inputs, &[m, n], &body),
        inputs: f32_inputs(&inputs),
        tolerance: Tolerance { absolute: 1e-5 + 2e-7 * k as f64, relative: 1e-4 },
        dispatches: Some(1),
        gpu_dispatches: None,
        // Each task of 128 rows would copy its columns.
        laid_out: (m >= 512).then_some(LaidOut::Columns { count: n, depth: k }),
        copies: Some(0),
        work: (m * n * k) as u64,
    }
}

/// `%m = %0 * %1` over a zero fill.
fn product(m: usize, n: usize, k: usize, operands: Operands) -> String {
    let (a, b, c) = (tensor(&[m, k]), tensor(&[k, n]), tensor(&[m, n]));
    let mut out = format!("  %z = arith.constant 0.0 : f32\n  %e = tensor.empty() : {c}\n");
    let _ = writeln!(out, "  %f = linalg.fill ins(%z : f32) outs(%e : {c}) -> {c}");
    let mut transpose = |operand: &str, from: &str, to: &str| {
        let _ = writeln!(out, "  %te = tensor.empty() : {to}");
        let _ = writeln!(out, "  %t = linalg.transpose ins({operand} : {from}) outs(%te : {to}) permutation = [1, 0]");
    };
    let (ta, tb) = (tensor(&[k, m]), tensor(&[n, k]));
    let (x, y, maps, types) = match operands {
        Operands::Plain => ("%0", "%1", None, (&a, &b)),
        Operands::TransposedA => ("%0", "%1", Some(("k, m", "k, n")), (&ta, &b)),
        Operands::TransposedB => ("%0", "%1", Some(("m, k", "n, k")), (&a, &tb)),
        Operands::TransposeOpA => {
            transpose("%0", &ta, &a);
            ("%t", "%1", None, (&a, &b))
        }
        Operands::TransposeOpB => {
            transpose("%1", &tb, &b);
            ("%0", "%t", None, (&a, &b))
        }
    };
    let maps = maps.map_or(String::new(), |(a, b)| {
        let map = |r: &str| format!("affine_map<(m, n, k) -> ({r})>");
        format!(" indexing_maps = [{}, {}, {}]", map(a), map(b), map("m, n"))
    });
    let (ty, uy) = types;
    let _ = writeln!(out, "  %m = linalg.matmul{maps} ins({x}, {y} : {ty}, {uy}) outs(%f : {c}) -> {c}");
    out
}

fn write_epilogue(body: &mut String, epilogue: Epilogue, inputs: &mut Vec<Vec<usize>>, m: usize, n: usize) {
    let mut last = "%m".to_owned();
    let mut count = 0;
    let mut op = |body: &mut String, extra: Option<(&Vec<usize>, &str, usize)>, ops: &str| {
        let c = tensor(&[m, n]);
        let (map, operand, ty, arg) = match extra {
            Some((shape, map, index)) => (
                format!("affine_map<(i, j) -> ({map})>, "),
                format!(", %{index}"),
                format!(", {}", tensor(shape)),
                ", %q: f32",
            ),
            None => Default::default(),
        };
        let _ = writeln!(
            body,
            "  %r{count} = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, {map}affine_map<(i, j) -> (i, j)>], \
             iterator_types = [\"parallel\", \"parallel\"]}} ins({last}{operand} : {c}{ty}) outs(%e : {c}) {{\n  \
             ^bb0(%p: f32{arg}, %o: f32):\n    {ops} : f32\n    linalg.yield %s : f32\n  }} -> {c}"
        );
        last = format!("%r{count}");
        count += 1;
    };
    let (bias, row, full) = (vec![n], vec![m], vec![m, n]);
    let add = "%s = arith.addf %p, %q";
    let relu = "%s = arith.maximumf %p, %z";
    match epilogue {
        Epilogue::Nothing => {}
        Epilogue::Tanh => op(body, None, "%s = math.tanh %p"),
        Epilogue::Bias | Epilogue::BiasRelu => {
            op(body, Some((&bias, "j", 2)), add);
            inputs.push(bias);
            if epilogue == Epilogue::BiasRelu {
                op(body, None, relu);
            }
        }
        Epilogue::Residual => {
            op(body, Some((&full, "i, j", 2)), add);
            inputs.push(full);
        }
        Epilogue::PerRow => {
            op(body, Some((&row, "i", 2)), "%s = arith.mulf %p, %q");
            inputs.push(row);
        }
        Epilogue::Chain => {
            let _ = writeln!(body, "  %h = arith.constant 0.5 : f32");
            op(body, None, "%s = arith.mulf %p, %h");
            op(body, Some((&bias, "j", 2)), add);
            op(body, None, relu);
            op(body, Some((&full, "i, j", 3)), "%s = arith.subf %q, %p");
            inputs.extend([bias, full]);
        }
    }
    let _ = writeln!(body, "  return {last} : {}", tensor(&[m, n]));
}
