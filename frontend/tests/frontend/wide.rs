//! Rows of 16-bit floats that meet constant weights: what is stored as f32, and what stays as it is.

use crate::support::{import_text, reparses};
use monopour_frontend::{fuse, layouts, panels};
use monopour_ir::Type;
use monopour_program::CpuTarget;

/// 64 x 64 f16, negated, times weights of 64 x 64, twice; then the product of both, and that times weights again.
fn text() -> String {
    let x = "tensor<64x64xf16>";
    let product = |name: &str, [a, b]: [&str; 2], right: [&str; 2]| {
        let wide = x.replace("f16", "f32");
        format!(
            r#"  %{name}s = linalg.generic {{indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> ({})>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}} ins(%{a}, %{b} : {x}, {}) outs(%f : {wide}) {{
  ^bb0(%a: f16, %b: f16, %o: f32):
    %l = arith.extf %a : f16 to f32
    %r = arith.extf %b : f16 to f32
    %m = arith.mulf %l, %r : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  }} -> {wide}
  %{name} = linalg.generic {{indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = ["parallel", "parallel"]}} ins(%{name}s : {wide}) outs(%e : {x}) {{
  ^bb0(%a: f32, %o: f16):
    %n = arith.truncf %a : f32 to f16
    linalg.yield %n : f16
  }} -> {x}
"#,
            right[0], right[1]
        )
    };
    let weights = ["k, n", "tensor<64x64xf16>"];
    format!(
        "func.func @main(%x: {x}, %f: {wide}) -> {x} {{
  %e = tensor.empty() : {x}
  %w = arith.constant dense_resource<w> : tensor<64x64xf16>
  %u = arith.constant dense_resource<u> : tensor<64x64xf16>
  %h = linalg.generic {{indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>], iterator_types = [\"parallel\", \"parallel\"]}} ins(%x : {x}) outs(%e : {x}) {{
  ^bb0(%a: f16, %o: f16):
    %n = arith.negf %a : f16
    linalg.yield %n : f16
  }} -> {x}
{q}{v}{y}{z}  return %z : {x}
}}
{{-# dialect_resources: {{ builtin: {{ w: \"0x02000000{bytes}\", u: \"0x02000000{bytes}\" }} }} #-}}
",
        wide = x.replace("f16", "f32"),
        q = product("q", ["h", "w"], weights),
        v = product("v", ["h", "u"], weights),
        y = product("y", ["q", "v"], ["n, k", x]),
        z = product("z", ["y", "w"], weights),
        bytes = "003C003A".repeat(32 * 64),
    )
}

/// Element types of the results of all generics.
fn stored() -> Vec<String> {
    let mut imported = import_text(&text()).unwrap_or_else(|d| panic!("{d}"));
    layouts::run(&imported.module, &mut imported.weights, &CpuTarget::parse("x86-64-v4").unwrap()).expect("no error");
    reparses(&imported.module);
    let generics = imported.module.op().find_all("linalg.generic");
    generics.into_iter().map(|op| op.result(0).ty().element().to_string()).collect()
}

/// Q and V, which no constant meets, and the result stay as they are; the sums are of f32.
#[test]
fn what_meets_constant_weights_is_stored_as_f32() {
    assert_eq!(stored(), ["f32", "f32", "f16", "f32", "f16", "f32", "f32", "f32", "f16"]);
}

#[test]
fn weights_of_16_bits_stay_so_in_panels() {
    let mut imported = import_text(&text()).unwrap_or_else(|d| panic!("{d}"));
    let cpu = CpuTarget::parse("x86-64-v4").unwrap();
    layouts::run(&imported.module, &mut imported.weights, &cpu).expect("no error");
    fuse::run(&imported.module).expect("fuses");
    panels::run(&imported.module, &mut imported.weights, &cpu).expect("no error");
    reparses(&imported.module);
    let half = Type::f16(imported.module.context());
    let factors = imported.module.op().find_all("linalg.generic").into_iter().flat_map(|op| op.operands());
    let factors: Vec<_> = factors.map(|value| value.ty()).filter(|ty| ty.shape() == Some(vec![2, 64, 32])).collect();
    assert!(factors.len() == 3 && factors.iter().all(|ty| ty.element() == half), "{}", imported.module.op());
}
