//! Cases that arith and tensor leave undefined and kernels define: indices out of range, divisions without a result.

use super::case::{Case, by as sizes};
use crate::host_tensor::Dtype;
use crate::text::{Input, Program};

const DIVISIONS: [&str; 7] = ["divsi", "remsi", "divui", "remui", "floordivsi", "ceildivsi", "ceildivui"];

pub(super) fn cases() -> Vec<Case> {
    let mut out = vec![];
    for dtype in [Dtype::Int(8), Dtype::Int(32), Dtype::Int(64), Dtype::Index] {
        out.push(elements(dtype, 12, (-30.0, 40.0)));
    }
    // Beyond a 32-bit index.
    out.push(elements(Dtype::Int(64), 12, (-1e12, 1e12)));
    out.push(elements(Dtype::Int(32), 12, (-2e9, 2e9)));
    out.push(unsigned());
    for (rows, width) in [(9, 64), (5, 1), (1, 17)] {
        out.push(rows_of(rows, width));
    }
    out.extend([
        two_indices(),
        neighbours(),
        summed(),
        dynamic(7),
        dynamic(0),
        dynamic_matrix(0, 5),
        dynamic_matrix(3, 4),
    ]);
    out.push(generated());
    for name in DIVISIONS {
        for dtype in [Dtype::Int(32), Dtype::Int(8)] {
            out.push(division(name, dtype, &[7, 65]));
        }
    }
    for dtype in [Dtype::Int(64), Dtype::Index, Dtype::Int(1)] {
        out.extend(["divsi", "remsi", "divui", "floordivsi"].map(|name| division(name, dtype, &[5, 13])));
    }
    out.push(division_of_tensors());
    out.push(division_by_argument());
    out
}

fn exact(case: Case) -> Case {
    case.within(0.0, 0.0).dispatches(1)
}

fn cast(dtype: Dtype) -> String {
    match dtype {
        Dtype::Index => "%zz = arith.constant 0 : index; %i = arith.addi %a, %zz : index".to_owned(),
        _ => format!("%i = arith.index_cast %a : {dtype} to index"),
    }
}

fn elements(dtype: Dtype, size: usize, (low, high): (f64, f64)) -> Case {
    let mut p = Program::new();
    let x = p.f32(&[size]);
    let ids = p.input_within(dtype, &[9, 11], low, high);
    let body = format!("{}; %s = tensor.extract {}[%i] : {}", cast(dtype), x.name, x.ty());
    let r = p.pointwise(Dtype::F32, &[&ids], &body);
    exact(Case::new(format!("guards/elements/{dtype}/{high}"), p, &[&r]))
}

/// An unsigned number that is negative as a 32-bit index.
fn unsigned() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[12]);
    let ids = p.input_within(Dtype::Int(32), &[33], -20.0, 20.0);
    let body = format!("%i = arith.index_castui %a : i32 to index; %s = tensor.extract {}[%i] : {}", x.name, x.ty());
    let r = p.pointwise(Dtype::F32, &[&ids], &body);
    exact(Case::new("guards/unsigned", p, &[&r]))
}

/// Rows of a table by index, most of them out of range.
fn rows_of(rows: usize, width: usize) -> Case {
    let mut p = Program::new();
    let table = p.f32(&[rows, width]);
    let ids = p.input_within(Dtype::Int(32), &[13], -20.0, 20.0);
    let e = p.empty(Dtype::F32, &[13, width]);
    let body = format!(
        "%i = arith.index_cast %a : i32 to index; %j = linalg.index 1 : index; %s = tensor.extract {}[%i, %j] : {}",
        table.name,
        table.ty()
    );
    let r = p.generic("n d", &[(&ids, "n")], (&e, "n, d"), &body);
    exact(Case::new(format!("guards/rows/{rows}x{width}"), p, &[&r]))
}

fn two_indices() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[6, 8]);
    let (i, j) = (p.input_within(Dtype::Int(32), &[40], -9.0, 9.0), p.input_within(Dtype::Int(32), &[40], -12.0, 12.0));
    let body = format!(
        "%i = arith.index_cast %a : i32 to index; %j = arith.index_cast %b : i32 to index; %s = tensor.extract {}[%i, %j] : {}",
        x.name,
        x.ty()
    );
    let r = p.pointwise(Dtype::F32, &[&i, &j], &body);
    exact(Case::new("guards/two_indices", p, &[&r]))
}

/// Indices of the loop alone: the first and the last are out of range.
fn neighbours() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[4, 37]);
    let body = format!(
        "%i = linalg.index 0 : index; %j = linalg.index 1 : index; %one = arith.constant 1 : index; %l = arith.subi %j, %one : index; \
         %h = arith.addi %j, %one : index; %u = tensor.extract {0}[%i, %l] : {1}; %v = tensor.extract {0}[%i, %h] : {1}; \
         %w = arith.addf %u, %v : f32; %s = arith.addf %w, %a : f32",
        x.name,
        x.ty()
    );
    let r = p.pointwise(Dtype::F32, &[&x], &body);
    Case::new("guards/neighbours", p, &[&r]).dispatches(1)
}

/// A reduction over gathered elements.
fn summed() -> Case {
    let mut p = Program::new();
    let x = p.f32(&[10]);
    let ids = p.input_within(Dtype::Int(32), &[6, 20], -15.0, 25.0);
    let zero = p.zeros(Dtype::F32, &[6]);
    let body = format!(
        "%i = arith.index_cast %a : i32 to index; %v = tensor.extract {}[%i] : {}; %s = arith.addf %o, %v : f32",
        x.name,
        x.ty()
    );
    let r = p.generic("m n!", &[(&ids, "m, n")], (&zero, "m"), &body);
    Case::new("guards/summed", p, &[&r])
}

/// A table of dynamic size, which may be empty: then 0 is read.
fn dynamic(size: usize) -> Case {
    let text = "func.func @main(%x: tensor<?xf32>, %at: tensor<9xi32>) -> tensor<9xf32> {\n  %e = tensor.empty() : tensor<9xf32>\n  \
         %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = [\"parallel\"]} \
         ins(%at : tensor<9xi32>) outs(%e : tensor<9xf32>) {\n  ^bb0(%a: i32, %o: f32):\n    \
         %i = arith.index_cast %a : i32 to index\n    %v = tensor.extract %x[%i] : tensor<?xf32>\n    linalg.yield %v : f32\n  } \
         -> tensor<9xf32>\n  return %r : tensor<9xf32>\n}\n";
    let inputs = vec![Input::new(Dtype::F32, &[size]), Input::new(Dtype::Int(32), &[9]).within(-10.0, 20.0)];
    Case::of_text(&format!("guards/dynamic/{size}"), text, inputs).within(0.0, 0.0)
}

fn dynamic_matrix(rows: usize, columns: usize) -> Case {
    let text = format!(
        "func.func @main(%x: tensor<?x{columns}xf32>, %at: tensor<9xi32>) -> tensor<9xf32> {{\n  %e = tensor.empty() : tensor<9xf32>\n  \
         %r = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = [\"parallel\"]}} \
         ins(%at : tensor<9xi32>) outs(%e : tensor<9xf32>) {{\n  ^bb0(%a: i32, %o: f32):\n    \
         %i = arith.index_cast %a : i32 to index\n    %v = tensor.extract %x[%i, %i] : tensor<?x{columns}xf32>\n    \
         linalg.yield %v : f32\n  }} -> tensor<9xf32>\n  return %r : tensor<9xf32>\n}}\n"
    );
    let inputs = vec![Input::new(Dtype::F32, &[rows, columns]), Input::new(Dtype::Int(32), &[9]).within(-10.0, 20.0)];
    Case::of_text(&format!("guards/dynamic/{}", sizes(&[rows, columns])), &text, inputs).within(0.0, 0.0)
}

/// The same in the body of `tensor.generate`.
fn generated() -> Case {
    let text = "func.func @main(%x: tensor<5xf32>, %n: index) -> tensor<?xf32> {\n  %r = tensor.generate %n {\n  ^bb0(%i: index):\n    \
         %k = arith.constant 3 : index\n    %at = arith.subi %i, %k : index\n    %q = arith.divsi %k, %at : index\n    \
         %w = arith.index_cast %q : index to i32\n    %f = arith.sitofp %w : i32 to f32\n    \
         %v = tensor.extract %x[%at] : tensor<5xf32>\n    %s = arith.addf %v, %f : f32\n    tensor.yield %s : f32\n  } : tensor<?xf32>\n  \
         return %r : tensor<?xf32>\n}\n";
    let inputs = vec![Input::new(Dtype::F32, &[5]), Input::new(Dtype::Index, &[]).within(15.0, 16.0)];
    Case::of_text("guards/generated", text, inputs)
}

/// Divisors from -2 to 1; a third of the dividends is the smallest number.
fn division(name: &str, dtype: Dtype, shape: &[usize]) -> Case {
    let mut p = Program::new();
    let (any, by) = if dtype == Dtype::Int(1) { ((0.0, 2.0), (0.0, 2.0)) } else { ((-3.0, 3.0), (-2.0, 2.0)) };
    let (x, y) = (p.input_within(dtype, shape, any.0, any.1), p.input_within(dtype, shape, by.0, by.1));
    let smallest = match dtype {
        Dtype::Int(8) => "-128",
        Dtype::Int(64) => "-9223372036854775808",
        Dtype::Int(1) => "true",
        // An index has 32 bits on a GPU and 64 on a CPU.
        Dtype::Index => "-100",
        _ => "-2147483648",
    };
    let constant = |name: &str, value: &str| {
        let ty = if dtype == Dtype::Int(1) { String::new() } else { format!(" : {dtype}") };
        format!("{name} = arith.constant {value}{ty}")
    };
    let limit = if dtype == Dtype::Int(1) { "false" } else { "-1" };
    let body = format!(
        "{}; {}; %c = arith.cmpi slt, %a, %l : {dtype}; %n = arith.select %c, %m, %a : {dtype}; %s = arith.{name} %n, %b : {dtype}",
        constant("%m", smallest),
        constant("%l", limit)
    );
    let r = p.pointwise(dtype, &[&x, &y], &body);
    exact(Case::new(format!("guards/{name}/{dtype}/{}", sizes(shape)), p, &[&r]))
}

/// Elementwise on tensors, outside of any body.
fn division_of_tensors() -> Case {
    let text = "func.func @main(%x: tensor<40xi32>, %y: tensor<40xi32>) -> (tensor<40xi32>, tensor<40xi32>) {\n  \
         %q = arith.divsi %x, %y : tensor<40xi32>\n  %r = arith.remui %x, %y : tensor<40xi32>\n  \
         return %q, %r : tensor<40xi32>, tensor<40xi32>\n}\n";
    let input = || Input::new(Dtype::Int(32), &[40]).within(-3.0, 3.0);
    Case::of_text("guards/division_of_tensors", text, vec![input(), input()]).within(0.0, 0.0)
}

/// The divisor is a scalar of host code, and the division is in a body.
fn division_by_argument() -> Case {
    let text = "func.func @main(%x: tensor<40xi32>, %d: i32) -> tensor<40xi32> {\n  %e = tensor.empty() : tensor<40xi32>\n  \
         %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = [\"parallel\"]} \
         ins(%x : tensor<40xi32>) outs(%e : tensor<40xi32>) {\n  ^bb0(%a: i32, %o: i32):\n    %q = arith.divsi %a, %d : i32\n    \
         %k = arith.constant 7 : i32\n    %p = arith.remsi %k, %d : i32\n    %s = arith.addi %q, %p : i32\n    linalg.yield %s : i32\n  } \
         -> tensor<40xi32>\n  return %r : tensor<40xi32>\n}\n";
    let inputs = vec![Input::new(Dtype::Int(32), &[40]), Input::new(Dtype::Int(32), &[]).within(0.0, 1.0)];
    Case::of_text("guards/division_by_argument", text, inputs).within(0.0, 0.0)
}
