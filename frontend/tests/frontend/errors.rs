//! Each diagnostic code of the frontend.

use crate::programs::{matmul, tensor};
use crate::support::{cpu, dispatches, import_text, kernel_text, lavapipe, reparses};
use monopour_frontend::{ImportOptions, TileOptions, fuse, import, place, tile};
use monopour_ir::{Context, Diagnostics, Module};
use std::path::{Path, PathBuf};

/// Expects this code with a hint, and these words in the message.
fn check(result: Result<import::Imported, Diagnostics>, code: &str, words: &str) {
    let errors = result.expect_err("is refused");
    let first = &errors.0[0];
    assert_eq!(first.code, code, "{errors}");
    assert!(first.help.is_some(), "{errors} has a hint");
    assert!(errors.to_string().contains(words), "'{words}' in {errors}");
}

fn refused(text: &str, code: &str, words: &str) {
    check(import_text(text), code, words);
}

#[test]
fn f0001_no_entry() {
    refused("func.func @a() { return }\nfunc.func @b() { return }", "F0001", "a, b");
    refused("func.func private @a() { return }", "F0001", "no public function");
}

#[test]
fn f0001_unknown_entry() {
    let options = ImportOptions { entry: Some("f".into()), ..Default::default() };
    let result = import::run(Context::new(), b"func.func @main() { return }", "m.mlir", &options);
    check(result, "F0001", "no function @f; public functions: main");
    let options = ImportOptions { entry: Some("f".into()), ..Default::default() };
    let result = import::run(Context::new(), b"func.func private @f(tensor<4xf32>)", "m.mlir", &options);
    check(result, "F0001", "@f has no body");
}

#[test]
fn f0002_unsupported_op_with_its_location() {
    let text = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n  \
                %0 = index.constant 4\n  return %x : tensor<4xf32>\n}";
    refused(text, "F0002", "op 'index.constant' is not supported\n  --> test.mlir:2:8");
    let text = "func.func @main(%n: index) -> tensor<?xindex> {\n  %0 = tensor.generate %n {\n  ^bb0(%i: index):\n    \
                %c = arith.cmpi ne, %i, %n : index\n    cf.assert %c, \"no\"\n    tensor.yield %i : index\n  } : tensor<?xindex>\n  \
                return %0 : tensor<?xindex>\n}";
    refused(text, "F0002", "'cf.assert' stands in the body of an op that computes elements\n  --> test.mlir:5:5");
    refused("module { memref.global @g : memref<4xf32>\n func.func @main() { return } }", "F0002", "memref.global");
}

/// Unsupported vectors and memrefs: the hint names an alternative.
#[test]
fn vectors_and_memrefs_have_another_way() {
    let vector = "func.func @main(%x: tensor<4xf32>) -> f32 {\n  %c0 = arith.constant 0 : index\n  \
                %z = arith.constant 0.0 : f32\n  \
                %v = vector.transfer_read %x[%c0], %z : tensor<4xf32>, vector<4xf32>\n  \
                %r = vector.reduction <add>, %v : vector<4xf32> into f32\n  return %r : f32\n}";
    refused(vector, "F0002", "write it as linalg on tensors: the compiler makes the vectors");
    let memref = "func.func @main(%x: tensor<4xf32>, %v: f32) -> tensor<4xf32> {\n  %c0 = arith.constant 0 : index\n  \
                %b = bufferization.to_buffer %x : tensor<4xf32> to memref<4xf32>\n  \
                memref.store %v, %b[%c0] : memref<4xf32>\n  \
                %t = bufferization.to_tensor %b restrict : memref<4xf32> to tensor<4xf32>\n  \
                return %t : tensor<4xf32>\n}";
    refused(memref, "F0010", "'bufferization.to_buffer' works on memrefs\n  --> test.mlir:3:8");
    let into = "func.func @main(%x: tensor<4xf32>) {\n  %m = memref.alloc() : memref<4xf32>\n  \
                bufferization.materialize_in_destination %x in writable %m : (tensor<4xf32>, memref<4xf32>) -> ()\n  \
                return\n}";
    refused(into, "F0010", "'memref.alloc' works on memrefs");
    let spaced = "func.func @main() -> tensor<4xf32> {\n  \
                %a = bufferization.alloc_tensor() {memory_space = 1 : i64} : tensor<4xf32>\n  return %a : tensor<4xf32>\n}";
    refused(spaced, "F0002", "bufferization.alloc_tensor");
}

#[test]
fn f0003_unsupported_element() {
    refused("func.func @main(%x: tensor<4xi4>) -> tensor<4xi4> { return %x : tensor<4xi4> }", "F0003", "i4");
    refused(
        "func.func @main(%x: tensor<4xf32, 1>) -> tensor<4xf32, 1> { return %x : tensor<4xf32, 1> }",
        "F0003",
        "encoded",
    );
}

#[test]
fn f0004_shape_without_rank() {
    refused("func.func @main(%x: tensor<*xf32>) -> tensor<*xf32> { return %x : tensor<*xf32> }", "F0004", "unranked");
}

#[test]
fn f0005_argument_of_a_type_that_cannot_cross() {
    refused("func.func @main(%x: vector<4xf32>) { return }", "F0005", "argument 0");
    refused("func.func @main(%x: i4) -> i4 { return %x : i4 }", "F0005", "i4");
}

#[test]
fn f0014_op_that_upstream_cannot_take_apart() {
    let text = "func.func @main(%x: tensor<16xf32>, %n: index, %d: tensor<?x?xf32>) -> tensor<?x?xf32> {\n  \
                %0 = linalg.pack %x inner_dims_pos = [0] inner_tiles = [%n] into %d : tensor<16xf32> -> tensor<?x?xf32>\n  \
                return %0 : tensor<?x?xf32>\n}";
    refused(text, "F0014", "'linalg.pack' of this form is not supported\n  --> test.mlir:2:8");
}

#[test]
fn f0015_a_donation_that_names_no_tensor() {
    let text = b"func.func @main(%x: tensor<4xf32> {monopour.name = \"x\"}, %n: index) -> tensor<4xf32> { return %x : tensor<4xf32> }";
    for name in ["arg0", "arg1", "y"] {
        let options = ImportOptions { donate: vec![name.into()], ..Default::default() };
        let result = import::run(Context::new(), text, "m.mlir", &options);
        check(result, "F0015", &format!("no tensor argument is called '{name}'"));
    }
    let options = ImportOptions { donate: vec!["x".into()], ..Default::default() };
    let imported = import::run(Context::new(), text, "m.mlir", &options).expect("imports");
    assert!(imported.module.op().to_string().contains("monopour.donate"));
}

#[test]
fn f0010_memrefs() {
    refused(
        "func.func @main(%x: memref<4xf32>) -> tensor<f32> {\n  %0 = tensor.empty() : tensor<f32>\n  return %0 : tensor<f32>\n}",
        "F0005",
        "memref",
    );
    let text = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n  %z = arith.constant 0.0 : f32\n  \
                %0 = arith.constant dense<0.0> : tensor<4xf32>\n  return %0 : tensor<4xf32>\n}\n\
                func.func private @dead(%m: memref<4xf32>) { return }";
    import_text(text).expect("what is not reached does not matter");
    let text = "func.func @main(%m: memref<4xf32>) {\n  %z = arith.constant 0.0 : f32\n  \
                linalg.fill ins(%z : f32) outs(%m : memref<4xf32>)\n  return\n}";
    let errors = import_text(text).expect_err("is refused");
    assert!(errors.0.iter().any(|d| d.code == "F0010"), "{errors}");
}

#[test]
fn f0011_recursion() {
    let text = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n  %0 = call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>\n  \
                return %0 : tensor<4xf32>\n}\nfunc.func private @f(tensor<4xf32>) -> tensor<4xf32>";
    refused(text, "F0011", "call of @f");
    let text = "func.func @main(%x: tensor<4xf32>, %c: i1) -> tensor<4xf32> {\n  \
                %0 = call @f(%x, %c) : (tensor<4xf32>, i1) -> tensor<4xf32>\n  return %0 : tensor<4xf32>\n}\n\
                func.func private @f(%y: tensor<4xf32>, %c: i1) -> tensor<4xf32> {\n  %0 = scf.if %c -> (tensor<4xf32>) {\n    \
                scf.yield %y : tensor<4xf32>\n  } else {\n    %t = arith.constant true\n    \
                %1 = func.call @f(%y, %t) : (tensor<4xf32>, i1) -> tensor<4xf32>\n    scf.yield %1 : tensor<4xf32>\n  }\n  \
                return %0 : tensor<4xf32>\n}";
    refused(text, "F0011", "where it calls itself, carry what it hands on through scf.while or scf.for");
}

#[test]
fn a_private_function_is_inlined() {
    let text = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n  %0 = call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>\n  \
                return %0 : tensor<4xf32>\n}\nfunc.func private @f(%y: tensor<4xf32>) -> tensor<4xf32> {\n  \
                %0 = math.exp %y : tensor<4xf32>\n  return %0 : tensor<4xf32>\n}";
    let module = import_text(text).expect("imports").module;
    assert_eq!(module.functions().len(), 1);
    assert_eq!(module.op().find_all("math.exp").len(), 1);
}

#[test]
fn f0012_names() {
    let twice = "func.func @main(%x: tensor<4xf32> {monopour.name = \"x\"}, %y: tensor<4xf32> {monopour.name = \"x\"}) -> tensor<4xf32> { \
                 return %x : tensor<4xf32> }";
    refused(twice, "F0012", "'x'");
    let number =
        "func.func @main(%x: tensor<4xf32> {monopour.name = 1 : i64}) -> tensor<4xf32> { return %x : tensor<4xf32> }";
    refused(number, "F0012", "expected a string");
    let taken = "func.func @main(%x: tensor<4xf32> {monopour.name = \"arg1\"}, %y: tensor<4xf32>) -> tensor<4xf32> { \
                 return %x : tensor<4xf32> }";
    refused(taken, "F0012", "an earlier argument has the name 'arg1'");
}

#[test]
fn f0030_tensors_that_no_machine_holds() {
    let of = |size: &str| {
        format!("func.func @main(%x: tensor<{size}xf32>) -> tensor<{size}xf32> {{ return %x : tensor<{size}xf32> }}")
    };
    refused(&of("4194304x4194305"), "F0030", "tensor<4194304x4194305xf32> has more than 70368744177664 bytes");
    refused(&of("4294967296x4294967296"), "F0030", "no machine holds such a tensor");
    assert!(import_text(&of("4194304x4194304")).is_ok());
}

/// A directory of this test's own, removed by the next run.
fn directory(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("monopour-frontend-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a temporary directory");
    dir
}

/// A safetensors file with one f32 tensor `w0` of this shape.
fn write_weights(path: &Path, shape: &[usize]) -> Vec<u8> {
    let count: usize = shape.iter().product();
    let data: Vec<u8> = (0..count).flat_map(|i| (i as f32).to_le_bytes()).collect();
    let header = format!("{{\"w0\":{{\"dtype\":\"F32\",\"shape\":{shape:?},\"data_offsets\":[0,{}]}}}}", data.len());
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    file.extend(&data);
    std::fs::write(path, file).expect("writes");
    data
}

const WEIGHTED: &str = "module attributes {monopour.weights = \"w.safetensors\"} {\n  func.func @main() -> tensor<2x3xf32> {\n    \
                        %0 = arith.constant dense_resource<w0> : tensor<2x3xf32>\n    return %0 : tensor<2x3xf32>\n  }\n}";

fn import_at<'c>(dir: &Path, text: &str) -> Result<import::Imported<'c>, Diagnostics> {
    let file = dir.join("model.mlir");
    import::run(Context::new(), text.as_bytes(), &file.display().to_string(), &ImportOptions::default())
}

#[test]
fn weights_are_mapped_from_the_file_beside_the_model() {
    let dir = directory("good");
    let data = write_weights(&dir.join("w.safetensors"), &[2, 3]);
    let imported = import_at(&dir, WEIGHTED).expect("imports");
    let weight = imported.weights.get("w0").expect("is bound");
    assert_eq!((weight.bytes(), weight.shape.as_slice()), (data.as_slice(), [2, 3].as_slice()));
    assert_eq!(imported.weights.len(), 1);
}

#[test]
fn f0006_weight_without_a_value() {
    let plain = WEIGHTED.replace(" attributes {monopour.weights = \"w.safetensors\"}", "");
    refused(&plain, "F0006", "dense_resource<w0> has no value");
    let dir = directory("missing");
    write_weights(&dir.join("w.safetensors"), &[2, 3]);
    check(import_at(&dir, &WEIGHTED.replace("<w0>", "<w1>")), "F0006", "1 tensors: w0");
}

#[test]
fn f0007_weight_of_another_shape_or_type() {
    let dir = directory("shape");
    write_weights(&dir.join("w.safetensors"), &[3, 2]);
    check(import_at(&dir, WEIGHTED), "F0007", "[3, 2]");
    check(import_at(&dir, &WEIGHTED.replace("2x3xf32", "3x2xi32")), "F0007", "3x2xi32");
}

#[test]
fn f0008_unreadable_weights() {
    let dir = directory("unreadable");
    check(import_at(&dir, WEIGHTED), "F0008", "w.safetensors");
    std::fs::write(dir.join("w.safetensors"), b"not a safetensors file").expect("writes");
    check(import_at(&dir, WEIGHTED), "F0008", "w.safetensors");
}

fn tile_with<'c>(
    text: &str,
    schedule: &str,
    target: monopour_frontend::TargetDescription,
) -> Result<Module<'c>, Diagnostics> {
    let module = import_text(text).expect("imports").module;
    fuse::run(&module)?;
    let schedule = Module::parse(module.context(), schedule.as_bytes(), "schedule.mlir").expect("parses");
    let before = module.op().to_string();
    let options =
        TileOptions { target: target.clone(), schedule: Some(schedule), tuning: None, effort: Default::default() };
    if let Err(errors) = tile::run(&module, &options) {
        assert_eq!(module.op().to_string(), before, "a failing schedule leaves the module whole");
        return Err(errors);
    }
    place::run(&module, &target)?;
    reparses(&module);
    Ok(module)
}

fn schedule(tile: &str) -> String {
    format!(
        "module attributes {{transform.with_named_sequence}} {{\n  transform.named_sequence @__transform_main(%m: !transform.any_op) {{\n    \
         %r = transform.structured.match attributes {{monopour.role = \"root\"}} in %m : (!transform.any_op) -> !transform.any_op\n    \
         %t, %l = transform.structured.tile_using_forall %r tile_sizes {tile} : (!transform.any_op) -> (!transform.any_op, !transform.any_op)\n    \
         transform.yield\n  }}\n}}"
    )
}

#[test]
fn a_user_schedule_replaces_the_generated_one() {
    let module = tile_with(&matmul(64, 64, 32), &schedule("[8, 8]"), lavapipe()).expect("tiles");
    let forall = dispatches(&module)[0];
    assert_eq!(kernel_text(forall, "class"), "generic");
    assert_eq!(forall.attr("staticUpperBound").expect("bounds").as_ints().expect("ints"), [8, 8]);
}

#[test]
fn f0009_schedule_that_fails() {
    let errors = tile_with(&matmul(64, 64, 32), &schedule("[8, 8]").replace("forall %r", "forall %m"), cpu("x86-64"))
        .expect_err("is refused");
    assert_eq!(errors.0[0].code, "F0009", "{errors}");
    let missing = tile_with(&matmul(4, 4, 4), "module {}", cpu("x86-64")).expect_err("is refused");
    assert_eq!(missing.0[0].code, "F0009", "{missing}");
}

#[test]
fn f0013_grid_of_four_dimensions() {
    let t = tensor(&[4, 4, 4, 4]);
    let text = format!("func.func @main(%x: {t}) -> {t} {{\n  %0 = math.exp %x : {t}\n  return %0 : {t}\n}}");
    let errors = tile_with(&text, &schedule("[1, 1, 1, 1]"), lavapipe()).expect_err("is refused");
    assert_eq!(errors.0[0].code, "F0013", "{errors}");
}

#[test]
fn a_folder_of_weights_gives_each_name_one_value() {
    let dir = directory("folder");
    let folder = dir.join("weights");
    std::fs::create_dir_all(&folder).expect("a folder");
    let import_from = |folder: &Path| {
        let options = ImportOptions { weights: Some(folder.to_owned()), ..ImportOptions::default() };
        import::run(Context::new(), WEIGHTED.as_bytes(), "model.mlir", &options)
    };
    check(import_from(&folder), "F0008", "holds no .safetensors file");
    std::fs::write(folder.join("README.txt"), b"not weights").expect("writes");
    let data = write_weights(&folder.join("b.safetensors"), &[2, 3]);
    let imported = import_from(&folder).expect("imports");
    assert_eq!(imported.weights.get("w0").expect("is bound").bytes(), data);
    write_weights(&folder.join("a.safetensors"), &[2, 3]);
    check(import_from(&folder), "F0008", "has two values");
    std::fs::remove_dir_all(&dir).expect("can be removed");
}
