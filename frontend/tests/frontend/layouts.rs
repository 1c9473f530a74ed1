//! Layouts of images: which ops follow, what is copied where they end, and when nothing changes.

use crate::support::{check, compile_module, cpu, dispatches, import_text, kernel_text, reparses};
use monopour_frontend::layouts;
use monopour_ir::{DYNAMIC, Module, Op};
use monopour_program::CpuTarget;

const PARALLEL: &str = "\"parallel\", \"parallel\", \"parallel\"";

/// The text of ops on images of so many channels, 14 x 14, of one element type.
struct Text {
    channels: i64,
    element: &'static str,
    body: String,
}

impl Text {
    fn image(&self) -> String {
        format!("tensor<{}x14x14x{}>", self.channels, self.element)
    }

    fn weights(&self, shape: &str) -> String {
        format!("tensor<{shape}x{}>", self.element)
    }

    fn pad(&mut self, name: &str, of: &str) {
        let (image, element) = (self.image(), self.element);
        self.body += &format!(
            "  %{name} = tensor.pad %{of} low[0, 1, 1] high[0, 1, 1] {{
  ^bb0(%c{name}: index, %y{name}: index, %x{name}: index):
    tensor.yield %zero : {element}
  }} : {image} to {}\n",
            image.replace("14", "16")
        );
    }

    fn generic(&mut self, name: &str, maps: [&str; 3], sums: usize, ins: &str, lines: &str) {
        let kinds = [PARALLEL].into_iter().chain(vec!["\"reduction\""; sums]).collect::<Vec<_>>().join(", ");
        let loops = ["c, y, x", "o, y, x, c", "c, y, x, i, j", "o, y, x, c, i, j"][sums];
        let maps = maps.map(|map| format!("affine_map<({loops}) -> ({map})>")).join(", ");
        let (image, e) = (self.image(), self.element);
        self.body += &format!(
            "  %{name} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}} ins({ins}) outs(%f : {image}) {{
  ^bb0(%a: {e}, %b: {e}, %o: {e}):
    {}
    linalg.yield %s : {e}
  }} -> {image}\n",
            lines.replace("T", e)
        );
    }

    /// The function, with its weights.
    fn finish(self, result: &str) -> String {
        let (c, e, image) = (self.channels, self.element, self.image());
        let size = if e == "f32" { 4 } else { 2 };
        let stored = |(name, count): (&str, i64)| {
            let bytes: String = (0..count * size).map(|i| format!("{:02X}", i * 7 % 60)).collect();
            format!("{name}: \"0x{size:02X}000000{bytes}\"")
        };
        let weights = [("w", c * c * 9), ("d", c * 9), ("p", c * c), ("v", c)].map(stored).join(", ");
        let constants =
            [("w", format!("{c}x{c}x3x3")), ("d", format!("{c}x3x3")), ("p", format!("{c}x{c}")), ("v", c.to_string())];
        let constants = constants.map(|(name, shape)| {
            format!("  %{name} = arith.constant dense_resource<{name}> : {}\n", self.weights(&shape))
        });
        format!(
            "func.func @main(%x: {image}, %given: {}) -> {image} {{
  %zero = arith.constant 0.0 : {e}
{}  %e = tensor.empty() : {image}
  %f = linalg.fill ins(%zero : {e}) outs(%e : {image}) -> {image}
{}  return %{result} : {image}
}}
{{-# dialect_resources: {{ builtin: {{ {weights} }} }} #-}}",
            self.weights(&format!("{c}x{c}x3x3")),
            constants.concat(),
            self.body,
        )
    }
}

/// A padded convolution with a bias, a padded depthwise convolution, a product over channels and a residual.
fn network(channels: i64, element: &'static str, filter: &str) -> String {
    let (c, mut text) = (channels, Text { channels, element, body: String::new() });
    let (image, padded) = (text.image(), text.image().replace("14", "16"));
    let (sum, add) = ("%m = arith.mulf %a, %b : T\n    %s = arith.addf %o, %m : T", "%s = arith.addf %a, %b : T");
    let weights = |shape: String| format!("tensor<{shape}x{element}>");
    text.pad("px", "x");
    let ins = format!("%px, %{filter} : {padded}, {}", weights(format!("{c}x{c}x3x3")));
    text.generic("conv", ["c, y + i, x + j", "o, c, i, j", "o, y, x"], 3, &ins, sum);
    let ins = format!("%conv, %v : {image}, {}", weights(c.to_string()));
    text.generic("biased", ["c, y, x", "c", "c, y, x"], 0, &ins, add);
    text.pad("pb", "biased");
    let ins = format!("%pb, %d : {padded}, {}", weights(format!("{c}x3x3")));
    text.generic("each", ["c, y + i, x + j", "c, i, j", "c, y, x"], 2, &ins, sum);
    let ins = format!("%each, %p : {image}, {}", weights(format!("{c}x{c}")));
    text.generic("points", ["c, y, x", "o, c", "o, y, x"], 1, &ins, sum);
    text.generic("r", ["c, y, x"; 3], 0, &format!("%points, %biased : {image}, {image}"), add);
    text.finish("r")
}

/// Shapes of the results of all ops that read a tensor, and of the constants of more than one dimension.
fn shapes(module: &Module) -> (Vec<Vec<i64>>, Vec<Vec<i64>>) {
    let shape = |op: Op| op.result(0).ty().shape().unwrap_or_default();
    let generics = module.op().find_all("linalg.generic").into_iter();
    let computed = generics.filter(|op| op.operands()[..op.num_operands() - 1].iter().any(|v| v.ty().is_tensor()));
    let constants = module.op().find_all("arith.constant").into_iter().map(shape).filter(|shape| shape.len() > 1);
    (computed.map(shape).collect(), constants.collect())
}

fn laid_out(text: &str, target: &str) -> (Vec<Vec<i64>>, Vec<Vec<i64>>) {
    let mut imported = import_text(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let cpu = CpuTarget::parse(target).expect("a known CPU");
    layouts::run(&imported.module, &mut imported.weights, &cpu).expect("lays out");
    reparses(&imported.module);
    shapes(&imported.module)
}

/// The images between a pad of an input and the result; the result is copied once.
#[test]
fn images_between_convolutions_have_channels_in_blocks() {
    for (target, size) in [("x86-64-v4", 32), ("x86-64-v3", 16), ("x86-64-v2", 8)] {
        let (images, constants) = laid_out(&network(64, "f32", "w"), target);
        let blocks = 64 / size;
        let image = vec![blocks, 14, 14, size];
        // The convolution, the bias, each channel's, the points, the residual, and the copy.
        let copy = vec![blocks, size, 14, 14];
        assert_eq!(images, [vec![image; 5], vec![copy]].concat(), "{target}");
        for shape in [vec![blocks, 64, 3, 3, size], vec![blocks, 3, 3, size], vec![blocks, blocks, size, size]] {
            assert!(constants.contains(&shape), "{target}: {shape:?} of {constants:?}");
        }
    }
}

/// A network whose images are in batches of any size.
fn in_batches(network: &str) -> String {
    let size =
        "%k = arith.constant 0 : index\n  %n = tensor.dim %x, %k : tensor<64x14x14xf32>\n  %e = tensor.empty(%n)";
    let changes = [
        ("%e = tensor.empty()", size),
        ("tensor<64x14x14xf32>", "tensor<?x64x14x14xf32>"),
        ("tensor<64x16x16xf32>", "tensor<?x64x16x16xf32>"),
        ("affine_map<(", "affine_map<(n, "),
        ("-> (c, y", "-> (n, c, y"),
        ("-> (o, y", "-> (n, o, y"),
        ("iterator_types = [", "iterator_types = [\"parallel\", "),
        ("low[0, 1, 1] high[0, 1, 1]", "low[0, 0, 1, 1] high[0, 0, 1, 1]"),
        ("^bb0(%cpx:", "^bb0(%npx: index, %cpx:"),
        ("^bb0(%cpb:", "^bb0(%npb: index, %cpb:"),
    ];
    changes.iter().fold(network.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// As images alone: one copy at the end.
#[test]
fn images_in_batches_of_any_size_have_channels_in_blocks() {
    let (images, constants) = laid_out(&in_batches(&network(64, "f32", "w")), "x86-64-v4");
    assert_eq!(images, [vec![vec![DYNAMIC, 2, 14, 14, 32]; 5], vec![vec![DYNAMIC, 2, 32, 14, 14]]].concat());
    assert!(constants.contains(&vec![2, 64, 3, 3, 32]) && constants.contains(&vec![2, 2, 32, 32]), "{constants:?}");
}

#[test]
fn channels_that_no_block_divides_are_last() {
    let (images, constants) = laid_out(&network(41, "f32", "w"), "x86-64-v4");
    assert_eq!(images, [vec![vec![14, 14, 41]; 5], vec![vec![41, 14, 14]]].concat());
    assert!(constants.contains(&vec![41, 3, 3, 41]) && constants.contains(&vec![3, 3, 41]), "{constants:?}");
}

/// Little work for a copy of the result; sums that are rounded to f16 at each step; filters that are computed.
#[test]
fn what_gains_nothing_keeps_its_layout() {
    for (channels, element, filter) in [(8, "f32", "w"), (64, "f16", "w")] {
        let text = network(channels, element, filter);
        let before = shapes(&import_text(&text).expect("imports").module);
        assert_eq!(laid_out(&text, "x86-64-v4"), before, "{channels} {element} {filter}");
    }
    // The convolution reads a filter that is given, its result is copied for the ops that follow.
    let (images, _) = laid_out(&network(64, "f32", "given"), "x86-64-v4");
    assert_eq!(images[0], [64, 14, 14]);
}

/// A product whose result has channels last, of which the given copy with a bias has channels first.
fn turned(result: &str, reshape: &str, [from, to, bias]: [&str; 3], loops: &str) -> String {
    let kinds = vec!["\"parallel\""; loops.split(',').count()].join(", ");
    let (out, last) =
        (if result.len() > 5 { "1x32x14x14" } else { "32x14x14" }, if reshape.is_empty() { "p" } else { "q" });
    format!(
        "func.func @main(%x: tensor<14x14x64xf32>, %w: tensor<64x32xf32>, %b: tensor<32xf32>) -> tensor<{out}xf32> {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<14x14x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<14x14x32xf32>) -> tensor<14x14x32xf32>
  %p = linalg.generic {{indexing_maps = [affine_map<(y, x, c, k) -> (y, x, k)>, affine_map<(y, x, c, k) -> (k, c)>, affine_map<(y, x, c, k) -> (y, x, c)>],
      iterator_types = [{PARALLEL}, \"reduction\"]}} ins(%x, %w : tensor<14x14x64xf32>, tensor<64x32xf32>) outs(%f : tensor<14x14x32xf32>) {{
  ^bb0(%a: f32, %d: f32, %o: f32):
    %m = arith.mulf %a, %d : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  }} -> tensor<14x14x32xf32>
{reshape}  %g = tensor.empty() : tensor<{out}xf32>
  %r = linalg.generic {{indexing_maps = [affine_map<({loops}) -> ({from})>, affine_map<({loops}) -> ({bias})>, affine_map<({loops}) -> ({to})>],
      iterator_types = [{kinds}]}} ins(%{last}, %b : tensor<{result}x32xf32>, tensor<32xf32>) outs(%g : tensor<{out}xf32>) {{
  ^bb0(%a: f32, %d: f32, %o: f32):
    %s = arith.addf %a, %d : f32
    linalg.yield %s : f32
  }} -> tensor<{out}xf32>
  return %r : tensor<{out}xf32>
}}"
    )
}

/// A task writes its tile in the other order; a batch of one image in front makes no difference.
#[test]
fn copies_out_of_a_layout_are_parts_of_their_product() {
    let plain = turned("14x14", "", ["y, x, c", "c, y, x", "c"], "c, y, x");
    let reshape = "  %q = tensor.expand_shape %p [[0, 1], [2], [3]] output_shape [1, 14, 14, 32] : tensor<14x14x32xf32> into tensor<1x14x14x32xf32>\n";
    let batch = turned("1x14x14", reshape, ["n, y, x, c", "n, c, y, x", "c"], "n, c, y, x");
    for text in [plain, batch] {
        for target in ["x86-64-v4", "x86-64-v2", "aarch64"] {
            let module = check(&text, &cpu(target), 1);
            let dispatch = dispatches(&module)[0];
            assert_eq!(
                dispatch.result(0).ty().shape().map(|shape| shape[shape.len() - 3..].to_vec()),
                Some(vec![32, 14, 14])
            );
            assert_eq!(kernel_text(dispatch, "class"), "contraction");
        }
    }
}

/// Tasks of an op that transposes have whole lines of both sides, unless these are too long.
#[test]
fn tasks_that_transpose_have_whole_lines() {
    let text = |rows: usize, columns: usize| {
        let (from, to) = (format!("tensor<8x{rows}x{columns}xf32>"), format!("tensor<8x{columns}x{rows}xf32>"));
        format!(
            "func.func @main(%x: {from}) -> {to} {{
  %e = tensor.empty() : {to}
  %r = linalg.generic {{indexing_maps = [affine_map<(b, i, j) -> (b, i, j)>, affine_map<(b, i, j) -> (b, j, i)>], iterator_types = [{PARALLEL}]}} ins(%x : {from}) outs(%e : {to}) {{
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  }} -> {to}
  return %r : {to}
}}"
        )
    };
    let tile = |rows, columns| kernel_text(dispatches(&check(&text(rows, columns), &cpu("x86-64-v4"), 1))[0], "tile");
    assert_eq!(tile(128, 256), "array<i64: 2, 128, 256>");
    assert_ne!(tile(2048, 2048), "array<i64: 1, 2048, 2048>");
    // A part of long lines beside short ones, and not two channels of all.
    assert_eq!(tile(32, 16384), "array<i64: 1, 32, 2048>");
}

/// An image of bytes is copied once, and not by the convolution that reads it in groups of four channels.
#[test]
fn images_of_bytes_are_copied_before_their_convolution() {
    let conv = "affine_map<(o, y, x, c, i, j) -> ";
    let text = format!(
        "func.func @main(%x: tensor<64x58x58xi8>) -> tensor<64x56x56xi32> {{
  %zero = arith.constant 0 : i32
  %w = arith.constant dense_resource<w> : tensor<64x64x3x3xi8>
  %e = tensor.empty() : tensor<64x56x56xi32>
  %f = linalg.fill ins(%zero : i32) outs(%e : tensor<64x56x56xi32>) -> tensor<64x56x56xi32>
  %r = linalg.generic {{indexing_maps = [{conv}(c, y + i, x + j)>, {conv}(o, c, i, j)>, {conv}(o, y, x)>],
      iterator_types = [{PARALLEL}, \"reduction\", \"reduction\", \"reduction\"]}} ins(%x, %w : tensor<64x58x58xi8>, tensor<64x64x3x3xi8>) outs(%f : tensor<64x56x56xi32>) {{
  ^bb0(%a: i8, %b: i8, %o: i32):
    %c = arith.extsi %a : i8 to i32
    %d = arith.extsi %b : i8 to i32
    %m = arith.muli %c, %d : i32
    %s = arith.addi %o, %m : i32
    linalg.yield %s : i32
  }} -> tensor<64x56x56xi32>
  return %r : tensor<64x56x56xi32>
}}
{{-# dialect_resources: {{ builtin: {{ w: \"0x01000000{}\" }} }} #-}}",
        "07".repeat(64 * 64 * 9)
    );
    let (images, _) = laid_out(&text, "x86-64-v4-vnni");
    assert_eq!(images, [vec![2, 58, 58, 32], vec![2, 56, 56, 32], vec![2, 32, 56, 56]]);
    let imported = import_text(&text).expect("imports");
    let mut weights = imported.weights;
    layouts::run(&imported.module, &mut weights, &CpuTarget::parse("x86-64-v4-vnni").expect("a known CPU"))
        .expect("lays out");
    // The copy, and the convolution with the copy of its result.
    let module = compile_module(imported.module, &cpu("x86-64-v4-vnni"));
    assert_eq!(dispatches(&module).len(), 2);
}

/// An image that is joined with one in blocks is copied to blocks, where it has a dimension in front that the join has not, too.
#[test]
fn images_in_front_of_which_a_dimension_is_dropped_are_joined() {
    let maps = |loops: &str, [image, filter]: [&str; 2]| {
        let map = |to: &str| format!("affine_map<({loops}) -> ({to})>");
        let sums = vec!["\"reduction\""; loops.matches(',').count() - 2].join(", ");
        let maps = [map(image), map(filter), map("o, y, x")].join(", ");
        format!("indexing_maps = [{maps}], iterator_types = [{PARALLEL}, {sums}]")
    };
    let body = "{
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<64x14x14xf32>";
    let text = format!(
        "func.func @main(%x: tensor<64x16x16xf32>, %y: tensor<1x64x14x14xf32>) -> tensor<64x14x14xf32> {{
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense_resource<w> : tensor<64x64x3x3xf32>
  %v = arith.constant dense_resource<v> : tensor<64x128xf32>
  %e = tensor.empty() : tensor<64x14x14xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x14x14xf32>) -> tensor<64x14x14xf32>
  %p = linalg.generic {{{}}} ins(%x, %w : tensor<64x16x16xf32>, tensor<64x64x3x3xf32>) outs(%f : tensor<64x14x14xf32>) {body}
  %g = tensor.collapse_shape %y [[0, 1], [2], [3]] : tensor<1x64x14x14xf32> into tensor<64x14x14xf32>
  %h = tensor.empty() : tensor<128x14x14xf32>
  %k = tensor.insert_slice %p into %h[0, 0, 0] [64, 14, 14] [1, 1, 1] : tensor<64x14x14xf32> into tensor<128x14x14xf32>
  %j = tensor.insert_slice %g into %k[64, 0, 0] [64, 14, 14] [1, 1, 1] : tensor<64x14x14xf32> into tensor<128x14x14xf32>
  %r = linalg.generic {{{}}} ins(%j, %v : tensor<128x14x14xf32>, tensor<64x128xf32>) outs(%f : tensor<64x14x14xf32>) {body}
  return %r : tensor<64x14x14xf32>
}}
{{-# dialect_resources: {{ builtin: {{ w: \"0x04000000{}\", v: \"0x04000000{}\" }} }} #-}}",
        maps("o, y, x, c, i, j", ["c, y + i, x + j", "o, c, i, j"]),
        maps("o, y, x, c", ["c, y, x", "o, c"]),
        "0000803F".repeat(64 * 64 * 9),
        "0000803F".repeat(64 * 128),
    );
    let (images, _) = laid_out(&text, "x86-64-v4");
    let [blocks, copied] = [vec![2, 14, 14, 32], vec![1, 2, 14, 14, 32]];
    assert_eq!(images, [copied, blocks.clone(), blocks, vec![2, 32, 14, 14]]);
}

/// The planes of volumes are brought in front of their channels, which are then those of images.
#[test]
fn volumes_are_planes_with_channels_in_blocks() {
    let maps = ["c, z + h, y + i, x + j", "o, c, h, i, j", "o, z, y, x"];
    let maps = maps.map(|to| format!("affine_map<(o, z, y, x, c, h, i, j) -> ({to})>")).join(", ");
    let sums = ["\"reduction\""; 4].join(", ");
    let text = format!(
        "func.func @main(%x: tensor<64x10x16x16xf32>) -> tensor<64x8x14x14xf32> {{
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense_resource<w> : tensor<64x64x3x3x3xf32>
  %e = tensor.empty() : tensor<64x8x14x14xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x8x14x14xf32>) -> tensor<64x8x14x14xf32>
  %r = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{PARALLEL}, \"parallel\", {sums}]}} ins(%x, %w : tensor<64x10x16x16xf32>, tensor<64x64x3x3x3xf32>) outs(%f : tensor<64x8x14x14xf32>) {{
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  }} -> tensor<64x8x14x14xf32>
  return %r : tensor<64x8x14x14xf32>
}}
{{-# dialect_resources: {{ builtin: {{ w: \"0x04000000{}\" }} }} #-}}",
        "0000803F".repeat(64 * 64 * 27),
    );
    let (images, filters) = laid_out(&text, "x86-64-v4");
    let copied = [vec![10, 64, 16, 16], vec![8, 2, 32, 14, 14], vec![64, 8, 14, 14]];
    let [before, back, after] = copied;
    assert_eq!(images, [before, vec![8, 2, 14, 14, 32], back, after]);
    assert_eq!(filters[0], [2, 64, 3, 3, 3, 32]);
}

/// A generic of a product's body over f32, with its result.
fn product(name: &str, (loops, maps): (&str, [&str; 3]), ins: &str, out: &str) -> String {
    let sums = loops.split(", ").filter(|l| !maps[2].split(", ").any(|o| o == *l)).count();
    let parallel = loops.split(", ").count() - sums;
    let kinds = [vec!["\"parallel\""; parallel], vec!["\"reduction\""; sums]].concat().join(", ");
    let maps = maps.map(|to| format!("affine_map<({loops}) -> ({to})>")).join(", ");
    format!(
        "  %{name}e = tensor.empty() : {out}
  %{name}f = linalg.fill ins(%zero : f32) outs(%{name}e : {out}) -> {out}
  %{name} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}} ins({ins}) outs(%{name}f : {out}) {{
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  }} -> {out}\n"
    )
}

/// Lines are images of one row: two convolutions of lines, the ReLU and the pad between them.
#[test]
fn lines_have_channels_in_blocks() {
    let conv = |places: &'static str| ("o, x, c, j", [places, "o, c, j", "o, x"]);
    let text = format!(
        "func.func @main(%x: tensor<64x1001xf32>) -> tensor<64x500xf32> {{
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense_resource<w> : tensor<64x64x3xf32>
  %v = arith.constant dense_resource<v> : tensor<64x64x3xf32>
{}  %re = tensor.empty() : tensor<64x999xf32>
  %r = linalg.generic {{indexing_maps = [affine_map<(c, x) -> (c, x)>, affine_map<(c, x) -> (c, x)>], iterator_types = [\"parallel\", \"parallel\"]}} ins(%p : tensor<64x999xf32>) outs(%re : tensor<64x999xf32>) {{
  ^bb0(%a: f32, %o: f32):
    %s = arith.maximumf %a, %zero : f32
    linalg.yield %s : f32
  }} -> tensor<64x999xf32>
  %d = tensor.pad %r low[0, 1] high[0, 1] {{
  ^bb0(%c: index, %y: index):
    tensor.yield %zero : f32
  }} : tensor<64x999xf32> to tensor<64x1001xf32>
{}  return %q : tensor<64x500xf32>
}}
{{-# dialect_resources: {{ builtin: {{ w: \"0x04000000{weights}\", v: \"0x04000000{weights}\" }} }} #-}}",
        product("p", conv("c, x + j"), "%x, %w : tensor<64x1001xf32>, tensor<64x64x3xf32>", "tensor<64x999xf32>"),
        product("q", conv("c, x * 2 + j"), "%d, %v : tensor<64x1001xf32>, tensor<64x64x3xf32>", "tensor<64x500xf32>"),
        weights = "0000803F".repeat(64 * 64 * 3),
    );
    let (images, filters) = laid_out(&text, "x86-64-v4");
    let lines = |places: i64| vec![2, 1, places, 32];
    // The copies of the argument and of the result are the first and the last.
    assert_eq!(images, [lines(1001), lines(999), lines(999), lines(500), vec![2, 32, 1, 500]]);
    assert_eq!(filters.iter().filter(|shape| **shape == [2, 2, 3, 32, 32]).count(), 2, "{filters:?}");
    // Of 16 channels a convolution gains less than the copies cost.
    let (images, _) = laid_out(&text.replace("64x64", "16x16").replace("64x", "16x"), "x86-64-v4");
    assert!(images.iter().all(|shape| shape.len() == 2), "{images:?}");
}

/// The channels of an image of one pixel lie in the same order in each layout: it is no copy.
#[test]
fn images_of_one_pixel_are_reshaped() {
    let conv = ("o, y, x, c, i, j", ["c, y + i, x + j", "o, c, i, j", "o, y, x"]);
    let text = format!(
        "func.func @main(%x: tensor<64x3x3xf32>) -> tensor<64x1x1xf32> {{
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense_resource<w> : tensor<64x64x3x3xf32>
  %v = arith.constant dense_resource<v> : tensor<64x64xf32>
{}{}  return %q : tensor<64x1x1xf32>
}}
{{-# dialect_resources: {{ builtin: {{ w: \"0x04000000{}\", v: \"0x04000000{}\" }} }} #-}}",
        product("p", conv, "%x, %w : tensor<64x3x3xf32>, tensor<64x64x3x3xf32>", "tensor<64x1x1xf32>"),
        product(
            "q",
            ("o, y, x, c", ["c, y, x", "o, c", "o, y, x"]),
            "%p, %v : tensor<64x1x1xf32>, tensor<64x64xf32>",
            "tensor<64x1x1xf32>"
        ),
        "0000803F".repeat(64 * 64 * 9),
        "0000803F".repeat(64 * 64),
    );
    let (images, _) = laid_out(&text, "x86-64-v4");
    assert_eq!(images, [vec![2, 1, 1, 32], vec![2, 1, 1, 32]], "the convolution and the product, and no copy");
}

/// A large plain image is copied to blocks once, and not read by the convolution from one page for each channel.
#[test]
fn large_plain_images_are_copied_before_their_convolution() {
    let conv = ("o, y, x, c, i, j", ["c, y + i, x + j", "o, c, i, j", "o, y, x"]);
    let text = format!(
        "func.func @main(%x: tensor<64x58x58xf32>) -> tensor<64x56x56xf32> {{
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense_resource<w> : tensor<64x64x3x3xf32>
{}  return %p : tensor<64x56x56xf32>
}}
{{-# dialect_resources: {{ builtin: {{ w: \"0x04000000{}\" }} }} #-}}",
        product("p", conv, "%x, %w : tensor<64x58x58xf32>, tensor<64x64x3x3xf32>", "tensor<64x56x56xf32>"),
        "0000803F".repeat(64 * 64 * 9),
    );
    let imported = import_text(&text).expect("imports");
    let mut weights = imported.weights;
    let cpu_of = CpuTarget::parse("x86-64-v4").expect("a known CPU");
    layouts::run(&imported.module, &mut weights, &cpu_of).expect("lays out");
    let module = compile_module(imported.module, &cpu("x86-64-v4"));
    assert_eq!(dispatches(&module).len(), 2, "the copy, and the convolution with the copy of its result");
}

/// What a convolution of narrow groups reads of channels in blocks is copied once, and not gathered by it.
#[test]
fn groups_read_a_copy_of_channels_in_blocks() {
    let text = format!(
        "func.func @main(%x: tensor<64x30x30xf32>) -> tensor<8x8x26x26xf32> {{
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense_resource<w> : tensor<64x64x3x3xf32>
  %v = arith.constant dense_resource<v> : tensor<8x8x8x3x3xf32>
{}  %g = tensor.expand_shape %p [[0, 1], [2], [3]] output_shape [8, 8, 28, 28] : tensor<64x28x28xf32> into tensor<8x8x28x28xf32>
{}  return %q : tensor<8x8x26x26xf32>
}}
{{-# dialect_resources: {{ builtin: {{ w: \"0x04000000{}\", v: \"0x04000000{}\" }} }} #-}}",
        product(
            "p",
            ("o, y, x, c, i, j", ["c, y + i, x + j", "o, c, i, j", "o, y, x"]),
            "%x, %w : tensor<64x30x30xf32>, tensor<64x64x3x3xf32>",
            "tensor<64x28x28xf32>"
        ),
        product(
            "q",
            ("g, o, y, x, c, i, j", ["g, c, y + i, x + j", "g, o, c, i, j", "g, o, y, x"]),
            "%g, %v : tensor<8x8x28x28xf32>, tensor<8x8x8x3x3xf32>",
            "tensor<8x8x26x26xf32>"
        ),
        "0000803F".repeat(64 * 64 * 9),
        "0000803F".repeat(64 * 8 * 9),
    );
    let imported = import_text(&text).expect("imports");
    let mut weights = imported.weights;
    let cpu_of = CpuTarget::parse("x86-64-v4").expect("a known CPU");
    layouts::run(&imported.module, &mut weights, &cpu_of).expect("lays out");
    let copies = |module: &Module| {
        let generics = module.op().find_all("linalg.generic").into_iter();
        generics.filter(|op| op.attr("monopour.unfolded").is_some()).count()
    };
    let count = copies(&imported.module);
    let module = compile_module(imported.module, &cpu("x86-64-v4"));
    // The copy of the argument, the convolution with the copy of its result, and that of groups.
    assert_eq!((count, dispatches(&module).len()), (2, 3));
}
