//! Integer ops one by one: i32 above all, i8, i64 and i1; every result is exact.

use super::case::{Case, by};
use crate::host_tensor::Dtype;
use crate::text::Program;
use monopour_ir::ops;

/// Op and the ranges of its two operands: no division by zero, and no shift beyond the width.
type Operation = (&'static str, (f64, f64), (f64, f64));

const ANY: (f64, f64) = (-100.0, 100.0);
const BINARY: &[Operation] = &[
    (ops::arith::ADDI, ANY, ANY),
    (ops::arith::SUBI, ANY, ANY),
    (ops::arith::MULI, ANY, ANY),
    (ops::arith::ANDI, ANY, ANY),
    (ops::arith::ORI, ANY, ANY),
    (ops::arith::XORI, ANY, ANY),
    (ops::arith::DIVSI, ANY, (1.0, 9.0)),
    (ops::arith::REMSI, ANY, (1.0, 9.0)),
    (ops::arith::DIVUI, ANY, (1.0, 9.0)),
    (ops::arith::REMUI, ANY, (1.0, 9.0)),
    (ops::arith::FLOORDIVSI, ANY, (1.0, 9.0)),
    (ops::arith::CEILDIVSI, ANY, (1.0, 9.0)),
    (ops::arith::CEILDIVUI, ANY, (1.0, 9.0)),
    (ops::arith::SHLI, ANY, (0.0, 7.0)),
    (ops::arith::SHRSI, ANY, (0.0, 7.0)),
    (ops::arith::SHRUI, ANY, (0.0, 7.0)),
    (ops::arith::MAXSI, ANY, ANY),
    (ops::arith::MINSI, ANY, ANY),
    (ops::arith::MAXUI, ANY, ANY),
    (ops::arith::MINUI, ANY, ANY),
];

const COMPARISONS: [&str; 10] = ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"];

pub(super) fn cases() -> Vec<Case> {
    let mut out = vec![];
    for operation in BINARY {
        out.push(binary(operation, Dtype::Int(32), &[7, 65]));
    }
    // The largest negative value over minus one is left out: that is undefined.
    out.push(binary(&(ops::arith::DIVSI, ANY, (-9.0, -1.0)), Dtype::Int(32), &[100]));
    out.push(binary(&(ops::arith::REMSI, ANY, (-9.0, -1.0)), Dtype::Int(32), &[100]));
    out.push(binary(&(ops::arith::MULI, (-2e9, 2e9), (-2e9, 2e9)), Dtype::Int(32), &[101]));
    for name in ["addi", "subi", "muli", "andi", "maxsi", "minui", "divsi", "shrui", "shrsi"] {
        let operation = BINARY.iter().find(|o| o.0.ends_with(name)).expect("one of the list");
        out.push(binary(operation, Dtype::Int(8), &[3, 33]));
    }
    for name in ["addi", "muli", "xori", "divsi", "maxsi"] {
        let operation = BINARY.iter().find(|o| o.0.ends_with(name)).expect("one of the list");
        out.push(binary(operation, Dtype::Int(64), &[5, 13]));
    }
    for name in ["andi", "ori", "xori"] {
        let operation = BINARY.iter().find(|o| o.0.ends_with(name)).expect("one of the list");
        out.push(binary(&(operation.0, (0.0, 2.0), (0.0, 2.0)), Dtype::Int(1), &[7, 19]));
    }
    out.extend([8, 16, 32, 64].map(|bits| add_extended(Dtype::Int(bits))));
    out.push(binary(&(ops::arith::ADDI, ANY, ANY), Dtype::Index, &[4, 9]));
    out.push(binary(&(ops::arith::MULI, ANY, ANY), Dtype::Index, &[31]));
    for op in [ops::math::ABSI, ops::math::CTPOP, ops::math::CTLZ, ops::math::CTTZ] {
        out.extend([1, 8, 16, 32, 64].map(|bits| counted(op, bits)));
    }
    out.extend([8, 16, 32, 64].map(power));
    for exponent in [0, 2, 5, 31] {
        let mut p = Program::new();
        let x = p.input_within(Dtype::Int(32), &[70], -9.0, 9.0);
        let body = format!("%k = arith.constant {exponent} : i32; %s = math.ipowi %a, %k : i32");
        let r = p.pointwise(Dtype::Int(32), &[&x], &body);
        out.push(exact(Case::new(format!("integers/ipowi_{exponent}"), p, &[&r])));
    }
    for predicate in COMPARISONS {
        let mut p = Program::new();
        let (x, y) =
            (p.input_within(Dtype::Int(32), &[63], -3.0, 3.0), p.input_within(Dtype::Int(32), &[63], -3.0, 3.0));
        let r = p.pointwise(Dtype::Int(1), &[&x, &y], &format!("%s = arith.cmpi {predicate}, %a, %b : i32"));
        out.push(exact(Case::new(format!("integers/cmpi_{predicate}"), p, &[&r])));
    }
    for predicate in ["slt", "sle", "sgt", "sge", "ult"] {
        out.extend([1, 8, 16, 32].map(|bits| compared_wide(predicate, bits)));
    }
    for (dtype, shape) in [(Dtype::Int(32), [17, 3]), (Dtype::F32, [9, 10]), (Dtype::Int(8), [5, 7])] {
        let mut p = Program::new();
        let c = p.input(Dtype::Int(1), &shape);
        let (x, y) = (p.input(dtype, &shape), p.input(dtype, &shape));
        let r = p.pointwise(dtype, &[&c, &x, &y], &format!("%s = arith.select %a, %b, %c : {dtype}"));
        out.push(exact(Case::new(format!("integers/select/{dtype}"), p, &[&r])));
    }
    out
}

fn binary(operation: &Operation, dtype: Dtype, shape: &[usize]) -> Case {
    let (op, (al, ah), (bl, bh)) = *operation;
    let mut p = Program::new();
    let (x, y) = (p.input_within(dtype, shape, al, ah), p.input_within(dtype, shape, bl, bh));
    let r = p.pointwise(dtype, &[&x, &y], &format!("%s = {op} %a, %b : {dtype}"));
    let sign = if bl < 0.0 && bh < 0.0 { "_negative" } else { "" };
    exact(Case::new(format!("integers/{}{sign}/{dtype}/{}", &op[6..], by(shape)), p, &[&r]))
}

/// Sums and their overflow; half of the numbers have the highest bit set.
fn add_extended(dtype: Dtype) -> Case {
    let mut p = Program::new();
    let (x, y) = (p.input(dtype, &[8, 64]), p.input(dtype, &[8, 64]));
    let (sum, overflow) = (p.empty(dtype, &[8, 64]), p.empty(Dtype::Int(1), &[8, 64]));
    let body = format!("%s, %t = arith.addui_extended %a, %b : {dtype}, i1");
    let ins = [(&x, "i, j"), (&y, "i, j")];
    let r = p.generics("i j", &ins, &[(&sum, "i, j"), (&overflow, "i, j")], &body, "%s, %t");
    exact(Case::new(format!("integers/addui_extended/{dtype}"), p, &[&r[0], &r[1]]))
}

/// Widened in the body that compares it with a constant.
fn compared_wide(predicate: &str, bits: u32) -> Case {
    let dtype = Dtype::Int(bits);
    let mut p = Program::new();
    let x = p.input(dtype, &[63]);
    let body = format!(
        "%w = arith.extsi %a : {dtype} to i64; %k = arith.constant -1 : i64; %s = arith.cmpi {predicate}, %w, %k : i64"
    );
    let r = p.pointwise(Dtype::Int(1), &[&x], &body);
    exact(Case::new(format!("integers/cmpi_wide_{predicate}/{dtype}"), p, &[&r]))
}

/// Bases around 0 to exponents of both signs; the large ones wrap.
fn power(bits: u32) -> Case {
    let dtype = Dtype::Int(bits);
    let mut p = Program::new();
    let (x, y) = (p.input_within(dtype, &[7, 33], -4.0, 5.0), p.input_within(dtype, &[7, 33], -5.0, 70.0));
    let r = p.pointwise(dtype, &[&x, &y], &format!("%s = math.ipowi %a, %b : {dtype}"));
    exact(Case::new(format!("integers/ipowi/{dtype}"), p, &[&r]))
}

fn exact(case: Case) -> Case {
    case.within(0.0, 0.0).dispatches(1)
}

/// Numbers with highest and lowest bits at any position, the smallest number and zero among them.
fn counted(op: &str, bits: u32) -> Case {
    let dtype = Dtype::Int(bits);
    let mut p = Program::new();
    if bits == 1 {
        let x = p.input(dtype, &[10, 20]);
        let r = p.pointwise(dtype, &[&x], &format!("%s = {op} %a : i1"));
        return exact(Case::new(format!("integers/{}/i1", &op[5..]), p, &[&r]));
    }
    let last = f64::from(bits);
    let (x, n) = (p.input_within(dtype, &[10, 20], -100.0, 100.0), p.input_within(dtype, &[10, 20], 0.0, last));
    let body = format!(
        "%u = arith.constant 1 : {dtype}; %h = arith.shrsi %a, %u : {dtype}; %l = arith.shli %h, %b : {dtype}; %s = {op} %l : {dtype}"
    );
    let r = p.pointwise(dtype, &[&x, &n], &body);
    exact(Case::new(format!("integers/{}/{dtype}", &op[5..]), p, &[&r]))
}
