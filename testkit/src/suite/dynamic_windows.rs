//! Convolutions, pooling and tiled products of dynamic sizes only: deep nests of loops, and kernels with more scalars than
//! immediates hold.

use super::case::Case;
use crate::host_tensor::Dtype;
use crate::text::Input;

pub(super) fn cases() -> Vec<Case> {
    let conv_2d = |name, dims| Windowed { op: "conv_2d_nhwc_hwcf", name, dims, spatial: 2 };
    vec![
        conv_2d("3x3", [1, 6, 7, 0, 5, 3, 3, 0, 4]).case(),
        conv_2d("1x2", [2, 4, 5, 0, 3, 1, 2, 0, 2]).case(),
        Windowed { op: "conv_3d_ndhwc_dhwcf", name: "2x3x2", dims: [1, 4, 5, 4, 3, 2, 3, 2, 4], spatial: 3 }.case(),
        pooling_3d("pooling_ndhwc_max", [4, 5, 6]),
        pooling_3d("pooling_ndhwc_sum", [3, 3, 3]),
        grouped(),
        mmt4d(),
    ]
}

/// Sizes: batch, image, channels, filter, filters; those of the third dimension are 0 for images.
struct Windowed {
    op: &'static str,
    name: &'static str,
    dims: [usize; 9],
    spatial: usize,
}

impl Windowed {
    fn case(&self) -> Case {
        let [n, d, h, w, c, kd, kh, kw, f] = self.dims;
        let ty = format!("tensor<{}f32>", "?x".repeat(self.spatial + 2));
        let last = self.spatial + 1;
        let mut body = format!("  %n = tensor.dim %x, %c0 : {ty}\n  %f = tensor.dim %w, %c{last} : {ty}\n");
        let mut sizes = vec!["%n".to_owned()];
        for i in 0..self.spatial {
            body += &output_size(i, &format!("%x, %c{} : {ty}", i + 1), &format!("%w, %c{i} : {ty}"));
            sizes.push(format!("%o{i}"));
        }
        sizes.push("%f".to_owned());
        body += &format!(
            "  %e = tensor.empty({}) : {ty}\n  %g = linalg.fill ins(%z : f32) outs(%e : {ty}) -> {ty}\n  \
             %r = linalg.{} ins(%x, %w : {ty}, {ty}) outs(%g : {ty}) -> {ty}\n",
            sizes.join(", "),
            self.op
        );
        let known = |dims: &[usize]| dims.iter().copied().filter(|d| *d > 0).collect::<Vec<_>>();
        let shapes = [known(&[n, d, h, w, c]), known(&[kd, kh, kw, c, f])];
        case(&format!("{}/{}", self.op, self.name), &[("x", &ty), ("w", &ty)], &ty, &body, &shapes)
    }
}

/// `%o{i}`: an extent of the result, from those of the image and of the window.
fn output_size(i: usize, image: &str, window: &str) -> String {
    format!(
        "  %x{i} = tensor.dim {image}\n  %k{i} = tensor.dim {window}\n  %s{i} = arith.subi %x{i}, %k{i} : index\n  \
         %o{i} = arith.addi %s{i}, %c1 : index\n"
    )
}

fn pooling_3d(op: &str, [d, h, w]: [usize; 3]) -> Case {
    let (ty, win) = ("tensor<?x?x?x?x?xf32>", "tensor<?x?x?xf32>");
    let mut body = format!("  %n = tensor.dim %x, %c0 : {ty}\n  %c = tensor.dim %x, %c4 : {ty}\n");
    for i in 0..3 {
        body += &output_size(i, &format!("%x, %c{} : {ty}", i + 1), &format!("%w, %c{i} : {win}"));
    }
    body += &format!(
        "  %e = tensor.empty(%n, %o0, %o1, %o2, %c) : {ty}\n  %g = linalg.fill ins(%z : f32) outs(%e : {ty}) -> {ty}\n  \
         %r = linalg.{op} ins(%x, %w : {ty}, {win}) outs(%g : {ty}) -> {ty}\n"
    );
    let shapes = [vec![2, d, h, w, 3], vec![2, 2, 3]];
    case(&format!("{op}/{d}x{h}x{w}"), &[("x", ty), ("w", win)], ty, &body, &shapes)
}

fn grouped() -> Case {
    let ty = "tensor<?x?x?x?x?xf32>";
    let mut body = format!(
        "  %n = tensor.dim %x, %c0 : {ty}\n  %f = tensor.dim %w, %c0 : {ty}\n  %q = tensor.dim %x, %c1 : {ty}\n"
    );
    for i in 0..2 {
        let at = format!("%c{} : {ty}", i + 3);
        body += &output_size(i, &format!("%x, {at}"), &format!("%w, {at}"));
    }
    body += &format!(
        "  %e = tensor.empty(%n, %q, %f, %o0, %o1) : {ty}\n  %g = linalg.fill ins(%z : f32) outs(%e : {ty}) -> {ty}\n  \
         %r = linalg.conv_2d_ngchw_fgchw ins(%x, %w : {ty}, {ty}) outs(%g : {ty}) -> {ty}\n"
    );
    let shapes = [vec![1, 2, 3, 6, 5], vec![4, 2, 3, 3, 2]];
    case("conv_2d_ngchw_fgchw/3x2", &[("x", ty), ("w", ty)], ty, &body, &shapes)
}

fn mmt4d() -> Case {
    let ty = "tensor<?x?x?x?xf32>";
    let dims: String = [("m", "x", 0), ("n", "w", 0), ("p", "x", 2), ("q", "w", 2)]
        .map(|(name, of, at)| format!("  %{name} = tensor.dim %{of}, %c{at} : {ty}\n"))
        .concat();
    let body = format!(
        "{dims}  %e = tensor.empty(%m, %n, %p, %q) : {ty}\n  %g = linalg.fill ins(%z : f32) outs(%e : {ty}) -> {ty}\n  \
         %r = linalg.mmt4d ins(%x, %w : {ty}, {ty}) outs(%g : {ty}) -> {ty}\n"
    );
    case("mmt4d/2x3x4", &[("x", ty), ("w", ty)], ty, &body, &[vec![2, 4, 3, 5], vec![3, 4, 2, 5]])
}

fn case(name: &str, args: &[(&str, &str)], result: &str, body: &str, shapes: &[Vec<usize>]) -> Case {
    let args: Vec<String> = args.iter().map(|(name, ty)| format!("%{name}: {ty}")).collect();
    let constants: String = (0..5).map(|i| format!("  %c{i} = arith.constant {i} : index\n")).collect();
    let text = format!(
        "func.func @main({}) -> {result} {{\n{constants}  %z = arith.constant 0.0 : f32\n{body}  return %r : {result}\n}}\n",
        args.join(", ")
    );
    let inputs = shapes.iter().map(|s| Input::new(Dtype::F32, s)).collect();
    Case::of_text(&format!("dynamic_windows/{name}"), &text, inputs)
}
