//! Programs as text, by size.

pub fn tensor(shape: &[i64]) -> String {
    let dims: Vec<String> = shape.iter().map(|d| format!("{d}x")).collect();
    format!("tensor<{}f32>", dims.concat())
}

/// `fill + matmul` into `%m`, of `%a: [m, k]` and `%b: [k, n]`.
fn product(m: i64, n: i64, k: i64) -> String {
    let (a, b, c) = (tensor(&[m, k]), tensor(&[k, n]), tensor(&[m, n]));
    format!(
        "  %z = arith.constant 0.0 : f32\n  %e = tensor.empty() : {c}\n  %f = linalg.fill ins(%z : f32) outs(%e : {c}) -> {c}\n  \
         %m = linalg.matmul ins(%a, %b : {a}, {b}) outs(%f : {c}) -> {c}\n"
    )
}

pub fn matmul(m: i64, n: i64, k: i64) -> String {
    let (a, b, c) = (tensor(&[m, k]), tensor(&[k, n]), tensor(&[m, n]));
    format!("func.func @main(%a: {a}, %b: {b}) -> {c} {{\n{}  return %m : {c}\n}}\n", product(m, n, k))
}

/// A matmul with an epilogue: `%x` has shape `extra`, is read by the map `(i, j) -> (map)`, and `op` computes `%r` of `%p` (the
/// product), `%q` (the extra operand) and `%z`.
pub fn epilogue(m: i64, n: i64, k: i64, extra: &[i64], map: &str, op: &str) -> String {
    let (a, b, c, x) = (tensor(&[m, k]), tensor(&[k, n]), tensor(&[m, n]), tensor(extra));
    format!(
        "func.func @main(%a: {a}, %b: {b}, %x: {x}) -> {c} {{\n{}  %o = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, \
         affine_map<(i, j) -> ({map})>, affine_map<(i, j) -> (i, j)>], iterator_types = [\"parallel\", \"parallel\"]}} ins(%m, %x : {c}, {x}) \
         outs(%e : {c}) {{\n  ^bb0(%p: f32, %q: f32, %d: f32):\n    {op}\n    linalg.yield %r : f32\n  }} -> {c}\n  return %o : {c}\n}}\n",
        product(m, n, k)
    )
}

/// Three layers of matmul, bias, relu (the last without relu), weights as arguments.
pub fn mlp(batch: i64, dims: [i64; 4]) -> String {
    let mut args = vec![format!("%x0: {}", tensor(&[batch, dims[0]]))];
    let mut body = String::from("  %z = arith.constant 0.0 : f32\n");
    for i in 0..3 {
        let (k, n) = (dims[i], dims[i + 1]);
        let (w, b, x, t) = (tensor(&[k, n]), tensor(&[n]), tensor(&[batch, k]), tensor(&[batch, n]));
        args.push(format!("%w{i}: {w}, %b{i}: {b}"));
        body += &format!(
            "  %e{i} = tensor.empty() : {t}\n  %f{i} = linalg.fill ins(%z : f32) outs(%e{i} : {t}) -> {t}\n  \
             %m{i} = linalg.matmul ins(%x{i}, %w{i} : {x}, {w}) outs(%f{i} : {t}) -> {t}\n  \
             %a{i} = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], \
             iterator_types = [\"parallel\", \"parallel\"]}} ins(%m{i}, %b{i} : {t}, {b}) outs(%e{i} : {t}) {{\n  ^bb0(%p: f32, %q: f32, %o: f32):\n    \
             %s = arith.addf %p, %q : f32\n    linalg.yield %s : f32\n  }} -> {t}\n"
        );
        if i < 2 {
            body += &format!(
                "  %x{} = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], \
                 iterator_types = [\"parallel\", \"parallel\"]}} ins(%a{i} : {t}) outs(%e{i} : {t}) {{\n  ^bb0(%p: f32, %o: f32):\n    \
                 %s = arith.maximumf %p, %z : f32\n    linalg.yield %s : f32\n  }} -> {t}\n",
                i + 1
            );
        }
    }
    let out = tensor(&[batch, dims[3]]);
    format!("func.func @main({}) -> {out} {{\n{body}  return %a2 : {out}\n}}\n", args.join(", "))
}
