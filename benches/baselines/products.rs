//! Products of other types and sizes against the f32 product of 1024.

use crate::race::{self, Contest, Side};
use monopour::options::Effort;
use monopour_testkit::{Dtype, HostTensor};

/// A product, and what its CPU time may be of that of the f32 product of 1024.
pub struct Product {
    pub name: &'static str,
    /// Rows, reduction, columns.
    sizes: [usize; 3],
    /// Of the factors; sums are of f32.
    dtype: Dtype,
    is_dynamic: bool,
    pub limit: f64,
}

const fn product(name: &'static str, sizes: [usize; 3], dtype: Dtype, is_dynamic: bool, limit: f64) -> Product {
    Product { name, sizes, dtype, is_dynamic, limit }
}

/// The one that all are compared with.
const PLAIN: Product = product("f32", [1024; 3], Dtype::F32, false, 1.0);
/// The others.
pub const PRODUCTS: [Product; 4] = [
    product("f16 to f32, 1024", [1024; 3], Dtype::F16, false, 1.3),
    product("f32, 1023x1021x1019", [1023, 1021, 1019], Dtype::F32, false, 1.5),
    product("f32, 1024, dynamic sizes", [1024; 3], Dtype::F32, true, 1.15),
    product("f32, 1023x1021x1019, dynamic sizes", [1023, 1021, 1019], Dtype::F32, true, 1.5),
];

impl Product {
    fn text(&self) -> String {
        let [m, k, n] = self.sizes;
        let size = |n: usize| if self.is_dynamic { "?".to_owned() } else { n.to_string() };
        let ty = |r: usize, c: usize, t: &str| format!("tensor<{}x{}x{t}>", size(r), size(c));
        let factor = if self.dtype == Dtype::F16 { "f16" } else { "f32" };
        let (a, b, c) = (ty(m, k, factor), ty(k, n, factor), ty(m, n, "f32"));
        let (dims, sizes) = if self.is_dynamic {
            let dim = |of: char, at: usize, t: &str| {
                format!("  %c{at} = arith.constant {at} : index\n  %d{at} = tensor.dim %{of}, %c{at} : {t}\n")
            };
            (dim('a', 0, &a) + &dim('b', 1, &b), "%d0, %d1")
        } else {
            (String::new(), "")
        };
        format!(
            "func.func @main(%a: {a}, %b: {b}) -> {c} {{\n  %z = arith.constant 0.0 : f32\n{dims}  %e = tensor.empty({sizes}) : {c}\n  \
             %f = linalg.fill ins(%z : f32) outs(%e : {c}) -> {c}\n  \
             %r = linalg.matmul ins(%a, %b : {a}, {b}) outs(%f : {c}) -> {c}\n  return %r : {c}\n}}\n"
        )
    }

    fn side(&self) -> Result<Side, String> {
        let [m, k, n] = self.sizes;
        let random = |shape: [usize; 2], seed| HostTensor::random(self.dtype, &shape, seed);
        let device = race::device()?;
        Side::load(
            &device,
            race::compiled(&device, (self.name, &self.text()), Effort::Default)?,
            &[random([m, k], 1), random([k, n], 2)],
        )
    }

    /// In turns with the f32 product of 1024.
    ///
    /// # Errors
    /// The compiler's and the runtime's.
    pub fn race(&self, rounds: usize) -> Result<Contest, String> {
        race::race(&mut self.side()?, &mut PLAIN.side()?, rounds)
    }
}
