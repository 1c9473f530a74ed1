//! Random networks of f16 whose sums are of f32, as models have them: padded windows, a bias, single elements, a residual.

use crate::host_tensor::Dtype;
use crate::random::Rng;
use crate::text::Input;

/// A function `@main` of two convolutions with constant filters, and its input.
pub fn network(seed: u64) -> (String, Vec<Input>) {
    let mut rng = Rng::new(seed);
    let sizes = [*rng.pick(&[16usize, 32]), 2 + rng.below(4) as usize, 2 + rng.below(4) as usize];
    let net = Network { sizes, channels: 32 };
    (net.text(&mut rng), vec![Input::new(Dtype::F16, &sizes)])
}

struct Network {
    /// Channels, height and width of the input.
    sizes: [usize; 3],
    /// Channels of the result.
    channels: usize,
}

const WINDOWS: &str = "affine_map<(o, y, x, c, i, j) -> (c, y + i, x + j)>, \
     affine_map<(o, y, x, c, i, j) -> (o, c, i, j)>, affine_map<(o, y, x, c, i, j) -> (o, y, x)>";
const SINGLE: &str = "affine_map<(o, y, x, c) -> (c, y, x)>, affine_map<(o, y, x, c) -> (o, c)>, \
     affine_map<(o, y, x, c) -> (o, y, x)>";

impl Network {
    fn text(&self, rng: &mut Rng) -> String {
        let ([c, h, w], d) = (self.sizes, self.channels);
        let (padded, narrow) = (format!("{c}x{}x{}", h + 2, w + 2), self.result("f16"));
        let constants = constant(rng, "W", &format!("{d}x{c}x3x3"), d * c * 9)
            + &constant(rng, "B", &format!("{d}"), d)
            + &constant(rng, "V", &format!("{d}x{d}"), d * d);
        let image = format!("{d}x{h}x{w}");
        [
            format!(
                "#i = affine_map<(o, y, x) -> (o, y, x)>\nfunc.func @main(%X: tensor<{c}x{h}x{w}xf16>) -> {narrow} {{\n"
            ),
            constants,
            self.padding(&padded),
            self.product("P", [("Q", &padded), ("W", &format!("{d}x{c}x3x3"))], WINDOWS, 3),
            self.rounded("T", "P"),
            self.pointwise(
                "U",
                &format!("%T, %B : {narrow}, tensor<{d}xf16>"),
                "#i, affine_map<(o, y, x) -> (o)>",
                "%a: f16, %c: f16",
                "%s = arith.addf %a, %c : f16\n    %r = arith.maximumf %s, %N : f16",
            ),
            self.product("L", [("U", &image), ("V", &format!("{d}x{d}"))], SINGLE, 1),
            self.rounded("M", "L"),
            self.pointwise(
                "R",
                &format!("%M, %U : {narrow}, {narrow}"),
                "#i, #i",
                "%a: f16, %c: f16",
                "%s = arith.mulf %a, %H : f16\n    %t = arith.cmpf ogt, %s, %c : f16\n    \
                 %m = arith.select %t, %s, %c : f16\n    %r = arith.subf %m, %a : f16",
            ),
            format!("  return %R : {narrow}\n}}\n"),
        ]
        .concat()
    }

    /// The type of the result, with elements of a type.
    fn result(&self, element: &str) -> String {
        let [_, h, w] = self.sizes;
        format!("tensor<{}x{h}x{w}x{element}>", self.channels)
    }

    /// Numbers, destinations, and the input with zeros around it.
    fn padding(&self, padded: &str) -> String {
        let ([c, h, w], wide, narrow) = (self.sizes, self.result("f32"), self.result("f16"));
        format!(
            "  %z = arith.constant 0.0 : f32\n  %N = arith.constant 0.0 : f16\n  %H = arith.constant 0.375 : f16
  %e0 = tensor.empty() : {wide}\n  %E = tensor.empty() : {narrow}\n  %ep = tensor.empty() : tensor<{padded}xf16>
  %F = linalg.fill ins(%z : f32) outs(%e0 : {wide}) -> {wide}
  %fp = linalg.fill ins(%N : f16) outs(%ep : tensor<{padded}xf16>) -> tensor<{padded}xf16>
  %Q = tensor.insert_slice %X into %fp[0, 1, 1] [{c}, {h}, {w}] [1, 1, 1] : tensor<{c}x{h}x{w}xf16> into tensor<{padded}xf16>\n"
        )
    }

    fn pointwise(&self, name: &str, ins: &str, maps: &str, args: &str, body: &str) -> String {
        let narrow = self.result("f16");
        format!(
            "  %{name} = linalg.generic {{indexing_maps = [{maps}, #i], iterator_types = [\"parallel\", \"parallel\", \"parallel\"]}}
    ins({ins}) outs(%E : {narrow}) {{
  ^bb0({args}, %o: f16):
    {body}
    linalg.yield %r : f16
  }} -> {narrow}\n"
        )
    }

    /// A sum of products in f32.
    fn product(&self, name: &str, [(x, xs), (y, ys)]: [(&str, &str); 2], maps: &str, sums: usize) -> String {
        let kinds = [vec!["\"parallel\""; 3], vec!["\"reduction\""; sums]].concat().join(", ");
        let wide = self.result("f32");
        format!(
            "  %{name} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}
    ins(%{x}, %{y} : tensor<{xs}xf16>, tensor<{ys}xf16>) outs(%F : {wide}) {{
  ^bb0(%a: f16, %k: f16, %o: f32):
    %x = arith.extf %a : f16 to f32
    %y = arith.extf %k : f16 to f32
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  }} -> {wide}\n"
        )
    }

    fn rounded(&self, name: &str, of: &str) -> String {
        let ins = format!("%{of} : {}", self.result("f32"));
        self.pointwise(name, &ins, "#i", "%a: f32", "%r = arith.truncf %a : f32 to f16")
    }
}

/// Distinct elements: another order of them gives other sums. Between 1/32 and 1/8, of both signs.
fn constant(rng: &mut Rng, name: &str, shape: &str, count: usize) -> String {
    let mut element = || {
        let bits = 0x2800 + rng.below(0x800) as u16 + 0x8000 * rng.below(2) as u16;
        let [low, high] = bits.to_le_bytes();
        format!("{low:02X}{high:02X}")
    };
    let hex: String = (0..count).map(|_| element()).collect();
    format!("  %{name} = arith.constant dense<\"0x{hex}\"> : tensor<{shape}xf16>\n")
}
