//! Factors of 8-bit products in groups: which are laid out, and in which order.

use crate::support::{import_text, reparses};
use monopour_frontend::grouped;
use monopour_program::CpuTarget;

/// `rows` x 8 times 8 x 16, extended as `left` and `right` say.
fn product(rows: &str, [left, right]: [&str; 2], weights: &str) -> String {
    let (x, r) = (format!("tensor<{rows}x8xi8>"), format!("tensor<{rows}x16xi32>"));
    format!(
        r#"func.func @main(%x: {x}, %y: tensor<8x16xi8>, %o: {r}) -> {r} {{
  %w = arith.constant dense<"0x{}"> : tensor<8x16xi8>
  %r = linalg.generic {{indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}} ins(%x, {weights} : {x}, tensor<8x16xi8>) outs(%o : {r}) {{
  ^bb0(%a: i8, %b: i8, %s: i32):
    %c = arith.{left} %a : i8 to i32
    %d = arith.{right} %b : i8 to i32
    %p = arith.muli %c, %d : i32
    %t = arith.addi %s, %p : i32
    linalg.yield %t : i32
  }} -> {r}
  return %r : {r}
}}
"#,
        (0..128).map(|i| format!("{i:02X}")).collect::<String>()
    )
}

/// A first layer: 4 filters of 3 x 2 x `window` over 3 channels of lines of `width`, at every other element.
fn windows(window: i64, width: i64) -> String {
    let weights: String = (0..24 * window).map(|i| format!("{:02X}", i % 100 + 1)).collect();
    let (x, w) = (format!("tensor<3x9x{width}xi8>"), format!("tensor<4x3x2x{window}xi8>"));
    format!(
        r#"func.func @main(%x: {x}, %o: tensor<4x8x8xi32>) -> tensor<4x8x8xi32> {{
  %w = arith.constant dense<"0x{weights}"> : {w}
  %r = linalg.generic {{indexing_maps = [affine_map<(o, y, x, c, i, j) -> (c, y + i, 2 * x + j)>, affine_map<(o, y, x, c, i, j) -> (o, c, i, j)>, affine_map<(o, y, x, c, i, j) -> (o, y, x)>], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}} ins(%x, %w : {x}, {w}) outs(%o : tensor<4x8x8xi32>) {{
  ^bb0(%a: i8, %b: i8, %s: i32):
    %c = arith.extui %a : i8 to i32
    %d = arith.extsi %b : i8 to i32
    %p = arith.muli %c, %d : i32
    %t = arith.addi %s, %p : i32
    linalg.yield %t : i32
  }} -> tensor<4x8x8xi32>
  return %r : tensor<4x8x8xi32>
}}
"#
    )
}

#[test]
fn windows_get_a_column_of_zeros_where_the_image_has_one() {
    let text = |window, width| grouped(&windows(window, width), "x86-64-v4-vnni");
    let wide = text(3, 18);
    assert!(
        wide.contains("tensor<4x3x2x4xi8>") && wide.contains("dense<[[[[1, 2, 3, 0], [4, 5, 6, 0]], [[7, "),
        "{wide}"
    );
    assert!(text(7, 22).contains("tensor<4x3x2x8xi8>"));
    assert!(!text(3, 17).contains("tensor<4x3x2x4xi8>"), "the last window would end outside of the image");
    assert!(!text(5, 40).contains("tensor<4x3x2x8xi8>"), "three of eight columns would be zeros");
    assert!(!text(4, 40).contains("tensor<4x3x2x8xi8>"));
}

fn grouped(text: &str, cpu: &str) -> String {
    let mut imported = import_text(text).unwrap_or_else(|d| panic!("{d}"));
    grouped::run(&imported.module, &mut imported.weights, &CpuTarget::parse(cpu).unwrap()).unwrap();
    reparses(&imported.module);
    imported.module.op().to_string()
}

#[test]
fn terms_of_a_group_are_next_to_each_other() {
    for rows in ["32", "?"] {
        let text = grouped(&product(rows, ["extui", "extsi"], "%w"), "x86-64-v4-vnni");
        // The first column of the first group are rows 0 to 3 of column 0, then those of column 1.
        assert!(text.contains("dense<\"0x0010203001112131"), "{text}");
        assert!(text.contains("tensor<2x16x4xi8>") && text.contains(&format!("tensor<{rows}x2x4xi8>")), "{text}");
    }
}

#[test]
fn other_factors_stay_as_they_are() {
    let signs = ["extui", "extsi"];
    let changes = |rows: &str, signs, weights: &str, cpu: &str| {
        grouped(&product(rows, signs, weights), cpu).contains("expand_shape")
    };
    assert!(changes("32", signs, "%w", "x86-64-v4-vnni"));
    assert!(grouped(&product("32", signs, "%w"), "x86-64-v4").contains("tensor<4x16x2xi8>"), "groups of two");
    assert!(!changes("32", signs, "%y", "x86-64-v4-vnni"), "not a constant");
    assert!(!changes("1", signs, "%w", "x86-64-v4-vnni"), "one row streams it");
    let alike = ["extsi", "extsi"];
    for (cpu, shape) in [("x86-64-v4-vnni", "tensor<4x16x2xi8>"), ("x86-64-v4-amx", "tensor<2x16x4xi8>")] {
        assert!(grouped(&product("32", alike, "%w"), cpu).contains(shape), "{cpu}");
    }
    for signs in [signs, alike] {
        assert!(changes("32", signs, "%w", "aarch64-dotprod") && !changes("32", signs, "%w", "aarch64"));
    }
}
