//! Our passes and upstream's on the same programs give the same text.

use monopour_dealloc::lower::{LowerOptions, lower_deallocations};
use monopour_dealloc::simplify::simplify;
use monopour_dealloc::{Options, convert_bufferization_to_memref, expand_realloc, run_ownership};
use monopour_ir::{Op, run_passes};
use monopour_testkit::random::seeds;

use crate::random_blocks;
use crate::support::{UPSTREAM, parse, passes};

const CALLEES: &str = "func.func private @g(%a: memref<4xf32>) -> memref<4xf32> {
    return %a : memref<4xf32>
}
";

/// The program after a pass of ours.
fn ours(text: &str, pass: impl Fn(Op)) -> String {
    let module = parse(text);
    pass(module.op());
    module.op().verify_with_diagnostics().unwrap_or_else(|e| panic!("{e}\n{}", module.op()));
    module.op().to_string()
}

/// Drops constants, which are in the order in which each pass made them.
fn code(text: &str) -> String {
    text.lines().filter(|l| !l.contains("= arith.constant")).collect::<Vec<_>>().join("\n")
}

fn same(name: &str, program: &str, ours: &str, upstreams: &str) {
    assert_eq!(code(ours), code(upstreams), "{name}: left is ours, right is upstream's, of\n{program}");
}

/// The program after upstream's passes; `None` if they refuse it.
fn upstreams(text: &str, pipeline: &str) -> Option<String> {
    let module = parse(text);
    run_passes(module.op(), &format!("builtin.module({pipeline})")).is_ok().then(|| module.op().to_string())
}

fn programs() -> Vec<(String, String)> {
    seeds(150, 600)
        .map(|seed| (format!("seed {seed}"), format!("{CALLEES}{}", random_blocks::function(seed))))
        .collect()
}

#[test]
fn owners_in_blocks() {
    for is_dynamic in [false, true] {
        let options = Options { private_function_dynamic_ownership: is_dynamic, ..UPSTREAM };
        let pass = format!("ownership-based-buffer-deallocation{{private-function-dynamic-ownership={is_dynamic}}}");
        let mut compared = 0;
        for (name, text) in programs() {
            let made =
                ours(&text, |op| drop(run_ownership(op, &options).unwrap_or_else(|e| panic!("{name}: {e}\n{text}"))));
            // Upstream does not know the owner of a memref that a branch forwards twice, or forwards while it is live.
            let Some(expected) = upstreams(&text, &format!("{pass},canonicalize,cse")) else { continue };
            same(&name, &text, &passes(&made, "canonicalize,cse"), &expected);
            compared += 1;
        }
        assert!(compared >= programs().len() / 2, "{compared} programs are enough");
    }
}

#[test]
fn simplified_deallocs() {
    for (name, text) in programs() {
        let Some(given) = upstreams(&text, "ownership-based-buffer-deallocation,canonicalize") else { continue };
        let made = ours(&given, |op| _ = simplify(op).expect("simplifies"));
        same(&name, &given, &made, &passes(&given, "buffer-deallocation-simplification"));
    }
}

#[test]
fn lowered_deallocs() {
    for (name, text) in programs().into_iter().take(75) {
        let pipeline = "ownership-based-buffer-deallocation,canonicalize,buffer-deallocation-simplification";
        let Some(given) = upstreams(&text, pipeline) else { continue };
        let lower = |op: Op| _ = lower_deallocations(op, &LowerOptions::default()).expect("lowers");
        same(
            &name,
            &given,
            &passes(&ours(&given, lower), "canonicalize"),
            &passes(&given, "bufferization-lower-deallocations,canonicalize"),
        );
        let convert = |op: Op| _ = convert_bufferization_to_memref(op, &LowerOptions::default()).expect("converts");
        same(
            &name,
            &given,
            &passes(&ours(&given, convert), "canonicalize"),
            &passes(&given, "convert-bufferization-to-memref,canonicalize"),
        );
    }
}

#[test]
fn expanded_reallocs() {
    let text = "func.func @f(%a: memref<?xf32>, %b: memref<4xf32>, %n: index) -> (memref<?xf32>, memref<8xf32>, memref<?xf32>) {
        %0 = memref.realloc %a(%n) {alignment = 8} : memref<?xf32> to memref<?xf32>
        %1 = memref.realloc %b : memref<4xf32> to memref<8xf32>
        %2 = memref.realloc %1(%n) : memref<8xf32> to memref<?xf32>
        return %0, %1, %2 : memref<?xf32>, memref<8xf32>, memref<?xf32>
    }";
    for emit in [false, true] {
        let made = ours(text, |op| assert_eq!(expand_realloc(op, emit).expect("expands"), 3));
        let expected = passes(text, &format!("expand-realloc{{emit-deallocs={emit}}}"));
        assert_eq!(made, expected);
    }
}

/// Upstream takes eight elements out of four.
#[test]
fn a_realloc_that_shrinks() {
    let text = "func.func @f(%a: memref<8xf32>) -> memref<4xf32> {
        %0 = memref.realloc %a : memref<8xf32> to memref<4xf32>
        return %0 : memref<4xf32>
    }";
    assert!(upstreams(text, "expand-realloc").is_none());
    let made = ours(text, |op| assert_eq!(expand_realloc(op, true).expect("expands"), 1));
    assert!(made.contains("memref.reinterpret_cast %arg0 to offset: [0], sizes: [4], strides: [1]"), "{made}");
    assert!(!made.contains("scf.if") && !made.contains("alloc("), "{made}");
}

/// A memref named twice is named once; the other dealloc stays as it is.
#[test]
fn simplification_says_what_it_changed() {
    let module = parse(
        "func.func @f(%a: memref<4xf32>, %b: memref<4xf32>, %c: i1, %d: i1) -> i1 {
        bufferization.dealloc (%a, %a : memref<4xf32>, memref<4xf32>) if (%c, %d)
        %0 = bufferization.dealloc (%b : memref<4xf32>) if (%c) retain (%a : memref<4xf32>)
        return %0 : i1
    }",
    );
    let stats = simplify(module.op()).expect("simplifies");
    assert_eq!((stats.deallocs, stats.changed), (2, 1), "{}", module.op());
}
