//! Dynamic extents, and dispatches in the bodies of loops and conditions.

use crate::support::{bufferized, compile_module, cpu, dispatches, kernel_text, lavapipe, portable};
use monopour_ir::{Context, DYNAMIC, Module};

/// Compiles for each target; expects these classes, and no copy.
fn check<'c>(text: &str, expected: &[&str]) -> Vec<Module<'c>> {
    let targets = [lavapipe(), portable(), cpu("x86-64-v4")];
    let compiled = targets.map(|target| {
        let module = Module::parse(Context::new(), text.as_bytes(), "test.mlir").expect("parses");
        let module = compile_module(module, &target);
        let classes: Vec<String> = dispatches(&module).into_iter().map(|f| kernel_text(f, "class")).collect();
        assert_eq!(classes, expected, "{}", module.op());
        let (_, copies, after) = bufferized(&module);
        assert_eq!(copies, 0, "{after}\nfrom\n{}", module.op());
        module
    });
    compiled.into()
}

fn softmax(rows: &str, columns: &str, inner: &str) -> String {
    let (t, r) = (format!("tensor<{rows}x{columns}xf32>"), format!("tensor<{rows}xf32>"));
    let dim = |at: usize, extent: &str| if extent == "?" { vec![format!("%n{at}")] } else { vec![] };
    let (d0, d1) = (dim(0, rows), dim(1, columns));
    let (row_dims, all_dims) = (d0.join(", "), [d0.clone(), d1].concat().join(", "));
    let by_row = |name: &str, value: &str, row: &str, body: &str| {
        format!(
            "{inner}%{name} = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], \
             iterator_types = [\"parallel\", \"parallel\"]}} ins({value}, {row} : {t}, {r}) outs(%e : {t}) {{\n^bb0(%p: f32, %q: f32, %o: f32):\n{body}\n\
             linalg.yield %u : f32\n}} -> {t}\n"
        )
    };
    let reduce = |name: &str, value: &str, init: &str, op: &str| {
        format!(
            "{inner}%{name}f = linalg.fill ins({init} : f32) outs(%er : {r}) -> {r}\n{inner}%{name} = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, \
             affine_map<(i, j) -> (i)>], iterator_types = [\"parallel\", \"reduction\"]}} ins({value} : {t}) outs(%{name}f : {r}) {{\n^bb0(%p: f32, %o: f32):\n\
             %u = {op} %p, %o : f32\nlinalg.yield %u : f32\n}} -> {r}\n"
        )
    };
    [
        format!("{inner}%c0 = arith.constant 0 : index\n{inner}%c1 = arith.constant 1 : index\n"),
        format!("{inner}%n0 = tensor.dim %x, %c0 : {t}\n{inner}%n1 = tensor.dim %x, %c1 : {t}\n"),
        format!("{inner}%low = arith.constant 0xFF800000 : f32\n{inner}%zero = arith.constant 0.0 : f32\n"),
        format!("{inner}%e = tensor.empty({all_dims}) : {t}\n{inner}%er = tensor.empty({row_dims}) : {r}\n"),
        reduce("m", "%x", "%low", "arith.maximumf"),
        by_row("d", "%x", "%m", "%v = arith.subf %p, %q : f32\n%u = math.exp %v : f32"),
        reduce("s", "%d", "%zero", "arith.addf"),
        by_row("y", "%d", "%s", "%u = arith.divf %p, %q : f32"),
    ]
    .concat()
}

#[test]
fn rows_of_any_number_and_length() {
    for (rows, columns) in [("?", "1024"), ("64", "?"), ("?", "?")] {
        let t = format!("tensor<{rows}x{columns}xf32>");
        let text = format!("func.func @main(%x: {t}) -> {t} {{\n{}  return %y : {t}\n}}\n", softmax(rows, columns, ""));
        for module in check(&text, &["row"]) {
            let bound = dispatches(&module)[0].attr("staticUpperBound").and_then(|a| a.as_ints()).expect("bounds")[0];
            assert_eq!(bound == DYNAMIC, rows == "?", "{}", module.op());
        }
    }
}

#[test]
fn products_of_any_size() {
    for (m, n, k) in [("?", "64", "32"), ("64", "?", "32"), ("64", "64", "?"), ("?", "?", "?")] {
        let (a, b, c) =
            (format!("tensor<{m}x{k}xf32>"), format!("tensor<{k}x{n}xf32>"), format!("tensor<{m}x{n}xf32>"));
        let dims: Vec<&str> = [(m, "%n0"), (n, "%n1")].iter().filter(|(e, _)| *e == "?").map(|(_, v)| *v).collect();
        let text = format!(
            "func.func @main(%a: {a}, %b: {b}) -> {c} {{\n%z = arith.constant 0.0 : f32\n%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index\n\
             %n0 = tensor.dim %a, %c0 : {a}\n%n1 = tensor.dim %b, %c1 : {b}\n%e = tensor.empty({}) : {c}\n\
             %f = linalg.fill ins(%z : f32) outs(%e : {c}) -> {c}\n%m = linalg.matmul ins(%a, %b : {a}, {b}) outs(%f : {c}) -> {c}\n\
             %t = math.tanh %m : {c}\nreturn %t : {c}\n}}\n",
            dims.join(", ")
        );
        check(&text, &["contraction"]);
    }
}

#[test]
fn batched_products_of_any_size() {
    let (a, b, c) = ("tensor<?x?x32xf32>", "tensor<?x32x?xf32>", "tensor<?x?x?xf32>");
    let text = format!(
        "func.func @main(%a: {a}, %b: {b}) -> {c} {{\n%z = arith.constant 0.0 : f32\n%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index\n\
         %c2 = arith.constant 2 : index\n%n0 = tensor.dim %a, %c0 : {a}\n%n1 = tensor.dim %a, %c1 : {a}\n%n2 = tensor.dim %b, %c2 : {b}\n\
         %e = tensor.empty(%n0, %n1, %n2) : {c}\n%f = linalg.fill ins(%z : f32) outs(%e : {c}) -> {c}\n\
         %m = linalg.batch_matmul ins(%a, %b : {a}, {b}) outs(%f : {c}) -> {c}\nreturn %m : {c}\n}}\n"
    );
    check(&text, &["contraction"]);
}

#[test]
fn pointwise_ops_of_any_size() {
    for shape in ["?", "?x7", "7x?", "?x?x?"] {
        let t = format!("tensor<{shape}xf32>");
        let text = format!(
            "func.func @main(%x: {t}, %y: {t}) -> {t} {{\n%0 = arith.addf %x, %y : {t}\n%1 = arith.mulf %0, %x : {t}\nreturn %1 : {t}\n}}\n"
        );
        check(&text, &["elementwise"]);
    }
}

/// The result of an op with an empty iteration space is its destination.
#[test]
fn loops_that_never_run_are_no_dispatch() {
    for (rows, columns) in [("0", "7"), ("7", "0"), ("0", "0")] {
        let t = format!("tensor<{rows}x{columns}xf32>");
        let text = format!("func.func @main(%x: {t}) -> {t} {{\n{}  return %y : {t}\n}}\n", softmax(rows, columns, ""));
        check(&text, &[]);
        let r = format!("tensor<{rows}xf32>");
        let text = format!("func.func @main(%x: {t}) -> {r} {{\n{}  return %s : {r}\n}}\n", softmax(rows, columns, ""));
        check(&text, if rows == "0" { &[] } else { &["elementwise"] });
    }
}

#[test]
fn dispatches_stay_in_the_bodies_of_loops_and_conditions() {
    let t = "tensor<16x33xf32>";
    let body = softmax("16", "33", "  ");
    let looped = format!(
        "func.func @main(%a: {t}, %n: index) -> {t} {{\n%l = arith.constant 0 : index\n%k = arith.constant 1 : index\n\
         %r = scf.for %i = %l to %n step %k iter_args(%x = %a) -> ({t}) {{\n{body}  scf.yield %y : {t}\n}}\nreturn %r : {t}\n}}\n"
    );
    let chosen = format!(
        "func.func @main(%x: {t}, %c: i1) -> {t} {{\n%r = scf.if %c -> ({t}) {{\n{body}  scf.yield %y : {t}\n}} else {{\n  %w = math.tanh %x : {t}\n  \
         scf.yield %w : {t}\n}}\nreturn %r : {t}\n}}\n"
    );
    for (text, classes) in [(looped, vec!["row"]), (chosen, vec!["row", "elementwise"])] {
        let module = Module::parse(Context::new(), text.as_bytes(), "test.mlir").expect("parses");
        let module = compile_module(module, &lavapipe());
        let found = dispatches(&module);
        let names: Vec<String> = found.iter().map(|f| kernel_text(*f, "class")).collect();
        assert_eq!(names, classes, "{}", module.op());
        assert!(
            found.iter().all(|f| f.ancestor("scf.for").is_some() || f.ancestor("scf.if").is_some()),
            "{}",
            module.op()
        );
    }
}

#[test]
fn what_a_condition_returns_joins_no_dispatch_across_it() {
    // A product before the condition is read by a pointwise op in it: two blocks, two dispatches.
    let t = "tensor<16x16xf32>";
    let text = format!(
        "func.func @main(%a: {t}, %c: i1) -> {t} {{\n%z = arith.constant 0.0 : f32\n%e = tensor.empty() : {t}\n\
         %f = linalg.fill ins(%z : f32) outs(%e : {t}) -> {t}\n%m = linalg.matmul ins(%a, %a : {t}, {t}) outs(%f : {t}) -> {t}\n\
         %r = scf.if %c -> ({t}) {{\n  %w = math.tanh %m : {t}\n  scf.yield %w : {t}\n}} else {{\n  scf.yield %a : {t}\n}}\nreturn %r : {t}\n}}\n"
    );
    let module = Module::parse(Context::new(), text.as_bytes(), "test.mlir").expect("parses");
    let module = compile_module(module, &lavapipe());
    let names: Vec<String> = dispatches(&module).into_iter().map(|f| kernel_text(f, "class")).collect();
    assert_eq!(names, ["contraction", "elementwise"], "{}", module.op());
}
