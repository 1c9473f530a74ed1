//! Types in memory and scalar arguments: hand-written distributed kernels on the device.

use crate::device::device;
use crate::program::validate;
use monopour_codegen_gpu::emit;
use monopour_ir::{Context, Module};
use monopour_program::{GpuFeature, GpuKernel};

/// Emits a distributed kernel of `invocations` per workgroup.
fn emit_kernel(args: &str, invocations: u32, body: &str) -> GpuKernel {
    let text = format!(
        "func.func private @kernel({args}) attributes {{monopour.workgroup_size = array<i32: {invocations}, 1, 1>}} {{\n  %t = gpu.thread_id x\n{body}\n  return\n}}"
    );
    let module = Module::parse(Context::new(), text.as_bytes(), "test.mlir").unwrap_or_else(|d| panic!("{d}\n{text}"));
    let kernel =
        emit::run(&module, module.symbol("kernel").expect("the kernel is there")).unwrap_or_else(|d| panic!("{d}"));
    validate(&kernel);
    kernel
}

fn bytes(words: &[u32]) -> Vec<i8> {
    words.iter().flat_map(|w| w.to_le_bytes()).map(|b| b as i8).collect()
}

#[test]
fn scalars_are_immediates() {
    let Some(device) = device() else { return };
    let args = "%a: memref<8xi32>, %i: index, %b: i1, %c: i8, %h: f16, %n: i32, %f: f32, %l: i64";
    let body = "  %c0 = arith.constant 0 : index\n  %c1 = arith.constant 1 : index\n  %c2 = arith.constant 2 : index\n  %c3 = arith.constant 3 : index\n  %c4 = arith.constant 4 : index\n  %c5 = arith.constant 5 : index\n  %c6 = arith.constant 6 : index\n  %c7 = arith.constant 7 : index\n\
         \x20 %0 = arith.index_cast %i : index to i32\n  memref.store %0, %a[%c0] : memref<8xi32>\n\
         \x20 %1 = arith.extui %b : i1 to i32\n  memref.store %1, %a[%c1] : memref<8xi32>\n\
         \x20 %2 = arith.extsi %c : i8 to i32\n  memref.store %2, %a[%c2] : memref<8xi32>\n\
         \x20 %3 = arith.extf %h : f16 to f32\n  %30 = arith.bitcast %3 : f32 to i32\n  memref.store %30, %a[%c3] : memref<8xi32>\n\
         \x20 memref.store %n, %a[%c4] : memref<8xi32>\n\
         \x20 %5 = arith.bitcast %f : f32 to i32\n  memref.store %5, %a[%c5] : memref<8xi32>\n\
         \x20 %32 = arith.constant 32 : i64\n  %6 = arith.trunci %l : i64 to i32\n  memref.store %6, %a[%c6] : memref<8xi32>\n\
         \x20 %7 = arith.shrsi %l, %32 : i64\n  %70 = arith.trunci %7 : i64 to i32\n  memref.store %70, %a[%c7] : memref<8xi32>";
    let kernel = emit_kernel(args, 1, body);
    assert_eq!(kernel.scalars, [4, 4, 4, 4, 4, 4, 8]);
    assert_eq!(kernel.bindings.len(), 1);
    assert!(kernel.features.contains(&GpuFeature::Immediates));
    if !kernel.features.iter().all(|f| device.description.has(*f)) {
        return;
    }
    // 1.5 in half precision.
    let bits = [70_000, 1, 0xfe, 0x3e00, 0xffff_fff9, u64::from(2.5f32.to_bits()), (-5i64 << 32 | 9) as u64];
    let out = device.run_with(&kernel, [1, 1, 1], &[vec![0; 8]], &bits);
    let found: Vec<i32> = out[0].iter().map(|x| *x as i32).collect();
    let expected = [70_000, 1, -2, 1.5f32.to_bits() as i32, -7, 2.5f32.to_bits() as i32, 9, -5];
    assert_eq!(found, expected);
}

#[test]
fn bytes_of_one_word_are_stored_by_different_invocations() {
    let Some(device) = device() else { return };
    for (element, to_byte) in [
        ("i8", "  %v = arith.trunci %s : i32 to i8"),
        ("i1", "  %c2 = arith.constant 4 : i32\n  %v = arith.cmpi sgt, %s, %c2 : i32"),
    ] {
        let body = format!(
            "  %x = memref.load %a[%t] : memref<8xi32>\n  %c = arith.constant 1 : i32\n  %s = arith.addi %x, %c : i32\n{to_byte}\n  memref.store %v, %b[%t] : memref<8x{element}>"
        );
        let kernel = emit_kernel(&format!("%a: memref<8xi32>, %b: memref<8x{element}>"), 8, &body);
        let input: Vec<u32> = [1, 255, 3, 127, 128, 0, 7, 8].to_vec();
        let out = device.run(&kernel, [1, 1, 1], &[input, vec![u32::MAX; 2]]);
        let expected: &[i8] = if element == "i8" { &[2, 0, 4, -128, -127, 1, 8, 9] } else { &[0, 1, 0, 1, 1, 0, 1, 1] };
        assert_eq!(bytes(&out[1]), expected, "{element}\n{}", kernel.wgsl);
    }
}

#[test]
fn arithmetic_on_bytes_wraps() {
    let Some(device) = device() else { return };
    // Signed and unsigned results of one pair of operands: (-56, 100), that is (200, 100).
    let ops = ["addi", "subi", "muli", "divsi", "divui", "remui", "shrui", "maxui", "minui", "maxsi", "xori", "shli"];
    let expected: [i8; 12] = [44, 100, 32, 0, 2, 0, 0, -56, 100, 100, -84, 0];
    let mut body = String::from(
        "  %c0 = arith.constant 0 : index\n  %c1 = arith.constant 1 : index\n  %x = memref.load %a[%c0] : memref<12xi8>\n  %y = memref.load %a[%c1] : memref<12xi8>\n",
    );
    for (i, op) in ops.iter().enumerate() {
        let y = if op.starts_with("sh") { "%three" } else { "%y" };
        if i == 0 {
            body += "  %three = arith.constant 3 : i8\n";
        }
        body += &format!(
            "  %i{i} = arith.constant {i} : index\n  %r{i} = arith.{op} %x, {y} : i8\n  memref.store %r{i}, %b[%i{i}] : memref<12xi8>\n"
        );
    }
    let kernel = emit_kernel("%a: memref<12xi8>, %b: memref<12xi8>", 1, &body);
    let input = u32::from_le_bytes([-56i8 as u8, 100, 0, 0]);
    let out = device.run(&kernel, [1, 1, 1], &[vec![input, 0, 0], vec![0; 3]]);
    let mut expected = expected.to_vec();
    // Shifts are by 3: 200 >> 3 and -56 << 3.
    (expected[6], expected[11]) = (25, 64);
    assert_eq!(bytes(&out[1]), expected, "{}", kernel.wgsl);
}

#[test]
fn unsigned_views_of_bytes() {
    let Some(device) = device() else { return };
    let body = "  %x = memref.load %a[%t] : memref<4xi8>\n  %w = arith.extui %x : i8 to i32\n  %f = arith.uitofp %x : i8 to f32\n  %g = arith.sitofp %x : i8 to f32\n  %s = arith.addf %f, %g : f32\n  %n = arith.fptosi %s : f32 to i32\n  %c = arith.constant 100 : i8\n  %m = arith.cmpi ugt, %x, %c : i8\n  %z = arith.constant 0 : i32\n  %k = arith.select %m, %n, %z : i32\n  %r = arith.addi %w, %k : i32\n  memref.store %r, %b[%t] : memref<4xi32>";
    let kernel = emit_kernel("%a: memref<4xi8>, %b: memref<4xi32>", 4, body);
    let out = device.run(&kernel, [1, 1, 1], &[vec![u32::from_le_bytes([200, 100, 127, 255])], vec![0; 4]]);
    // 200 + (200 - 56), 100, 127 + (127 + 127), 255 + (255 - 1).
    assert_eq!(out[1], [344, 100, 381, 509]);
}

#[test]
fn bytes_and_halves_in_vectors() {
    let Some(device) = device() else { return };
    for (lanes, invocations) in [(4, 2), (8, 1)] {
        let body = format!(
            "  %l = arith.constant {lanes} : index\n  %i = arith.muli %t, %l : index\n  %x = vector.load %a[%i] : memref<8xi8>, vector<{lanes}xi8>\n  %y = arith.addi %x, %x : vector<{lanes}xi8>\n  vector.store %y, %b[%i] : memref<8xi8>, vector<{lanes}xi8>\n\
             \x20 %w = arith.extsi %y : vector<{lanes}xi8> to vector<{lanes}xi32>\n  vector.store %w, %c[%i] : memref<8xi32>, vector<{lanes}xi32>"
        );
        let kernel = emit_kernel("%a: memref<8xi8>, %b: memref<8xi8>, %c: memref<8xi32>", invocations, &body);
        let input = [u32::from_le_bytes([1, 2, 3, 100]), u32::from_le_bytes([255, 254, 127, 128])];
        let out = device.run(&kernel, [1, 1, 1], &[input.to_vec(), vec![0; 2], vec![0; 8]]);
        let expected = [2i8, 4, 6, -56, -2, -4, -2, 0];
        assert_eq!(bytes(&out[1]), expected, "{}", kernel.wgsl);
        assert_eq!(out[2].iter().map(|x| *x as i32 as i8).collect::<Vec<_>>(), expected);
        assert!(!kernel.wgsl.contains("atomic"), "whole words need no atomics:\n{}", kernel.wgsl);
    }
    let body = "  %x = memref.load %a[%t] : memref<4xi16>\n  %c = arith.constant 300 : i16\n  %y = arith.muli %x, %c : i16\n  memref.store %y, %a[%t] : memref<4xi16>";
    let kernel = emit_kernel("%a: memref<4xi16>", 4, body);
    let out = device.run(&kernel, [1, 1, 1], &[vec![0x0002_0001, 0xffff_0100]]);
    // 300, 600, 76800 mod 65536, -300.
    assert_eq!(out[0], [600 << 16 | 300, 0xfed4_0000 | (76_800 - 65_536)]);
}

#[test]
fn an_index_takes_eight_bytes() {
    let Some(device) = device() else { return };
    let body = "  %x = memref.load %a[%t] : memref<2xindex>\n  %c = arith.constant -5 : index\n  %y = arith.addi %x, %c : index\n  memref.store %y, %a[%t] : memref<2xindex>";
    let kernel = emit_kernel("%a: memref<2xindex>", 2, body);
    let out = device.run(&kernel, [1, 1, 1], &[vec![7, 0, 3, 0]]);
    assert_eq!(out[0], [2, 0, -2i32 as u32, u32::MAX]);
}

#[test]
fn bits_of_halves() {
    let Some(device) = device() else { return };
    if !device.description.has(GpuFeature::F16) {
        return;
    }
    let body = "  %x = memref.load %a[%t] : memref<2xf16>\n  %i = arith.bitcast %x : f16 to i16\n  %c = arith.constant 1 : i16\n  %j = arith.addi %i, %c : i16\n  %y = arith.bitcast %j : i16 to f16\n  memref.store %y, %a[%t] : memref<2xf16>";
    let kernel = emit_kernel("%a: memref<2xf16>", 2, body);
    let out = device.run(&kernel, [1, 1, 1], &[vec![0xbc00_3c00]]);
    assert_eq!(out[0], [0xbc01_3c01]);
}
