//! Dispatches in an order that takes less memory than the one of the source.

use crate::minimal::{Case, Copies, ELEMENTS, Element, check_family, tensor, tensor_from};
use crate::minimal_tiles::{moving, ty};

/// Products of one matrix with others, first all of them, then each into one sum of products: one of them at a time
/// need be alive. `all`: their sum is a result, too, behind all others, and they are alive together.
fn products(count: usize, (size, columns): (u64, u64), element: Element, all: bool) -> Case {
    let (of, zero, add) = (element.1, if element.1 == "f32" { "0.0" } else { "0" }, element.2);
    let (square, narrow) = (ty(&[size, size], element), ty(&[size, columns], element));
    let weights: String = (0..count).map(|i| format!("%w{i}: {square}, ")).collect();
    let mut body = format!("  %z = arith.constant {zero} : {of}\n");
    for i in 0..count {
        body += &format!(
            "  %e{i} = tensor.empty() : {square}\n  %f{i} = linalg.fill ins(%z : {of}) outs(%e{i} : {square}) -> {square}\n  \
             %p{i} = linalg.matmul ins(%x, %w{i} : {square}, {square}) outs(%f{i} : {square}) -> {square}\n"
        );
    }
    body += &format!(
        "  %g = tensor.empty() : {narrow}\n  %q = linalg.fill ins(%z : {of}) outs(%g : {narrow}) -> {narrow}\n"
    );
    let mut sum = "%q".to_owned();
    for i in 0..count {
        body += &format!(
            "  %q{i} = linalg.matmul ins(%p{i}, %v : {square}, {narrow}) outs({sum} : {narrow}) -> {narrow}\n"
        );
        sum = format!("%q{i}");
    }
    let (mut results, mut types) = (sum, narrow.clone());
    if all {
        // The number of the last sum makes this wait for it.
        body += &format!("  %c0 = arith.constant 0 : index\n  %n = tensor.extract {results}[%c0, %c0] : {narrow}\n");
        let mut before = "%p0".to_owned();
        for i in 1..count {
            let map = "affine_map<(i, j) -> (i, j)>";
            body += &format!(
                "  %h{i} = tensor.empty() : {square}\n  %s{i} = linalg.generic {{indexing_maps = [{map}, {map}, {map}], \
                 iterator_types = [\"parallel\", \"parallel\"]}} ins({before}, %p{i} : {square}, {square}) outs(%h{i} : {square}) {{\n  \
                 ^bb0(%a: {of}, %b: {of}, %o: {of}):\n    %t = {add} %a, %b : {of}\n    %u = {add} %t, %n : {of}\n    \
                 linalg.yield %u : {of}\n  }} -> {square}\n"
            );
            before = format!("%s{i}");
        }
        results = format!("{results}, {before}");
        types = format!("{narrow}, {square}");
    }
    let text = format!(
        "func.func @main(%x: {square}, {weights}%v: {narrow}) -> ({types}) {{\n{body}  return {results} : {types}\n}}\n"
    );
    let mut inputs = vec![tensor(element.0, &[size, size])];
    inputs.extend((0..count).map(|_| moving(element.0, &[size, size])));
    inputs.push(tensor_from(element.0, &[size, columns], 3));
    let least = (4 * size * size).next_multiple_of(256) + 4 * size * columns;
    Case { text, inputs, donated: 0, copies: Copies::Exactly(0), fresh_bytes: (!all).then_some(least) }
}

#[test]
fn dispatches_are_ordered_for_memory() {
    let mut cases = Vec::new();
    for count in 2..=8 {
        for size in [16, 24, 40, 64] {
            for columns in [8, 5] {
                for element in ELEMENTS {
                    for all in [false, true] {
                        cases.push(products(count, (size, columns), element, all && count <= 5));
                    }
                }
            }
        }
    }
    check_family(cases, 8);
}

/// Eight products of 256x256, then each into a sum of 256x8.
#[test]
fn eight_products_are_alive_one_at_a_time() {
    let case = products(8, (256, 8), ELEMENTS[0], false);
    assert_eq!(case.fresh_bytes, Some(270_336));
    crate::host::devices().iter().for_each(|device| case.check(device));
}
