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
