//! Size rules of inputs; none from ops that a run may skip.

use crate::support::import_text;

/// The rules of a function with this signature, as text: `0.1=1.0` of dimensions, `2=0.0` of a number, `0.0:8` of a constant.
fn rules(arguments: &str, body: &str) -> String {
    let text = format!("func.func @main({arguments}) -> tensor<?xf32> {{\n{body}\n}}\n");
    let sizes = import_text(&text).unwrap_or_else(|e| panic!("{e}\n{text}")).sizes;
    let name = |size: &monopour_program::InputSize| match size.dim {
        Some(dim) => format!("{}.{dim}", size.input),
        None => size.input.to_string(),
    };
    let equal = sizes.equal.iter().map(|class| class.iter().map(name).collect::<Vec<_>>().join("="));
    let fixed = sizes.fixed.iter().map(|(size, needed)| format!("{}:{needed}", name(size)));
    equal.chain(fixed).collect::<Vec<_>>().join(" ")
}

const X_Y: &str = "%x: tensor<?xf32>, %y: tensor<?xf32>";
const SUM: &str = "%s = arith.addf %x, %y : tensor<?xf32>\nreturn %s : tensor<?xf32>";

#[test]
fn operands_of_one_op_are_equal_in_size() {
    assert_eq!(rules(X_Y, SUM), "0.0=1.0");
    assert_eq!(rules(X_Y, "return %x : tensor<?xf32>"), "");
    let matvec = "%s = linalg.matvec ins(%a, %x : tensor<?x?xf32>, tensor<?xf32>) outs(%y : tensor<?xf32>) -> tensor<?xf32>\nreturn %s : tensor<?xf32>";
    assert_eq!(rules("%a: tensor<?x?xf32>, %x: tensor<?xf32>, %y: tensor<?xf32>", matvec), "0.0=2.0 0.1=1.0");
    let static_rows = matvec.replace("tensor<?x?xf32>", "tensor<4x?xf32>");
    assert_eq!(rules("%a: tensor<4x?xf32>, %x: tensor<?xf32>, %y: tensor<?xf32>", &static_rows), "0.1=1.0 2.0:4");
}

#[test]
fn sizes_pass_through_casts_slices_and_reshapes() {
    let cast = "%c = tensor.cast %x : tensor<?xf32> to tensor<8xf32>\n%d = tensor.cast %c : tensor<8xf32> to tensor<?xf32>\n\
                %s = arith.addf %d, %y : tensor<?xf32>\nreturn %s : tensor<?xf32>";
    assert_eq!(rules(X_Y, cast), "0.0:8 1.0:8");
    let slices = "%c0 = arith.constant 0 : index\n%n = tensor.dim %y, %c0 : tensor<?xf32>\n\
                  %e = tensor.extract_slice %x[3] [%n] [1] : tensor<?xf32> to tensor<?xf32>\n\
                  %i = tensor.insert_slice %e into %z[1] [%n] [1] : tensor<?xf32> into tensor<?xf32>\n\
                  %s = arith.addf %i, %w : tensor<?xf32>\n%t = arith.addf %e, %v : tensor<?xf32>\nreturn %s : tensor<?xf32>";
    let five = format!("{X_Y}, %z: tensor<?xf32>, %w: tensor<?xf32>, %v: tensor<?xf32>");
    assert_eq!(rules(&five, slices), "1.0=4.0 2.0=3.0");
    let reshapes = "%c0 = arith.constant 0 : index\n%n = tensor.dim %x, %c0 : tensor<?xf32>\n\
                    %e = tensor.expand_shape %x [[0, 1]] output_shape [%n, 1] : tensor<?xf32> into tensor<?x1xf32>\n\
                    %p = arith.addf %e, %a : tensor<?x1xf32>\n\
                    %c = tensor.collapse_shape %p [[0, 1]] : tensor<?x1xf32> into tensor<?xf32>\n\
                    %s = arith.addf %c, %y : tensor<?xf32>\nreturn %s : tensor<?xf32>";
    assert_eq!(rules(&format!("{X_Y}, %a: tensor<?x1xf32>"), reshapes), "0.0=1.0=2.0");
    let concat = "%c = tensor.concat dim(0) %a, %b : (tensor<?x?xf32>, tensor<?x?xf32>) -> tensor<?x?xf32>\nreturn %x : tensor<?xf32>";
    assert_eq!(rules("%a: tensor<?x?xf32>, %b: tensor<?x?xf32>, %x: tensor<?xf32>", concat), "0.1=1.1");
}

#[test]
fn a_number_may_be_a_size() {
    let body = "%i = arith.index_cast %n : i32 to index\n%e = tensor.empty(%i) : tensor<?xf32>\n\
                %s = linalg.exp ins(%x : tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>\nreturn %s : tensor<?xf32>";
    assert_eq!(rules("%x: tensor<?xf32>, %n: i32", body), "0.0=1");
    let narrow = body.replace("%i =", "%j = arith.index_cast %m : index to i32\n%i =").replace("cast %n", "cast %j");
    assert_eq!(rules("%x: tensor<?xf32>, %m: index", &narrow), "");
}

#[test]
fn what_a_run_may_skip_makes_no_rule() {
    let branch = "%r = scf.if %c -> tensor<?xf32> {\n%s = arith.addf %x, %y : tensor<?xf32>\nscf.yield %s : tensor<?xf32>\n} else {\n\
                  scf.yield %x : tensor<?xf32>\n}\n";
    let used = format!("{branch}%t = arith.addf %r, %z : tensor<?xf32>\nreturn %t : tensor<?xf32>");
    // The result has the size of x in either branch.
    assert_eq!(rules(&format!("{X_Y}, %z: tensor<?xf32>, %c: i1"), &used), "0.0=2.0");
    let other = used.replace("scf.yield %x", "scf.yield %y").replace("addf %x, %y", "addf %x, %x");
    assert_eq!(rules(&format!("{X_Y}, %z: tensor<?xf32>, %c: i1"), &other), "");
}

/// A loop with these iter_args, whose result is added to a further input.
fn looped(body: &str, yields: &str) -> String {
    let body = format!(
        "%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index\n\
         %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x, %b = %y) -> (tensor<?xf32>, tensor<?xf32>) {{\n{body}\n\
         scf.yield {yields} : tensor<?xf32>, tensor<?xf32>\n}}\n\
         %s = arith.addf %r#0, %z : tensor<?xf32>\nreturn %s : tensor<?xf32>"
    );
    rules(&format!("{X_Y}, %z: tensor<?xf32>, %n: index"), &body)
}

#[test]
fn loops_keep_sizes_or_change_them() {
    assert_eq!(looped("", "%a, %b"), "0.0=2.0");
    // The sum has the size of b by its destination, and needs a to have it.
    assert_eq!(looped("%p = arith.addf %b, %a : tensor<?xf32>", "%p, %b"), "0.0=2.0");
    assert_eq!(looped("", "%b, %a"), "");
    let grown = "%p = tensor.concat dim(0) %a, %b : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>";
    assert_eq!(looped(grown, "%p, %b"), "");
    // a takes the size of b, which grows.
    assert_eq!(looped(grown, "%b, %p"), "");
}

#[test]
fn a_while_loop_gives_what_its_condition_passes_on() {
    let body = "%r:2 = scf.while (%a = %x, %b = %y) : (tensor<?xf32>, tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {\n\
                scf.condition(%c) %b, %a : tensor<?xf32>, tensor<?xf32>\n} do {\n^bb0(%p: tensor<?xf32>, %q: tensor<?xf32>):\n\
                scf.yield %q, %p : tensor<?xf32>, tensor<?xf32>\n}\n\
                %s = arith.addf %r#0, %z : tensor<?xf32>\nreturn %s : tensor<?xf32>";
    let arguments = format!("{X_Y}, %z: tensor<?xf32>, %c: i1");
    assert_eq!(rules(&arguments, body), "1.0=2.0");
    assert_eq!(rules(&arguments, &body.replace("scf.yield %q, %p", "scf.yield %p, %q")), "");
    // Requirements of the body alone do not bind a loop that may not run.
    let needs = body.replace("scf.yield %q, %p", "%t = arith.addf %p, %q : tensor<?xf32>\nscf.yield %q, %t");
    assert_eq!(rules(&arguments, &needs), "1.0=2.0");
}

#[test]
fn called_functions_count() {
    let text = format!(
        "func.func private @f({X_Y}) -> tensor<?xf32> {{\n{SUM}\n}}\nfunc.func @main({X_Y}) -> tensor<?xf32> {{\n\
                        %r = call @f(%y, %x) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>\nreturn %r : tensor<?xf32>\n}}\n"
    );
    assert_eq!(import_text(&text).expect("imports").sizes.equal.len(), 1);
}
