//! Run-time checks of host code: a failed one ends the run with R0019 and its location, on every kind of device; a later run
//! with valid data succeeds.

use crate::host::{devices, f32s, index, ramp, raw};
use monopour::program::DType;
use monopour::runtime::{HostForm, HostTensor, Options, Session};
use monopour::{CompileOptions, compile};
use std::sync::Arc;

/// Runs a program with valid inputs, then with each of the wrong ones, then with the valid ones again.
fn check(text: &str, fits: &[HostTensor], wrong: &[(&[HostTensor], &str)]) {
    [HostForm::Native, HostForm::Data].into_iter().for_each(|form| check_form(text, form, fits, wrong));
}

/// As [`check`], by one form of the host function.
fn check_form(text: &str, host: HostForm, fits: &[HostTensor], wrong: &[(&[HostTensor], &str)]) {
    for (device, target) in devices() {
        let options = CompileOptions { targets: vec![target], verify: true, ..Default::default() };
        let program = compile(text.as_bytes(), "test.mlir", &options).unwrap_or_else(|e| panic!("{e}\n{text}")).program;
        let options = Options { host, ..Options::default() };
        let mut session = Session::load(&device, Arc::new(program), &options).expect("loads");
        let first = session.run(fits).unwrap_or_else(|e| panic!("{e}\n{text}"));
        for (inputs, expected) in wrong {
            let error = session.run(inputs).expect_err(text);
            assert_eq!(error.code(), "R0019", "{error}");
            assert!(error.to_string().contains(expected), "{error}, not {expected}");
            assert!(!error.is_machine_failure(), "{error}");
        }
        assert!(session.run(fits).is_ok_and(|again| again == first), "{text}");
        assert!(session.close().is_clean(), "{text}");
    }
}

fn i32_of(value: i32) -> HostTensor {
    raw(DType::I32, &[], &value.to_le_bytes())
}

#[test]
fn an_assertion_that_fails_says_its_message() {
    let text = "func.func @main(%x: tensor<4xf32>, %n: index) -> tensor<4xf32> {\n  %c3 = arith.constant 3 : index\n  \
         %ok = arith.cmpi ult, %n, %c3 : index\n  cf.assert %ok, \"fewer than three, as the caller promised\"\n  \
         %r = arith.addf %x, %x : tensor<4xf32>\n  return %r : tensor<4xf32>\n}\n";
    let x = f32s(&[4], &ramp(4));
    let message = "a check of the program failed: fewer than three, as the caller promised";
    check(text, &[x.clone(), index(2)], &[(&[x.clone(), index(3)], message), (&[x, index(-1)], message)]);
}

#[test]
fn a_slice_stays_within_its_tensor() {
    let text = "func.func @main(%x: tensor<?xf32>, %o: index, %n: index) -> tensor<?xf32> {\n  \
         %s = tensor.extract_slice %x[%o] [%n] [1] : tensor<?xf32> to tensor<?xf32>\n  %r = arith.addf %s, %s : tensor<?xf32>\n  \
         return %r : tensor<?xf32>\n}\n";
    let x = f32s(&[9], &ramp(9));
    let with = |o: i64, n: i64| [x.clone(), index(o), index(n)];
    let message = "'tensor.extract_slice' at 2:8 leaves its tensor";
    let wrong = [with(4, 6), with(-1, 3), with(10, 0), with(2, -1), with(i64::MAX, 2), with(3, i64::MAX)];
    check(text, &with(4, 5), &wrong.each_ref().map(|inputs| (&inputs[..], message)));
    check(text, &with(9, 0), &[]);
}

#[test]
fn a_slice_with_gaps_stays_within_its_tensor() {
    let text = "func.func @main(%x: tensor<9xf32>, %n: index, %t: index) -> tensor<?xf32> {\n  \
         %s = tensor.extract_slice %x[1] [%n] [%t] : tensor<9xf32> to tensor<?xf32>\n  %r = arith.addf %s, %s : tensor<?xf32>\n  \
         return %r : tensor<?xf32>\n}\n";
    let x = f32s(&[9], &ramp(9));
    let with = |n: i64, t: i64| [x.clone(), index(n), index(t)];
    let wrong = [with(4, 3), with(9, 1), with(2, 8), with(2, 0), with(2, -1), with(3, i64::MAX)];
    check(text, &with(3, 3), &wrong.each_ref().map(|inputs| (&inputs[..], "leaves its tensor")));
    check(text, &with(2, 7), &[]);
}

#[test]
fn what_is_inserted_fits_its_place() {
    let text = "func.func @main(%x: tensor<9xf32>, %y: tensor<?xf32>, %o: index, %n: index) -> tensor<9xf32> {\n  \
         %a = arith.addf %x, %x : tensor<9xf32>\n  \
         %r = tensor.insert_slice %y into %a[%o] [%n] [1] : tensor<?xf32> into tensor<9xf32>\n  return %r : tensor<9xf32>\n}\n";
    let (x, y) = (f32s(&[9], &ramp(9)), f32s(&[4], &ramp(4)));
    let with = |o: i64| [x.clone(), y.clone(), index(o), index(4)];
    let wrong = [with(6), with(-1)];
    let message = "'tensor.insert_slice' at 3:8 leaves its tensor, or inserts one of another size";
    check(text, &with(5), &wrong.each_ref().map(|inputs| (&inputs[..], message)));
}

/// Rows that are computed where they are inserted as one axis: the place has their sizes, or a size that no row divides.
#[test]
fn what_is_made_as_rows_fits_its_place() {
    let text = "func.func @main(%x: TYPE, %n: index) -> tensor<?xf32> {\n  \
         %c0 = arith.constant 0 : index\n  %c1 = arith.constant 1 : index\n  %c2 = arith.constant 2 : index\n  \
         %c9 = arith.constant 9 : index\n  %p = tensor.dim %x, %c0 : TYPE\n  %d = tensor.dim %x, %c1 : TYPE\n  \
         %e = tensor.empty(SIZES) : TYPE\n  %t = linalg.exp ins(%x : TYPE) outs(%e : TYPE) -> TYPE\n  \
         %v = tensor.collapse_shape %t [[0, 1]] : TYPE into tensor<?xf32>\n  \
         %c = arith.constant 0.5 : f32\n  %m = arith.addi %n, %c9 : index\n  %w = tensor.empty(%m) : tensor<?xf32>\n  \
         %f = linalg.fill ins(%c : f32) outs(%w : tensor<?xf32>) -> tensor<?xf32>\n  \
         %r = tensor.insert_slice %v into %f[%c2] [%n] [1] : tensor<?xf32> into tensor<?xf32>\n  return %r : tensor<?xf32>\n}\n";
    let with = |n: i64| [f32s(&[3, 2], &ramp(6)), index(n)];
    let none = |n: i64| [f32s(&[3, 0], &[]), index(n)];
    let wrong = [with(7), with(8), with(5), with(3), with(0), with(-3), none(3), none(1)];
    let message = "leaves its tensor, or inserts one of another size";
    for (ty, sizes) in [("tensor<3x?xf32>", "%d"), ("tensor<?x?xf32>", "%p, %d")] {
        let text = text.replace("TYPE", ty).replace("SIZES", sizes);
        check(&text, &with(6), &wrong.each_ref().map(|inputs| (&inputs[..], message)));
        check(&text, &none(0), &[]);
    }
}

/// What is computed where it is inserted is computed before the insertion: a kernel must not write before the check of its place.
#[test]
fn what_is_made_in_its_place_fits_there() {
    let transposed = "func.func @main(%x: tensor<64x64xf32>, %o: index) -> tensor<128x64xf32> {\n  \
         %c = arith.constant 0.5 : f32\n  %e = tensor.empty() : tensor<128x64xf32>\n  \
         %f = linalg.fill ins(%c : f32) outs(%e : tensor<128x64xf32>) -> tensor<128x64xf32>\n  \
         %n = tensor.empty() : tensor<64x64xf32>\n  \
         %t = linalg.transpose ins(%x : tensor<64x64xf32>) outs(%n : tensor<64x64xf32>) permutation = [1, 0]\n  \
         %r = tensor.insert_slice %t into %f[%o, 0] [64, 64] [1, 1] : tensor<64x64xf32> into tensor<128x64xf32>\n  \
         return %r : tensor<128x64xf32>\n}\n";
    let x = f32s(&[64, 64], &ramp(4096));
    let at = |o: i64| [x.clone(), index(o)];
    let wrong = [at(100), at(-1), at(65), at(1 << 40), at(i64::MIN)];
    let message = "leaves its tensor, or inserts one of another size";
    check(transposed, &at(64), &wrong.each_ref().map(|inputs| (&inputs[..], message)));
    // Of the size of another tensor than its place.
    let exp = "func.func @main(%x: tensor<?xf32>, %o: index, %k: index) -> tensor<128xf32> {\n  \
         %c1 = arith.constant 1 : index\n  %n = arith.addi %k, %c1 : index\n  %c = arith.constant 0.5 : f32\n  %e = tensor.empty() : tensor<128xf32>\n  %c0 = arith.constant 0 : index\n  \
         %f = linalg.fill ins(%c : f32) outs(%e : tensor<128xf32>) -> tensor<128xf32>\n  \
         %d = tensor.dim %x, %c0 : tensor<?xf32>\n  %m = tensor.empty(%d) : tensor<?xf32>\n  \
         %t = linalg.exp ins(%x : tensor<?xf32>) outs(%m : tensor<?xf32>) -> tensor<?xf32>\n  \
         %r = tensor.insert_slice %t into %f[%o] [%n] [1] : tensor<?xf32> into tensor<128xf32>\n  \
         return %r : tensor<128xf32>\n}\n";
    let x = f32s(&[4_000_000], &vec![0.25; 4_000_000]);
    let fits = [f32s(&[100], &ramp(100)), index(28), index(99)];
    let wrong = [
        [x.clone(), index(0), index(99)],
        [f32s(&[100], &ramp(100)), index(29), index(99)],
        [f32s(&[100], &ramp(100)), index(0), index(98)],
        [x, index(1 << 50), index(3_999_999)],
    ];
    check(exp, &fits, &wrong.each_ref().map(|inputs| (&inputs[..], message)));
}

/// A dispatch that makes such a destination moves up for it, and the checks of what it reads with it.
#[test]
fn a_destination_is_made_behind_its_checks() {
    let text = "func.func @main(%x: tensor<64x64xf32>, %y: tensor<256x64xf32>, %o: index) -> tensor<128x64xf32> {\n  \
         %n = tensor.empty() : tensor<64x64xf32>\n  \
         %t = linalg.transpose ins(%x : tensor<64x64xf32>) outs(%n : tensor<64x64xf32>) permutation = [1, 0]\n  \
         %s = tensor.extract_slice %y[%o, 0] [128, 64] [1, 1] : tensor<256x64xf32> to tensor<128x64xf32>\n  \
         %f = math.absf %s : tensor<128x64xf32>\n  \
         %r = tensor.insert_slice %t into %f[7, 0] [64, 64] [1, 1] : tensor<64x64xf32> into tensor<128x64xf32>\n  \
         return %r : tensor<128x64xf32>\n}\n";
    let (x, y) = (f32s(&[64, 64], &ramp(4096)), f32s(&[256, 64], &ramp(16384)));
    let at = |o: i64| [x.clone(), y.clone(), index(o)];
    let wrong = [at(129), at(-1), at(1 << 40)];
    check(
        text,
        &at(128),
        &wrong.each_ref().map(|inputs| (&inputs[..], "'tensor.extract_slice' at 4:8 leaves its tensor")),
    );
}

/// As above, with a tensor that one branch alone makes.
#[test]
fn what_a_branch_makes_in_its_place_fits_there() {
    let text = "func.func @main(%x: tensor<64x64xf32>, %o: index, %b: i1) -> tensor<128x64xf32> {\n  \
         %c = arith.constant 0.5 : f32\n  %e = tensor.empty() : tensor<128x64xf32>\n  \
         %f = linalg.fill ins(%c : f32) outs(%e : tensor<128x64xf32>) -> tensor<128x64xf32>\n  \
         %t = scf.if %b -> (tensor<64x64xf32>) {\n    %n = tensor.empty() : tensor<64x64xf32>\n    \
         %t = linalg.transpose ins(%x : tensor<64x64xf32>) outs(%n : tensor<64x64xf32>) permutation = [1, 0]\n    \
         scf.yield %t : tensor<64x64xf32>\n  } else {\n    scf.yield %x : tensor<64x64xf32>\n  }\n  \
         %r = tensor.insert_slice %t into %f[%o, 0] [64, 64] [1, 1] : tensor<64x64xf32> into tensor<128x64xf32>\n  \
         return %r : tensor<128x64xf32>\n}\n";
    let x = f32s(&[64, 64], &ramp(4096));
    let at = |o: i64, taken: u8| [x.clone(), index(o), raw(DType::I1, &[], &[taken])];
    let wrong = [at(1 << 40, 1), at(1 << 40, 0), at(100, 1), at(-1, 0)];
    let message = "leaves its tensor, or inserts one of another size";
    check(text, &at(64, 1), &wrong.each_ref().map(|inputs| (&inputs[..], message)));
}

/// The offset is read back from the device.
#[test]
fn offsets_that_are_elements_are_checked() {
    let text = "func.func @main(%x: tensor<9x4xf32>, %at: tensor<3xi32>) -> tensor<3x4xf32> {\n  %c0 = arith.constant 0 : index\n  \
         %c1 = arith.constant 1 : index\n  %c3 = arith.constant 3 : index\n  %e = tensor.empty() : tensor<3x4xf32>\n  \
         %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%t = %e) -> (tensor<3x4xf32>) {\n    \
         %a = tensor.extract %at[%i] : tensor<3xi32>\n    %o = arith.index_cast %a : i32 to index\n    \
         %s = tensor.extract_slice %x[%o, 0] [1, 4] [1, 1] : tensor<9x4xf32> to tensor<1x4xf32>\n    \
         %u = tensor.insert_slice %s into %t[%i, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<3x4xf32>\n    \
         scf.yield %u : tensor<3x4xf32>\n  }\n  return %r : tensor<3x4xf32>\n}\n";
    let x = f32s(&[9, 4], &ramp(36));
    let with = |at: [i32; 3]| {
        let bytes: Vec<u8> = at.iter().flat_map(|v| v.to_le_bytes()).collect();
        [x.clone(), raw(DType::I32, &[3], &bytes)]
    };
    let wrong = [with([1, 9, 0]), with([-1, 0, 0]), with([0, 0, i32::MAX])];
    check(text, &with([8, 0, 3]), &wrong.each_ref().map(|inputs| (&inputs[..], "'tensor.extract_slice' at 9:10")));
}

#[test]
fn sizes_are_not_negative_and_fit_in_memory() {
    let text = "func.func @main(%n: index, %m: index) -> tensor<?x?xf32> {\n  %v = arith.constant 1.5 : f32\n  \
         %e = tensor.empty(%n, %m) : tensor<?x?xf32>\n  \
         %r = linalg.fill ins(%v : f32) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>\n  return %r : tensor<?x?xf32>\n}\n";
    let wrong = [
        ([index(-1), index(3)], "'tensor.empty' at 3:8 has a negative size"),
        ([index(0), index(-3)], "has a negative size"),
        ([index(1 << 32), index(1 << 32)], "a tensor larger than any memory"),
        ([index(i64::MAX), index(2)], "a tensor larger than any memory"),
    ];
    check(text, &[index(5), index(7)], &wrong.each_ref().map(|(inputs, message)| (&inputs[..], *message)));
}

#[test]
fn an_expansion_keeps_the_number_of_elements() {
    let text = "func.func @main(%x: tensor<?xf32>, %n: index, %m: index) -> tensor<?x?xf32> {\n  \
         %y = tensor.expand_shape %x [[0, 1]] output_shape [%n, %m] : tensor<?xf32> into tensor<?x?xf32>\n  \
         %r = arith.addf %y, %y : tensor<?x?xf32>\n  return %r : tensor<?x?xf32>\n}\n";
    let x = f32s(&[12], &ramp(12));
    let with = |n: i64, m: i64| [x.clone(), index(n), index(m)];
    // The last two products are 12 in wrapping 64 bits, and 0.
    let wrong = [with(3, 5), with(-3, -4), with(12, 0), with(4, 3 + (1 << 62)), with(1 << 32, 1 << 32)];
    let message = "'tensor.expand_shape' at 2:8 does not keep the number of elements";
    check(text, &with(3, 4), &wrong.each_ref().map(|inputs| (&inputs[..], message)));
}

#[test]
fn host_code_divides_only_where_there_is_a_result() {
    for (op, a, b) in [("divsi", 7, 2), ("remsi", -7, 2), ("floordivsi", -7, 2), ("ceildivsi", 7, -2)] {
        let text = format!(
            "func.func @main(%a: i32, %b: i32) -> i32 {{\n  %r = arith.{op} %a, %b : i32\n  return %r : i32\n}}\n"
        );
        let message = format!("'arith.{op}' at 2:8 divides by zero, or the smallest number by -1");
        let wrong = [[i32_of(7), i32_of(0)], [i32_of(i32::MIN), i32_of(-1)]];
        check(&text, &[i32_of(a), i32_of(b)], &wrong.each_ref().map(|inputs| (&inputs[..], message.as_str())));
    }
    for op in ["divui", "remui", "ceildivui"] {
        let text = format!(
            "func.func @main(%a: index, %b: index) -> index {{\n  %r = arith.{op} %a, %b : index\n  return %r : index\n}}\n"
        );
        check(&text, &[index(7), index(2)], &[(&[index(7), index(0)], "divides by zero")]);
        check(&text, &[index(i64::MIN), index(-1)], &[]);
    }
}

#[test]
fn host_code_shifts_by_less_than_the_width() {
    for op in ["shli", "shrsi", "shrui"] {
        let text = format!(
            "func.func @main(%a: i32, %b: i32) -> i32 {{\n  %r = arith.{op} %a, %b : i32\n  return %r : i32\n}}\n"
        );
        let message = format!("'arith.{op}' at 2:8 shifts by its width or more");
        let wrong = [[i32_of(7), i32_of(32)], [i32_of(7), i32_of(-1)]];
        check(&text, &[i32_of(-9), i32_of(31)], &wrong.each_ref().map(|inputs| (&inputs[..], message.as_str())));
        let text = text.replace("i32", "index");
        check(&text, &[index(-9), index(63)], &[(&[index(1), index(64)], &message)]);
    }
}

#[test]
fn an_affine_divisor_of_the_run_is_checked() {
    for expr in ["s0 floordiv s1", "s0 mod s1", "s0 ceildiv s1"] {
        let text = format!(
            "func.func @main(%a: index, %b: index) -> index {{\n  \
             %r = affine.apply affine_map<()[s0, s1] -> ({expr})>()[%a, %b]\n  return %r : index\n}}\n"
        );
        check(&text, &[index(7), index(2)], &[(&[index(7), index(0)], "at 2:8 divides by zero")]);
    }
}

/// The text of a function with an op on `%x` and a tensor of `%n` rows, in the entry block and in a branch.
fn in_both_blocks(types: [&str; 2], op: &str) -> [String; 2] {
    let [from, to] = types;
    let begin = format!(
        "func.func @main(%x: tensor<{from}>, %k: index, %b: i1) -> tensor<{to}> {{\n  %c1 = arith.constant 1 : index\n  \
         %c = arith.constant 0.5 : f32\n  %n = arith.addi %k, %c1 : index\n  %e = tensor.empty(%n) : tensor<{to}>\n  "
    );
    let end = format!("\n  return %r : tensor<{to}>\n}}\n");
    let filled = format!("linalg.fill ins(%c : f32) outs(%e : tensor<{to}>) -> tensor<{to}>");
    let branch = format!(
        "%r = scf.if %b -> (tensor<{to}>) {{\n    %s = {op}\n    scf.yield %s : tensor<{to}>\n  }} else {{\n    \
         %f = {filled}\n    scf.yield %f : tensor<{to}>\n  }}"
    );
    [format!("{begin}%r = {op}{end}"), format!("{begin}{branch}{end}")]
}

/// Ops without indexing maps: the kernels follow one operand's sizes and write the other one.
#[test]
fn composed_ops_have_operands_that_fit() {
    let message = "sizes do not fit together";
    let with = |shape: &[u64], rows: i64| {
        let x = f32s(shape, &ramp(shape.iter().product::<u64>() as usize));
        [x, index(rows - 1), raw(DType::I1, &[], &[1])]
    };
    let check = |types: [&str; 2], op: &str, fits: &[HostTensor], wrong: &[[HostTensor; 3]]| {
        for text in in_both_blocks(types, op) {
            check(&text, fits, &wrong.iter().map(|inputs| (&inputs[..], message)).collect::<Vec<_>>());
        }
    };
    let softmax =
        "linalg.softmax dimension(1) ins(%x : tensor<?x64xf32>) outs(%e : tensor<?x64xf32>) -> tensor<?x64xf32>";
    let wrong = [with(&[100_000, 64], 3), with(&[3, 64], 4)];
    check(["?x64xf32", "?x64xf32"], softmax, &with(&[3, 64], 3), &wrong);
    let tiles = "inner_dims_pos = [0, 1] inner_tiles = [8, 8] into %e";
    let types = ["?x64xf32", "?x8x8x8xf32"];
    let pack = format!("linalg.pack %x {tiles} : tensor<?x64xf32> -> tensor<?x8x8x8xf32>");
    let wrong = [with(&[100_000, 64], 2), with(&[15, 64], 2), with(&[16, 64], 3)];
    check(types, &pack, &with(&[16, 64], 2), &wrong);
    let padded = format!("linalg.pack %x padding_value(%c : f32) {tiles} : tensor<?x64xf32> -> tensor<?x8x8x8xf32>");
    let wrong = [with(&[100_000, 64], 2), with(&[17, 64], 2)];
    check(types, &padded, &with(&[15, 64], 2), &wrong);
    let types = ["?x8x8x8xf32", "?x64xf32"];
    let unpack = format!("linalg.unpack %x {tiles} : tensor<?x8x8x8xf32> -> tensor<?x64xf32>");
    let wrong = [with(&[2, 8, 8, 8], 100_000), with(&[2, 8, 8, 8], 17)];
    check(types, &unpack, &with(&[2, 8, 8, 8], 15), &wrong);
    // Columns of tiles in another order.
    let order = "outer_dims_perm = [1, 0] inner_dims_pos = [1] inner_tiles = [4] into %e";
    let turned = format!("linalg.pack %x {order} : tensor<?x64xf32> -> tensor<16x?x4xf32>");
    check(["?x64xf32", "16x?x4xf32"], &turned, &with(&[5, 64], 5), &[with(&[5, 64], 4), with(&[5, 64], 6)]);
}

/// A check does not change the results of defined host divisions.
#[test]
fn host_code_divides_negative_numbers() {
    let text = "func.func @main(%a: i32, %b: i32) -> (i32, i32, i32, i32) {\n  %q = arith.divsi %a, %b : i32\n  \
         %r = arith.remsi %a, %b : i32\n  %f = arith.floordivsi %a, %b : i32\n  %c = arith.ceildivsi %a, %b : i32\n  \
         return %q, %r, %f, %c : i32, i32, i32, i32\n}\n";
    for (device, target) in devices() {
        let options = CompileOptions { targets: vec![target], ..Default::default() };
        let program = compile(text.as_bytes(), "test.mlir", &options).expect("compiles").program;
        let mut session = Session::load(&device, Arc::new(program), &Options::default()).expect("loads");
        for (a, b, expected) in [
            (-7, 2, [-3, -1, -4, -3]),
            (7, -1, [-7, 0, -7, -7]),
            (i32::MIN, 2, [i32::MIN / 2, 0, i32::MIN / 2, i32::MIN / 2]),
        ] {
            let results = session.run(&[i32_of(a), i32_of(b)]).expect("runs");
            assert_eq!(results, expected.map(i32_of), "{a} by {b}");
        }
    }
}

#[test]
fn windows_and_operands_of_computed_sizes_fit() {
    let text = "func.func @main(%x: tensor<20xf32>, %y: tensor<20xf32>, %n: index, %m: index) -> tensor<?xf32> {\n  \
         %a = tensor.extract_slice %x[0] [%n] [1] : tensor<20xf32> to tensor<?xf32>\n  \
         %b = tensor.extract_slice %y[0] [%m] [1] : tensor<20xf32> to tensor<?xf32>\n  \
         %k = arith.constant 2 : index\n  %h = arith.addi %n, %k : index\n  %e = tensor.empty(%n) : tensor<?xf32>\n  \
         %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i + 2)>, affine_map<(i) -> (i)>], \
         iterator_types = [\"parallel\"]} ins(%a, %b : tensor<?xf32>, tensor<?xf32>) outs(%e : tensor<?xf32>) {\n  \
         ^bb0(%p: f32, %q: f32, %o: f32):\n    %s = arith.addf %p, %q : f32\n    linalg.yield %s : f32\n  } -> tensor<?xf32>\n  \
         return %r : tensor<?xf32>\n}\n";
    let (x, y) = (f32s(&[20], &ramp(20)), f32s(&[20], &ramp(20)));
    let with = |n: i64, m: i64| [x.clone(), y.clone(), index(n), index(m)];
    let wrong = [with(7, 8), with(9, 3)];
    check(text, &with(7, 9), &wrong.each_ref().map(|inputs| (&inputs[..], "sizes do not fit together")));
    check(text, &with(0, 1), &[]);
}

#[test]
fn a_loop_has_a_step() {
    let text = "func.func @main(%x: tensor<4xf32>, %t: index) -> tensor<4xf32> {\n  %c0 = arith.constant 0 : index\n  \
         %c9 = arith.constant 9 : index\n  %r = scf.for %i = %c0 to %c9 step %t iter_args(%a = %x) -> (tensor<4xf32>) {\n    \
         %b = arith.addf %a, %x : tensor<4xf32>\n    scf.yield %b : tensor<4xf32>\n  }\n  return %r : tensor<4xf32>\n}\n";
    let x = f32s(&[4], &ramp(4));
    let message = "'scf.for' at 4:8 has a step that is not positive";
    check(text, &[x.clone(), index(4)], &[(&[x.clone(), index(0)], message), (&[x, index(-2)], message)]);
}
