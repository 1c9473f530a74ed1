//! One test per diagnostic code.

use crate::program::{buffer, compile, lavapipe, outlined};
use monopour_codegen_gpu::emit;
use monopour_ir::{Context, Diagnostics, Module};

const KERNEL: &str = r#"class = "generic", workgroup_size = array<i32: 8, 1, 1>"#;

fn check(result: Result<impl Sized, Diagnostics>, code: &str, words: &str) {
    let Err(diagnostics) = result else { panic!("expected {code}") };
    let first = &diagnostics.0[0];
    assert_eq!(first.code, code, "{diagnostics}");
    assert!(first.message.contains(words), "{diagnostics}");
    assert!(first.help.is_some(), "{diagnostics}");
}

fn distribute(kernel: &str, args: &[String], body: &str) -> Result<(), Diagnostics> {
    compile(&outlined(args, &[1], kernel, body), &lavapipe()).map(|_| ())
}

/// Emits a hand-written distributed kernel.
fn emit_kernel(args: &str, body: &str) -> Result<(), Diagnostics> {
    let text = format!(
        "func.func private @kernel({args}) attributes {{monopour.workgroup_size = array<i32: 8, 1, 1>}} {{\n{body}\n  return\n}}"
    );
    let module = Module::parse(Context::new(), text.as_bytes(), "test.mlir")?;
    emit::run(&module, module.symbol("kernel").expect("the kernel is there")).map(|_| ())
}

#[test]
fn g0001_unsupported_op() {
    let body = "  %c = arith.constant 0 : index\n  %x = memref.load %a[%c] : memref<8xf32>\n  %i = arith.fptosi %x : f32 to i32\n  %y = math.fpowi %x, %i : f32, i32\n  memref.store %y, %a[%c] : memref<8xf32>";
    check(emit_kernel("%a: memref<8xf32>", body), "G0001", "'math.fpowi'");
}

#[test]
fn g0002_unsupported_type() {
    check(emit_kernel("%a: memref<8xi4>", ""), "G0002", "memref<8xi4>");
    check(emit_kernel("%a: memref<8xf8E4M3FN>", ""), "G0002", "f8E4M3FN");
    let exp = "  %c = arith.constant 0 : index\n  %x = memref.load %a[%c] : memref<8xf64>\n  %y = math.exp %x : f64\n  memref.store %y, %a[%c] : memref<8xf64>";
    check(emit_kernel("%a: memref<8xf64>", exp), "G0002", "math.exp");
}

#[test]
fn g0003_not_a_tile_body() {
    let x = buffer(&[8]);
    let body = format!("  %c = arith.constant 0 : index\n  memref.prefetch %a0[%c], read, locality<3>, data : {x}");
    check(distribute(KERNEL, &[x], &body), "G0003", "'memref.prefetch'");
}

#[test]
fn g0004_malformed_attribute() {
    let fill = "  %z = arith.constant 0.0 : f32\n  linalg.fill ins(%z : f32) outs(%a0 : memref<8xf32, #gpu.address_space<global>>)";
    check(distribute(r#"class = "generic""#, &[buffer(&[8])], fill), "G0004", "workgroup_size");
}

#[test]
fn g0005_an_extent_that_only_the_device_knows() {
    // Reversed through a local buffer whose size is loaded from a buffer.
    let (x, local) = (buffer(&[128]), "memref<?xf32>");
    let generic = |maps: &str, from: &str, to: &str| {
        format!(
            "linalg.generic {{indexing_maps = [{maps}], iterator_types = [\"parallel\"]}} ins({from}) outs({to}) {{\n^bb0(%p: f32, %q: f32):\n  linalg.yield %p : f32\n}}\n"
        )
    };
    let id = "affine_map<(i) -> (i)>";
    let body = format!(
        "  %n = memref.load %a1[] : memref<index, #gpu.address_space<global>>\n  %s = memref.subview %a0[0] [%n] [1] : {x} to memref<?xf32, strided<[1]>, #gpu.address_space<global>>\n  %t = memref.alloc(%n) : {local}\n{}{}",
        generic(
            &format!("{id}, {id}"),
            "%s : memref<?xf32, strided<[1]>, #gpu.address_space<global>>",
            &format!("%t : {local}")
        ),
        generic(
            &format!("affine_map<(i) -> (i * 0)>, {id}"),
            &format!("%t : {local}"),
            "%s : memref<?xf32, strided<[1]>, #gpu.address_space<global>>"
        )
    );
    let args = [x.clone(), "memref<index, #gpu.address_space<global>>".to_owned()];
    check(distribute(KERNEL, &args, &body), "G0005", "before the kernel runs");
}

#[test]
fn g0006_the_validator_rejects() {
    // No device has workgroups of this size; distribution would have diagnosed it (G0008).
    let text =
        "func.func private @kernel() attributes {monopour.workgroup_size = array<i32: 1000000, 1, 1>} {\n  return\n}";
    let module = Module::parse(Context::new(), text.as_bytes(), "test.mlir").expect("it parses");
    check(emit::run(&module, module.symbol("kernel").expect("the kernel is there")), "G0006", "validator");
}

#[test]
fn g0007_mixed_lanes() {
    let body = "  %c = arith.constant 0 : index\n  %x = memref.load %a[%c] : memref<8xf32>\n  %y = vector.load %a[%c] : memref<8xf32>, vector<4xf32>\n  memref.store %x, %b[%c] : memref<8xf32>";
    check(emit_kernel("%a: memref<8xf32>, %b: memref<8xf32>", body), "G0007", "4 lanes");
}

#[test]
fn g0008_over_a_limit() {
    let fill = "  %z = arith.constant 0.0 : f32\n  linalg.fill ins(%z : f32) outs(%a0 : memref<8xf32, #gpu.address_space<global>>)";
    let large = r#"class = "generic", workgroup_size = array<i32: 1024, 2, 1>"#;
    check(distribute(large, &[buffer(&[8])], fill), "G0008", "2048 invocations");
    let many: Vec<String> = (0..40).map(|_| buffer(&[8])).collect();
    check(distribute(KERNEL, &many, fill), "G0008", "40 storage buffers");
}

#[test]
fn g0009_a_strategy_declines() {
    // A class of products, on a body without one.
    let fill = "  %z = arith.constant 0.0 : f32\n  linalg.fill ins(%z : f32) outs(%a0 : memref<8xf32, #gpu.address_space<global>>)";
    let product = r#"class = "contraction", workgroup_size = array<i32: 8, 1, 1>"#;
    let text = outlined(&[buffer(&[8])], &[1], product, fill);
    let module = Module::parse(Context::new(), text.as_bytes(), "test.mlir").expect("it parses");
    let report = monopour_codegen_gpu::distribute::run(&module, &lavapipe()).expect("it distributes");
    let remarks = report.remarks(&module);
    assert_eq!((remarks.0.len(), remarks.0[0].code), (1, "G0009"));
    assert!(remarks.0[0].message.contains("'kernel' runs as 'elementwise'"), "{remarks}");
    assert!(!remarks.has_errors() && remarks.0[0].help.is_some());
}

#[test]
fn g0008_more_iterations_than_a_software_adapter_takes() {
    // Each element of the result takes a sum of 10^8 products, in one invocation.
    let (x, y) = ("memref<100000000xi32, #gpu.address_space<global>>", "memref<1xi32, #gpu.address_space<global>>");
    let body = format!(
        "linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (0)>], iterator_types = [\"reduction\"]}} ins(%a0 : {x}) outs(%a1 : {y}) {{\n^bb0(%p: i32, %q: i32):\n  %t = arith.addi %p, %q : i32\n  linalg.yield %t : i32\n}}"
    );
    let mut roomy = lavapipe();
    roomy.limits.max_binding_bytes = 1 << 30;
    let result = compile(&outlined(&[x.to_owned(), y.to_owned()], &[1], KERNEL, &body), &roomy);
    check(result.map(|_| ()), "G0008", "loop iterations in one invocation");
}
