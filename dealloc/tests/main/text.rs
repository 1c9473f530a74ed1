//! Whole output.

use monopour_dealloc::promote;

use crate::support::{EXTENSIONS, UPSTREAM, dealloc, is_known, parse, passes, programs};

fn same(actual: &str, expected: &str) {
    let trim = |text: &str| text.lines().map(str::trim).filter(|l| !l.is_empty()).collect::<Vec<_>>().join("\n");
    assert_eq!(trim(actual), trim(expected));
}

#[test]
fn freed_right_after_the_last_use_through_any_alias() {
    let (module, stats) = dealloc(
        "func.func @f(%x: f32, %b: memref<4xf32>) {
        %a = memref.alloc() : memref<8xf32>
        %v = memref.subview %a[0] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1]>>
        linalg.fill ins(%x : f32) outs(%v : memref<4xf32, strided<[1]>>)
        linalg.fill ins(%x : f32) outs(%b : memref<4xf32>)
        return
    }",
        &EXTENSIONS,
    )
    .expect("owned");
    assert_eq!((stats.deallocs, stats.clones), (1, 0));
    same(
        &module.op().to_string(),
        "module {
      func.func @f(%arg0: f32, %arg1: memref<4xf32>) {
        %alloc = memref.alloc() : memref<8xf32>
        %subview = memref.subview %alloc[0] [4] [1] : memref<8xf32> to memref<4xf32, strided<[1]>>
        linalg.fill ins(%arg0 : f32) outs(%subview : memref<4xf32, strided<[1]>>)
        memref.dealloc %alloc : memref<8xf32>
        linalg.fill ins(%arg0 : f32) outs(%arg1 : memref<4xf32>)
        return
      }
    }",
    );
}

#[test]
fn an_argument_is_returned_as_a_copy() {
    let (module, stats) =
        dealloc("func.func @f(%a: memref<8xf32>) -> memref<8xf32> { return %a : memref<8xf32> }", &EXTENSIONS)
            .expect("owned");
    same(
        &module.op().to_string(),
        "module {
      func.func @f(%arg0: memref<8xf32>) -> memref<8xf32> {
        %alloc = memref.alloc() {alignment = 64 : i64} : memref<8xf32>
        memref.copy %arg0, %alloc : memref<8xf32> to memref<8xf32>
        return %alloc : memref<8xf32>
      }
    }",
    );
    assert_eq!(stats.remarks.0[0].code, "D0201");
}

#[test]
fn a_donated_argument_is_returned_or_freed() {
    let (module, stats) = dealloc(
        "func.func @f(%a: memref<8xf32> {monopour.donate}, %b: memref<8xf32> {monopour.donate}) -> memref<8xf32> {
        memref.copy %b, %a : memref<8xf32> to memref<8xf32>
        return %a : memref<8xf32>
    }",
        &EXTENSIONS,
    )
    .expect("owned");
    assert_eq!((stats.deallocs, stats.clones), (1, 0));
    same(
        &module.op().to_string(),
        "module {
      func.func @f(%arg0: memref<8xf32> {monopour.donate}, %arg1: memref<8xf32> {monopour.donate}) -> memref<8xf32> {
        memref.copy %arg1, %arg0 : memref<8xf32> to memref<8xf32>
        memref.dealloc %arg1 : memref<8xf32>
        return %arg0 : memref<8xf32>
      }
    }",
    );
}

#[test]
fn a_dispatch_is_one_use_and_its_body_is_left_alone() {
    let (module, stats) = dealloc(
        "func.func @f(%x: f32) {
        %a = memref.alloc() : memref<8xf32>
        scf.forall (%i) in (4) {
          %t = memref.alloc() : memref<4xf32>
          linalg.fill ins(%x : f32) outs(%a : memref<8xf32>)
        } {mapping = [#gpu.block<x>]}
        return
    }",
        &EXTENSIONS,
    )
    .expect("owned");
    assert_eq!(stats.deallocs, 1);
    same(
        &module.op().to_string(),
        "module {
      func.func @f(%arg0: f32) {
        %alloc = memref.alloc() : memref<8xf32>
        scf.forall (%arg1) in (4) {
          %alloc_0 = memref.alloc() : memref<4xf32>
          linalg.fill ins(%arg0 : f32) outs(%alloc : memref<8xf32>)
        } {mapping = [#gpu.block<x>]}
        memref.dealloc %alloc : memref<8xf32>
        return
      }
    }",
    );
}

#[test]
fn buffers_of_tasks_go_to_the_stack() {
    let module = parse(
        "func.func @f(%b: memref<4xf32>, %x: f32, %c0: index, %c1: index, %n: index) {
        scf.forall (%i) in (4) {
          scf.for %j = %c0 to %n step %c1 {
            %t = memref.alloc() {alignment = 64 : i64} : memref<4xf32>
            linalg.fill ins(%x : f32) outs(%t : memref<4xf32>)
            memref.copy %t, %b : memref<4xf32> to memref<4xf32>
          }
        } {monopour.kernel = {class = \"generic\"}}
        return
    }",
    );
    assert_eq!(promote::run(module.op()).expect("fits"), 1);
    same(
        &module.op().to_string(),
        "module {
      func.func @f(%arg0: memref<4xf32>, %arg1: f32, %arg2: index, %arg3: index, %arg4: index) {
        scf.forall (%arg5) in (4) {
          %alloca = memref.alloca() {alignment = 64 : i64} : memref<4xf32>
          scf.for %arg6 = %arg2 to %arg4 step %arg3 {
            linalg.fill ins(%arg1 : f32) outs(%alloca : memref<4xf32>)
            memref.copy %alloca, %arg0 : memref<4xf32> to memref<4xf32>
          }
        } {monopour.kernel = {class = \"generic\"}}
        return
      }
    }",
    );
}

#[test]
fn buffers_beyond_the_stack_of_a_task_are_slices_of_host_buffers() {
    // 160 and 96 KiB, and one more, which the others leave no cache line for.
    let module = parse(
        "func.func @f(%x: f32) {
        scf.forall (%i) in (4) {
          %a = memref.alloc() : memref<40960xf32>
          linalg.fill ins(%x : f32) outs(%a : memref<40960xf32>)
          %b = memref.alloc() : memref<24561xf32>
          linalg.fill ins(%x : f32) outs(%b : memref<24561xf32>)
          %c = memref.alloc() : memref<1xf32>
          linalg.fill ins(%x : f32) outs(%c : memref<1xf32>)
        } {monopour.kernel = {class = \"generic\"}}
        return
    }",
    );
    assert_eq!(promote::run(module.op()).expect("fits"), 3);
    let types =
        |name: &str| module.op().find_all(name).into_iter().map(|op| op.result(0).ty().to_string()).collect::<Vec<_>>();
    assert_eq!(types("memref.alloca").len(), 2, "{}", module.op());
    assert_eq!(types("memref.alloc"), ["memref<4x1xf32>"]);
}

#[test]
fn buffers_too_large_for_the_stack_are_slices_of_a_host_buffer() {
    let module = parse(
        "func.func @f(%b: memref<4xf32>, %x: f32) {
        scf.forall (%i) in (4) {
          %t = memref.alloc() : memref<64x1024xf32>
          linalg.fill ins(%x : f32) outs(%t : memref<64x1024xf32>)
        } {monopour.kernel = {class = \"generic\"}}
        return
    }",
    );
    assert_eq!(promote::run(module.op()).expect("fits"), 1);
    same(
        &module.op().to_string(),
        "module {
      func.func @f(%arg0: memref<4xf32>, %arg1: f32) {
        %alloc = memref.alloc() {alignment = 64 : i64} : memref<4x64x1024xf32>
        scf.forall (%arg2) in (4) {
          %subview = memref.subview %alloc[%arg2, 0, 0] [1, 64, 1024] [1, 1, 1] : memref<4x64x1024xf32> to memref<64x1024xf32, strided<[1024, 1], offset: ?>>
          linalg.fill ins(%arg1 : f32) outs(%subview : memref<64x1024xf32, strided<[1024, 1], offset: ?>>)
        } {monopour.kernel = {class = \"generic\"}}
        memref.dealloc %alloc : memref<4x64x1024xf32>
        return
      }
    }",
    );
}

/// A task at the edge has a smaller buffer: it takes as much stack as the others.
#[test]
fn buffers_of_bounded_size_go_to_the_stack() {
    let module = parse(
        "func.func @f(%n: index, %x: f32) {
        scf.forall (%i) in (4) {
          %s = affine.min affine_map<(d0)[s0] -> (d0 * -8 + s0, 8)>(%i)[%n]
          %t = memref.alloc(%s) : memref<?x4xf32>
          linalg.fill ins(%x : f32) outs(%t : memref<?x4xf32>)
          memref.dealloc %t : memref<?x4xf32>
        } {monopour.kernel = {class = \"generic\"}}
        return
    }",
    );
    assert_eq!(promote::run(module.op()).expect("fits"), 1);
    let text = module.op().to_string();
    assert!(text.contains("memref.alloca() : memref<8x4xf32>") && !text.contains("dealloc"), "{text}");
    module.op().verify_with_diagnostics().expect("is valid");
}

#[test]
fn without_extensions_the_form_is_upstreams() {
    let mut failures = String::new();
    for (name, text) in programs() {
        // Upstream's output for a mask does not verify: it puts a constant into the mask. Upstream has no form here for loops of
        // two regions.
        if name == "masked_transfers" || !is_known(&text) || text.contains("scf.while") {
            continue;
        }
        let (module, _) = dealloc(&text, &UPSTREAM).unwrap_or_else(|e| panic!("{name}: {e}"));
        let actual = passes(&module.op().to_string(), "canonicalize");
        let expected = passes(&text, "ownership-based-buffer-deallocation,canonicalize");
        // Constants are in the order in which each pass made them.
        let code = |text: &str| text.lines().filter(|l| !l.contains("= arith.constant")).collect::<Vec<_>>().join("\n");
        if code(&actual) != code(&expected) {
            failures += &format!("{name}\n--- upstream\n{expected}\n--- ours\n{actual}\n");
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

#[test]
fn a_tensors_buffer_is_somebody_elses() {
    let text = "func.func @f(%t: tensor<8xf32>, %x: f32) -> memref<8xf32> {
        %b = bufferization.to_buffer %t : tensor<8xf32> to memref<8xf32>
        return %b : memref<8xf32>
    }";
    let (_, stats) = dealloc(text, &EXTENSIONS).expect("owned");
    assert_eq!((stats.deallocs, stats.clones), (0, 1));
    assert_eq!(stats.remark_bytes, [Some(32)]);
}
