//! Element types of 16 bits, and signs of integer types at the boundary: storing, computing, converting, reducing.

use super::case::{Case, by};
use crate::host_tensor::Dtype;
use crate::text::{Input, Program};
use monopour_ir::ops;

const I8: Dtype = Dtype::Int(8);
const I16: Dtype = Dtype::Int(16);
const I32: Dtype = Dtype::Int(32);
const I64: Dtype = Dtype::Int(64);

/// Op, from, to, range of the operand. Whole results are exact.
const CASTS: &[(&str, Dtype, Dtype, (f64, f64))] = &[
    ("sitofp", I16, Dtype::F32, (-32768.0, 32768.0)),
    ("uitofp", I16, Dtype::F32, (-32768.0, 32768.0)),
    ("fptosi", Dtype::F32, I16, (-32767.0, 32767.0)),
    ("fptoui", Dtype::F32, I16, (0.0, 65535.0)),
    ("fptoui", Dtype::F32, I8, (0.0, 255.0)),
    ("extsi", I16, I32, (-32768.0, 32768.0)),
    ("extui", I16, I32, (-32768.0, 32768.0)),
    ("extsi", I8, I16, (-128.0, 128.0)),
    ("extui", I8, I16, (-128.0, 128.0)),
    ("extui", I16, I64, (-32768.0, 32768.0)),
    ("trunci", I32, I16, (-1e6, 1e6)),
    ("trunci", I16, I8, (-32768.0, 32768.0)),
    ("trunci", I64, I16, (-1e9, 1e9)),
    ("sitofp", I16, Dtype::F16, (-1000.0, 1000.0)),
    ("sitofp", I16, Dtype::Bf16, (-30000.0, 30000.0)),
    ("uitofp", I32, Dtype::Bf16, (0.0, 1e6)),
    ("fptosi", Dtype::Bf16, I16, (-30000.0, 30000.0)),
    ("fptoui", Dtype::Bf16, I32, (0.0, 1e6)),
    ("fptosi", Dtype::Bf16, I8, (-100.0, 100.0)),
    ("extf", Dtype::Bf16, Dtype::F32, (-4.0, 4.0)),
    ("truncf", Dtype::F32, Dtype::Bf16, (-1e30, 1e30)),
    ("extf", Dtype::Bf16, Dtype::F64, (-4.0, 4.0)),
    ("truncf", Dtype::F64, Dtype::Bf16, (-4.0, 4.0)),
    ("truncf", Dtype::F64, Dtype::F16, (-4.0, 4.0)),
    ("bitcast", I16, Dtype::Bf16, (16000.0, 16500.0)),
    ("bitcast", Dtype::Bf16, I16, (-4.0, 4.0)),
    ("bitcast", I16, Dtype::F16, (15000.0, 16000.0)),
    ("bitcast", Dtype::F16, I16, (-4.0, 4.0)),
];

pub(super) fn cases() -> Vec<Case> {
    let mut out = vec![];
    for dtype in [I16, Dtype::Bf16] {
        for shape in [&[7, 33][..], &[1], &[257], &[3, 5, 6]] {
            // The caller keeps its buffer, so the result is a copy.
            let copy = pointwise("copy", dtype, shape, 1, "%s = arith.select %t, %a, %o : T", true);
            out.push(Case { copies: Some(1), ..copy });
        }
        let add = if dtype.is_float() { ops::arith::ADDF } else { ops::arith::ADDI };
        for shape in [&[7, 33][..], &[1], &[128]] {
            out.push(pointwise("add", dtype, shape, 2, &format!("%s = {add} %a, %b : T"), !dtype.is_float()));
        }
        let greater = if dtype.is_float() { "arith.cmpf ogt" } else { "arith.cmpi sgt" };
        let body = format!("%c = {greater}, %a, %b : T; %s = arith.select %c, %a, %b : T");
        out.push(pointwise("greater", dtype, &[9, 31], 2, &body, true));
        out.extend(reductions(dtype));
        out.push(transposed(dtype));
        out.push(scalar(dtype));
    }
    let unsigned = "%c = arith.cmpi ugt, %a, %b : T; %m = arith.maxui %a, %b : T; %n = arith.divui %m, %k : T; \
                    %s = arith.select %c, %m, %n : T";
    out.push(pointwise("unsigned", I16, &[9, 31], 2, &format!("%k = arith.constant 7 : T; {unsigned}"), true));
    for body in ["%s = math.tanh %a : T", "%s = math.exp %a : T", "%s = math.sqrt %a : T", "%s = arith.negf %a : T"] {
        let name = body.split(['.', ' ']).nth(3).unwrap_or_default();
        let mut p = Program::new();
        let x = p.input_within(Dtype::Bf16, &[5, 33], 0.0, 3.0);
        let r = p.pointwise(Dtype::Bf16, &[&x], &body.replace('T', "bf16"));
        out.push(Case::new(format!("types/{name}/bf16"), p, &[&r]).dispatches(1));
    }
    for (op, from, to, range) in CASTS {
        out.push(cast(op, *from, *to, *range, &[7, 33]));
    }
    for (of, to) in [(I16, I16), (I8, I16), (I16, I32), (Dtype::Bf16, Dtype::F32), (Dtype::Bf16, Dtype::Bf16)] {
        out.push(matmul(of, to, [17, 20, 33]));
    }
    out.push(matmul(Dtype::Bf16, Dtype::F32, [64, 64, 64]));
    out.push(unsigned_boundary());
    out.push(unsigned_results());
    out
}

fn exact(case: Case) -> Case {
    case.within(0.0, 0.0)
}

/// One elementwise op; `T` in the body is the type, `%t` is true.
fn pointwise(name: &str, dtype: Dtype, shape: &[usize], arity: usize, body: &str, is_exact: bool) -> Case {
    let mut p = Program::new();
    let (low, high) = if dtype.is_float() { (-4.0, 4.0) } else { (-30000.0, 30000.0) };
    let ins: Vec<_> = (0..arity).map(|_| p.input_within(dtype, shape, low, high)).collect();
    let body = format!("%t = arith.constant true; {}", body.replace(" T", &format!(" {dtype}")));
    let r = p.pointwise(dtype, &ins.iter().collect::<Vec<_>>(), &body);
    let case = Case::new(format!("types/{name}/{dtype}/{}", by(shape)), p, &[&r]);
    if is_exact { exact(case) } else { case }
}

fn cast(op: &str, from: Dtype, to: Dtype, (low, high): (f64, f64), shape: &[usize]) -> Case {
    let mut p = Program::new();
    let x = p.input_within(from, shape, low, high);
    let r = p.pointwise(to, &[&x], &format!("%s = arith.{op} %a : {from} to {to}"));
    let case = Case::new(format!("types/{op}/{from}_{to}/{}", by(shape)), p, &[&r]).dispatches(1);
    // A single rounding to nearest is unique; whole numbers reach bf16 through f32.
    if op.ends_with("tofp") { case } else { exact(case) }
}

/// Maxima of rows and columns, and sums: of integers in their type, of bf16 in f32.
fn reductions(dtype: Dtype) -> Vec<Case> {
    let mut out = vec![];
    let (shape, least) = ([33, 65], if dtype.is_float() { "-1.0e30" } else { "-32768" });
    let maximum = if dtype.is_float() { ops::arith::MAXIMUMF } else { ops::arith::MAXSI };
    for (name, loops, to, size) in [("rows", "i j!", "i", 33), ("columns", "i! j", "j", 65)] {
        let mut p = Program::new();
        let x = p.input_within(dtype, &shape, -100.0, 100.0);
        let init = p.fill(dtype, &[size], least);
        let r = p.generic(loops, &[(&x, "i, j")], (&init, to), &format!("%s = {maximum} %o, %a : {dtype}"));
        out.push(exact(Case::new(format!("types/max_{name}/{dtype}"), p, &[&r])));
        let mut p = Program::new();
        let x = p.input_within(dtype, &shape, -100.0, 100.0);
        let sum = if dtype.is_float() { Dtype::F32 } else { dtype };
        let init = p.zeros(sum, &[size]);
        let body = if dtype.is_float() {
            "%w = arith.extf %a : bf16 to f32; %s = arith.addf %o, %w : f32".to_owned()
        } else {
            format!("%s = arith.addi %o, %a : {dtype}")
        };
        let r = p.generic(loops, &[(&x, "i, j")], (&init, to), &body);
        let case = Case::new(format!("types/sum_{name}/{dtype}"), p, &[&r]);
        out.push(if dtype.is_float() { case.within(1e-2, 1e-4) } else { exact(case) });
    }
    out
}

fn transposed(dtype: Dtype) -> Case {
    let mut p = Program::new();
    let x = p.input_within(dtype, &[13, 21], -100.0, 100.0);
    let out = p.empty(dtype, &[21, 13]);
    let r = p.named_untyped(ops::linalg::TRANSPOSE, &[&x], &out, "permutation = [1, 0]");
    exact(Case::new(format!("types/transpose/{dtype}"), p, &[&r]))
}

/// A number of the type as an argument.
fn scalar(dtype: Dtype) -> Case {
    let mut p = Program::new();
    let (x, n) = (p.input_within(dtype, &[50], -100.0, 100.0), p.scalar(dtype, -9.0, 9.0));
    let filled = p.empty(dtype, &[50]);
    let filled = p.named(ops::linalg::FILL, &[&n], &filled);
    let maximum = if dtype.is_float() { ops::arith::MAXIMUMF } else { ops::arith::MAXSI };
    let r = p.pointwise(dtype, &[&x, &filled], &format!("%s = {maximum} %a, %b : {dtype}"));
    exact(Case::new(format!("types/scalar/{dtype}"), p, &[&r]))
}

fn matmul(of: Dtype, to: Dtype, [m, n, k]: [usize; 3]) -> Case {
    let mut p = Program::new();
    let (low, high) = if of.is_float() { (-1.0, 1.0) } else { (-100.0, 100.0) };
    let (a, b) = (p.input_within(of, &[m, k], low, high), p.input_within(of, &[k, n], low, high));
    let zero = p.zeros(to, &[m, n]);
    let r = p.named(ops::linalg::MATMUL, &[&a, &b], &zero);
    let case = Case::new(format!("types/matmul/{of}_{to}/{}", by(&[m, n, k])), p, &[&r]);
    // A sum that is rounded to eight bits at every step.
    let case = if to == Dtype::Bf16 { case.within(0.15, 0.05) } else { case };
    if to.is_float() { case } else { exact(case) }
}

/// Unsigned bytes and words, cast and read as such.
fn unsigned_boundary() -> Case {
    let text = "func.func @main(%x: tensor<5x7xui8>, %y: tensor<5x7xui16>, %n: ui32) -> (tensor<5x7xf32>, ui32) {
  %a = tensor.bitcast %x : tensor<5x7xui8> to tensor<5x7xi8>
  %b = tensor.bitcast %y : tensor<5x7xui16> to tensor<5x7xi16>
  %e = tensor.empty() : tensor<5x7xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = [\"parallel\", \"parallel\"]} ins(%a, %b : tensor<5x7xi8>, tensor<5x7xi16>) outs(%e : tensor<5x7xf32>) {
  ^bb0(%p: i8, %q: i16, %o: f32):
    %f = arith.uitofp %p : i8 to f32
    %g = arith.uitofp %q : i16 to f32
    %s = arith.addf %f, %g : f32
    linalg.yield %s : f32
  } -> tensor<5x7xf32>
  return %r, %n : tensor<5x7xf32>, ui32
}
";
    let inputs = vec![
        Input::new(Dtype::Unsigned(8), &[5, 7]).within(0.0, 256.0),
        Input::new(Dtype::Unsigned(16), &[5, 7]).within(0.0, 65536.0),
        Input::new(Dtype::Unsigned(32), &[]).within(0.0, 4e9),
    ];
    exact(Case::of_text("types/unsigned_boundary", text, inputs))
}

/// An unsigned constant and result, without arithmetic.
fn unsigned_results() -> Case {
    let text = "func.func @main(%x: tensor<3xui64>, %y: tensor<2x3xsi16>) -> (tensor<2x3xui64>, tensor<2x3xui8>, tensor<3x2xsi16>) {
  %e = tensor.empty() : tensor<2x3xui64>
  %r = linalg.broadcast ins(%x : tensor<3xui64>) outs(%e : tensor<2x3xui64>) dimensions = [0]
  %c = arith.constant dense<[[1, 2, 255], [0, 128, 127]]> : tensor<2x3xui8>
  %d = tensor.empty() : tensor<3x2xsi16>
  %t = linalg.transpose ins(%y : tensor<2x3xsi16>) outs(%d : tensor<3x2xsi16>) permutation = [1, 0]
  return %r, %c, %t : tensor<2x3xui64>, tensor<2x3xui8>, tensor<3x2xsi16>
}
";
    let inputs =
        vec![Input::new(Dtype::Unsigned(64), &[3]).within(0.0, 1e15), Input::new(I16, &[2, 3]).within(-3e4, 3e4)];
    exact(Case::of_text("types/unsigned_results", text, inputs))
}
