//! Elimination of new tensors: the remaining ones, and the savings.

use crate::support::{boundaries, bufferize, parse, programs, upstream, upstreams_pass};
use monopour_bufferize::{
    Eliminated, FunctionBoundaryTypeConversion, Options, Strategy, eliminate_empty_tensors,
    eliminate_empty_tensors_into, empty_tensor_to_alloc_tensor, improve, run_one_shot,
};

fn entry() -> Options {
    Options {
        allow_return_allocs_from_loops: true,
        extensions: true,
        function_boundary_type_conversion: FunctionBoundaryTypeConversion::Identity,
        ..boundaries()
    }
}

/// Uses replaced, then allocations and copies after bufferization.
fn counts(text: &str) -> (usize, u32, u32) {
    let module = parse(text);
    let replaced = eliminate_empty_tensors(module.op(), &entry()).unwrap_or_else(|e| panic!("{e}\n{text}"));
    module.op().verify_with_diagnostics().unwrap_or_else(|e| panic!("{e}\n{}", module.op()));
    let stats = run_one_shot(module.op(), &entry()).unwrap_or_else(|e| panic!("{e}\n{}", module.op()));
    module.op().verify_with_diagnostics().unwrap_or_else(|e| panic!("{e}\n{}", module.op()));
    (replaced.uses, stats.allocs, stats.copies)
}

fn named(name: &str) -> (usize, u32, u32) {
    let (_, text) = programs().into_iter().find(|(n, _)| n == name).expect("program exists");
    counts(&text)
}

#[test]
fn both_parts_of_a_concatenation_are_computed_in_place() {
    assert_eq!(named("insert_two_producers"), (2, 1, 0));
}

/// Decisions count despite a later error.
#[test]
fn decisions_count_before_an_error() {
    let text = "func.func @decided(%t: tensor<8xf32>, %x: f32, %i: index) -> tensor<8xf32> {
        %a = tensor.insert %x into %t[%i] : tensor<8xf32>
        return %a : tensor<8xf32>
    }
    func.func @refused(%m: memref<8xf32>, %i: index) -> f32 {
        %t = bufferization.to_tensor %m : memref<8xf32> to tensor<8xf32>
        %r = tensor.extract %t[%i] : tensor<8xf32>
        return %r : f32
    }";
    let mut found = Eliminated::default();
    let errors = eliminate_empty_tensors_into(parse(text).op(), &upstreams_face(), &mut found);
    assert_eq!(errors.expect_err("to_tensor without restrict").0[0].code, "B0122");
    assert_eq!((found.in_place, found.out_of_place), (2, 0));
}

#[test]
fn both_branches_write_where_the_result_is_inserted() {
    assert_eq!(named("insert_if_result"), (2, 0, 0));
}

#[test]
fn a_chain_through_a_loop_is_followed() {
    assert_eq!(named("insert_loop_result"), (1, 0, 0));
}

#[test]
fn iterations_compute_in_their_part_of_the_output() {
    assert_eq!(named("forall_private_insert"), (1, 0, 0));
}

/// A pad: the fill follows the computation, and a part of what is inserted is read behind it.
#[test]
fn a_fill_moves_up_to_be_the_destination() {
    let text = "func.func @padded(%x: tensor<5x6xf32>) -> (tensor<7x8xf32>, tensor<6xf32>) {
        %one = arith.constant 1.0 : f32
        %e = tensor.empty() : tensor<5x6xf32>
        %s = linalg.exp ins(%x : tensor<5x6xf32>) outs(%e : tensor<5x6xf32>) -> tensor<5x6xf32>
        %p = tensor.empty() : tensor<7x8xf32>
        %f = linalg.fill ins(%one : f32) outs(%p : tensor<7x8xf32>) -> tensor<7x8xf32>
        %r = tensor.insert_slice %s into %f[1, 1] [5, 6] [1, 1] : tensor<5x6xf32> into tensor<7x8xf32>
        %row = tensor.extract_slice %s[2, 0] [1, 6] [1, 1] : tensor<5x6xf32> to tensor<6xf32>
        %o = tensor.empty() : tensor<6xf32>
        %t = linalg.tanh ins(%row : tensor<6xf32>) outs(%o : tensor<6xf32>) -> tensor<6xf32>
        return %r, %t : tensor<7x8xf32>, tensor<6xf32>
    }";
    assert_eq!(counts(text), (1, 2, 0));
}

/// Images computed as lines go into a concatenation of channels, but not into one of columns.
#[test]
fn images_computed_as_lines_go_where_lines_lie_without_gaps() {
    let of = |whole: &str, offset: &str| {
        format!(
            "func.func @joined(%x: tensor<4x63xf32>, %y: tensor<{whole}xf32>) -> tensor<{whole}xf32> {{
            %p = tensor.empty() : tensor<{whole}xf32>
            %g = linalg.exp ins(%y : tensor<{whole}xf32>) outs(%p : tensor<{whole}xf32>) -> tensor<{whole}xf32>
            %z = arith.constant 1.0 : f32
            %q = tensor.empty() : tensor<{whole}xf32>
            %f = linalg.fill ins(%z : f32) outs(%q : tensor<{whole}xf32>) -> tensor<{whole}xf32>
            %e = tensor.empty() : tensor<4x63xf32>
            %s = linalg.exp ins(%x : tensor<4x63xf32>) outs(%e : tensor<4x63xf32>) -> tensor<4x63xf32>
            %i = tensor.expand_shape %s [[0], [1, 2]] output_shape [4, 9, 7] : tensor<4x63xf32> into tensor<4x9x7xf32>
            %r = tensor.insert_slice %i into %f[{offset}] [4, 9, 7] [1, 1, 1] : tensor<4x9x7xf32> into tensor<{whole}xf32>
            return %r : tensor<{whole}xf32>
        }}"
        )
    };
    assert_eq!(counts(&of("12x9x7", "4, 0, 0")), (1, 2, 0));
    assert_eq!(counts(&of("4x9x14", "0, 0, 7")), (0, 3, 1));
}

/// The fill depends on what is inserted: it cannot come first.
#[test]
fn a_destination_that_depends_on_the_source_stays() {
    let text = "func.func @padded(%x: tensor<5xf32>) -> tensor<7xf32> {
        %c0 = arith.constant 0 : index
        %e = tensor.empty() : tensor<5xf32>
        %s = linalg.exp ins(%x : tensor<5xf32>) outs(%e : tensor<5xf32>) -> tensor<5xf32>
        %p = tensor.empty() : tensor<7xf32>
        %first = tensor.extract %s[%c0] : tensor<5xf32>
        %f = linalg.fill ins(%first : f32) outs(%p : tensor<7xf32>) -> tensor<7xf32>
        %r = tensor.insert_slice %s into %f[1] [5] [1] : tensor<5xf32> into tensor<7xf32>
        return %r : tensor<7xf32>
    }";
    let (uses, _, _) = counts(text);
    assert_eq!(uses, 0);
}

/// The old contents of the destination are read after the computation: its slice cannot be overwritten before.
#[test]
fn what_does_not_save_a_copy_is_taken_back() {
    let (_, text) = programs().into_iter().find(|(n, _)| n == "insert_reads_old").expect("program exists");
    let module = parse(&text);
    let before = module.op().to_string();
    assert_eq!(eliminate_empty_tensors(module.op(), &entry()).expect("analyses").uses, 0);
    assert_eq!(module.op().to_string(), before);
}

/// Allocations and copies in a program on memrefs.
fn made(text: &str) -> (usize, usize) {
    (text.matches("memref.alloc(").count(), text.matches("memref.copy ").count())
}

/// Eight programs whose copies can be avoided, under one ABI: our copies, and those of upstream's pass.
#[test]
fn there_are_no_more_copies_than_upstreams() {
    let flags = "bufferize-function-boundaries allow-return-allocs-from-loops \
                 function-boundary-type-conversion=identity-layout-map";
    let mut table = String::new();
    for (name, text) in crate::support::programs_in("copies") {
        let module = parse(&text);
        eliminate_empty_tensors(module.op(), &entry()).unwrap_or_else(|e| panic!("{name}: {e}"));
        run_one_shot(module.op(), &entry()).unwrap_or_else(|e| panic!("{name}: {e}"));
        module.op().verify_with_diagnostics().unwrap_or_else(|e| panic!("{name}: {e}"));
        let (ours, theirs) = (made(&module.op().to_string()), made(&upstream(&text, flags)));
        assert!(ours.0 <= theirs.0 && ours.1 <= theirs.1, "{name}: {ours:?}, upstream {theirs:?}\n{}", module.op());
        table += &format!("{name}: {} allocs {} copies, upstream {} {}\n", ours.0, ours.1, theirs.0, theirs.1);
    }
    assert_eq!(table, COPIES);
}

const COPIES: &str = "\
branches: 0 allocs 0 copies, upstream 2 1
cache: 1 allocs 2 copies, upstream 1 2
call: 1 allocs 0 copies, upstream 1 0
concatenation: 1 allocs 0 copies, upstream 3 2
disjoint_halves: 1 allocs 1 copies, upstream 1 2
double_buffer: 2 allocs 2 copies, upstream 2 2
late_read: 1 allocs 1 copies, upstream 1 1
while_loop: 0 allocs 0 copies, upstream 0 0
";

/// The options of `monopour opt`.
fn upstreams_face() -> Options {
    Options { allow_return_allocs_from_loops: true, allow_unknown_ops: true, ..boundaries() }
}

/// Programs whose tensors are eliminated, moved for, or kept.
const ELIMINATED: &[(&str, usize)] = &[
    // The destination and its index are computed after the use: both are moved up.
    (
        "func.func @f(%d: tensor<10xf32>, %i: index, %f: f32) -> tensor<10xf32> {
            %e = tensor.empty() : tensor<5xf32>
            %a = linalg.fill ins(%f : f32) outs(%e : tensor<5xf32>) -> tensor<5xf32>
            %c5 = arith.constant 5 : index
            %o = arith.addi %i, %c5 : index
            %r = tensor.insert_slice %a into %d[%o] [5] [1] : tensor<5xf32> into tensor<10xf32>
            return %r : tensor<10xf32>
        }",
        1,
    ),
    // The slice is extracted at the new tensor's position.
    (
        "func.func @f(%d: tensor<10xf32>, %c: i1, %f: f32) -> tensor<10xf32> {
            %e = tensor.empty() : tensor<5xf32>
            %b = scf.if %c -> tensor<5xf32> {
                %a = linalg.fill ins(%f : f32) outs(%e : tensor<5xf32>) -> tensor<5xf32>
                scf.yield %a : tensor<5xf32>
            } else {
                %n = tensor.empty() : tensor<5xf32>
                scf.yield %n : tensor<5xf32>
            }
            %r = tensor.insert_slice %b into %d[1] [5] [1] : tensor<5xf32> into tensor<10xf32>
            return %r : tensor<10xf32>
        }",
        2,
    ),
    // A load must not be moved.
    (
        "func.func @f(%d: tensor<10xf32>, %m: memref<index>, %f: f32) -> tensor<10xf32> {
            %e = tensor.empty() : tensor<5xf32>
            %a = linalg.fill ins(%f : f32) outs(%e : tensor<5xf32>) -> tensor<5xf32>
            %o = memref.load %m[] : memref<index>
            %r = tensor.insert_slice %a into %d[%o] [5] [1] : tensor<5xf32> into tensor<10xf32>
            return %r : tensor<10xf32>
        }",
        0,
    ),
    // The buffer becomes a tensor, its only one from there on.
    (
        "func.func @f(%m: memref<5xf32>, %f: f32) {
            %e = tensor.empty() : tensor<5xf32>
            %a = linalg.fill ins(%f : f32) outs(%e : tensor<5xf32>) -> tensor<5xf32>
            bufferization.materialize_in_destination %a in restrict writable %m : (tensor<5xf32>, memref<5xf32>) -> ()
            return
        }",
        1,
    ),
    // The source itself is new; so is the tensor of copied elements.
    (
        "func.func @f(%d: tensor<10xf32>, %u: tensor<5xf32>, %f: f32) -> (tensor<10xf32>, tensor<5xf32>) {
            %e = tensor.empty() : tensor<5xf32>
            %r = tensor.insert_slice %e into %d[0] [5] [1] : tensor<5xf32> into tensor<10xf32>
            %a = linalg.fill ins(%f : f32) outs(%e : tensor<5xf32>) -> tensor<5xf32>
            %c = linalg.copy ins(%a : tensor<5xf32>) outs(%u : tensor<5xf32>) -> tensor<5xf32>
            return %r, %c : tensor<10xf32>, tensor<5xf32>
        }",
        2,
    ),
    // Another shape, and sizes that are static on one side only.
    (
        "func.func @f(%d: tensor<5x6x128xf32>, %u: tensor<256xf32>, %f: f32) -> (tensor<5x6x128xf32>, tensor<256xf32>) {
            %e = tensor.empty() : tensor<128xf32>
            %a = linalg.fill ins(%f : f32) outs(%e : tensor<128xf32>) -> tensor<128xf32>
            %b = tensor.expand_shape %a [[0, 1, 2]] output_shape [1, 1, 128] : tensor<128xf32> into tensor<1x1x128xf32>
            %r = tensor.insert_slice %b into %d[2, 3, 0] [1, 1, 128] [1, 1, 1]
                : tensor<1x1x128xf32> into tensor<5x6x128xf32>
            %n = arith.constant 128 : index
            %g = tensor.empty(%n) : tensor<?xf32>
            %h = linalg.fill ins(%f : f32) outs(%g : tensor<?xf32>) -> tensor<?xf32>
            %i = tensor.cast %h : tensor<?xf32> to tensor<128xf32>
            %s = tensor.insert_slice %i into %u[2] [128] [1] : tensor<128xf32> into tensor<256xf32>
            return %r, %s : tensor<5x6x128xf32>, tensor<256xf32>
        }",
        1,
    ),
];

#[test]
fn upstreams_face_eliminates_what_upstream_eliminates() {
    for (text, uses) in ELIMINATED {
        let module = parse(text);
        let done = eliminate_empty_tensors(module.op(), &upstreams_face()).unwrap_or_else(|e| panic!("{e}\n{text}"));
        assert_eq!(module.op().to_string(), upstreams_pass(text, "-eliminate-empty-tensors"));
        assert_eq!(done.uses, *uses, "{text}");
        assert!(done.in_place > 0, "our analysis decided: {text}");
    }
}

#[test]
fn with_extensions_reshapes_are_followed_and_nothing_is_left_to_copy() {
    let shapes = "func.func @f(%d: tensor<5x6x128xf32> {monopour.donate}, %f: f32) -> tensor<5x6x128xf32> {
        %e = tensor.empty() : tensor<128xf32>
        %a = linalg.fill ins(%f : f32) outs(%e : tensor<128xf32>) -> tensor<128xf32>
        %b = tensor.expand_shape %a [[0, 1, 2]] output_shape [1, 1, 128] : tensor<128xf32> into tensor<1x1x128xf32>
        %r = tensor.insert_slice %b into %d[2, 3, 0] [1, 1, 128] [1, 1, 1]
            : tensor<1x1x128xf32> into tensor<5x6x128xf32>
        return %r : tensor<5x6x128xf32>
    }";
    assert_eq!(counts(shapes), (1, 0, 0));
    let collapsed = "func.func @f(%d: tensor<100xf32> {monopour.donate}, %f: f32) -> tensor<100xf32> {
        %e = tensor.empty() : tensor<4x8xf32>
        %a = linalg.fill ins(%f : f32) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
        %b = tensor.collapse_shape %a [[0, 1]] : tensor<4x8xf32> into tensor<32xf32>
        %r = tensor.insert_slice %b into %d[7] [32] [1] : tensor<32xf32> into tensor<100xf32>
        return %r : tensor<100xf32>
    }";
    assert_eq!(counts(collapsed), (1, 0, 0));
    assert_eq!(counts(ELIMINATED[3].0), (1, 0, 0));
}

/// Two concatenations in reshapes of one new tensor, as common subexpression elimination leaves them.
#[test]
fn each_use_of_a_reshaped_new_tensor_is_a_tensor_of_its_own() {
    let text = "func.func @f(%x: tensor<4x6xf32>, %y: tensor<4x2xf32>) -> (tensor<4x8xf32>, tensor<32xf32>) {
        %e = tensor.empty() : tensor<1x4x8xf32>
        %c = tensor.collapse_shape %e [[0, 1], [2]] : tensor<1x4x8xf32> into tensor<4x8xf32>
        %d = tensor.collapse_shape %c [[0, 1]] : tensor<4x8xf32> into tensor<32xf32>
        %l = tensor.empty() : tensor<4x6xf32>
        %r = tensor.empty() : tensor<4x2xf32>
        %a = linalg.exp ins(%x : tensor<4x6xf32>) outs(%l : tensor<4x6xf32>) -> tensor<4x6xf32>
        %b = linalg.exp ins(%y : tensor<4x2xf32>) outs(%r : tensor<4x2xf32>) -> tensor<4x2xf32>
        %g = linalg.tanh ins(%x : tensor<4x6xf32>) outs(%l : tensor<4x6xf32>) -> tensor<4x6xf32>
        %0 = tensor.insert_slice %a into %c[0, 0] [4, 6] [1, 1] : tensor<4x6xf32> into tensor<4x8xf32>
        %1 = tensor.insert_slice %b into %0[0, 6] [4, 2] [1, 1] : tensor<4x2xf32> into tensor<4x8xf32>
        %h = tensor.collapse_shape %g [[0, 1]] : tensor<4x6xf32> into tensor<24xf32>
        %2 = tensor.insert_slice %h into %d[0] [24] [1] : tensor<24xf32> into tensor<32xf32>
        %k = linalg.tanh ins(%y : tensor<4x2xf32>) outs(%r : tensor<4x2xf32>) -> tensor<4x2xf32>
        %i = tensor.collapse_shape %k [[0, 1]] : tensor<4x2xf32> into tensor<8xf32>
        %3 = tensor.insert_slice %i into %2[24] [8] [1] : tensor<8xf32> into tensor<32xf32>
        return %1, %3 : tensor<4x8xf32>, tensor<32xf32>
    }";
    assert_eq!(counts(text), (4, 2, 0));
}

/// What is kept for later goes behind what is made of it, as in a U-Net: it is made there, too, unless the places overlap.
#[test]
fn parts_that_are_made_early_and_inserted_late_are_made_where_they_go() {
    let of = |sizes: [usize; 2], at: usize| {
        let [rows, all] = sizes;
        let text = "func.func @f(%x: tensor<RxSx16xf32>) -> tensor<RxAx16xf32> {
            %e = tensor.empty() : tensor<RxSx16xf32>
            %a = linalg.exp ins(%x : tensor<RxSx16xf32>) outs(%e : tensor<RxSx16xf32>) -> tensor<RxSx16xf32>
            %b = linalg.tanh ins(%a : tensor<RxSx16xf32>) outs(%e : tensor<RxSx16xf32>) -> tensor<RxSx16xf32>
            %c = linalg.add ins(%a, %b : tensor<RxSx16xf32>, tensor<RxSx16xf32>) outs(%e : tensor<RxSx16xf32>) -> tensor<RxSx16xf32>
            %w = tensor.empty() : tensor<RxAx16xf32>
            %0 = tensor.insert_slice %c into %w[0, 0, 0] [R, S, 16] [1, 1, 1] : tensor<RxSx16xf32> into tensor<RxAx16xf32>
            %1 = tensor.insert_slice %a into %0[0, AT, 0] [R, S, 16] [1, 1, 1] : tensor<RxSx16xf32> into tensor<RxAx16xf32>
            return %1 : tensor<RxAx16xf32>
        }";
        let text = text.replace("AT", &at.to_string());
        let text = text.replace('R', &rows.to_string()).replace('S', "4").replace("xAx", &format!("x{all}x"));
        let (module, options) = (parse(&text), Options { strategy: Strategy::Minimal, ..entry() });
        improve(module.op(), &options).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let stats = run_one_shot(module.op(), &options).unwrap_or_else(|e| panic!("{e}\n{}", module.op()));
        (stats.allocs, stats.copies)
    };
    // Allocations, the result's among them, and copies.
    assert_eq!(of([3, 8], 4), (1, 0));
    assert_eq!(of([3, 7], 3), (2, 1));
}

/// A merged axis is parted again by the sizes that are known, if one is not.
#[test]
fn what_is_merged_is_computed_where_it_goes() {
    let of = |ty: &str, sizes: &str, made: &str| {
        let text = "func.func @f(%d: tensor<?xf32> {monopour.donate}, %f: f32, %n: index, %m: index, %o: index) -> tensor<?xf32> {
            %c0 = arith.constant 0 : index
            %c1 = arith.constant 1 : index
            %e = tensor.empty(SIZES) : TYPE
            MADE
            %b = tensor.collapse_shape %a [[0, 1]] : TYPE into tensor<?xf32>
            %r = tensor.insert_slice %b into %d[%o] [%m] [1] : tensor<?xf32> into tensor<?xf32>
            return %r : tensor<?xf32>
        }";
        counts(&text.replace("MADE", made).replace("SIZES", sizes).replace("TYPE", ty))
    };
    let fill = "%a = linalg.fill ins(%f : f32) outs(%e : TYPE) -> TYPE";
    assert_eq!(of("tensor<?x8xf32>", "%n", fill), (1, 0, 0));
    assert_eq!(of("tensor<1x?xf32>", "%n", fill), (1, 0, 0));
    // Nothing but the expansion says that the rows follow each other.
    assert_eq!(of("tensor<4x?xf32>", "%n", fill), (1, 0, 0));
    let looped = "%a = scf.for %i = %c0 to %n step %c1 iter_args(%t = %e) -> TYPE {
            %u = linalg.fill ins(%f : f32) outs(%t : TYPE) -> TYPE
            scf.yield %u : TYPE
        }";
    assert_eq!(of("tensor<?x8xf32>", "%n", looped), (1, 0, 0));
    assert_eq!(of("tensor<4x?xf32>", "%n", looped), (0, 1, 1));
    assert_eq!(of("tensor<?x?xf32>", "%n, %n", fill), (1, 0, 0));
    assert_eq!(of("tensor<?x?xf32>", "%n, %n", looped), (0, 1, 1));
    assert_eq!(of("tensor<?x0xf32>", "%n", fill), (0, 1, 1));
}

/// The index is defined in a block that dominates the slice, or in one of two predecessors.
#[test]
fn slices_are_taken_where_their_index_is_there() {
    let program = |blocks: &str| {
        format!(
            "func.func @f(%d: tensor<10xf32> {{monopour.donate}}, %i: index, %c: i1, %f: f32) -> tensor<10xf32> {{
                cf.br ^one
            ^one:
                %c5 = arith.constant 5 : index
                %m = arith.addi %i, %c5 : index
                {blocks}
                %e = tensor.empty() : tensor<5xf32>
                %a = linalg.fill ins(%f : f32) outs(%e : tensor<5xf32>) -> tensor<5xf32>
                cf.br ^end
            ^end:
                %o = arith.addi %m, %c5 : index
                %r = tensor.insert_slice %a into %d[%m] [5] [1] : tensor<5xf32> into tensor<10xf32>
                return %r : tensor<10xf32>
            }}"
        )
    };
    let diamond = "cf.cond_br %c, ^two, ^three\n^two:\ncf.br ^three\n^three:";
    assert_eq!(counts(&program(diamond)), (1, 0, 0));
    // Defined only after the fill, by an op that cannot be moved before it.
    let late = program(diamond).replace("[%m]", "[%o]").replace("%o = arith.addi %m, %c5", "%o = arith.divsi %m, %c5");
    assert_eq!(counts(&late), (0, 1, 1));
}

#[test]
fn new_tensors_become_allocations() {
    let text = "func.func @f(%n: index) -> (tensor<?x4xf32>, tensor<2xi1>) {
        %0 = tensor.empty(%n) : tensor<?x4xf32>
        %1 = tensor.empty() : tensor<2xi1>
        return %0, %1 : tensor<?x4xf32>, tensor<2xi1>
    }";
    let module = parse(text);
    assert_eq!(empty_tensor_to_alloc_tensor(module.op()).expect("replaces"), 2);
    assert_eq!(module.op().to_string(), upstreams_pass(text, "-empty-tensor-to-alloc-tensor"));
    let (_, stats) = bufferize(&module.op().to_string(), &boundaries()).expect("bufferizes");
    assert_eq!(stats.allocs, 2);
}
