//! Operations without a model: their destination-style interface suffices.

use crate::support::{boundaries, option_line, parse, programs};
use monopour_bufferize::op_model::OpModels;
use monopour_bufferize::{Options, Stats, run_with_models};
use monopour_ir::Diagnostics;

fn extensions() -> Options {
    Options { allow_return_allocs_from_loops: true, extensions: true, ..boundaries() }
}

/// Upstream's models without linalg, whose operations are then unknown.
fn without_linalg() -> OpModels {
    let mut models = OpModels::upstream();
    models.remove_dialect("linalg");
    models
}

fn bufferized(text: &str, options: &Options, models: &OpModels) -> Result<(String, Stats), Diagnostics> {
    let module = parse(text);
    let stats = run_with_models(module.op(), options, models)?;
    module.op().verify_with_diagnostics().unwrap_or_else(|e| panic!("{e}\n{}", module.op()));
    Ok((module.op().to_string(), stats))
}

fn fails(code: &str, text: &str, options: &Options, models: &OpModels) -> String {
    let errors = bufferized(text, options, models).expect_err("it is refused");
    let found = errors.0.iter().find(|d| d.code == code).unwrap_or_else(|| panic!("{code} was expected: {errors}"));
    assert!(found.help.is_some(), "{code} has a hint");
    found.to_string()
}

const MATMUL: &str = "func.func @f(%a: tensor<4x8xf32>, %b: tensor<8x4xf32>, %c: tensor<4x4xf32>) -> tensor<4x4xf32> {
    %r = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x4xf32>) outs(%c : tensor<4x4xf32>) -> tensor<4x4xf32>
    return %r : tensor<4x4xf32>
  }";

#[test]
fn a_destination_style_op_writes_its_destination() {
    let (text, stats) = bufferized(MATMUL, &extensions(), &without_linalg()).expect("the interface is enough");
    assert_eq!((stats.in_place, stats.out_of_place, stats.allocs, stats.copies), (4, 0, 0, 0));
    let (expected, _) = bufferized(MATMUL, &extensions(), &OpModels::upstream()).expect("it has a model");
    assert_eq!(text, expected);
    assert!(text.contains("linalg.matmul ins(") && text.contains("return %arg2"), "{text}");
}

/// The old contents of the destination are read afterwards.
#[test]
fn a_destination_that_is_read_later_is_copied() {
    let text = MATMUL
        .replace("-> tensor<4x4xf32> {", "-> (tensor<4x4xf32>, tensor<4x4xf32>) {")
        .replace("return %r : tensor<4x4xf32>", "return %r, %c : tensor<4x4xf32>, tensor<4x4xf32>");
    let (text, stats) = bufferized(&text, &extensions(), &without_linalg()).expect("the interface is enough");
    assert_eq!((stats.out_of_place, stats.allocs, stats.copies), (1, 1, 1), "{text}");
}

/// A body that reads the destination in any order, while the operation overwrites it.
#[test]
fn what_a_region_reads_is_not_overwritten() {
    let text = "func.func @f(%t: tensor<8xf32>) -> tensor<8xf32> {
        %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = [\"parallel\"]}
            outs(%t : tensor<8xf32>) {
        ^bb0(%o: f32):
          %c7 = arith.constant 7 : index
          %i = linalg.index 0 : index
          %j = arith.subi %c7, %i : index
          %x = tensor.extract %t[%j] : tensor<8xf32>
          linalg.yield %x : f32
        } -> tensor<8xf32>
        return %r : tensor<8xf32>
    }";
    let (text, stats) = bufferized(text, &extensions(), &without_linalg()).expect("the interface is enough");
    assert_eq!((stats.allocs, stats.copies), (1, 1), "{text}");
    assert!(text.contains("memref.load %arg0["), "{text}");
}

/// Its iterations may run at once: each needs a tensor of its own, even one without contents.
#[test]
fn what_a_region_writes_is_not_shared_by_iterations() {
    let text = "func.func @f(%t: tensor<8xf32>) -> tensor<8xf32> {
        %c0 = arith.constant 0 : index
        %e = tensor.empty() : tensor<1xf32>
        %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = [\"parallel\"]}
            outs(%t : tensor<8xf32>) {
        ^bb0(%o: f32):
          %u = tensor.insert %o into %e[%c0] : tensor<1xf32>
          %x = tensor.extract %u[%c0] : tensor<1xf32>
          linalg.yield %x : f32
        } -> tensor<8xf32>
        return %r : tensor<8xf32>
    }";
    let (text, stats) = bufferized(text, &extensions(), &without_linalg()).expect("the interface is enough");
    assert_eq!((stats.out_of_place, stats.copies), (1, 0), "{text}");
    let body = text.split_once("^bb0").expect("a body").1;
    assert!(body.contains("memref.alloc()"), "{text}");
}

/// The interface knows less than a model, and nothing of the payload: never fewer copies, and often the same program.
#[test]
fn programs_are_those_of_the_models_or_copy_more() {
    let (mut same, mut more) = (vec![], vec![]);
    for (name, text) in programs().into_iter().filter(|(_, text)| text.contains("linalg.")) {
        let options = Options {
            use_encoding_for_memory_space: option_line(&text).1.use_encoding_for_memory_space,
            ..extensions()
        };
        let (expected, best) = bufferized(&text, &options, &OpModels::upstream()).expect("it has models");
        let (actual, stats) = bufferized(&text, &options, &without_linalg()).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(!actual.contains("tensor<"), "{name}\n{actual}");
        let (least, found) = (best.allocs + best.copies, stats.allocs + stats.copies);
        assert!(found >= least, "{name}: {found} < {least}\n{actual}");
        if actual == expected {
            same.push(name);
        } else {
            more.push(name);
        }
    }
    println!("same: {same:?}\nmore: {more:?}");
    assert!(same.len() > more.len(), "same: {same:?}\nmore: {more:?}");
}

#[test]
fn upstreams_face_refuses_what_upstream_refuses() {
    let options = Options { extensions: false, ..extensions() };
    let message = fails("B0120", MATMUL, &options, &without_linalg());
    assert!(message.contains("op was not bufferized"), "{message}");
}

const HALO: &str = "shard.grid @grid(shape = 2x2)
  func.func @f(%t: tensor<8x8xf32>) -> tensor<8x8xf32> {
    %r = shard.update_halo %t on @grid split_axes = [[0]] halo_sizes = [1, 1] : tensor<8x8xf32>
    return %r : tensor<8x8xf32>
  }";

/// It is in destination style, and keeps its result on memrefs.
#[test]
fn an_op_without_such_a_form_is_refused() {
    fails("B0120", HALO, &boundaries(), &OpModels::upstream());
    let message = fails("B0104", HALO, &extensions(), &OpModels::upstream());
    assert!(message.contains("shard.update_halo has no form on memrefs") && message.contains(":3:"), "{message}");
    let transform = "func.func @f(%x: tensor<8x3x3x4xf32>, %o: tensor<6x6x4x8xf32>) -> tensor<6x6x4x8xf32> {
      %r = linalg.winograd_filter_transform fmr(F_4_3) ins(%x : tensor<8x3x3x4xf32>)
        outs(%o : tensor<6x6x4x8xf32>) -> tensor<6x6x4x8xf32>
      return %r : tensor<6x6x4x8xf32>
    }";
    fails("B0104", transform, &extensions(), &OpModels::upstream());
    fails("B0120", transform, &boundaries(), &OpModels::upstream());
}

#[test]
fn a_layout_that_the_interface_does_not_know_is_refused() {
    let sparse = format!(
        "#s = #sparse_tensor.encoding<{{map = (i, j) -> (i : dense, j : compressed)}}>\n{}",
        MATMUL.replace("8x4xf32", "8x4xf32, #s")
    );
    let message = fails("B0101", &sparse, &extensions(), &without_linalg());
    assert!(message.contains("linalg.matmul"), "{message}");
}
