//! Reads at computed indices: lookups, gathers, one-hot vectors, ramps and masks.

use super::case::Case;
use crate::host_tensor::Dtype;
use crate::text::Program;

pub(super) fn cases() -> Vec<Case> {
    let mut out = vec![];
    for dtype in [Dtype::Int(32), Dtype::Index, Dtype::Int(64)] {
        out.push(lookup(dtype, 50, 16, 7));
    }
    for (rows, width, count) in [(100, 64, 10), (7, 1, 33), (1, 9, 5), (1000, 17, 3)] {
        out.push(lookup(Dtype::Int(32), rows, width, count));
    }
    for dtype in [Dtype::F16, Dtype::Int(32), Dtype::Int(8)] {
        out.push(elements(dtype));
    }
    out.extend([ramp(Dtype::F32), ramp(Dtype::Int(32)), ramp(Dtype::Index), one_hot(), triangle(), diagonal_matrix()]);
    out.extend([
        two_indices(),
        clamped(),
        lookup_and_add(),
        rotated(),
        bilinear(),
        reversed_rows(),
        modulo(),
        grouped("floordiv", 2),
        grouped("floordiv", 3),
        grouped("mod", 2),
        checkerboard(),
    ]);
    out
}

fn as_index(dtype: Dtype, from: &str, to: &str) -> String {
    match dtype {
        Dtype::Index => format!("%zero = arith.constant 0 : index; {to} = arith.addi {from}, %zero : index"),
        _ => format!("{to} = arith.index_cast {from} : {dtype} to index"),
    }
}

/// Rows of a table by index.
fn lookup(dtype: Dtype, rows: usize, width: usize, count: usize) -> Case {
    let mut p = Program::new();
    let table = p.f32(&[rows, width]);
    let ids = p.input_within(dtype, &[count], 0.0, rows as f64);
    let e = p.empty(Dtype::F32, &[count, width]);
    let body = format!(
        "{}; %j = linalg.index 1 : index; %s = tensor.extract {}[%i, %j] : {}",
        as_index(dtype, "%a", "%i"),
        table.name,
        table.ty()
    );
    let r = p.generic("n d", &[(&ids, "n")], (&e, "n, d"), &body);
    Case::new(format!("gather/lookup/{dtype}/{rows}x{width}/{count}"), p, &[&r]).dispatches(1).within(0.0, 0.0)
}

fn elements(dtype: Dtype) -> Case {
    let mut p = Program::new();
    let x = p.input(dtype, &[33]);
    let ids = p.input_within(Dtype::Int(32), &[9, 11], 0.0, 33.0);
    let body = format!("%i = arith.index_cast %a : i32 to index; %s = tensor.extract {}[%i] : {}", x.name, x.ty());
    let r = p.pointwise(dtype, &[&ids], &body);
    Case::new(format!("gather/elements/{dtype}"), p, &[&r]).dispatches(1).within(0.0, 0.0)
}

fn ramp(dtype: Dtype) -> Case {
    let mut p = Program::new();
    let e = p.empty(dtype, &[101]);
    let body = match dtype {
        Dtype::Index => "%i = linalg.index 0 : index; %k = arith.constant 3 : index; %s = arith.muli %i, %k : index",
        Dtype::F32 => {
            "%i = linalg.index 0 : index; %n = arith.index_cast %i : index to i32; %s = arith.sitofp %n : i32 to f32"
        }
        _ => "%i = linalg.index 0 : index; %s = arith.index_cast %i : index to i32",
    };
    let r = p.generic("i", &[], (&e, "i"), body);
    Case::new(format!("gather/ramp/{dtype}"), p, &[&r]).dispatches(1).within(0.0, 0.0)
}

fn one_hot() -> Case {
    let mut p = Program::new();
    let ids = p.input_within(Dtype::Int(32), &[7], 0.0, 10.0);
    let e = p.empty(Dtype::F32, &[7, 10]);
    let body = "%j = linalg.index 1 : index; %n = arith.index_cast %j : index to i32; %c = arith.cmpi eq, %a, %n : i32; \
                %s = arith.uitofp %c : i1 to f32";
    let r = p.generic("n d", &[(&ids, "n")], (&e, "n, d"), body);
    Case::new("gather/one_hot", p, &[&r]).dispatches(1)
}

fn triangle() -> Case {
    let mut p = Program::new();
    let e = p.empty(Dtype::Int(1), &[13, 13]);
    let body = "%i = linalg.index 0 : index; %j = linalg.index 1 : index; %s = arith.cmpi uge, %i, %j : index";
    let r = p.generic("i j", &[], (&e, "i, j"), body);
    Case::new("gather/triangle", p, &[&r]).dispatches(1)
}

fn diagonal_matrix() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[9]);
    let e = p.empty(Dtype::F32, &[9, 9]);
    let body = "%i = linalg.index 0 : index; %j = linalg.index 1 : index; %c = arith.cmpi eq, %i, %j : index; \
                %z = arith.constant 0.0 : f32; %s = arith.select %c, %a, %z : f32";
    let r = p.generic("i j", &[(&x, "j")], (&e, "i, j"), body);
    Case::new("gather/diagonal_matrix", p, &[&r]).dispatches(1)
}

fn two_indices() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[6, 8]);
    let (i, j) = (p.input_within(Dtype::Int(32), &[20], 0.0, 6.0), p.input_within(Dtype::Int(32), &[20], 0.0, 8.0));
    let body = format!(
        "%i = arith.index_cast %a : i32 to index; %j = arith.index_cast %b : i32 to index; %s = tensor.extract {}[%i, %j] : {}",
        x.name,
        x.ty()
    );
    let r = p.pointwise(Dtype::F32, &[&i, &j], &body);
    Case::new("gather/two_indices", p, &[&r]).dispatches(1)
}

/// Indices out of range are clamped first.
fn clamped() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[12]);
    let ids = p.input_within(Dtype::Int(32), &[40], -20.0, 40.0);
    let body = format!(
        "%z = arith.constant 0 : i32; %m = arith.constant 11 : i32; %l = arith.maxsi %a, %z : i32; %c = arith.minsi %l, %m : i32; \
         %i = arith.index_cast %c : i32 to index; %s = tensor.extract {}[%i] : {}",
        x.name,
        x.ty()
    );
    let r = p.pointwise(Dtype::F32, &[&ids], &body);
    Case::new("gather/clamped", p, &[&r]).dispatches(1)
}

fn lookup_and_add() -> Case {
    let mut p = Program::new();
    let (table, positions) = (p.f32(&[30, 12]), p.f32(&[7, 12]));
    let ids = p.input_within(Dtype::Int(32), &[7], 0.0, 30.0);
    let e = p.empty(Dtype::F32, &[7, 12]);
    let body = format!(
        "%i = arith.index_cast %a : i32 to index; %j = linalg.index 1 : index; %s = tensor.extract {}[%i, %j] : {}",
        table.name,
        table.ty()
    );
    let rows = p.generic("n d", &[(&ids, "n")], (&e, "n, d"), &body);
    let r = p.pointwise(Dtype::F32, &[&rows, &positions], "%s = arith.addf %a, %b : f32");
    Case::new("gather/lookup_and_add", p, &[&r]).dispatches(1)
}

/// Rotates pairs of a row, as position encodings do.
fn rotated() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[5, 16]);
    let body = format!(
        "%i = linalg.index 0 : index; %j = linalg.index 1 : index; %one = arith.constant 1 : index; %k = arith.xori %j, %one : index; \
         %v = tensor.extract {}[%i, %k] : {}; %odd = arith.andi %j, %one : index; %c = arith.cmpi eq, %odd, %one : index; \
         %n = arith.negf %v : f32; %s = arith.select %c, %v, %n : f32",
        x.name,
        x.ty()
    );
    let e = p.empty(Dtype::F32, &[5, 16]);
    let r = p.generic("i j", &[], (&e, "i, j"), &body);
    Case::new("gather/rotated", p, &[&r]).dispatches(1)
}

/// Twice the size, each element the mean of two neighbours.
fn bilinear() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[17]);
    let body = format!(
        "%i = linalg.index 0 : index; %two = arith.constant 2 : index; %one = arith.constant 1 : index; %l = arith.divui %i, %two : index; \
         %k = arith.addi %i, %one : index; %h = arith.divui %k, %two : index; %last = arith.constant 16 : index; %g = arith.minui %h, %last : index; \
         %u = tensor.extract {0}[%l] : {1}; %v = tensor.extract {0}[%g] : {1}; %w = arith.addf %u, %v : f32; \
         %f = arith.constant 0.5 : f32; %s = arith.mulf %w, %f : f32",
        x.name,
        x.ty()
    );
    let e = p.empty(Dtype::F32, &[34]);
    let r = p.generic("i", &[], (&e, "i"), &body);
    Case::new("gather/bilinear", p, &[&r]).dispatches(1)
}

fn reversed_rows() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[8, 9]);
    let e = p.empty(Dtype::F32, &[8, 9]);
    let r = p.generic("i j", &[(&x, "7 - i, j")], (&e, "i, j"), "%s = math.exp %a : f32");
    Case::new("gather/reversed_rows", p, &[&r]).dispatches(1)
}

/// Maps with division and remainder.
fn modulo() -> Case {
    let mut p = Program::new();
    let (x, y) = (p.f32(&[6]), p.f32(&[7]));
    let e = p.empty(Dtype::F32, &[42]);
    let r = p.generic("i", &[(&x, "i floordiv 7"), (&y, "i mod 7")], (&e, "i"), "%s = arith.mulf %a, %b : f32");
    Case::new("gather/modulo", p, &[&r]).dispatches(1)
}

/// A product of heads that share keys in groups.
fn grouped(by: &str, heads: usize) -> Case {
    let mut p = Program::new();
    let (q, k) = (p.f32(&[6, 5, 8]), p.f32(&[heads, 7, 8]));
    let e = p.zeros(Dtype::F32, &[6, 5, 7]);
    let body = "%m = arith.mulf %a, %b : f32; %s = arith.addf %o, %m : f32";
    let map = format!("h {by} {}, j, d", if by == "mod" { heads } else { 6 / heads });
    let r = p.generic("h i j d!", &[(&q, "h, i, d"), (&k, &map)], (&e, "h, i, j"), body);
    Case::new(format!("gather/grouped_{by}_{heads}"), p, &[&r]).dispatches(1)
}

fn checkerboard() -> Case {
    let mut p = Program::new();
    let (x, y) = (p.f32(&[9, 14]), p.f32(&[9, 14]));
    let body = "%i = linalg.index 0 : index; %j = linalg.index 1 : index; %k = arith.addi %i, %j : index; %two = arith.constant 2 : index; \
                %m = arith.remui %k, %two : index; %z = arith.constant 0 : index; %c = arith.cmpi eq, %m, %z : index; \
                %s = arith.select %c, %a, %b : f32";
    let r = p.pointwise(Dtype::F32, &[&x, &y], body);
    Case::new("gather/checkerboard", p, &[&r]).dispatches(1)
}
