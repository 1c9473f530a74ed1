//! Attention whose rows see no keys behind their own place, against plain Rust.

use crate::harness::{Library, can_run, compile, random, runs};
use monopour_program::CpuTarget;

/// Elements of a query, a key and a value.
const SIZE: usize = 16;

/// An attention of one head.
#[derive(Clone, Copy, Debug)]
struct Shape {
    queries: usize,
    keys: usize,
    /// Rows of a task.
    rows: usize,
    /// A row sees the keys before its place plus this, and the one there.
    offset: i64,
    /// The score of others.
    least: f32,
}

fn sees(shape: Shape, row: usize, key: usize) -> bool {
    key as i64 <= row as i64 + shape.offset
}

/// The kernel of a task.
fn kernel(shape: Shape) -> String {
    let Shape { queries, keys, rows, offset, least } = shape;
    let (q, k, s, r) = (
        format!("memref<{queries}x{SIZE}xf32>"),
        format!("memref<{keys}x{SIZE}xf32>"),
        format!("memref<{rows}x{keys}xf32>"),
        format!("memref<{rows}xf32>"),
    );
    let part = format!("memref<{rows}x{SIZE}xf32, strided<[{SIZE}, 1], offset: ?>>");
    let slice = |name: &str| format!("memref.subview {name}[%first, 0] [{rows}, {SIZE}] [1, 1] : {q} to {part}");
    let parallel = "iterator_types = [\"parallel\", \"parallel\"]";
    let along = "iterator_types = [\"parallel\", \"reduction\"]";
    let product = "iterator_types = [\"parallel\", \"parallel\", \"reduction\"]";
    let sum = "^bb0(%a: f32, %b: f32, %c: f32):\n  %m = arith.mulf %a, %b : f32\n  %n = arith.addf %c, %m : f32\n  linalg.yield %n : f32\n";
    let least = least.to_bits();
    format!(
        "#ij = affine_map<(i, j) -> (i, j)>\n#i = affine_map<(i, j) -> (i)>\n#m = affine_map<(i, j, k) -> (i, j)>\n\
         #a = affine_map<(i, j, k) -> (i, k)>\n#b = affine_map<(i, j, k) -> (j, k)>\n#c = affine_map<(i, j, k) -> (k, j)>\n\
         func.func private @main_dispatch_0(%q: {q}, %k: {k}, %v: {k}, %o: {q}, %t: index) attributes {{monopour.kernel = {{class = \"attention\"}}}} {{\n\
         %rows = arith.constant {rows} : index\n%first = arith.muli %t, %rows : index\n%zero = arith.constant 0.0 : f32\n\
         %low = arith.constant 0xFF800000 : f32\n%least = arith.constant {least:#010X} : f32\n%offset = arith.constant {offset} : index\n\
         %s = memref.alloca() {{alignment = 64 : i64}} : {s}\n%most = memref.alloca() {{alignment = 64 : i64}} : {r}\n\
         %total = memref.alloca() {{alignment = 64 : i64}} : {r}\n%qs = {}\n%os = {}\n\
         linalg.fill ins(%zero : f32) outs(%s : {s})\n\
         linalg.generic {{indexing_maps = [#a, #b, #m], {product}}} ins(%qs, %k : {part}, {k}) outs(%s : {s}) {{\n{sum}}}\n\
         linalg.generic {{indexing_maps = [#ij], {parallel}}} outs(%s : {s}) {{\n^bb0(%x: f32):\n  %i = linalg.index 0 : index\n  %j = linalg.index 1 : index\n  \
           %p = arith.addi %i, %first : index\n  %l = arith.addi %p, %offset : index\n  %d = arith.cmpi sle, %j, %l : index\n  \
           %n = arith.select %d, %x, %least : f32\n  linalg.yield %n : f32\n}}\n\
         linalg.fill ins(%low : f32) outs(%most : {r})\n\
         linalg.generic {{indexing_maps = [#ij, #i], {along}}} ins(%s : {s}) outs(%most : {r}) {{\n^bb0(%x: f32, %y: f32):\n  \
           %n = arith.maximumf %y, %x : f32\n  linalg.yield %n : f32\n}}\n\
         linalg.generic {{indexing_maps = [#i, #ij], {parallel}}} ins(%most : {r}) outs(%s : {s}) {{\n^bb0(%x: f32, %y: f32):\n  \
           %d = arith.subf %y, %x : f32\n  %n = math.exp %d : f32\n  linalg.yield %n : f32\n}}\n\
         linalg.fill ins(%zero : f32) outs(%total : {r})\n\
         linalg.generic {{indexing_maps = [#ij, #i], {along}}} ins(%s : {s}) outs(%total : {r}) {{\n^bb0(%x: f32, %y: f32):\n  \
           %n = arith.addf %y, %x : f32\n  linalg.yield %n : f32\n}}\n\
         linalg.generic {{indexing_maps = [#i, #ij], {parallel}}} ins(%total : {r}) outs(%s : {s}) {{\n^bb0(%x: f32, %y: f32):\n  \
           %n = arith.divf %y, %x : f32\n  linalg.yield %n : f32\n}}\n\
         linalg.fill ins(%zero : f32) outs(%os : {part})\n\
         linalg.generic {{indexing_maps = [#a, #c, #m], {product}}} ins(%s, %v : {s}, {k}) outs(%os : {part}) {{\n{sum}}}\n\
         return\n}}\n",
        slice("%q"),
        slice("%o")
    )
}

/// The results, of terms whose weight is not 0.
fn reference(shape: Shape, [q, k, v]: [&[f32]; 3]) -> Vec<f32> {
    let mut out = vec![];
    for (row, q) in q.chunks(SIZE).enumerate() {
        let score = |key: usize| {
            let terms = q.iter().zip(&k[key * SIZE..]).map(|(a, b)| f64::from(*a) * f64::from(*b));
            if sees(shape, row, key) { terms.sum() } else { f64::from(shape.least) }
        };
        let scores: Vec<f64> = (0..shape.keys).map(score).collect();
        let greater = |a: f64, b: &f64| if a.is_nan() || a > *b { a } else { *b };
        let most = scores.iter().fold(f64::NEG_INFINITY, greater);
        let powers: Vec<f64> = scores.iter().map(|s| (s - most).exp()).collect();
        let total: f64 = powers.iter().sum();
        for column in 0..SIZE {
            let terms = powers.iter().enumerate().filter(|(_, power)| **power > 1e-45 || power.is_nan());
            let terms = terms.map(|(key, power)| power / total * f64::from(v[key * SIZE + column]));
            out.push(if total.is_nan() { f32::NAN } else { terms.sum::<f64>() as f32 });
        }
    }
    out
}

/// Checks all tasks of a shape, on each of several inputs.
fn check(shape: Shape, inputs: &[[Vec<f32>; 3]], target: &CpuTarget) {
    let code = compile(&kernel(shape), target).unwrap_or_else(|found| panic!("{shape:?}: {found}"));
    let library = Library::load(&code);
    inputs.iter().for_each(|inputs| check_on(shape, inputs, (&library, target)));
}

fn check_on(shape: Shape, inputs: &[Vec<f32>; 3], (library, target): (&Library, &CpuTarget)) {
    let [mut q, mut k, mut v] = inputs.clone();
    let expected = reference(shape, [&q, &k, &v]);
    let mut found = vec![9.0; q.len()];
    for task in 0..shape.queries / shape.rows {
        library.run("main_dispatch_0", &mut [&mut q, &mut k, &mut v, &mut found], &[task as i64]);
    }
    for (i, (f, e)) in found.iter().zip(&expected).enumerate() {
        let close = (f - e).abs() <= 2e-4 * e.abs().max(1.0);
        let (row, bits) = (i / SIZE, target.vector_bits);
        assert!(close || (f.is_nan() && e.is_nan()), "{shape:?} in {bits} bits, row {row}: {f}, expected {e}");
    }
}

fn inputs(shape: Shape, scale: f32) -> [Vec<f32>; 3] {
    let counts = [shape.queries, shape.keys, shape.keys];
    let mut made = counts.map(|count| random(count * SIZE, count as u64 + 7));
    made[0].iter_mut().for_each(|x| *x *= scale);
    made
}

fn targets() -> Vec<CpuTarget> {
    ["x86-64-v3", "host"].iter().filter_map(|name| CpuTarget::parse(name)).filter(runs).collect()
}

#[test]
fn keys_count_as_in_full() {
    if !can_run() {
        return;
    }
    let sizes = [
        (96, 96, 16, 0),
        (130, 130, 26, 0),
        (200, 200, 50, 0),
        (65, 400, 65, 0),
        (96, 300, 16, 70),
        (160, 200, 16, -70),
    ];
    for (queries, keys, rows, offset) in sizes {
        for least in [f32::NEG_INFINITY, f32::MIN, -1.0e4, -2.0] {
            let shape = Shape { queries, keys, rows, offset, least };
            let [mut q, mut k, v] = inputs(shape, 1.0);
            q[3 * SIZE] = f32::NAN;
            k[5 * SIZE] = f32::NEG_INFINITY;
            k[(keys - 9) * SIZE] = f32::INFINITY;
            k[(keys - 20) * SIZE + 1] = f32::NAN;
            // Scores of the second ones are about as low as a mask's.
            let all = [inputs(shape, 2.0), inputs(shape, 8.0e3), [q, k, v]];
            targets().iter().for_each(|target| check(shape, &all, target));
        }
    }
}

/// Values that are no numbers would show if their keys were computed.
#[test]
fn unseen_keys_are_left_out() {
    if !can_run() {
        return;
    }
    for (offset, least) in [(0, f32::NEG_INFINITY), (0, -1.0e4), (40, f32::MIN)] {
        let shape = Shape { queries: 160, keys: 260, rows: 16, offset, least };
        let [q, k, mut v] = inputs(shape, 1.0);
        // Behind the block of the last row's own key.
        v[256 * SIZE..].fill(f32::NAN);
        let all = [[q, k, v]];
        targets().iter().for_each(|target| check(shape, &all, target));
    }
}
