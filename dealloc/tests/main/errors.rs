//! Every code of this crate, by a program that triggers it.

use monopour_dealloc::{Options, promote};

use crate::support::{EXTENSIONS, UPSTREAM, dealloc, parse};

fn fails(code: &str, text: &str, options: &Options) {
    let Err(errors) = dealloc(text, options) else { panic!("{code} was expected") };
    let found = errors.0.iter().find(|d| d.code == code).unwrap_or_else(|| panic!("{code} was expected: {errors}"));
    assert!(found.help.is_some(), "{code} has a hint");
}

#[test]
fn option_not_implemented() {
    fails("D0100", "func.func @f() { return }", &Options { private_function_dynamic_ownership: true, ..UPSTREAM });
}

#[test]
fn several_blocks() {
    for options in [EXTENSIONS, UPSTREAM] {
        fails(
            "D0101",
            "func.func @f() { %a = memref.alloc() : memref<4xf32>
            cf.br ^next
          ^next: return }",
            &options,
        );
    }
}

#[test]
fn frees_are_there_already() {
    fails(
        "D0102",
        "func.func @f() { %a = memref.alloc() : memref<4xf32>
        memref.dealloc %a : memref<4xf32>
        return }",
        &EXTENSIONS,
    );
}

#[test]
fn unknown_owner() {
    fails(
        "D0103",
        "func.func @f(%p: memref<2xmemref<4xf32>>, %i: index) { %a = memref.load %p[%i] : memref<2xmemref<4xf32>>
        return }",
        &EXTENSIONS,
    );
}

/// MLIR would cast a row-major copy of dynamic size to the strides of the view, and its elements would be elsewhere.
#[test]
fn a_copy_without_the_layout_of_a_view() {
    for (sizes, view) in [
        ("[4, 6] [1, 1]", "memref<4x6xf32, strided<[6, 1], offset: 6>>"),
        ("[4, 6] [0, 1]", "memref<4x6xf32, strided<[0, 1], offset: 6>>"),
        ("[%n, %n] [1, 1]", "memref<?x?xf32, strided<[6, 1], offset: 6>>"),
    ] {
        let text = format!(
            "func.func @f(%t: memref<6x6xf32>, %n: index) -> {view} {{
            %v = memref.subview %t[1, 0] {sizes} : memref<6x6xf32> to {view}
            return %v : {view}
            }}"
        );
        fails("D0105", &text, &EXTENSIONS);
    }
    fails("D0105", "func.func @f(%t: memref<*xf32>) -> memref<*xf32> { return %t : memref<*xf32> }", &EXTENSIONS);
    let dynamic =
        "func.func @f(%t: memref<6x6xf32, strided<[?, ?], offset: ?>>) -> memref<6x6xf32, strided<[?, ?], offset: ?>> {
        return %t : memref<6x6xf32, strided<[?, ?], offset: ?>>
    }";
    dealloc(dynamic, &EXTENSIONS).unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn too_large_for_the_stack() {
    // Its size is known in the task only, and has no bound.
    let module = parse(
        "func.func @f(%b: memref<4xf32>) { scf.forall (%i) in (4) {
        %a = memref.alloc(%i) : memref<?x1024xf32>
      } {monopour.kernel = {}}
      return }",
    );
    let errors = promote::run(module.op()).expect_err("no bound");
    assert_eq!(errors.0[0].code, "D0104");
}

#[test]
fn loops_of_two_regions_have_no_upstream_form() {
    let text = "func.func @f(%t: memref<4xf32>, %c: i1) -> memref<4xf32> {
        %r = scf.while (%a = %t) : (memref<4xf32>) -> memref<4xf32> {
          scf.condition(%c) %a : memref<4xf32>
        } do {
        ^bb0(%b: memref<4xf32>):
          scf.yield %b : memref<4xf32>
        }
        return %r : memref<4xf32>
      }";
    fails("D0103", text, &UPSTREAM);
}
