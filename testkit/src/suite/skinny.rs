//! Shapes that have little parallel work for their bytes: a matrix times a vector or a few rows, and sums of columns. GPUs
//! split their reductions over the invocations of a workgroup.

use super::case::{Case, by};
use crate::host_tensor::Dtype;
use crate::text::{Program, Value};
use monopour_ir::ops;

/// Rows of the vectors, rows and columns of the matrix; below, at and above what a subgroup has at once.
const SIZES: [[usize; 3]; 9] = [
    [1, 1024, 256],
    [1, 4099, 129],
    [1, 2051, 260],
    [1, 37, 5000],
    [1, 3, 1031],
    [2, 1030, 192],
    [4, 1024, 136],
    [7, 131, 520],
    [8, 40, 1028],
];

/// Rows and columns of what is summed.
const COLUMNS: [[usize; 2]; 9] =
    [[1000, 64], [4099, 5], [257, 37], [513, 130], [129, 1024], [33, 4100], [2048, 1], [65, 32], [31, 96]];

pub(super) fn cases() -> Vec<Case> {
    let mut out = vec![];
    for sizes in SIZES {
        for dtype in [Dtype::F32, Dtype::F16, Dtype::Bf16] {
            out.push(product("rows", "n, k", dtype, sizes));
            out.push(product("columns", "k, n", dtype, sizes));
        }
    }
    for sizes in [[1, 1024, 256], [3, 515, 144]] {
        out.push(finished("n, k", sizes));
        out.push(finished("k, n", sizes));
        out.push(integers("n, k", sizes));
        out.push(integers("k, n", sizes));
    }
    for shape in COLUMNS {
        out.push(column("sum", ops::arith::ADDF, "0.0", Dtype::F32, shape));
        out.push(column("maximum", ops::arith::MAXIMUMF, "0xFF800000", Dtype::F32, shape));
        out.push(variance(shape));
    }
    for shape in [[1000, 64], [257, 37], [129, 1024]] {
        out.push(column("sum", ops::arith::ADDI, "0", Dtype::Int(32), shape));
        out.push(column("maximum", ops::arith::MAXSI, "-128", Dtype::Int(8), shape));
        out.push(column("maximum", ops::arith::MAXIMUMF, "0xFC00", Dtype::F16, shape));
        out.push(column("maximum", ops::arith::MAXIMUMF, "0xFF80", Dtype::Bf16, shape));
        out.push(onto_argument(shape));
        out.push(two_at_once(shape));
    }
    out.extend([images([5, 33, 12]), images([40, 7, 64]), images([64, 1, 36])]);
    out
}

/// `x [m, k]` times a matrix in this order of its dimensions; one row has no dimension of its own.
fn multiplied(p: &mut Program, order: &str, dtype: Dtype, [m, n, k]: [usize; 3]) -> Value {
    let (rows, row) = if m == 1 { (vec![], "") } else { (vec![m], "m, ") };
    let x = p.input(dtype, &[&rows[..], &[k]].concat());
    let w = p.input(dtype, &if order == "n, k" { [n, k] } else { [k, n] });
    let body = match dtype {
        Dtype::F32 => "%m = arith.mulf %a, %b : f32; %s = arith.addf %o, %m : f32".to_owned(),
        Dtype::Int(8) => "%c = arith.extsi %a : i8 to i32; %d = arith.extsi %b : i8 to i32; \
                          %m = arith.muli %c, %d : i32; %s = arith.addi %o, %m : i32"
            .to_owned(),
        _ => format!(
            "%c = arith.extf %a : {dtype} to f32; %d = arith.extf %b : {dtype} to f32; \
             %m = arith.mulf %c, %d : f32; %s = arith.addf %o, %m : f32"
        ),
    };
    let sum = if dtype == Dtype::Int(8) { Dtype::Int(32) } else { Dtype::F32 };
    let init = p.zeros(sum, &[&rows[..], &[n]].concat());
    let loops = format!("{}n k!", row.replace(',', ""));
    p.generic(&loops, &[(&x, &format!("{row}k")), (&w, order)], (&init, &format!("{row}n")), &body)
}

fn product(name: &str, order: &str, dtype: Dtype, sizes: [usize; 3]) -> Case {
    let mut p = Program::new();
    let r = multiplied(&mut p, order, dtype, sizes);
    Case::new(format!("skinny/{name}/{dtype}/{}", by(&sizes)), p, &[&r]).dispatches(1).within(1e-3, 1e-4)
}

fn integers(order: &str, sizes: [usize; 3]) -> Case {
    let mut p = Program::new();
    let r = multiplied(&mut p, order, Dtype::Int(8), sizes);
    let name = if order == "n, k" { "rows" } else { "columns" };
    Case::new(format!("skinny/{name}/i8/{}", by(&sizes)), p, &[&r]).dispatches(1).within(0.0, 0.0)
}

/// With a bias and a maximum behind it, stored as f16.
fn finished(order: &str, [m, n, k]: [usize; 3]) -> Case {
    let mut p = Program::new();
    let r = multiplied(&mut p, order, Dtype::F32, [m, n, k]);
    let bias = p.f32(&[n]);
    let to = p.empty(Dtype::F16, r.shape());
    let (loops, all) = if m == 1 { ("n", "n") } else { ("m n", "m, n") };
    let body = "%z = arith.constant 0.0 : f32; %t = arith.addf %a, %b : f32; %u = arith.maximumf %t, %z : f32; \
                %s = arith.truncf %u : f32 to f16";
    let r = p.generic(loops, &[(&r, all), (&bias, "n")], (&to, all), body);
    let name = if order == "n, k" { "rows" } else { "columns" };
    Case::new(format!("skinny/{name}_finished/{}", by(&[m, n, k])), p, &[&r]).within(5e-2, 2e-3)
}

fn column(name: &str, op: &str, init: &str, dtype: Dtype, shape: [usize; 2]) -> Case {
    let mut p = Program::new();
    let x = p.input(dtype, &shape);
    let init = p.fill(dtype, &[shape[1]], init);
    let r = p.generic("j i!", &[(&x, "i, j")], (&init, "j"), &format!("%s = {op} %o, %a : {dtype}"));
    let case = Case::new(format!("skinny/column_{name}/{dtype}/{}", by(&shape)), p, &[&r]).dispatches(1);
    match (name, dtype) {
        ("sum", Dtype::F32) => case.within(1e-3, 1e-4),
        _ => case.within(0.0, 0.0),
    }
}

/// A mean, squares of what is left of it, and a scale behind them.
fn variance(shape: [usize; 2]) -> Case {
    let mut p = Program::new();
    let (x, mean) = (p.f32(&shape), p.f32(&[shape[1]]));
    let init = p.zeros(Dtype::F32, &[shape[1]]);
    let body = "%d = arith.subf %a, %b : f32; %q = arith.mulf %d, %d : f32; %s = arith.addf %q, %o : f32";
    let sum = p.generic("i! j", &[(&x, "i, j"), (&mean, "j")], (&init, "j"), body);
    let r = p.pointwise(
        Dtype::F32,
        &[&sum, &mean],
        "%n = arith.constant 7.0 : f32; %v = arith.divf %a, %n : f32; %s = arith.addf %v, %b : f32",
    );
    Case::new(format!("skinny/column_variance/{}", by(&shape)), p, &[&r]).dispatches(1).within(1e-3, 1e-4)
}

/// The sums are added to an input.
fn onto_argument(shape: [usize; 2]) -> Case {
    let mut p = Program::new();
    let (x, init) = (p.f32(&shape), p.f32(&[shape[1]]));
    let r = p.generic("i! j", &[(&x, "i, j")], (&init, "j"), "%s = arith.addf %o, %a : f32");
    Case::new(format!("skinny/column_onto/{}", by(&shape)), p, &[&r]).may_copy().within(1e-3, 1e-4)
}

/// Sums and maxima in one op.
fn two_at_once(shape: [usize; 2]) -> Case {
    let mut p = Program::new();
    let x = p.f32(&shape);
    let (zeros, low) = (p.zeros(Dtype::F32, &[shape[1]]), p.fill(Dtype::F32, &[shape[1]], "0xFF800000"));
    let body = "%s = arith.addf %o, %a : f32; %t = arith.maximumf %oo, %a : f32";
    let r = p.generics("j i!", &[(&x, "i, j")], &[(&zeros, "j"), (&low, "j")], body, "%s, %t");
    Case::new(format!("skinny/column_two/{}", by(&shape)), p, &[&r[0], &r[1]]).within(1e-3, 1e-4)
}

/// Sums over two dimensions before the last one, and over the middle one of three.
fn images(shape: [usize; 3]) -> Case {
    let mut p = Program::new();
    let x = p.f32(&shape);
    let (last, outer) = (p.zeros(Dtype::F32, &[shape[2]]), p.zeros(Dtype::F32, &[shape[0], shape[2]]));
    let body = "%s = arith.addf %o, %a : f32";
    let all = p.generic("k i! j!", &[(&x, "i, j, k")], (&last, "k"), body);
    let middle = p.generic("i k j!", &[(&x, "i, j, k")], (&outer, "i, k"), body);
    Case::new(format!("skinny/image_sums/{}", by(&shape)), p, &[&all, &middle]).within(1e-3, 1e-4)
}
