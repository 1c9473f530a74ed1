//! Each diagnostic code, with its location and a hint.

use crate::harness::{compile, compile_module};
use monopour_ir::{Context, Diagnostic, LlvmOutput, LlvmTarget, Module, emit_llvm};
use monopour_program::CpuTarget;

fn first_error(text: &str, target: &CpuTarget) -> Diagnostic {
    compile(text, target).expect_err("the module is refused").0.remove(0)
}

fn check(code: &str, line: Option<u32>, text: &str) {
    let found = first_error(text, &CpuTarget::parse("x86-64-v3").unwrap());
    assert_eq!(found.code, code, "{found}");
    assert!(found.help.is_some(), "{found}");
    if let Some(line) = line {
        assert!(found.location.starts_with(&format!("test.mlir:{line}:")), "{found}");
    }
}

fn kernel(arguments: &str, body: &str) -> String {
    format!("func.func private @k({arguments}) attributes {{monopour.kernel = {{}}}} {{\n{body}\nreturn\n}}\n")
}

#[test]
fn c0001_op_without_lowering() {
    check("C0001", Some(3), &kernel("", "gpu.barrier"));
    check("C0001", Some(3), &kernel("%i: index", "scf.forall (%a) in (%i) { }"));
}

#[test]
fn c0002_kernel_signature() {
    check("C0002", Some(2), &kernel("%a: memref<?xf32>", ""));
    check("C0002", Some(2), &kernel("%a: memref<4x4xf32, strided<[8, 1]>>", ""));
    check("C0002", Some(2), &kernel("%i: index, %a: memref<4xf32>", ""));
    check("C0002", Some(2), &kernel("%i: index, %j: index, %k: index, %l: index", ""));
    check(
        "C0002",
        Some(2),
        "func.func private @k(%i: index) -> index attributes {monopour.kernel = {}} { return %i : index }",
    );
}

#[test]
fn c0003_local_buffers() {
    check("C0003", Some(3), &kernel("", "%a = memref.alloc() : memref<65537xf32>"));
    check("C0003", Some(3), &kernel("%i: index", "%a = memref.alloc(%i) : memref<?xf32>"));
}

#[test]
fn c0004_math_function() {
    let body =
        "%x = memref.load %a[] : memref<f32>\n%y, %z = math.sincos %x : f32\nmemref.store %y, %a[] : memref<f32>";
    check("C0004", Some(4), &kernel("%a: memref<f32>", body));
}

#[test]
fn c0005_symbol_that_nothing_offers() {
    // 128-bit division is a compiler support routine.
    let body =
        "%x = memref.load %a[] : memref<i128>\n%y = arith.divsi %x, %x : i128\nmemref.store %y, %a[] : memref<i128>";
    let body = body.replace("%x, %x", "%x, %z").replace("%y =", "%z = memref.load %b[] : memref<i128>\n%y =");
    check("C0005", None, &kernel("%a: memref<i128>, %b: memref<i128>", &body));
}

#[test]
fn c0006_architecture() {
    let mut target = CpuTarget::parse("x86-64").unwrap();
    target.arch = "riscv64".into();
    assert_eq!(first_error("", &target).code, "C0006");
}

#[test]
fn c0007_host_function() {
    let target = CpuTarget::parse("x86-64").unwrap();
    let code = |text: &str| compile_module(text, &target).unwrap_err().0[0].code;
    assert_eq!(code("func.func private @k() attributes {monopour.kernel = {}} { return }"), "C0007");
    assert_eq!(code("func.func @a(%cx: i64) { return }\nfunc.func @b(%cx: i64) { return }"), "C0007");
    assert_eq!(code("func.func @a(%x: i32) { return }"), "C0007");
}

#[test]
fn c0008_call_to_outside() {
    check("C0008", Some(3), &(kernel("", "func.call @puts() : () -> ()") + "func.func private @puts()"));
}

#[test]
fn aarch64_code_is_made_anywhere() {
    let target =
        CpuTarget { arch: "aarch64".into(), cpu: "generic".into(), features: vec!["neon".into()], vector_bits: 128 };
    let code = compile(&kernel("%a: memref<4xf32>", ""), &target).unwrap();
    assert_eq!(code.arch, "aarch64");
    assert_eq!(code.objects[0][18], 183, "the ELF header says AArch64");
}

#[test]
fn i0005_llvm_refuses() {
    let module = Module::parse(Context::new(), b"func.func @f() { return }", "test.mlir").unwrap();
    let target = LlvmTarget {
        triple: "x86_64-unknown-none-elf".into(),
        cpu: String::new(),
        features: String::new(),
        vector_bits: 128,
    };
    let found = emit_llvm(module.op(), &target, LlvmOutput::Object).unwrap_err();
    assert_eq!(found.0.last().unwrap().code, "I0005");
    let unknown = LlvmTarget { triple: "nowhere".into(), ..target };
    assert_eq!(emit_llvm(Module::empty(Context::new()).op(), &unknown, LlvmOutput::Ir).unwrap_err().0[0].code, "I0005");
}
