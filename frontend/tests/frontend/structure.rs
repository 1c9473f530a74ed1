//! Dispatches, classes and destinations of programs, and that bufferization then needs no copy.

use crate::programs::{epilogue, matmul, mlp, tensor};
use crate::support::{check, compile, cpu, dispatches, import_text, kernel_text, lavapipe, portable, reparses};
use monopour_frontend::{collapse_lines, fuse, unfold};
use monopour_ir::{Module, Op};
use monopour_program::CpuTarget;

#[test]
fn mlp_is_three_dispatches_without_a_copy() {
    for target in [lavapipe(), portable(), cpu("x86-64-v4")] {
        let module = check(&mlp(64, [784, 1024, 1024, 10]), &target, 3);
        for forall in dispatches(&module) {
            assert_eq!(kernel_text(forall, "class"), "contraction");
        }
    }
}

#[test]
fn a_matmul_of_any_size_is_one_dispatch() {
    for target in [lavapipe(), portable(), cpu("x86-64-v3")] {
        for size in [1, 7, 10, 63, 65, 1000] {
            for (m, n, k) in [(size, 64, 32), (16, size, 32), (16, 64, size), (size, size, size)] {
                check(&matmul(m, n, k), &target, 1);
            }
        }
    }
}

#[test]
fn epilogues_join_the_matmul() {
    let cases = [
        (vec![65], "j", "%s = arith.addf %p, %q : f32\n    %r = arith.maximumf %s, %z : f32"),
        (vec![63], "i", "%r = arith.mulf %p, %q : f32"),
        (vec![63, 65], "i, j", "%r = arith.addf %p, %q : f32"),
        (vec![65], "j", "%s = arith.addf %p, %q : f32\n    %r = math.tanh %s : f32"),
    ];
    for target in [lavapipe(), cpu("x86-64-v4")] {
        for (extra, map, op) in &cases {
            check(&epilogue(63, 65, 7, extra, map, op), &target, 1);
        }
    }
}

/// A product of halves with an epilogue: `extend` makes `%x`, a product of `%p` and `%q`, which is summed in the type `sum`.
fn product_of_halves(extend: &str, sum: &str) -> String {
    let round =
        |from: &str| if from == "f16" { "%r = arith.negf %p : f16" } else { "%r = arith.truncf %p : f32 to f16" };
    format!(
        "func.func @main(%a: tensor<512x7xf16>, %b: tensor<7x384xf16>) -> tensor<512x384xf16> {{\n  %z = arith.constant 0.0 : {sum}\n  \
         %e = tensor.empty() : tensor<512x384x{sum}>\n  %o = tensor.empty() : tensor<512x384xf16>\n  \
         %f = linalg.fill ins(%z : {sum}) outs(%e : tensor<512x384x{sum}>) -> tensor<512x384x{sum}>\n  \
         %m = linalg.generic {{indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, \
         affine_map<(i, j, k) -> (i, j)>], iterator_types = [\"parallel\", \"parallel\", \"reduction\"]}} \
         ins(%a, %b : tensor<512x7xf16>, tensor<7x384xf16>) outs(%f : tensor<512x384x{sum}>) {{\n  \
         ^bb0(%p: f16, %q: f16, %s: {sum}):\n    {extend}\n    %t = arith.addf %s, %x : {sum}\n    linalg.yield %t : {sum}\n  \
         }} -> tensor<512x384x{sum}>\n  %g = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, \
         affine_map<(i, j) -> (i, j)>], iterator_types = [\"parallel\", \"parallel\"]}} ins(%m : tensor<512x384x{sum}>) \
         outs(%o : tensor<512x384xf16>) {{\n  ^bb0(%p: {sum}, %d: f16):\n    {}\n    linalg.yield %r : f16\n  }} -> tensor<512x384xf16>\n  \
         return %g : tensor<512x384xf16>\n}}\n",
        round(sum)
    )
}

#[test]
fn an_epilogue_of_another_type_joins_the_product() {
    let wide = "%u = arith.extf %p : f16 to f32\n    %v = arith.extf %q : f16 to f32\n    %x = arith.mulf %u, %v : f32";
    for target in [lavapipe(), cpu("x86-64-v4")] {
        check(&product_of_halves("%x = arith.mulf %p, %q : f16", "f16"), &target, 1);
        let module = compile(&product_of_halves(wide, "f32"), &target);
        let [forall] = dispatches(&module)[..] else { panic!("not one dispatch in\n{}", module.op()) };
        assert_eq!(kernel_text(forall, "class"), "contraction");
        // The sums are a tile of their own, not the result's whole shape.
        let empties = module.op().find_all("tensor.empty");
        let [inside] = empties.iter().filter(|e| e.ancestor("scf.forall").is_some()).collect::<Vec<_>>()[..] else {
            panic!("not one tile in\n{}", module.op())
        };
        assert_eq!(inside.result(0).ty().element().to_string(), "f32");
        let mut outside = empties.iter().filter(|e| *e != inside).map(|e| e.result(0).ty().element().to_string());
        assert_eq!((outside.next().as_deref(), outside.next()), (Some("f16"), None));
    }
}

/// Both forms of a transposed right operand.
fn transposed(named: bool) -> String {
    let (a, bt, b, c) = (tensor(&[7, 30]), tensor(&[5, 30]), tensor(&[30, 5]), tensor(&[7, 5]));
    let product = if named {
        format!(
            "  %te = tensor.empty() : {b}\n  %t = linalg.transpose ins(%b : {bt}) outs(%te : {b}) permutation = [1, 0]\n  \
             %m = linalg.matmul ins(%a, %t : {a}, {b}) outs(%f : {c}) -> {c}\n"
        )
    } else {
        format!(
            "  %m = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, \
             affine_map<(m, n, k) -> (m, n)>] ins(%a, %b : {a}, {bt}) outs(%f : {c}) -> {c}\n"
        )
    };
    format!(
        "func.func @main(%a: {a}, %b: {bt}) -> {c} {{\n  %z = arith.constant 0.0 : f32\n  %e = tensor.empty() : {c}\n  \
         %f = linalg.fill ins(%z : f32) outs(%e : {c}) -> {c}\n{product}  return %m : {c}\n}}\n"
    )
}

#[test]
fn a_transposed_operand_folds_into_the_matmul() {
    for named in [true, false] {
        let module = check(&transposed(named), &lavapipe(), 1);
        let matmul = module.op().find_all("linalg.matmul")[0];
        let maps = matmul.attr("indexing_maps").expect("maps").to_string();
        assert!(maps.contains("(d0, d1, d2) -> (d1, d2)"), "{maps}");
    }
}

#[test]
fn an_elementwise_producer_of_an_operand_is_computed_once() {
    let (a, b, c) = (tensor(&[16, 32]), tensor(&[32, 64]), tensor(&[16, 64]));
    let text = format!(
        "func.func @main(%x: {a}, %b: {b}) -> {c} {{\n  %a = math.tanh %x : {a}\n  %z = arith.constant 0.0 : f32\n  \
         %e = tensor.empty() : {c}\n  %f = linalg.fill ins(%z : f32) outs(%e : {c}) -> {c}\n  \
         %m = linalg.matmul ins(%a, %b : {a}, {b}) outs(%f : {c}) -> {c}\n  return %m : {c}\n}}\n"
    );
    let module = check(&text, &lavapipe(), 2);
    let classes: Vec<String> = dispatches(&module).into_iter().map(|f| kernel_text(f, "class")).collect();
    assert_eq!(classes, ["elementwise", "contraction"]);
}

#[test]
fn a_product_with_two_readers_stays_apart() {
    let t = tensor(&[16, 16]);
    let text = format!(
        "func.func @main(%a: {t}, %b: {t}) -> ({t}, {t}) {{\n  %z = arith.constant 0.0 : f32\n  %e = tensor.empty() : {t}\n  \
         %f = linalg.fill ins(%z : f32) outs(%e : {t}) -> {t}\n  %m = linalg.matmul ins(%a, %b : {t}, {t}) outs(%f : {t}) -> {t}\n  \
         %r = math.tanh %m : {t}\n  return %m, %r : {t}, {t}\n}}\n"
    );
    check(&text, &lavapipe(), 2);
}

#[test]
fn an_elementwise_chain_is_one_dispatch() {
    for shape in [vec![1_000_003], vec![33, 65], vec![3, 5, 7], vec![2, 3, 4, 5, 6], vec![]] {
        let t = tensor(&shape);
        let text = format!(
            "func.func @main(%x: {t}, %y: {t}) -> {t} {{\n  %0 = arith.addf %x, %y : {t}\n  %1 = arith.mulf %0, %x : {t}\n  \
             %2 = math.sqrt %1 : {t}\n  return %2 : {t}\n}}\n"
        );
        for target in [lavapipe(), portable(), cpu("x86-64")] {
            check(&text, &target, 1);
        }
    }
}

fn generic(input: &str, output: &str, maps: [&str; 2], iterators: &str, body: &str) -> String {
    format!(
        "func.func @main(%x: {input}) -> {output} {{\n  %z = arith.constant 0.0 : f32\n  %e = tensor.empty() : {output}\n  \
         %f = linalg.fill ins(%z : f32) outs(%e : {output}) -> {output}\n  %r = linalg.generic {{indexing_maps = [affine_map<{}>, affine_map<{}>], \
         iterator_types = [{iterators}]}} ins(%x : {input}) outs(%f : {output}) {{\n  ^bb0(%p: f32, %o: f32):\n    {body}\n  }} -> {output}\n  \
         return %r : {output}\n}}\n",
        maps[0], maps[1]
    )
}

#[test]
fn a_generic_that_no_strategy_knows_is_one_dispatch_of_its_class() {
    let (p, r) = ("\"parallel\"", "\"reduction\"");
    let add = "%s = arith.addf %o, %p : f32\n    linalg.yield %s : f32";
    let index = "%i = linalg.index 0 : index\n    %n = arith.index_cast %i : index to i32\n    %c = arith.sitofp %n : i32 to f32\n    \
                 %s = arith.addf %c, %p : f32\n    linalg.yield %s : f32";
    let cases = [
        generic("tensor<9x40xf32>", "tensor<40xf32>", ["(i, j) -> (i, j)", "(i, j) -> (j)"], &format!("{r}, {p}"), add),
        generic(
            "tensor<9x8x40xf32>",
            "tensor<9x40xf32>",
            ["(i, j, k) -> (i, j, k)", "(i, j, k) -> (i, k)"],
            &format!("{p}, {r}, {p}"),
            add,
        ),
        generic("tensor<10xf32>", "tensor<10xf32>", ["(i) -> (-i + 9)", "(i) -> (i)"], p, add),
        generic("tensor<19xf32>", "tensor<10xf32>", ["(i) -> (i * 2)", "(i) -> (i)"], p, add),
        generic("tensor<200xf32>", "tensor<200xf32>", ["(i) -> (i)", "(i) -> (i)"], p, index),
    ];
    for target in [lavapipe(), cpu("x86-64-v4")] {
        for text in &cases {
            let module = check(text, &target, 1);
            assert_eq!(kernel_text(dispatches(&module)[0], "class"), "generic");
        }
    }
}

#[test]
fn gpu_dispatches_are_mapped_to_blocks_and_placed_in_global_memory() {
    let module = compile(&mlp(64, [784, 1024, 1024, 10]), &lavapipe());
    let forall = dispatches(&module)[0];
    assert_eq!(forall.attr("mapping").expect("mapped").to_string(), "[#gpu.block<y>, #gpu.block<x>]");
    assert_eq!(kernel_text(forall, "tile"), "array<i64: 16, 64>");
    assert_eq!(kernel_text(forall, "share"), "subgroup");
    assert!(forall.result(0).ty().as_tensor().expect("tensor").encoding.is_some());
}

#[test]
fn a_product_that_becomes_a_batch_of_one_has_tasks_of_its_columns() {
    let text = "func.func @main(%x: tensor<128x64xf32>, %w: tensor<50257x64xi8>) -> tensor<1x128x50257xf32> {
  %zero = arith.constant 0.0 : f32
  %scale = arith.constant 0.25 : f32
  %e = tensor.empty() : tensor<128x50257xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<128x50257xf32>) -> tensor<128x50257xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = [\"parallel\", \"parallel\", \"reduction\"]}
    ins(%x, %w : tensor<128x64xf32>, tensor<50257x64xi8>) outs(%f : tensor<128x50257xf32>) {
  ^bb0(%a: f32, %b: i8, %o: f32):
    %c = arith.sitofp %b : i8 to f32
    %m = arith.mulf %a, %c : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<128x50257xf32>
  %g = tensor.empty() : tensor<128x50257xf32>
  %q = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = [\"parallel\", \"parallel\"]}
    ins(%p : tensor<128x50257xf32>) outs(%g : tensor<128x50257xf32>) {
  ^bb0(%a: f32, %o: f32):
    %m = arith.mulf %a, %scale : f32
    linalg.yield %m : f32
  } -> tensor<128x50257xf32>
  %r = tensor.expand_shape %q [[0, 1], [2]] output_shape [1, 128, 50257] : tensor<128x50257xf32> into tensor<1x128x50257xf32>
  return %r : tensor<1x128x50257xf32>
}";
    let module = check(text, &cpu("x86-64-v4"), 1);
    assert_eq!(kernel_text(dispatches(&module)[0], "tile"), "array<i64: 128, 256>");
}

/// Lines of 13 pixels could be cut into single ones only, each of which would read all columns again. One pixel streams whole rows
/// of the matrix.
#[test]
fn few_tasks_of_an_image_are_cut_by_columns() {
    let text = |side: usize| {
        "func.func @main(%x: tensor<SIDE512xf32>, %w: tensor<512x1000xf32>) -> tensor<SIDE1000xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<SIDE1000xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<SIDE1000xf32>) -> tensor<SIDE1000xf32>
  %p = linalg.generic {indexing_maps = [affine_map<(y, x, n, k) -> (y, x, k)>, affine_map<(y, x, n, k) -> (k, n)>, affine_map<(y, x, n, k) -> (y, x, n)>], iterator_types = [\"parallel\", \"parallel\", \"parallel\", \"reduction\"]}
    ins(%x, %w : tensor<SIDE512xf32>, tensor<512x1000xf32>) outs(%f : tensor<SIDE1000xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<SIDE1000xf32>
  return %p : tensor<SIDE1000xf32>
}"
    .replace("SIDE", &format!("{side}x{side}x"))
    };
    let tile = |side| kernel_text(dispatches(&check(&text(side), &cpu("x86-64-v4"), 1))[0], "tile");
    assert_eq!(tile(13), "array<i64: 13, 13, 100>");
    assert_eq!(tile(1), "array<i64: 1, 1, 1000>");
}

#[test]
fn equal_input_gives_equal_output() {
    let print = || compile(&mlp(7, [63, 65, 10, 1]), &lavapipe()).op().to_string();
    assert_eq!(print(), print());
}

/// A product over channels whose columns are lines of 7: a vector of x86-64-v3 has 8 elements.
#[test]
fn short_lines_are_columns_of_a_product_on_cpus() {
    let text = "
#out = affine_map<(o, y, x, c) -> (o, y, x)>
func.func @main(%x: tensor<24x9x7xf32>, %w: tensor<40x24xf32>, %f: tensor<40x9x7xf32>) -> tensor<40x9x7xf32> {
  %p = linalg.generic {indexing_maps = [affine_map<(o, y, x, c) -> (c, y, x)>, affine_map<(o, y, x, c) -> (o, c)>, #out],
      iterator_types = [\"parallel\", \"parallel\", \"parallel\", \"reduction\"]}
    ins(%x, %w : tensor<24x9x7xf32>, tensor<40x24xf32>) outs(%f : tensor<40x9x7xf32>) {
  ^bb0(%a: f32, %k: f32, %o: f32):
    %m = arith.mulf %a, %k : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<40x9x7xf32>
  return %p : tensor<40x9x7xf32>
}";
    let module = import_text(text).expect("imports").module;
    fuse::run(&module).expect("fuses");
    let cpu = CpuTarget::parse("x86-64-v3").expect("a known CPU");
    collapse_lines::run(&module, &cpu).expect("collapses");
    reparses(&module);
    let product = dispatched(&module);
    assert_eq!(product.result(0).ty().shape(), Some(vec![40, 63]));
    let whole = product.result(0).uses()[0].op;
    assert_eq!((whole.name(), whole.result(0).ty().shape()), ("tensor.expand_shape", Some(vec![40, 9, 7])));
}

/// Convolutions of enough work, whose lines are shorter than half a vector, or strided with more windows than a panel holds, are
/// unfolded.
#[test]
fn strided_and_short_lines_are_unfolded() {
    let conv = |name: &str, stride: i64, [image, filter, out]: [&str; 3]| {
        format!(
            "func.func @main(%x: tensor<{image}xf32>, %w: tensor<{filter}xf32>, %f: tensor<{out}xf32>) -> tensor<{out}xf32> {{
  %c = linalg.{name} {{strides = dense<{stride}> : vector<2xi64>}}
    ins(%x, %w : tensor<{image}xf32>, tensor<{filter}xf32>) outs(%f : tensor<{out}xf32>) -> tensor<{out}xf32>
  return %c : tensor<{out}xf32>
}}"
        )
    };
    let (planes, depth) = ("conv_2d_nchw_fchw", "depthwise_conv_2d_nchw_chw");
    for (text, unfolded) in [
        (conv(planes, 2, ["1x24x15x15", "32x24x3x3", "1x32x7x7"]), Some(vec![1, 24, 3, 3, 7, 7])),
        (conv(planes, 2, ["1x300x3x29", "32x300x3x3", "1x32x1x14"]), Some(vec![1, 300, 3, 3, 1, 14])),
        (conv(planes, 1, ["1x64x9x9", "32x64x3x3", "1x32x7x7"]), Some(vec![1, 64, 3, 3, 7, 7])),
        (conv(planes, 5, ["1x64x35x64", "8x64x3x4", "1x8x7x13"]), Some(vec![1, 64, 3, 4, 7, 13])),
        // Windows that tasks pack.
        (conv(planes, 2, ["1x8x31x29", "32x8x3x3", "1x32x15x14"]), None),
        (conv(planes, 2, ["1x280x3x29", "32x280x3x3", "1x32x1x14"]), None),
        // Little work, or few channels that share the windows.
        (conv(planes, 2, ["1x8x31x29", "2x8x3x3", "1x2x15x14"]), None),
        (conv(planes, 2, ["1x64x31x29", "8x64x3x3", "1x8x15x14"]), None),
        (conv(depth, 2, ["1x512x31x29", "512x3x3", "1x512x15x14"]), None),
        // Long lines, of which vectors are picked; and lines of half a vector.
        (conv(planes, 2, ["1x8x31x99", "32x8x3x3", "1x32x15x49"]), None),
        (conv(planes, 1, ["1x64x9x10", "32x64x3x3", "1x32x7x8"]), None),
        // Windows of one element.
        (conv(planes, 1, ["2x20x19x5", "130x20x1x1", "2x130x19x5"]), None),
        // Vectors of channels.
        (conv("conv_2d_nhwc_hwcf", 2, ["1x31x29x8", "3x3x8x32", "1x15x14x32"]), None),
    ] {
        let module = import_text(&text).expect("imports").module;
        unfold::run(&module, &CpuTarget::parse("x86-64-v4").expect("a known CPU")).expect("unfolds");
        reparses(&module);
        let generics = module.op().find_all("linalg.generic");
        assert_eq!(generics.len(), 1 + usize::from(unfolded.is_some()), "{text}");
        assert_eq!(unfolded.is_some().then(|| generics[0].result(0).ty().shape().unwrap()), unfolded, "{text}");
    }
}

fn dispatched<'c>(module: &'c Module<'c>) -> Op<'c> {
    module.op().find_all("linalg.generic").into_iter().find(|op| op.attr("monopour.dispatch").is_some()).expect("one")
}
