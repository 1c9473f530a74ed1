//! Generics without a strategy, for the fallback loop nest.

use super::case::{Case, f32_inputs, function, tensor};
use crate::approx::Tolerance;

/// Name, input shapes, result shape, initial value (none: not read), maps, iterators, body.
struct Generic<'a> {
    name: &'a str,
    inputs: &'a [&'a [usize]],
    result: &'a [usize],
    init: Option<&'a str>,
    maps: &'a [&'a str],
    iterators: &'a str,
    body: &'a str,
}

const SUM: &str = "%s = arith.addf %p, %o : f32";

pub(super) fn cases() -> Vec<Case> {
    PARALLEL.iter().chain(&REDUCTIONS).chain(&PRODUCTS).map(case).collect()
}

/// Parallel loops alone.
const PARALLEL: [Generic; 6] = [
    Generic {
        name: "strided",
        inputs: &[&[21]],
        result: &[10],
        init: None,
        maps: &["(i) -> (i * 2 + 1)", "(i) -> (i)"],
        iterators: "p",
        body: "%s = arith.addf %p, %p : f32",
    },
    Generic {
        name: "reversed",
        inputs: &[&[5, 33]],
        result: &[5, 33],
        init: None,
        maps: &["(i, j) -> (i, 32 - j)", "(i, j) -> (i, j)"],
        iterators: "pp",
        body: "%s = arith.negf %p : f32",
    },
    Generic {
        name: "transposed",
        inputs: &[&[7, 65]],
        result: &[65, 7],
        init: None,
        maps: &["(i, j) -> (j, i)", "(i, j) -> (i, j)"],
        iterators: "pp",
        body: "%s = math.absf %p : f32",
    },
    Generic {
        name: "diagonal",
        inputs: &[&[9, 9]],
        result: &[9],
        init: None,
        maps: &["(i) -> (i, i)", "(i) -> (i)"],
        iterators: "p",
        body: "%s = arith.mulf %p, %p : f32",
    },
    Generic {
        name: "index",
        inputs: &[&[6, 11]],
        result: &[6, 11],
        init: None,
        maps: &["(i, j) -> (i, j)", "(i, j) -> (i, j)"],
        iterators: "pp",
        body: "%i = linalg.index 0 : index\n    %j = linalg.index 1 : index\n    %c = arith.constant 3 : index\n    \
                   %m = arith.muli %i, %c : index\n    %d = arith.subi %m, %j : index\n    %n = arith.index_cast %d : index to i32\n    \
                   %x = arith.sitofp %n : i32 to f32\n    %s = arith.addf %x, %p : f32",
    },
    Generic {
        name: "gather",
        inputs: &[&[13]],
        result: &[40],
        init: None,
        maps: &["(i) -> (i)"],
        iterators: "p",
        body: "%i = linalg.index 0 : index\n    %c = arith.constant 7 : index\n    %n = arith.constant 13 : index\n    \
                   %m = arith.muli %i, %c : index\n    %at = arith.remui %m, %n : index\n    %s = tensor.extract %0[%at] : tensor<13xf32>",
    },
];

/// One input is reduced.
const REDUCTIONS: [Generic; 3] = [
    Generic {
        name: "row_sum",
        inputs: &[&[7, 65]],
        result: &[7],
        init: Some("0.0"),
        maps: &["(i, j) -> (i, j)", "(i, j) -> (i)"],
        iterators: "pr",
        body: SUM,
    },
    Generic {
        name: "column_maximum",
        inputs: &[&[65, 7]],
        result: &[7],
        init: Some("0xFF800000"),
        maps: &["(i, j) -> (i, j)", "(i, j) -> (j)"],
        iterators: "rp",
        body: "%s = arith.maximumf %p, %o : f32",
    },
    Generic {
        name: "sum_of_all",
        inputs: &[&[9, 11]],
        result: &[],
        init: Some("1.5"),
        maps: &["(i, j) -> (i, j)", "(i, j) -> ()"],
        iterators: "rr",
        body: SUM,
    },
];

/// Two inputs are combined and reduced.
const PRODUCTS: [Generic; 4] = [
    Generic {
        name: "window",
        inputs: &[&[34], &[3]],
        result: &[32],
        init: Some("0.0"),
        maps: &["(i, k) -> (i + k)", "(i, k) -> (k)", "(i, k) -> (i)"],
        iterators: "pr",
        body: "%m = arith.mulf %p, %q : f32\n    %s = arith.addf %m, %o : f32",
    },
    Generic {
        name: "windowed_image",
        inputs: &[&[9, 9, 4], &[3, 3, 4, 5]],
        result: &[4, 4, 5],
        init: Some("0.0"),
        maps: &[
            "(x, y, f, a, b, c) -> (x * 2 + a, y * 2 + b, c)",
            "(x, y, f, a, b, c) -> (a, b, c, f)",
            "(x, y, f, a, b, c) -> (x, y, f)",
        ],
        iterators: "ppprrr",
        body: "%m = arith.mulf %p, %q : f32\n    %s = arith.addf %m, %o : f32",
    },
    Generic {
        name: "batched_product",
        inputs: &[&[3, 10, 17], &[3, 17, 9]],
        result: &[3, 10, 9],
        init: Some("0.0"),
        maps: &["(b, m, n, k) -> (b, m, k)", "(b, m, n, k) -> (b, k, n)", "(b, m, n, k) -> (b, m, n)"],
        iterators: "pppr",
        body: "%m = arith.mulf %p, %q : f32\n    %s = arith.addf %m, %o : f32",
    },
    Generic {
        name: "absolute_distances",
        inputs: &[&[6, 20], &[8, 20]],
        result: &[6, 8],
        init: Some("0.0"),
        maps: &["(m, n, k) -> (m, k)", "(m, n, k) -> (n, k)", "(m, n, k) -> (m, n)"],
        iterators: "ppr",
        body: "%d = arith.subf %p, %q : f32\n    %a = math.absf %d : f32\n    %s = arith.addf %a, %o : f32",
    },
];

fn case(g: &Generic<'_>) -> Case {
    let inputs: Vec<_> = g.inputs.iter().map(|s| s.to_vec()).collect();
    let ty = tensor(g.result);
    let maps: Vec<_> = g.maps.iter().map(|m| format!("affine_map<{m}>")).collect();
    let iterators: Vec<_> =
        g.iterators.chars().map(|c| if c == 'p' { "\"parallel\"" } else { "\"reduction\"" }).collect();
    // One map per operand; a body may gather from further inputs.
    let ins = g.maps.len() - 1;
    let args: String = ["%p: f32, ", "%q: f32, "][..ins].concat();
    let names: Vec<_> = (0..ins).map(|i| format!("%{i}")).collect();
    let types: Vec<_> = inputs[..ins].iter().map(|s| tensor(s)).collect();
    let ins = if ins == 0 { String::new() } else { format!("ins({} : {}) ", names.join(", "), types.join(", ")) };
    let fill = g.init.map_or(String::new(), |value| {
        format!("  %v = arith.constant {value} : f32\n  %f = linalg.fill ins(%v : f32) outs(%e : {ty}) -> {ty}\n")
    });
    let out = if g.init.is_some() { "%f" } else { "%e" };
    let body = format!(
        "  %e = tensor.empty() : {ty}\n{fill}  %r = linalg.generic {{indexing_maps = [{}], iterator_types = [{}]}} {ins}\
         outs({out} : {ty}) {{\n  ^bb0({args}%o: f32):\n    {}\n    linalg.yield %s : f32\n  }} -> {ty}\n  return %r : {ty}\n",
        maps.join(", "),
        iterators.join(", "),
        g.body
    );
    Case {
        name: format!("generic/{}", g.name),
        text: function(&inputs, g.result, &body),
        inputs: f32_inputs(&inputs),
        tolerance: Tolerance { absolute: 1e-5, relative: 1e-5 },
        dispatches: Some(1),
        gpu_dispatches: None,
        laid_out: None,
        copies: Some(0),
        work: inputs.iter().map(|s| s.iter().product::<usize>() as u64).sum(),
    }
}
