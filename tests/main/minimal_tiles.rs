//! Dispatches that take the buffer of a tensor of which each tile reads what it writes: elements, rows, the tile of an
//! epilogue.
//!
//! Each program has twins that read the tensor elsewhere, or later, and must not.

use crate::host::{devices, raw};
use crate::minimal::{Case, Copies, ELEMENTS, Element, check_family, tensor, tensor_from};
use monopour::program::DType;
use monopour::runtime::HostTensor;

/// What keeps a dispatch from taking the buffer of its operand.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Twin {
    /// Nothing.
    None,
    /// The program returns the operand, too.
    Returned,
    /// The operand is not donated.
    Given,
    /// Each tile reads elements that others write.
    Crossed,
}

const TWINS: [Twin; 4] = [Twin::None, Twin::Returned, Twin::Given, Twin::Crossed];

pub fn ty(shape: &[u64], element: Element) -> String {
    let sizes: String = shape.iter().map(|n| format!("{n}x")).collect();
    format!("tensor<{sizes}{}>", element.1)
}

fn bytes(shape: &[u64]) -> u64 {
    4 * shape.iter().product::<u64>()
}

/// The dimensions of a generic, and with the first two (or the elements of the only one) in reverse.
fn maps(shape: &[u64]) -> (String, String) {
    let names = ["i", "j", "k"];
    let dims = names[..shape.len()].join(", ");
    let mut crossed: Vec<String> = names[..shape.len()].iter().map(|d| (*d).to_owned()).collect();
    crossed[0] = format!("{} - i", shape[0] - 1);
    (format!("affine_map<({dims}) -> ({dims})>"), format!("affine_map<({dims}) -> ({})>", crossed.join(", ")))
}

/// `%name = %a + 2 %b` into a new tensor; `crossed`: `%b` is read in reverse.
fn combined(name: &str, (a, b): (&str, &str), shape: &[u64], element: Element, crossed: bool) -> String {
    let (of, add) = (element.1, element.2);
    let (own, other) = maps(shape);
    let (own_b, parallel) = (if crossed { &other } else { &own }, vec!["\"parallel\""; shape.len()].join(", "));
    let ty = ty(shape, element);
    format!(
        "  %e{name} = tensor.empty() : {ty}\n  \
         %{name} = linalg.generic {{indexing_maps = [{own}, {own_b}, {own}], iterator_types = [{parallel}]}} \
         ins({a}, {b} : {ty}, {ty}) outs(%e{name} : {ty}) {{\n  ^bb0(%p: {of}, %q: {of}, %o: {of}):\n    \
         %m = {add} %q, %q : {of}\n    %v = {add} %m, %p : {of}\n    linalg.yield %v : {of}\n  }} -> {ty}\n"
    )
}

/// `%name = %a @ %b`, each element at least 0.
fn product(name: &str, (a, b): (&str, &str), (m, k, n): (u64, u64, u64), element: Element) -> String {
    let (of, zero, max) = match element.1 {
        "f32" => ("f32", "0.0", "arith.maximumf"),
        _ => ("i32", "0", "arith.maxsi"),
    };
    let (ta, tb, tc) = (ty(&[m, k], element), ty(&[k, n], element), ty(&[m, n], element));
    let (own, _) = maps(&[m, n]);
    format!(
        "  %z{name} = arith.constant {zero} : {of}\n  %e{name} = tensor.empty() : {tc}\n  \
         %f{name} = linalg.fill ins(%z{name} : {of}) outs(%e{name} : {tc}) -> {tc}\n  \
         %p{name} = linalg.matmul ins({a}, {b} : {ta}, {tb}) outs(%f{name} : {tc}) -> {tc}\n  \
         %{name} = linalg.generic {{indexing_maps = [{own}, {own}], iterator_types = [\"parallel\", \"parallel\"]}} \
         ins(%p{name} : {tc}) outs(%e{name} : {tc}) {{\n  ^bb0(%p: {of}, %o: {of}):\n    \
         %v = {max} %p, %z{name} : {of}\n    linalg.yield %v : {of}\n  }} -> {tc}\n"
    )
}

/// `%name`: the largest number of each row, or of all of a vector.
fn largest(name: &str, a: &str, shape: &[u64], element: Element) -> String {
    let (of, low, max) = match element.1 {
        "f32" => ("f32", "-1.0e9", "arith.maximumf"),
        _ => ("i32", "-1000000", "arith.maxsi"),
    };
    let (rows, whole) = (&shape[..shape.len() - 1], ty(shape, element));
    let (own, _) = maps(shape);
    let dims = ["i", "j", "k"];
    let (all, kept) = (dims[..shape.len()].join(", "), dims[..rows.len()].join(", "));
    let kinds = [vec!["\"parallel\""; rows.len()], vec!["\"reduction\""]].concat().join(", ");
    let part = ty(rows, element);
    format!(
        "  %l{name} = arith.constant {low} : {of}\n  %e{name} = tensor.empty() : {part}\n  \
         %f{name} = linalg.fill ins(%l{name} : {of}) outs(%e{name} : {part}) -> {part}\n  \
         %{name} = linalg.generic {{indexing_maps = [{own}, affine_map<({all}) -> ({kept})>], iterator_types = [{kinds}]}} \
         ins({a} : {whole}) outs(%f{name} : {part}) {{\n  ^bb0(%p: {of}, %o: {of}):\n    \
         %v = {max} %p, %o : {of}\n    linalg.yield %v : {of}\n  }} -> {part}\n"
    )
}

/// `%name = %a - %b` with a number of each row.
fn less(name: &str, (a, b): (&str, &str), shape: &[u64], element: Element, crossed: bool) -> String {
    let (of, sub) = (element.1, if element.1 == "f32" { "arith.subf" } else { "arith.subi" });
    let (own, other) = maps(shape);
    let own_a = if crossed { &other } else { &own };
    let dims = ["i", "j", "k"];
    let (all, kept) = (dims[..shape.len()].join(", "), dims[..shape.len() - 1].join(", "));
    let (whole, part) = (ty(shape, element), ty(&shape[..shape.len() - 1], element));
    let parallel = vec!["\"parallel\""; shape.len()].join(", ");
    format!(
        "  %e{name} = tensor.empty() : {whole}\n  \
         %{name} = linalg.generic {{indexing_maps = [{own_a}, affine_map<({all}) -> ({kept})>, {own}], \
         iterator_types = [{parallel}]}} ins({a}, {b} : {whole}, {part}) outs(%e{name} : {whole}) {{\n  \
         ^bb0(%p: {of}, %q: {of}, %o: {of}):\n    %v = {sub} %p, %q : {of}\n    linalg.yield %v : {of}\n  }} -> {whole}\n"
    )
}

/// A program of one result `%y` made of `%x`, which is donated but for a twin; `fresh`: its bytes in place, and those
/// of a twin.
fn case(arguments: &[(&str, Vec<u64>)], body: &str, element: Element, twin: Twin, fresh: (u64, u64)) -> Case {
    let list = |(name, shape): &(&str, Vec<u64>)| format!("%{name}: {}", ty(shape, element));
    let of = ty(&arguments[0].1, element);
    let (types, also) = if twin == Twin::Returned { (format!("({of}, {of})"), ", %x") } else { (of.clone(), "") };
    let results = if twin == Twin::Returned { format!("{of}, {of}") } else { of };
    let text = format!(
        "func.func @main({}) -> {types} {{\n{body}  return %y{also} : {results}\n}}\n",
        arguments.iter().map(list).collect::<Vec<_>>().join(", ")
    );
    let input = |(number, (name, shape)): (usize, &(&str, Vec<u64>))| -> HostTensor {
        match (number, &**name) {
            (0, _) => tensor(element.0, shape),
            // Columns move, and values stay exact.
            (_, "w") => moving(element.0, shape),
            _ => tensor_from(element.0, shape, 5 * number as u64),
        }
    };
    let fresh_bytes = Some(if twin == Twin::None { fresh.0 } else { fresh.1 });
    let inputs = arguments.iter().enumerate().map(input).collect();
    Case { text, inputs, donated: usize::from(twin != Twin::Given), copies: Copies::Exactly(0), fresh_bytes }
}

/// A matrix whose products have the columns of their left factors.
pub fn moving(dtype: DType, shape: &[u64]) -> HostTensor {
    let is_one = |i: u64| (i % shape[1]) % shape[0] == (i / shape[1] + 1) % shape[0];
    let numbers = (0..shape[0] * shape[1]).flat_map(|i| match dtype {
        DType::F32 => f32::from(u8::from(is_one(i))).to_le_bytes(),
        _ => i32::from(is_one(i)).to_le_bytes(),
    });
    raw(dtype, shape, &numbers.collect::<Vec<_>>())
}

/// Sums of some numbers: one dispatch.
fn elementwise(shape: &[u64], element: Element, steps: usize, twin: Twin) -> Case {
    let mut body = String::new();
    let mut before = "%x".to_owned();
    for step in 0..steps {
        let name = if step + 1 == steps { "y".to_owned() } else { format!("s{step}") };
        // The step that reads `%x` in reverse is the last, so that all are one dispatch.
        let crossed = twin == Twin::Crossed && step + 1 == steps;
        let other = if crossed { "%x" } else { "%b" };
        body += &combined(&name, (&before, other), shape, element, crossed);
        before = format!("%{name}");
    }
    let size = bytes(shape);
    case(&[("x", shape.to_vec()), ("b", shape.to_vec())], &body, element, twin, (0, size))
}

/// Rows less their largest number, and again.
fn rows(shape: &[u64], element: Element, steps: usize, twin: Twin) -> Case {
    let mut body = String::new();
    let mut before = "%x".to_owned();
    for step in 0..steps {
        let name = if step + 1 == steps { "y".to_owned() } else { format!("s{step}") };
        body += &largest(&format!("m{step}"), &before, shape, element);
        body += &less(&name, (&before, &format!("%m{step}")), shape, element, twin == Twin::Crossed && step == 0);
        before = format!("%{name}");
    }
    let case = case(&[("x", shape.to_vec())], &body, element, twin, (0, bytes(shape)));
    // What is read in reverse is not of one dispatch, and numbers of rows are in the arena.
    if twin == Twin::Crossed { Case { fresh_bytes: None, ..case } } else { case }
}

/// `x + 2 relu(a w)`, an epilogue of a product.
fn epilogue((m, k, n): (u64, u64, u64), element: Element, twin: Twin) -> Case {
    let shape = [m, n];
    let body = product("h", ("%a", "%w"), (m, k, n), element) + &combined("y", ("%x", "%h"), &shape, element, false);
    let body = if twin == Twin::Crossed { reversed_first(&body, &shape) } else { body };
    let arguments = [("x", shape.to_vec()), ("a", vec![m, k]), ("w", vec![k, n])];
    case(&arguments, &body, element, twin, (0, bytes(&shape)))
}

/// The program with its first operand `%x` read in reverse.
fn reversed_first(body: &str, shape: &[u64]) -> String {
    let (own, other) = maps(shape);
    let at = body.rfind("indexing_maps = [").expect("it has a generic");
    let (before, last) = body.split_at(at);
    before.to_owned() + &last.replacen(&own, &other, 1)
}

/// Layers `x + 2 relu(relu(x w) w)`: the first product reads rows of `x`, the second one the tile that it writes.
fn residual(layers: usize, size: u64, element: Element, twin: Twin) -> Case {
    let (shape, sizes) = ([size, size], (size, size, size));
    let mut body = String::new();
    let mut before = "%x".to_owned();
    for layer in 0..layers {
        let name = if layer + 1 == layers { "y".to_owned() } else { format!("s{layer}") };
        let (first, second) = (format!("p{layer}"), format!("q{layer}"));
        body += &product(&first, (&before, "%w"), sizes, element);
        body += &product(&second, (&format!("%{first}"), "%w"), sizes, element);
        let layer_body = combined(&name, (&before, &format!("%{second}")), &shape, element, false);
        body += &if twin == Twin::Crossed { reversed_first(&layer_body, &shape) } else { layer_body };
        before = format!("%{name}");
    }
    let one = bytes(&shape);
    // What is between the products is in the arena, the result of a twin in a buffer of its own.
    let arena = one.next_multiple_of(256);
    // Layers that are read in reverse take turns in two buffers, the second of which is the donated input: of an even number
    // the last one is there, and the others in the arena; of an odd number they are in the result.
    let more = if twin == Twin::Crossed && layers.is_multiple_of(2) { arena } else { one };
    case(&[("x", shape.to_vec()), ("w", shape.to_vec())], &body, element, twin, (arena, arena + more))
}

/// Chains of one to four steps over shapes and types, with their twins.
fn chains(shapes: &[&[u64]], make: impl Fn(&[u64], Element, usize, Twin) -> Case) -> Vec<Case> {
    let mut cases = Vec::new();
    for shape in shapes {
        for element in ELEMENTS {
            for steps in [1, 2, 3, 4] {
                cases.extend(TWINS.map(|twin| make(shape, element, steps, twin)));
            }
        }
    }
    cases
}

#[test]
fn elements_are_computed_where_they_were() {
    let shapes: [&[u64]; 7] = [&[7], &[64], &[1000], &[5, 8], &[33, 70], &[128, 64], &[3, 5, 40]];
    check_family(chains(&shapes, elementwise), 12);
}

#[test]
fn rows_are_computed_where_they_were() {
    let shapes: [&[u64]; 7] = [&[4, 8], &[33, 70], &[1, 300], &[512, 16], &[7, 1030], &[3, 5, 40], &[2, 9, 128]];
    check_family(chains(&shapes, rows), 12);
}

#[test]
fn epilogues_are_computed_where_their_operand_was() {
    let mut cases = Vec::new();
    for m in [1, 4, 40, 100, 130] {
        for k in [8, 33] {
            for n in [16, 70, 256] {
                for element in ELEMENTS {
                    for twin in TWINS {
                        cases.push(epilogue((m, k, n), element, twin));
                    }
                }
            }
        }
    }
    check_family(cases, 12);
}

#[test]
fn residual_layers_are_computed_where_their_operand_was() {
    let mut cases = Vec::new();
    for layers in [1, 2, 3] {
        for size in [8, 16, 20, 40, 64, 72, 100, 128, 130] {
            for element in ELEMENTS {
                for twin in TWINS {
                    cases.push(residual(layers, size, element, twin));
                }
            }
        }
    }
    check_family(cases, 6);
}

/// Three layers of 256x256 take one buffer besides the donated input.
#[test]
fn three_residual_layers() {
    for device in devices() {
        residual(3, 256, (DType::F32, "f32", "arith.addf", "arith.mulf"), Twin::None).check(&device);
    }
}

/// Scores, their powers and the weights of attention, in a form that is not one dispatch, are in one buffer: the
/// product makes them, softmax takes them row by row.
#[test]
fn scores_and_their_softmax_are_in_one_buffer() {
    let (b, n, d) = (2u64, 64u64, 16u64);
    let element = ELEMENTS[0];
    let (scores, rows) = ([b, n, n], format!("tensor<{b}x{n}xf32>"));
    let of = |shape: &[u64]| ty(shape, element);
    let (s, q, k) = (of(&scores), of(&[b, n, d]), of(&[b, d, n]));
    let row_map = "affine_map<(i, j, k) -> (i, j)>";
    let map = maps(&scores).0;
    let reduced = |name: &str, from: &str, init: &str, op: &str| {
        format!(
            "  %i{name} = arith.constant {init} : f32\n  %e{name} = tensor.empty() : {rows}\n  \
             %f{name} = linalg.fill ins(%i{name} : f32) outs(%e{name} : {rows}) -> {rows}\n  \
             %{name} = linalg.generic {{indexing_maps = [{map}, {row_map}], \
             iterator_types = [\"parallel\", \"parallel\", \"reduction\"]}} ins({from} : {s}) outs(%f{name} : {rows}) {{\n  \
             ^bb0(%u: f32, %o: f32):\n    %v = {op} %u, %o : f32\n    linalg.yield %v : f32\n  }} -> {rows}\n"
        )
    };
    let wide = |name: &str, (a, row): (&str, &str), body: &str| {
        format!(
            "  %e{name} = tensor.empty() : {s}\n  %{name} = linalg.generic {{indexing_maps = [{map}, {row_map}, {map}], \
             iterator_types = [\"parallel\", \"parallel\", \"parallel\"]}} ins({a}, {row} : {s}, {rows}) outs(%e{name} : {s}) {{\n  \
             ^bb0(%u: f32, %t: f32, %o: f32):\n    {body}\n    linalg.yield %v : f32\n  }} -> {s}\n"
        )
    };
    let batched = |name: &str, (a, ta): (&str, &str), (c, tc): (&str, &str), to: &str| {
        format!(
            "  %e{name} = tensor.empty() : {to}\n  %f{name} = linalg.fill ins(%z : f32) outs(%e{name} : {to}) -> {to}\n  \
             %{name} = linalg.batch_matmul ins({a}, {c} : {ta}, {tc}) outs(%f{name} : {to}) -> {to}\n"
        )
    };
    let text = format!(
        "func.func @main(%q: {q}, %k: {k}, %w: {q}) -> {q} {{\n  %z = arith.constant 0.0 : f32\n{}{}{}{}{}{}  return %o : {q}\n}}\n",
        batched("s", ("%q", &q), ("%k", &k), &s),
        reduced("m", "%s", "0xFF800000", "arith.maximumf"),
        wide("p", ("%s", "%m"), "%d = arith.subf %u, %t : f32\n    %v = math.exp2 %d : f32"),
        reduced("n", "%p", "0.0", "arith.addf"),
        wide("y", ("%p", "%n"), "%v = arith.divf %u, %t : f32"),
        batched("o", ("%y", &s), ("%w", &q), &q),
    );
    let input = |shape: &[u64], first: u64| tensor_from(DType::F32, shape, first);
    let inputs = vec![input(&[b, n, d], 0), input(&[b, d, n], 3), input(&[b, n, d], 8)];
    let fresh_bytes = Some(bytes(&scores) + bytes(&[b, n, d]));
    let case = Case { text, inputs, donated: 0, copies: Copies::Exactly(0), fresh_bytes };
    devices().iter().for_each(|device| case.check(device));
}
