//! Padded convolutions of what products computed: nothing is copied between them.

use crate::backend::from_runtime;
use crate::host::{devices, evaluated, f32s, ramp, run};
use monopour_testkit::approx::{self, Tolerance};

/// The op of `kind` behind the product `%m`.
fn pointwise(to: i64, image: &str, kind: &str) -> String {
    let all = "iterator_types = [\"parallel\", \"parallel\", \"parallel\"]";
    match kind {
        "bias" => format!(
            "%y = linalg.generic {{indexing_maps = [#image, #channel, #image], {all}}} ins(%m, %b : {image}, tensor<{to}xf32>)
    outs(%e : {image}) {{
  ^bb0(%a: f32, %c: f32, %o: f32):
    %s = arith.addf %a, %c : f32
    %t = arith.maximumf %s, %zero : f32
    linalg.yield %t : f32
  }} -> {image}"
        ),
        "residual" => format!(
            "%y = linalg.generic {{indexing_maps = [#image, #image, #image], {all}}} ins(%m, %z : {image}, {image})
    outs(%e : {image}) {{
  ^bb0(%a: f32, %c: f32, %o: f32):
    %s = arith.addf %a, %c : f32
    linalg.yield %s : f32
  }} -> {image}"
        ),
        "half" => {
            let half = image.replace("f32", "f16");
            format!(
                "%h = tensor.empty() : {half}
  %y = linalg.generic {{indexing_maps = [#image, #image], {all}}} ins(%m : {image}) outs(%h : {half}) {{
  ^bb0(%a: f32, %o: f16):
    %s = arith.truncf %a : f32 to f16
    linalg.yield %s : f16
  }} -> {half}"
            )
        }
        "none" => format!("%y = tensor.cast %m : {image} to {image}"),
        other => panic!("{other}"),
    }
}

/// A product along channels, a pointwise op of `kind`, pads of one and a window of 3 x 3 on `[channels, height, width]`.
fn text(channels: [i64; 2], [h, w]: [i64; 2], kind: &str) -> String {
    let [from, to] = channels;
    let (image, padded) = (format!("tensor<{to}x{h}x{w}xf32>"), format!("tensor<{to}x{}x{}xf32>", h + 2, w + 2));
    let pointwise = pointwise(to, &image, kind);
    let (element, widened) =
        if kind == "half" { ("f16", "arith.extf %a : f16 to f32") } else { ("f32", "arith.addf %a, %zero : f32") };
    let (computed, padded) = (image.replace("f32", element), padded.replace("f32", element));
    format!(
        "#image = affine_map<(c, y, x) -> (c, y, x)>
#channel = affine_map<(c, y, x) -> (c)>
#in = affine_map<(c, y, x, k) -> (k, y, x)>
#filter = affine_map<(c, y, x, k) -> (c, k)>
#out = affine_map<(c, y, x, k) -> (c, y, x)>
#window = affine_map<(c, y, x, i, j) -> (c, y + i, x + j)>
#weights = affine_map<(c, y, x, i, j) -> (c, i, j)>
#windows = affine_map<(c, y, x, i, j) -> (c, y, x)>
func.func @main(%x: tensor<{from}x{h}x{w}xf32>, %w: tensor<{to}x{from}xf32>, %b: tensor<{to}xf32>, %z: {image},
                %v: tensor<{to}x3x3xf32>) -> {image} {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : {image}
  %f = linalg.fill ins(%zero : f32) outs(%e : {image}) -> {image}
  %m = linalg.generic {{indexing_maps = [#in, #filter, #out], iterator_types = [\"parallel\", \"parallel\", \"parallel\", \"reduction\"]}}
    ins(%x, %w : tensor<{from}x{h}x{w}xf32>, tensor<{to}x{from}xf32>) outs(%f : {image}) {{
  ^bb0(%a: f32, %c: f32, %o: f32):
    %p = arith.mulf %a, %c : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  }} -> {image}
  {pointwise}
  %pad = arith.constant 0.0 : {element}
  %p = tensor.pad %y low[0, 1, 1] high[0, 1, 1] {{
  ^bb0(%c: index, %i: index, %j: index):
    tensor.yield %pad : {element}
  }} : {computed} to {padded}
  %r = linalg.generic {{indexing_maps = [#window, #weights, #windows],
    iterator_types = [\"parallel\", \"parallel\", \"parallel\", \"reduction\", \"reduction\"]}}
    ins(%p, %v : {padded}, tensor<{to}x3x3xf32>) outs(%f : {image}) {{
  ^bb0(%a: {element}, %c: f32, %o: f32):
    %wide = {widened}
    %q = arith.mulf %wide, %c : f32
    %s = arith.addf %o, %q : f32
    linalg.yield %s : f32
  }} -> {image}
  return %r : {image}
}}"
    )
}

/// Values on every device, and the copies on each.
fn copies(channels: [i64; 2], image: [i64; 2], kind: &str) -> Vec<u64> {
    let ([from, to], [h, w]) = (channels.map(|n| n as u64), image.map(|n| n as u64));
    let tensor = |shape: &[u64]| f32s(shape, &ramp(shape.iter().product::<u64>() as usize));
    let inputs = [tensor(&[from, h, w]), tensor(&[to, from]), tensor(&[to]), tensor(&[to, h, w]), tensor(&[to, 3, 3])];
    let text = text(channels, image, kind);
    let expected = evaluated(&text, &inputs);
    let mut counts = vec![];
    for device in devices() {
        let (results, stats, leaks) = run(&text, &[], &device, &inputs);
        let tolerance = Tolerance { absolute: 1e-3, relative: if kind == "half" { 2e-3 } else { 1e-4 } };
        approx::compare(&from_runtime(&results[0]), &expected[0], tolerance)
            .unwrap_or_else(|e| panic!("{}: {e}\n{text}", stats.device));
        assert!(leaks.is_clean(), "{}: {leaks:?}", stats.device);
        counts.push(stats.counts.copies);
    }
    counts
}

#[test]
fn images_are_written_where_they_are_padded() {
    // Lines shorter than a vector, of several vectors and a rest; tiles of all lines, of some, of one that is no line.
    let cases = [([8, 24], [14, 14]), ([24, 70], [7, 7]), ([5, 16], [56, 56]), ([16, 9], [28, 27]), ([3, 2], [6, 64])];
    for (channels, image) in cases {
        for kind in ["bias", "residual", "half"] {
            let copies = copies(channels, image, kind);
            assert!(copies.iter().all(|count| *count == 0), "{copies:?} for {image:?}, {kind}");
        }
    }
}

/// Nothing is computed behind the product, which a CPU writes in whole vectors.
#[test]
fn a_product_alone_has_right_values() {
    assert!(copies([8, 24], [14, 14], "none").iter().all(|count| *count <= 1));
}
