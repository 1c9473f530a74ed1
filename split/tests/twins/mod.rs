//! Kernels for sizes that are multiples of the vector width.

use expect_test::expect_file;
use monopour_ir::{Context, Module};
use monopour_split::{outline, twins};

const PRODUCT: &str = r#"
func.func @main(%a: memref<?x?xf32>, %b: memref<?x16xf32>, %c: memref<?x16xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %a, %c0 : memref<?x?xf32>
  %k = memref.dim %a, %c1 : memref<?x?xf32>
  scf.forall (%i) in (%m) {
    %s = memref.subview %a[%i, 0] [1, %k] [1, 1] : memref<?x?xf32> to memref<1x?xf32, strided<[?, 1], offset: ?>>
    %r = memref.subview %c[%i, 0] [1, 16] [1, 1] : memref<?x16xf32> to memref<1x16xf32, strided<[16, 1], offset: ?>>
    linalg.matmul ins(%s, %b : memref<1x?xf32, strided<[?, 1], offset: ?>>, memref<?x16xf32>) outs(%r : memref<1x16xf32, strided<[16, 1], offset: ?>>)
  } {monopour.kernel = KERNEL}
  return
}
"#;

/// `main` with its kernels, and the number of kernels that were added for a kernel choice.
fn added(choice: &str) -> (String, usize) {
    let text = PRODUCT.replace("KERNEL", choice);
    let module = Module::parse(Context::new(), text.as_bytes(), "product.mlir").expect("parses");
    outline::run(&module).expect("outlines");
    let added = twins::run(&module).expect("adds kernels");
    module.op().verify_with_diagnostics().expect("is valid");
    (module.op().to_string(), added)
}

#[test]
fn the_host_takes_the_kernel_for_rows_of_whole_vectors_where_the_lengths_are_multiples() {
    let (text, added) = added(
        "{class = \"contraction\", register_tile = array<i64: 1, 8>, reduction_step = 8 : i64, vector_width = 8 : i64, \
         tile = array<i64: 1>, workgroup_size = array<i32: 8, 1, 1>}",
    );
    assert_eq!(added, 1);
    expect_file!["../snapshots/twins.mlir"].assert_eq(&text);
}

#[test]
fn kernels_of_single_elements_stay_alone() {
    let single = "{class = \"contraction\", register_tile = array<i64: 1>, reduction_step = 1 : i64, \
                  vector_width = 1 : i64, tile = array<i64: 1>, workgroup_size = array<i32: 8, 1, 1>}";
    assert_eq!(added(single).1, 0);
    assert_eq!(
        added(&single.replace("contraction", "elementwise").replace("vector_width = 1", "vector_width = 8")).1,
        0
    );
}
