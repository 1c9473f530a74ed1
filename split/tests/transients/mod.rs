//! Transients that the runtime places.

use expect_test::expect;
use monopour_ir::{Context, Module};
use monopour_split::{outline, plan};

/// A transient of the input's size, and one of a branch that hands it on, with a flag whether it is to be freed.
const MIXED: &str = r#"
func.func @main(%x: memref<?xf32>, %c: i1) -> memref<?xf32> {
  %c0 = arith.constant 0 : index
  %cst = arith.constant 2.0 : f32
  %yes = arith.constant true
  %no = arith.constant false
  %f = memref.alloc() {alignment = 64 : i64} : memref<8xf32>
  scf.forall (%i) in (1) {
    linalg.fill ins(%cst : f32) outs(%f : memref<8xf32>)
  } {monopour.kernel = {class = "elementwise"}}
  %a:2 = scf.if %c -> (memref<8xf32>, i1) {
    %b = memref.alloc() {alignment = 64 : i64} : memref<8xf32>
    scf.forall (%i) in (1) {
      linalg.map { arith.addf } ins(%f, %f : memref<8xf32>, memref<8xf32>) outs(%b : memref<8xf32>)
    } {monopour.kernel = {class = "elementwise"}}
    scf.yield %b, %yes : memref<8xf32>, i1
  } else {
    scf.yield %f, %no : memref<8xf32>, i1
  }
  %n = memref.dim %x, %c0 : memref<?xf32>
  %t = memref.alloc(%n) {alignment = 64 : i64} : memref<?xf32>
  scf.forall (%i) in (1) {
    linalg.map { arith.addf } ins(%x, %x : memref<?xf32>, memref<?xf32>) outs(%t : memref<?xf32>)
  } {monopour.kernel = {class = "elementwise"}}
  %r = memref.alloc(%n) {alignment = 64 : i64} : memref<?xf32>
  scf.forall (%i) in (1) {
    %v = memref.load %a#0[%c0] : memref<8xf32>
    linalg.map ins(%t : memref<?xf32>) outs(%r : memref<?xf32>) (%p: f32, %o: f32) {
      %s = arith.mulf %p, %v : f32
      linalg.yield %s : f32
    }
  } {monopour.kernel = {class = "elementwise"}}
  scf.if %a#1 {
    memref.dealloc %a#0 : memref<8xf32>
  }
  memref.dealloc %f : memref<8xf32>
  memref.dealloc %t : memref<?xf32>
  return %r : memref<?xf32>
}
"#;

#[test]
fn places_are_asked_for_before_all_transients() {
    let cx = Context::new();
    let module = Module::parse(cx, MIXED.as_bytes(), "test.mlir").expect("parses");
    outline::run(&module).expect("outlines");
    let host = module.symbol("main").expect("there");
    let report = plan::run(&module, host, u64::MAX, false).expect("plans");
    assert_eq!(report, plan::Report::default(), "all are placed by the runtime");
    module.op().verify_with_diagnostics().unwrap_or_else(|e| panic!("{e}"));
    expect![[r#"
        func.func @main(%arg0: memref<?xf32>, %arg1: i1) -> memref<?xf32> {
          %c0 = arith.constant 0 : index
          %dim = memref.dim %arg0, %c0 : memref<?xf32>
          %c0_0 = arith.constant 0 : index
          %cst = arith.constant 2.000000e+00 : f32
          %true = arith.constant true
          %false = arith.constant false
          %alloc = memref.alloc() {alignment = 64 : i64, monopour.request = array<i64: 7, 20>} : memref<8xf32>
          %alloc_1 = memref.alloc() {alignment = 64 : i64, monopour.request = array<i64: 10, 20>} : memref<8xf32>
          %alloc_2 = memref.alloc(%dim) {alignment = 64 : i64, monopour.request = array<i64: 16, 20>} : memref<?xf32>
          %cast = memref.cast %alloc : memref<8xf32> to memref<8xf32>
          scf.forall (%arg2) in (1) {
            func.call @main_dispatch_0(%cast, %arg2) : (memref<8xf32>, index) -> ()
          } {monopour.kernel = {class = "elementwise"}}
          %0:2 = scf.if %arg1 -> (memref<8xf32>, i1) {
            %cast_17 = memref.cast %alloc_1 : memref<8xf32> to memref<8xf32>
            scf.forall (%arg2) in (1) {
              func.call @main_dispatch_1(%cast, %cast_17, %arg2) : (memref<8xf32>, memref<8xf32>, index) -> ()
            } {monopour.kernel = {class = "elementwise"}}
            scf.yield %cast_17, %true : memref<8xf32>, i1
          } else {
            scf.yield %cast, %false : memref<8xf32>, i1
          }
          %cast_3 = memref.cast %alloc_2 : memref<?xf32> to memref<?xf32>
          %base_buffer, %offset, %sizes, %strides = memref.extract_strided_metadata %arg0 : memref<?xf32> -> memref<f32>, index, index, index
          %base_buffer_4, %offset_5, %sizes_6, %strides_7 = memref.extract_strided_metadata %cast_3 : memref<?xf32> -> memref<f32>, index, index, index
          scf.forall (%arg2) in (1) {
            func.call @main_dispatch_2(%base_buffer, %base_buffer_4, %dim, %arg2) : (memref<f32>, memref<f32>, index, index) -> ()
          } {monopour.kernel = {class = "elementwise"}}
          %alloc_8 = memref.alloc(%dim) {alignment = 64 : i64} : memref<?xf32>
          %base_buffer_9, %offset_10, %sizes_11, %strides_12 = memref.extract_strided_metadata %cast_3 : memref<?xf32> -> memref<f32>, index, index, index
          %base_buffer_13, %offset_14, %sizes_15, %strides_16 = memref.extract_strided_metadata %alloc_8 : memref<?xf32> -> memref<f32>, index, index, index
          scf.forall (%arg2) in (1) {
            func.call @main_dispatch_3(%0#0, %base_buffer_9, %base_buffer_13, %dim, %arg2) : (memref<8xf32>, memref<f32>, memref<f32>, index, index) -> ()
          } {monopour.kernel = {class = "elementwise"}}
          return %alloc_8 : memref<?xf32>
        }"#]].assert_eq(&host.to_string());
    let pooled = plan::pooled(host);
    assert_eq!(pooled.len(), 1, "{pooled:?}");
}
