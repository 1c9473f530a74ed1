//! Constant factors of float products in panels: which are laid out, and in which order.

use crate::support::{import_text, reparses};
use monopour_frontend::{fuse, panels, ragged_columns};
use monopour_program::CpuTarget;

/// `rows` x 2 times 2 x `columns`, and a bias; the factor's elements are 0, 1, 2, .. in the order of its dimensions.
#[derive(Clone, Copy)]
struct Product {
    rows: &'static str,
    columns: usize,
    element: &'static str,
    transposed: bool,
}

const PRODUCT: Product = Product { rows: "8", columns: 64, element: "f32", transposed: false };

impl Product {
    fn text(&self, weights: &str) -> String {
        let Self { rows, columns, element, transposed } = self;
        let hex = |i: usize| -> String {
            let bytes = match *element {
                "f32" => (i as f32).to_le_bytes().to_vec(),
                "f64" => (i as f64).to_le_bytes().to_vec(),
                _ => vec![0; 2],
            };
            bytes.iter().map(|byte| format!("{byte:02X}")).collect()
        };
        let elements: String = (0..2 * columns).map(hex).collect();
        let (shape, map) =
            if *transposed { (format!("{columns}x2"), "(n, k)") } else { (format!("2x{columns}"), "(k, n)") };
        let (x, w) = (format!("tensor<{rows}x2x{element}>"), format!("tensor<{shape}x{element}>"));
        let (r, b) = (format!("tensor<{rows}x{columns}x{element}>"), format!("tensor<{columns}x{element}>"));
        format!(
            r#"func.func @main(%x: {x}, %y: {w}, %b: {b}, %o: {r}) -> {r} {{
  %w = arith.constant dense<"0x{elements}"> : {w}
  %p = linalg.generic {{indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> {map}>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}} ins(%x, {weights} : {x}, {w}) outs(%o : {r}) {{
  ^bb0(%a: {element}, %c: {element}, %s: {element}):
    %q = arith.mulf %a, %c : {element}
    %t = arith.addf %s, %q : {element}
    linalg.yield %t : {element}
  }} -> {r}
  %r = linalg.generic {{indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}} ins(%p, %b : {r}, {b}) outs(%o : {r}) {{
  ^bb0(%a: {element}, %c: {element}, %s: {element}):
    %t = arith.addf %a, %c : {element}
    linalg.yield %t : {element}
  }} -> {r}
  return %r : {r}
}}
"#
        )
    }

    /// After the pass.
    fn laid_out(&self, weights: &str, cpu: &str) -> String {
        let mut imported = import_text(&self.text(weights)).unwrap_or_else(|d| panic!("{d}"));
        fuse::run(&imported.module).expect("fuses");
        let cpu = CpuTarget::parse(cpu).unwrap();
        ragged_columns::run(&imported.module, &cpu).unwrap();
        panels::run(&imported.module, &mut imported.weights, &cpu).unwrap();
        reparses(&imported.module);
        imported.module.op().to_string()
    }

    fn changes(&self, weights: &str, cpu: &str) -> bool {
        self.laid_out(weights, cpu).contains("collapse_shape")
    }
}

/// The floats of the last constant in a text, as integers.
fn elements(text: &str) -> Vec<usize> {
    let (_, hex) = text.rsplit_once("dense<\"0x").expect("a constant");
    let hex = hex.split_once('"').expect("it ends").0;
    let byte = |i: usize| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).expect("a byte");
    (0..hex.len() / 8).map(|i| f32::from_le_bytes([0, 1, 2, 3].map(|b| byte(4 * i + b))) as usize).collect()
}

#[test]
fn columns_of_a_register_tile_lie_side_by_side() {
    for rows in ["8", "?"] {
        for transposed in [false, true] {
            let text = Product { rows, transposed, ..PRODUCT }.laid_out("%w", "x86-64-v4");
            assert!(text.contains("tensor<2x2x32xf32>"), "{text}");
            let at = |panel: usize, k: usize, n: usize| {
                let column = 32 * panel + n;
                if transposed { 2 * column + k } else { 64 * k + column }
            };
            let expected: Vec<usize> = (0..128).map(|i| at(i / 64, i / 32 % 2, i % 32)).collect();
            assert_eq!(elements(&text), expected, "{text}");
            // The epilogue is of the same dispatch, and has the same columns.
            assert!(text.contains(&format!("tensor<{rows}x2x32xf32>")) && text.contains("tensor<2x32xf32>"), "{text}");
        }
    }
}

#[test]
fn panels_are_as_wide_as_registers_of_the_target() {
    let panel = |columns, cpu| {
        let text = Product { columns, ..PRODUCT }.laid_out("%w", cpu);
        let widths = [4, 8, 16, 32]
            .into_iter()
            .filter(|width| text.contains(&format!("tensor<{}x2x{width}xf32>", columns / width)));
        widths.collect::<Vec<_>>()
    };
    assert_eq!(panel(96, "x86-64-v4"), [32]);
    assert_eq!(panel(96, "x86-64-v3"), [16]);
    assert_eq!(panel(96, "aarch64"), [8]);
    assert_eq!(panel(80, "x86-64-v4"), [16]);
    assert_eq!(panel(88, "x86-64-v4"), [0; 0]);
    let wide = Product { element: "f64", ..PRODUCT };
    assert!(wide.laid_out("%w", "x86-64-v4").contains("tensor<4x2x16xf64>"));
}

#[test]
fn other_factors_stay_as_they_are() {
    assert!(PRODUCT.changes("%w", "x86-64-v4"));
    assert!(!PRODUCT.changes("%y", "x86-64-v4"), "not a constant");
    assert!(!Product { rows: "1", ..PRODUCT }.changes("%w", "x86-64-v4"), "one row streams it");
    assert!(!Product { columns: 32, ..PRODUCT }.changes("%w", "x86-64-v4"), "it is one panel");
    assert!(Product { columns: 32, transposed: true, ..PRODUCT }.changes("%w", "x86-64-v4"));
    assert!(!Product { element: "f16", ..PRODUCT }.changes("%w", "x86-64-v4"), "it is widened while it is read");
}

/// 49 rows that fill the second-level cache beside a panel copy each panel to one place; in lines of 7 they have none.
#[test]
fn rows_in_several_dimensions_have_panels_where_others_copy_them() {
    let changes = |rows: &str, loops: &str| {
        let kinds = vec!["\"parallel\""; loops.split(',').count() + 1].join(", ");
        let text = format!(
            "func.func @main(%x: tensor<{rows}x3072xf32>, %o: tensor<{rows}x64xf32>) -> tensor<{rows}x64xf32> {{
  %w = arith.constant dense_resource<w> : tensor<3072x64xf32>
  %r = linalg.generic {{indexing_maps = [affine_map<({loops}, n, k) -> ({loops}, k)>, affine_map<({loops}, n, k) -> (k, n)>, affine_map<({loops}, n, k) -> ({loops}, n)>], iterator_types = [{kinds}, \"reduction\"]}} ins(%x, %w : tensor<{rows}x3072xf32>, tensor<3072x64xf32>) outs(%o : tensor<{rows}x64xf32>) {{
  ^bb0(%a: f32, %c: f32, %s: f32):
    %q = arith.mulf %a, %c : f32
    %t = arith.addf %s, %q : f32
    linalg.yield %t : f32
  }} -> tensor<{rows}x64xf32>
  return %r : tensor<{rows}x64xf32>
}}
{{-# dialect_resources: {{ builtin: {{ w: \"0x04000000{}\" }} }} #-}}",
            (0..3072 * 64).map(|i| format!("{:02X}000000", i % 250)).collect::<String>()
        );
        let mut imported = import_text(&text).unwrap_or_else(|d| panic!("{d}"));
        fuse::run(&imported.module).expect("fuses");
        let cpu = CpuTarget::parse("x86-64-v4").expect("a known CPU");
        panels::run(&imported.module, &mut imported.weights, &cpu).expect("lays out");
        imported.module.op().to_string().contains("tensor<2x3072x32xf32>")
    };
    assert!(!changes("49", "m"));
    assert!(changes("7x7", "l, m"));
    assert!(changes("7x14", "l, m") && changes("98", "m"));
}

#[test]
fn inputs_are_copied_once_for_many_rows() {
    let text = |rows: usize, depth: usize| {
        let (x, w, y) = (
            format!("tensor<{rows}x{depth}xf32>"),
            format!("tensor<{depth}x64xf32>"),
            format!("tensor<{rows}x64xf32>"),
        );
        format!(
            r#"func.func @main(%x: {x}, %u: {x}, %w: {w}, %o: {y}) -> ({y}, {y}) {{
  %p = linalg.matmul ins(%x, %w : {x}, {w}) outs(%o : {y}) -> {y}
  %q = linalg.matmul ins(%u, %w : {x}, {w}) outs(%o : {y}) -> {y}
  return %p, %q : {y}, {y}
}}
"#
        )
    };
    let panels = |rows, depth| {
        let mut imported = import_text(&text(rows, depth)).unwrap_or_else(|d| panic!("{d}"));
        fuse::run(&imported.module).expect("fuses");
        panels::run(&imported.module, &mut imported.weights, &CpuTarget::parse("x86-64-v4").unwrap()).unwrap();
        reparses(&imported.module);
        let text = imported.module.op().to_string();
        text.matches(&format!("tensor.empty() : tensor<2x{depth}x32xf32>")).count()
    };
    assert_eq!(panels(512, 48), 1, "both products read one copy");
    assert_eq!(panels(256, 48), 0, "few tasks would copy it");
    assert_eq!(panels(512, 16), 0, "it is small");
}

/// 65 panels and 17 columns: two dispatches, each with the bias, that write parts of one result.
#[test]
fn columns_that_no_register_divides_are_whole_panels_and_a_rest() {
    for transposed in [false, true] {
        let product = Product { rows: "16", columns: 65 * 32 + 17, transposed, ..PRODUCT };
        let text = product.laid_out("%w", "x86-64-v4");
        assert!(text.contains("tensor<65x2x32xf32>") && text.contains("tensor<16x65x32xf32>"), "{text}");
        assert!(text.contains("tensor<16x17xf32>") && text.contains("tensor<17xf32>"), "{text}");
        assert_eq!(text.matches("tensor.insert_slice").count(), 2, "{text}");
        let at = |panel: usize, k: usize, n: usize| {
            let column = 32 * panel + n;
            if transposed { 2 * column + k } else { product.columns * k + column }
        };
        let expected: Vec<usize> = (0..65 * 64).map(|i| at(i / 64, i / 32 % 2, i % 32)).collect();
        assert_eq!(elements(&text), expected);
        let fewest = Product { rows: "16", columns: 16 * 32 + 17, ..PRODUCT };
        assert_eq!(fewest.laid_out("%w", "x86-64-v4").matches("tensor.insert_slice").count(), 2);
        // Few rows and few columns stay together.
        for other in [Product { rows: "8", ..product }, Product { columns: 15 * 32 + 17, rows: "16", ..PRODUCT }] {
            assert!(!other.laid_out("%w", "x86-64-v4").contains("tensor.insert_slice"));
        }
    }
}
